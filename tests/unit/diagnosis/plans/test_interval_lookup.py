"""Intervals that contain a value: an index on their bounds reads half of them."""

import pytest

from fakes.table_evidence import column, evidence, index, statement, table
from uncork.diagnosis.rules.plans import whole_tables

COLUMNS = (
    column("geo", "low", "bigint", not_null=True),
    column("geo", "high", "bigint", not_null=True),
    column("geo", "since", "timestamp with time zone", not_null=True),
    column("geo", "until", "timestamp with time zone", not_null=False),
    column("geo", "country", "text", distinct=200),
)
INDEX = index("CREATE INDEX geo_low_high ON geo (low, high)")


def found(where, **counts):
    known = {"calls": 600, "rows": 600, "blocks": 600 * 300, **counts}
    seen = evidence(
        [statement(0, f"SELECT country FROM geo WHERE {where}", **known)], [table("geo")], COLUMNS, [INDEX]
    )
    return list(whole_tables.find_interval(seen))


@pytest.mark.parametrize(
    ("where", "span", "same"),
    [
        ("low <= $1 AND high >= $1", "int8range(low, high, '[]')", True),
        ("$1 >= low AND high > $2", "int8range(low, high, '[)')", True),
        ("since < now() AND until > now()", "tstzrange(since, until, '()')", False),
    ],
)
def test_the_range_of_both_bounds_is_indexed(where, span, same):
    (one,) = found(where)
    first, other = one.candidates
    assert f"USING gist ({span})" in first.sql
    assert first.same_answers == same
    assert any("NULL in until" in text for text in first.against) != same
    assert not other.same_answers


@pytest.mark.parametrize(
    ("where", "counts"),
    [
        ("low <= $1 AND high >= $1", {"blocks": 600 * 30}),
        ("low <= $1 AND high >= $1", {"rows": 600 * 5_000}),
        ("low >= $1 AND low <= $2", {}),
        ("low <= $1 AND high >= $1 AND country = $2", {}),
        ("low <= $1 OR high >= $1", {}),
        ("low <= $1 AND until >= $2", {}),
    ],
)
def test_other_searches_have_no_finding(where, counts):
    assert not found(where, **counts)
