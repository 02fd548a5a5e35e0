"""The few values of a column: all rows are read for them, where an index finds each by one descent."""

import pytest

from fakes.table_evidence import column, evidence, index, statement, table
from uncork.advise.rules.plans import whole_tables
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

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


def test_an_index_is_descended_once_for_each_value():
    (one,) = found("SELECT DISTINCT shop FROM orders ORDER BY shop DESC")
    assert one.headline == "Each call reads all 2 000 000 rows of orders for 5 values of shop"
    assert fits(finding_headline(one))
    assert one.objects == ("orders", "shop")
    rewritten, client = one.candidates
    assert rewritten.sql == (
        "WITH RECURSIVE each_value AS ((SELECT shop FROM orders ORDER BY shop LIMIT 1) "
        "UNION ALL SELECT (SELECT above.shop FROM orders AS above WHERE above.shop > each_value.shop "
        "ORDER BY above.shop LIMIT 1) FROM each_value WHERE each_value.shop IS NOT NULL) "
        "SELECT shop FROM each_value WHERE shop IS NOT NULL ORDER BY 1 DESC"
    )
    assert rewritten.same_answers and not rewritten.unprovable and not client.same_answers


def test_without_an_index_one_comes_first_and_null_is_a_value():
    (one,) = found("SELECT o.state FROM orders AS o GROUP BY o.state")
    created, rewritten, _ = one.candidates
    assert created.sql == "CREATE INDEX CONCURRENTLY orders_state_idx ON orders (state);"
    assert "UNION ALL SELECT NULL WHERE EXISTS (SELECT FROM orders WHERE state IS NULL)" in rewritten.sql
    assert rewritten.unprovable


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
