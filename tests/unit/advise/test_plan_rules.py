"""What stands out in generic plans of the server."""

from uncork.advise.plan_rules import plan_notes, scanned_rows
from uncork.model.results.database import PlanNote

PLAN = """\
Sort  (cost=5000.00..5100.00 rows=40000 width=8)
  Sort Key: i.place
  ->  Hash Join  (cost=2.00..400.00 rows=40000 width=8)
        Hash Cond: (i.kind = k.id)
        ->  Seq Scan on items i  (cost=0.00..339.00 rows=40000 width=8)
              Filter: (place > $1)
        ->  Hash  (cost=1.00..1.00 rows=10 width=4)
              ->  Seq Scan on kinds k  (cost=0.00..1.00 rows=10 width=4)
                    Filter: (name = $2)"""


def test_a_scan_of_a_large_table_with_a_filter_and_a_large_sort_stand_out():
    assert plan_notes(PLAN, {"items": 50_000.0, "kinds": 10.0}) == (
        PlanNote("sort", "", 40_000.0, ""),
        PlanNote("seq-scan", "items", 50_000.0, "(place > $1)"),
    )


def test_what_is_small_unfiltered_or_unknown_does_not_stand_out():
    assert plan_notes(PLAN.replace("40000", "900"), {"kinds": 10.0}) == ()
    assert plan_notes("Seq Scan on items  (cost=0.00..339.00 rows=40000 width=8)", {"items": 5e4}) == ()
    index = "Index Scan using a on items  (cost=0.00..8.00 rows=1 width=8)\n  Filter: (place = $1)"
    assert plan_notes(index, {"items": 5e4}) == ()
    parallel = 'Parallel Seq Scan on "Big Table"  (cost=0.00..8.00 rows=1 width=8)\n  Filter: (a = $1)'
    assert plan_notes(parallel, {"Big Table": 5e4}) == (PlanNote("seq-scan", "Big Table", 5e4, "(a = $1)"),)


def test_the_rows_that_pass_a_scan_count_all_processes():
    alone = "Seq Scan on item  (cost=0.00..1.00 rows=900 width=4)\n  Filter: live"
    parallel = (
        "Gather  (cost=0.00..1.00 rows=900 width=4)\n  Workers Planned: 2\n"
        "  ->  Parallel Seq Scan on item  (cost=0.00..1.00 rows=375 width=4)"
    )
    assert scanned_rows(alone, "item") == 900
    assert scanned_rows(parallel, "item") == 900
    assert scanned_rows(alone, "other") is None
    assert scanned_rows("Index Scan using i on item  (cost=0.0..1.0 rows=9 width=4)", "item") is None
