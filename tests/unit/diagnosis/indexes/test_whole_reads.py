"""The rows that pass the filter of a sequential scan."""

from uncork.diagnosis.rules.indexes.reads import scanned_rows


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
