"""Indexes for subqueries and joins of long statements: how often a plan searches, and what it would save."""

from dataclasses import replace

import pytest

from fakes.table_evidence import column, evidence, index, statement, table
from uncork.diagnosis.rules.indexes import missing_index
from uncork.model.database.plan import PlanNode, StatementPlan

COLUMNS = (
    column("line", "id", "bigint"),
    column("line", "part", distinct=20_000),
    column("line", "supplier", distinct=1_000),
    column("line", "quantity", "numeric", distinct=50),
    column("offer", "part", distinct=20_000),
    column("offer", "supplier", distinct=1_000),
    column("offer", "stock", distinct=10_000),
    column("part", "id", distinct=-1.0),
    column("part", "brand", "text", distinct=1_000),
)
TABLES = (table("line", 600_000, 11_000), table("offer", 80_000, 1_700), table("part", 20_000, 400))
PRIMARY = (
    index("CREATE UNIQUE INDEX line_pkey ON line (id)"),
    index("CREATE UNIQUE INDEX part_pkey ON part (id)"),
)
SMALLER = (
    "SELECT sum(quantity) FROM line, part WHERE part.id = line.part AND brand = $1 AND "
    "quantity < (SELECT avg(quantity) FROM line WHERE line.part = part.id)"
)
IN_STOCK = (
    "SELECT supplier FROM offer WHERE part IN (SELECT id FROM part WHERE brand = $1) AND "
    "stock > (SELECT sum(quantity) FROM line WHERE line.part = offer.part AND line.supplier = offer.supplier)"
)


def node(kind, cost, rows=1.0, *children, relation="", alias="", role="Outer", **conditions):
    known = tuple((name.replace("_", " "), text) for name, text in conditions.items())
    return PlanNode(kind, relation, alias, "", 0.0, cost, rows, 8, known, role=role, children=children)


def scan(relation, cost, rows, *children, alias="", **facts):
    return node("Seq Scan", cost, rows, *children, relation=relation, alias=alias or relation, **facts)


def subplan(*children, cost):
    return node("Aggregate", cost, 1.0, *children, role="SubPlan")


def proposed(sql, root, source="seen", columns=COLUMNS, **counts):
    plans = (StatementPlan(0, source, root, ""),)
    seen = evidence([statement(0, sql, plans=plans, **counts)], TABLES, columns, PRIMARY)
    return {(one.objects[0], one.objects[1:]) for one in missing_index.find_missing_indexes(seen)}


def smaller():
    """Return a plan that filters the rows of a join by a subquery, which it evaluates ten times."""
    return node(
        "Aggregate",
        210_000,
        1,
        node(
            "Hash Join",
            209_000,
            180,
            scan("line", 17_000, 600_000),
            node("Hash", 710, 18, scan("part", 710, 18), role="Inner"),
            subplan(scan("line", 18_800, 30, alias="line_1", Filter="(part = part.id)"), cost=18_900),
            Join_Filter="(line.quantity < (SubPlan 1))",
        ),
    )


def in_stock():
    """Return a plan that filters a table by a subquery, then joins few rows of another."""
    return node(
        "Nested Loop",
        1.6e9,
        269,
        scan(
            "offer",
            1.6e9,
            26_667,
            subplan(
                scan("line", 20_000, 1, Filter="((part = offer.part) AND (supplier = offer.supplier))"),
                cost=20_000,
            ),
            Filter="((stock)::numeric > (SubPlan 1))",
        ),
        node("Materialize", 661, 202, scan("part", 660, 202), role="Inner"),
        Join_Filter="(offer.part = part.id)",
    )


NOT_ENDED = {"calls": None, "rows": None, "blocks": None, "mean_ns": None}
REPORT = {"calls": 6, "rows": 6, "blocks": 6_000_000, "mean_ns": 5e9}


@pytest.mark.parametrize("counts", [NOT_ENDED, REPORT])
def test_a_subquery_that_scans_a_table_for_each_row_wants_an_index_on_what_it_compares(counts):
    assert proposed(SMALLER, smaller(), **counts) == {("line", ("part",))}


def test_a_scan_that_evaluates_a_subquery_for_each_row_saves_it_for_the_rows_that_an_index_leaves_out():
    assert proposed(IN_STOCK, in_stock(), **NOT_ENDED) == {
        ("line", ("part", "supplier")),
        ("offer", ("part",)),
    }


def test_a_report_whose_plan_has_no_real_values_is_left_alone():
    assert not proposed(SMALLER, smaller(), source="generic", **REPORT)
    assert not proposed(SMALLER, smaller(), **{**REPORT, "calls": 4})


def joined(parts: float):
    """Return a plan that scans all lines for those of some parts."""
    lines = scan("line", 18_500, 600_000)
    chosen = node("Hash", 710, parts, scan("part", 710, parts), role="Inner")
    return node("Hash Join", 19_300, parts * 30, lines, chosen)


def test_repeated_searches_read_a_block_once():
    """If the lines of a part lie together, 1 000 parts have them in 1 000 blocks, not in 30 000."""
    sql = "SELECT sum(quantity) FROM line, part WHERE line.part = part.id AND part.brand = $1"
    counts = {"calls": 50, "rows": 50, "blocks": 50 * 11_400, "mean_ns": 1e8}
    together = tuple(replace(one, correlation=1.0) if one.name == "part" else one for one in COLUMNS)
    assert proposed(sql, joined(1_000), columns=together, **counts) == {("line", ("part",))}
    assert not proposed(sql, joined(1_000), **counts)
    assert not proposed(sql, joined(10_000), columns=together, **counts)


def newest_of_each(searched: float):
    """Return a plan that takes the newest line of each part by an index on their order."""
    search = node("Index Scan", 9_000, 30, relation="line", alias="l", Filter="(l.part = p.id)")
    return node(
        "Nested Loop",
        searched * 300 + 20,
        20,
        scan("part", 20, 300, alias="p"),
        node("Limit", searched, 1, search, role="Inner"),
    )


def test_the_first_row_for_each_row_of_another_table_wants_the_columns_of_both_conditions():
    sql = (
        "SELECT p.id, n.quantity FROM part p CROSS JOIN LATERAL "
        "(SELECT quantity FROM line l WHERE l.part = p.id ORDER BY l.id DESC LIMIT 1) n WHERE p.brand = $1"
    )
    counts = {"calls": 50, "rows": 1_000, "blocks": 40_000, "mean_ns": 2e7}
    assert proposed(sql, newest_of_each(300), **counts) == {("line", ("part", "id"))}
    assert not proposed(sql, newest_of_each(8), **counts)  # each search finds its row at once


def test_a_recursive_query_searches_again_for_the_rows_that_it_found():
    sql = (
        "WITH RECURSIVE below AS (SELECT id, part FROM line WHERE id = $1 UNION ALL "
        "SELECT l.id, l.part FROM line l JOIN below ON l.part = below.id) SELECT count(*) FROM below"
    )
    found = node(
        "Hash Join",
        17_500,
        300,
        scan("line", 17_000, 600_000, alias="l"),
        node("Hash", 1, 10, role="Inner"),
        role="Inner",
    )
    first = node("Index Scan", 8, 1, relation="line", alias="line", Index_Cond="(id = 7)")
    root = node("Aggregate", 176_000, 1, node("Recursive Union", 175_000, 3_000, first, found))
    assert proposed(sql, root, calls=50, rows=50, blocks=550_000, mean_ns=5e8) == {("line", ("part",))}


@pytest.mark.parametrize("aggregate", ["max", "min"])
def test_the_largest_value_of_a_column_wants_an_index_on_it(aggregate):
    root = PlanNode(
        "Aggregate", "", "", "", 0.0, 18_600, 1, 8,
        output=(f"(COALESCE({aggregate}(line.quantity), '0'::numeric) + '1'::numeric)",),
        children=(scan("line", 17_000, 600_000),),
    )  # fmt: skip
    sql = f"INSERT INTO offer (stock) SELECT coalesce({aggregate}(quantity), 0) + 1 FROM line"
    counts = {"calls": 60, "rows": 60, "blocks": 660_000, "mean_ns": 2e8}
    assert proposed(sql, root, **counts) == {("line", ("quantity",))}
    several = f"SELECT {aggregate}(quantity), count(*) FROM line"
    assert not proposed(several, root, **counts)


def test_an_index_on_the_key_of_the_outer_table_saves_nothing_to_a_join_that_searches_for_each_row():
    sql = "SELECT count(*) FROM line JOIN part ON part.id = line.part WHERE quantity <> $1"
    root = node(
        "Aggregate",
        19_000,
        1,
        node(
            "Nested Loop",
            18_900,
            30_000,
            scan("line", 17_000, 30_000, Filter="(quantity <> 5)"),
            node(
                "Index Scan", 8, 1, relation="part", alias="part", role="Inner", Index_Cond="(id = line.part)"
            ),
        ),
    )
    assert not proposed(sql, root, **REPORT)


def either(own: float, *, hashed: bool):
    """Return a plan that counts parts which match or have lines, with all lines in a hash table or not."""
    name = "hashed SubPlan 2).col1" if hashed else "SubPlan 2)"
    within = node("Seq Scan", 18_500, 200_000, relation="line", alias="line", role="SubPlan")
    filtered = f"((brand = 'x'::text) AND ((id < 9) OR (ANY (id = ({name}))))"
    parts = scan("part", own, 100, replace(within, subplan="SubPlan 2"), Filter=filtered)
    return node("Aggregate", own + 10, 1.0, parts)


def test_a_scan_does_not_cost_what_a_hashed_subquery_does():
    """The planner's cost of the scan is that of executing the subquery for each row, even if it is hashed."""
    sql = (
        "SELECT count(*) FROM part WHERE brand = $1 AND "
        "(id < $2 OR EXISTS (SELECT 1 FROM line WHERE line.supplier = part.id AND quantity > 3))"
    )
    counts = {"calls": 50, "rows": 50, "blocks": 50 * 11_400, "mean_ns": 1e8}
    assert ("part", ("brand",)) not in proposed(sql, either(7e6, hashed=True), **counts)
    assert ("part", ("brand",)) in proposed(sql, either(7e6, hashed=False), **counts)


def test_a_queue_that_locks_its_first_row_wants_the_order_in_the_index():
    """The plan of drawn values shows how many rows have a common state, not that of the jobs to do."""
    sql = (
        "UPDATE line SET quantity = 1 WHERE id = (SELECT id FROM line WHERE brand = $1 AND supplier = $2 "
        "ORDER BY part, id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id"
    )
    columns = (*COLUMNS, column("line", "brand", "text", distinct=3))
    found = scan("line", 17_000, 200_000, alias="line_1", Filter="((brand = 'a') AND (supplier = 5))")
    first = node("Limit", 22_000, 1, node("LockRows", 22_000, 200_000, node("Sort", 20_000, 200_000, found)))
    search = node("Index Scan", 8, 1, relation="line", alias="line", Index_Cond="(id = (InitPlan 1).col1)")
    root = PlanNode(
        "ModifyTable",
        "line",
        "line",
        "",
        0.0,
        22_008,
        1,
        8,
        children=(replace(first, role="InitPlan"), search),
    )
    counts = {"calls": 129, "rows": 129, "blocks": 129 * 11_000, "mean_ns": 8e7}
    assert proposed(sql, root, "drawn", columns, **counts) == {("line", ("supplier", "brand", "part", "id"))}
