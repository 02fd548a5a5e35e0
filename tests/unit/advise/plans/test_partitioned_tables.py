"""Rules about partitioned tables."""

import pytest

from fakes.planned_evidence import column, evidence, plan, statement, table
from uncork.advise.rules.plans import partitions
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


def test_a_key_within_an_expression_prunes_nothing():
    (found,) = partitions.find_not_pruned(readings(BY_DAY))
    assert found.headline == "All 30 partitions of reading are read, as their key taken is in an expression"
    assert "taken >= the first value" in found.candidates[0].text
    (found,) = partitions.find_not_pruned(readings("SELECT value FROM reading WHERE taken::date = $1"))
    assert "taken::date" in found.candidates[0].text


def test_a_look_up_by_another_column_searches_all_partitions():
    (found,) = partitions.find_not_pruned(readings(BY_METER, rows=5.0))
    assert found.headline == "All 30 partitions of reading are read, as no condition compares their key taken"
    assert not found.candidates[0].same_answers


@pytest.mark.parametrize(
    "healthy",
    [
        readings(BY_DAY, many=2),
        readings(BY_METER, rows=50_000.0),
        readings("SELECT sum(value) FROM reading"),
        readings("SELECT value FROM reading WHERE meter = $1 AND taken >= $2 AND taken < $3"),
        readings("SELECT value FROM reading WHERE meter = $1", key="HASH (meter)"),
        readings("SELECT value FROM reading WHERE taken = $1", key="LIST (lower(taken), taken)"),
    ],
)
def test_pruned_partitions_and_reports_are_left_alone(healthy):
    assert list(partitions.find_not_pruned(healthy)) == []


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


@pytest.mark.parametrize(
    "healthy",
    [readings(BY_METER, many=250, ms=95.0), readings(BY_METER, many=12, ms=5.0)],
)
def test_many_partitions_that_cost_no_planning_are_no_finding(healthy):
    assert list(partitions.find_too_many(healthy)) == []
