"""What several statements want, merged into the fewest indexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.diagnosis.rules.indexes.keys import Wanted, merge, serves
from uncork.model.database.index import IndexKey, IndexShape


def key(text):
    name, _, direction = text.partition(" ")
    return IndexKey(name, descending=direction == "desc")


def want(text, **options):
    """Return what ``a b | c desc`` wants: a and b equal, then c."""
    equal, _, rest = text.partition("|")
    keys = tuple(key(one.strip()) for one in rest.split(",") if one.strip())
    return Wanted("t", tuple(map(key, equal.split())), keys, **options)


def columns(merged):
    return [
        " ".join(one.column + (" desc" if one.descending else "") for one in each.index.keys)
        for each in merged
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["a", "a b"], ["a b"]),
        (["b", "a b"], ["b a"]),
        (["a b", "b a"], ["a b"]),
        (["a b c", "c", "c b"], ["c b a"]),
        (["a", "b"], ["a", "b"]),
        (["a b", "b c"], ["a b", "b c"]),
        (["a | c", "a"], ["a c"]),
        (["a | c", "a c"], ["a c"]),
        (["a | c", "c"], ["a c", "c"]),
        (["a | c", "a | d"], ["a c", "a d"]),
        (["a | c, d desc", "a c"], ["a c d desc"]),
        (["a c", "a | c desc, d"], ["a c desc d"]),
        (["a | c desc, d", "a | c, d"], ["a c desc d", "a c d"]),
        (["| c", "c"], ["c"]),
    ],
)
def test_the_fewest_indexes_serve_all(wanted, expected):
    merged = merge([want(text) for text in wanted])
    assert columns(merged) == expected
    assert sorted(place for one in merged for place in one.members) == list(range(len(wanted)))
    for one in merged:
        for place in one.members:
            assert serves(one.index, want(wanted[place]))


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abc")), st.lists(st.sampled_from(["x", "y desc", "c"]), unique=True)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_each_statement_is_served_whatever_the_others_want(found):
    wanted = [
        Wanted("t", tuple(map(key, sorted(equal))), tuple(map(key, rest)))
        for equal, rest in found
        if (equal or rest) and not equal.intersection(rest)
    ]
    for one in merge(wanted):
        for place in one.members:
            assert serves(one.index, wanted[place]), (one.index.columns, wanted[place])


def test_other_methods_conditions_and_tables_stay_apart():
    gin = want("a", method="gin")
    partial = want("a", predicate="b IS NULL")
    assert len(merge([want("a"), gin, partial, Wanted("other", (key("a"),))])) == 4
    assert len(merge([gin, gin])) == 1
    assert merge([want("a", included=("x",)), want("a b", included=("y",))])[0].index.included == ("x", "y")


@pytest.mark.parametrize(
    ("definition", "wanted", "expected"),
    [
        (["a", "b"], "a", True),
        (["a", "b"], "b a", True),
        (["a", "b"], "b", False),
        (["a", "b"], "a | c", False),
        (["a", "b", "c"], "b a | c", True),
        (["a", "b", "c"], "a c", False),
        (["a", "b desc"], "a | b", True),
        (["a", "b desc", "c"], "a | b, c", False),
        (["a", "b desc", "c"], "a | b, c desc", True),
    ],
)
def test_an_index_serves_if_its_first_keys_are_the_wanted_ones(definition, wanted, expected):
    assert serves(IndexShape("t", tuple(map(key, definition))), want(wanted)) is expected


def test_a_partial_index_serves_only_its_condition():
    partial = IndexShape("t", (key("a"),), predicate="b IS NULL")
    assert not serves(partial, want("a"))
    assert serves(partial, want("a", predicate="b IS NULL"))
    assert not serves(IndexShape("t", (key("a"),)), want("a", predicate="b IS NULL"))
    assert serves(IndexShape("t", (key("b"), key("a"))), want("a", predicate="b IS NULL"))


def test_expressions_are_compared_without_the_casts_that_postgresql_adds():
    existing = IndexShape("t", (IndexKey("", "lower((email)::text)"),))
    assert serves(existing, Wanted("t", (IndexKey("", "lower(email)"),)))


def plain(name, **options):
    return IndexKey(name, **options)


@pytest.mark.parametrize(
    ("existing", "wanted", "expected"),
    [
        # The order of another collation is another order, and its index finds no equal keys either.
        (plain("a", collation="C"), Wanted("t", (), (plain("a"),)), False),
        (plain("a", collation="C"), Wanted("t", (plain("a"),)), False),
        (plain("a"), Wanted("t", (), (plain("a", collation="C"),)), False),
        (plain("a", collation="pg_catalog.C"), Wanted("t", (), (plain("a", collation="C"),)), True),
        # The order of characters serves patterns and equal keys, but not the order of the collation.
        (plain("a", opclass="text_pattern_ops"), Wanted("t", (plain("a"),)), True),
        (plain("a", opclass="text_pattern_ops"), Wanted("t", (), (plain("a"),)), False),
        (plain("a"), Wanted("t", (), (plain("a", opclass="text_pattern_ops"),)), False),
        (plain("a", descending=True), Wanted("t", (), (plain("a", nulls_first=True),)), False),
        (plain("a", descending=True),
         Wanted("t", (), (plain("a", descending=True, nulls_first=False),)), False),
        (plain("a", nulls_first=True),
         Wanted("t", (), (plain("a", descending=True, nulls_first=False),)), True),
    ],
)  # fmt: skip
def test_an_index_serves_only_in_its_own_collation_and_order(existing, wanted, expected):
    assert serves(IndexShape("t", (existing,)), wanted) is expected


def test_equal_keys_and_patterns_on_a_column_share_an_index():
    pattern = Wanted("t", (), (plain("a", opclass="text_pattern_ops"),))
    for wanted in ([Wanted("t", (plain("a"),)), pattern], [pattern, Wanted("t", (plain("a"), plain("b")))]):
        merged = merge(wanted)
        assert all(serves(one.index, wanted[place]) for one in merged for place in one.members)
        assert len(merged) == 1
    other = Wanted("u", (plain("a"),))
    assert [one.index.keys[0].opclass for one in merge([other, pattern])] == ["", "text_pattern_ops"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        # A prefix of one is no prefix of the other: b decides first in one, c in the other.
        (["a | b", "a | c", "a"], ["a b", "a c"]),
        # Three statements that share a column, but not the first one.
        (["a b", "b c", "c a"], ["a b", "b c", "c a"]),
        # An order between two sets of equal keys.
        (["a | d desc, e", "a d", "a | d desc"], ["a d desc e"]),
        (["a b | c", "b | c"], ["a b c", "b c"]),
        (["a b c d", "d c", "d"], ["d c a b"]),
    ],
)
def test_combinations_that_no_single_order_serves_stay_apart(wanted, expected):
    merged = merge([want(text) for text in wanted])
    assert columns(merged) == expected
    for one in merged:
        assert all(serves(one.index, want(wanted[place])) for place in one.members)
