"""Differences between snapshots, and counters that were reset in between."""

import pytest

from uncork.model.database_result import StatementFacts
from uncork.profile.deltas import counter_deltas, resets, row_deltas, statement_delta, statement_totals


def entry(calls, execution_ns, **figures):
    blank = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    key = {"user": "u", "database": "d", "query_id": 7, "toplevel": True}
    return {**blank, **key, "calls": calls, "execution_ns": execution_ns, **figures}


def counter(value, name="reads", view="pg_stat_io", of="client backend, relation, normal"):
    return {"view": view, "object": of, "counter": name, "value": value}


def test_a_statement_is_told_by_what_it_did_in_between():
    found = statement_delta(entry(3, 30.0, rows=9, jit_ns=None), entry(5, 70.0, rows=11, jit_ns=None))
    assert (found["calls"], found["execution_ns"], found["rows"], found["jit_ns"]) == (2, 40.0, 2, None)


@pytest.mark.parametrize(("before", "calls"), [(None, 5), (entry(9, 90.0), 5)])
def test_a_new_entry_and_one_that_was_reset_count_whole(before, calls):
    assert statement_delta(before, entry(5, 50.0))["calls"] == calls


def test_a_statement_that_did_not_run_is_left_out():
    assert statement_delta(entry(5, 50.0), entry(5, 50.0)) is None


def test_planning_without_execution_is_work_too():
    assert statement_delta(entry(5, 50.0, plans=1), entry(5, 50.0, plans=2))["plans"] == 1


def test_entries_of_a_template_add_up_and_what_is_not_counted_stays_unknown():
    total = statement_totals(
        [entry(2, 20.0, jit_ns=None, wal_bytes=5), entry(3, 5.0, jit_ns=None, wal_bytes=6)]
    )
    assert (total.calls, total.execution_ns, total.wal_bytes, total.jit_ns) == (5, 25.0, 11, None)


def test_counters_are_told_by_their_growth():
    found = counter_deltas([counter(5.0), counter(1.0, "writes")], [counter(9.0), counter(1.0, "writes")])
    assert [(one.counter, one.delta) for one in found] == [("reads", 4.0)]


def test_a_counter_that_fell_was_reset_and_a_gauge_is_none():
    found = counter_deltas([counter(50.0)], [counter(9.0), counter(3.0, "numbackends")])
    assert [(one.counter, one.delta) for one in found] == [("reads", 9.0)]


def test_resets_are_named_by_view_and_part():
    before = [counter(1.0, "stats_reset"), counter(1.0, "stats_reset", "pg_stat_database", "shop")]
    after = [
        counter(2.0, "stats_reset"),
        counter(2.0, "stats_reset", "pg_stat_database", "shop"),
        counter(1.0, "stats_reset", "pg_stat_wal", ""),
    ]
    assert resets(before, after) == ("pg_stat_database of shop", "pg_stat_io", "pg_stat_wal")
    assert resets(before, before) == ()


def test_tables_keep_their_state_and_tell_their_work():
    before = [{"oid": 1, "seq_scans": 4, "rows": 10}]
    after = [{"oid": 1, "seq_scans": 9, "rows": 12}, {"oid": 2, "seq_scans": 3, "rows": 1}]
    assert row_deltas(before, after, ("seq_scans",)) == [
        {"oid": 1, "seq_scans": 5, "rows": 12},
        {"oid": 2, "seq_scans": 3, "rows": 1},
    ]
