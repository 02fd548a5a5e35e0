"""Which tables of a large database are read in detail, and what is known of the others."""

from uncork.engines.watch.details import Details, add_details, add_index_scans, chosen_tables
from uncork.model.tables.rows import Rows

BLOCK = 8192


def tables(*rows):
    names = ("oid", "kind", "pages", "toast_pages", "live", "fetched")
    return Rows(names, [(oid, "table", pages, toast, live, 0) for oid, pages, toast, live in rows])


def indexes(*rows):
    names = (
        *("oid", "table_oid", "pages", "key", "class", "collation", "option", "key_columns"),
        *("has_expressions", "has_predicate", "scans", "fetched"),
    )
    return Rows(names, rows)


def index(oid, table, pages=1, key="1", many=1, expressions=False, predicate=False, scans=0, fetched=0):
    return (oid, table, pages, key, "1978", "0", "0", many, expressions, predicate, scans, fetched)


def keys(*rows):
    return Rows(("oid", "numbers"), rows)


def test_used_tables_come_first_then_the_largest_as_far_as_relations_are_allowed():
    found = tables((1, 10, 0, 5), (2, 0, 50, 5), (3, 30, 0, 5), (4, 1, 0, 5))
    of = indexes(index(11, 1, pages=100), index(12, 4), index(13, 4))
    assert chosen_tables(found, of, (), most=100) == (1, 2, 3, 4)
    assert chosen_tables(found, of, (4,), most=100) == (4, 1, 2, 3)
    assert chosen_tables(found, of, (), most=3) == (1, 2)
    # Used tables are read even if they are too many.
    assert chosen_tables(found, of, (3, 4), most=2) == (3, 4)


def test_a_table_that_was_never_analysed_is_ranked_by_its_rows():
    assert chosen_tables(tables((1, 10, 0, 100), (2, 0, 0, 5000)), indexes(), (), most=1) == (2,)


def test_scans_of_indexes_are_those_of_their_table():
    found = tables((1, 1, 0, 5), (2, 1, 0, 5))
    of = indexes(index(11, 1, scans=3, fetched=30), index(12, 1, scans=4, fetched=40))
    add_index_scans(found, of, {11: 1, 12: 1})
    assert [(row["index_scans"], row["index_rows"]) for row in found] == [(7, 70), (0, 0)]


def test_what_was_not_read_has_the_size_of_its_last_vacuum_and_no_definition():
    found, foreign = tables((1, 10, 5, 9), (2, 3, 0, 9)), keys((21, "1"), (22, "2,3"))
    of = indexes(
        index(11, 1), index(12, 2, pages=7, expressions=True), index(13, 2, expressions=True, predicate=True)
    )
    details = Details(
        frozenset({1}),
        {1: (900, 1000), 11: (100, None)},
        {1: {1: 4.0, 2: 8.0}},
        {11: ("CREATE INDEX ...", "", "")},
        {21: ("customer", 0.1, 50.0, 0.2)},
    )
    kept = add_details(found, of, foreign, details, BLOCK)
    assert [(row["main_bytes"], row["bytes"], row["index_bytes"], row["row_width"]) for row in found] == [
        (900, 1000, 100, 12.0),
        (3 * BLOCK, 3 * BLOCK, 8 * BLOCK, None),
    ]
    assert [(row["bytes"], row["key_width"], row["definition"]) for row in kept] == [
        (100, 4.0, "CREATE INDEX ..."),
        (7 * BLOCK, None, ""),
        (BLOCK, None, ""),
    ]
    # Expressions that were not read are not equal to each other: no index is called a duplicate.
    assert kept[1]["expressions"] != kept[2]["expressions"] and kept[0]["expressions"] == ""
    assert kept[1]["predicate"] == "" and kept[2]["predicate"]
    assert [row["columns"] for row in foreign] == ["customer", "columns 2,3"]


def test_keys_and_included_columns_are_told_apart():
    of = indexes((11, 1, 1, "2 0 5", "1978 3126", "0 100", "0 3", 2, True, False, 0, 0))
    (row,) = add_details(tables((1, 1, 0, 1)), of, keys(), Details(), BLOCK)
    assert row["keys"] == "2:1978:0:0,0:3126:100:3" and row["included"] == "5"


def test_an_index_that_was_dropped_while_it_was_read_is_left_out():
    of = indexes(index(11, 1), index(12, 1))
    kept = add_details(
        tables((1, 1, 0, 1)), of, keys(), Details(frozenset({1}), definitions={11: None}), 8192
    )
    assert kept.column("oid") == [12]


def test_a_locked_table_has_no_size():
    found = tables((1, 10, 0, 5))
    add_details(found, indexes(), keys(), Details(frozenset({1})), BLOCK)
    assert found[0]["bytes"] is None
