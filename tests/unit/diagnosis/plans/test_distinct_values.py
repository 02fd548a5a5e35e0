"""The few values of a column: all rows are read for them, where an index finds each by one descent."""

import pytest

from fakes.findings import compare_findings
from fakes.table_evidence import column, evidence, index, statement, table
from uncork.diagnosis.rules.plans import whole_tables

COLUMNS = (
    column("orders", "state", "text", not_null=False, distinct=5),
    column("orders", "shop", "integer", not_null=True, distinct=40),
    column("orders", "price", "numeric", not_null=True, distinct=40),
)
INDEX = index("CREATE INDEX orders_shop ON orders (shop)")


def found(sql, size=2_000_000, calls=600, rows=3_000):
    known = {"calls": calls, "rows": rows, "mean_ns": 50e6}
    seen = evidence([statement(0, sql, **known)], [table("orders", size)], COLUMNS, [INDEX])
    return list(whole_tables.find_values(seen))


@pytest.mark.parametrize(
    "healthy",
    [
        found("SELECT DISTINCT shop FROM orders", size=5_000),
        found("SELECT DISTINCT shop FROM orders", calls=3),
        found("SELECT DISTINCT shop FROM orders", rows=600 * 5_000),  # many values
        found("SELECT DISTINCT price FROM orders"),  # 1.0 and 1.00 are equal and differ
        found("SELECT DISTINCT shop, state FROM orders"),
        found("SELECT DISTINCT shop FROM orders WHERE state = $1"),
        found("SELECT DISTINCT shop FROM orders LIMIT 10"),
        found("SELECT DISTINCT shop + 1 FROM orders"),
        found("SELECT shop, count(*) FROM orders GROUP BY shop"),
        found("SELECT shop FROM orders"),
    ],
)
def test_other_queries_are_left_alone(healthy):
    assert healthy == []


def test_what_is_found_word_for_word():
    compare_findings("distinct_values", [
        ("an index is descended once for each value",
         found("SELECT DISTINCT shop FROM orders ORDER BY shop DESC")),
        ("without an index one comes first and null is a value",
         found("SELECT o.state FROM orders AS o GROUP BY o.state")),
    ])  # fmt: skip
