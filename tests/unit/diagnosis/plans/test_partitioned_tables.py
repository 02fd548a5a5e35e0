"""Rules about partitioned tables."""

import pytest

from fakes.findings import compare_findings
from fakes.planned_evidence import column, evidence, plan, statement, table
from uncork.diagnosis.rules.plans import partitions
from uncork.model.database.catalogue import TableOptions

COLUMNS = {"reading": ("meter", "taken", "value")}
BY_DAY = "SELECT max(value) FROM reading WHERE date_trunc('day', taken) = $1"
BY_METER = "SELECT value FROM reading WHERE meter = $1"


def readings(sql, many=30, key="RANGE (taken)", **facts):
    parts = {
        f"reading_{day}": TableOptions(f"reading_{day}", 1, {}, "permanent", parent="reading")
        for day in range(many)
    }
    options = {"reading": TableOptions("reading", 1, {}, "permanent", partition_key=key), **parts}
    return evidence(
        statement(sql, COLUMNS, **facts),
        tables=(table("reading", 200_000),),
        columns=tuple(column("reading", name) for name in COLUMNS["reading"]),
        options=options,
    )


def test_an_executed_plan_counts_the_partitions_that_were_read():
    text = """Append  (cost=0.0..9.0 rows=2 width=4)
  ->  Seq Scan on reading_1  (cost=0.0..4.0 rows=1 width=4)
  ->  Seq Scan on reading_2  (cost=0.0..4.0 rows=1 width=4)"""
    seen = readings(BY_DAY)
    one = statement(BY_DAY, COLUMNS, plan(text, "executed"))
    few = evidence(one, tables=tuple(seen.tables.values()), options=seen.catalogue.options)
    assert list(partitions.find_not_pruned(few)) == []


@pytest.mark.parametrize("facts", [{"planning_ns": 600 * 15e6, "ms": 5.0}, {"ms": 30.0}])
def test_planning_that_takes_longer_than_executing_is_found_with_and_without_its_counter(facts):
    (found,) = partitions.find_too_many(readings(BY_METER, many=250, **facts))
    assert found.headline == "Planning over 250 partitions of reading takes longer than executing"
    assert found.bill.share >= 0.5


def test_what_is_found_word_for_word():
    compare_findings("partitioned_tables", [
        ("a key within an expression prunes nothing",
         partitions.find_not_pruned(readings(BY_DAY)),
         partitions.find_not_pruned(readings(
             "SELECT value FROM reading WHERE taken::date = $1"))),
        ("a look up by another column searches all partitions",
         partitions.find_not_pruned(readings(BY_METER, rows=5.0))),
        ("pruned partitions and reports are left alone",
         *(partitions.find_not_pruned(healthy) for healthy in (
             readings(BY_DAY, many=2), readings(BY_METER, rows=50_000.0),
             readings("SELECT sum(value) FROM reading"),
             readings("SELECT value FROM reading WHERE meter = $1 AND taken >= $2 AND taken < $3"),
             readings("SELECT value FROM reading WHERE meter = $1", key="HASH (meter)"),
             readings("SELECT value FROM reading WHERE taken = $1",
                      key="LIST (lower(taken), taken)")))),
        ("many partitions that cost no planning are no finding",
         *(partitions.find_too_many(healthy) for healthy in (
             readings(BY_METER, many=250, ms=95.0), readings(BY_METER, many=12, ms=5.0)))),
    ])  # fmt: skip
