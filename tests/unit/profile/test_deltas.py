"""Differences between snapshots, and counters that were reset in between."""

import pytest

from uncork.model.results.database import StatementFacts
from uncork.model.tables.database import DROPPED_DATABASE
from uncork.profile.deltas import (
    counter_deltas,
    kernel_deltas,
    kernel_totals,
    resets,
    row_deltas,
    statement_delta,
    statement_deltas,
    statement_totals,
)


def entry(calls, execution_ns, **figures):
    blank = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    key = {"user": "u", "user_oid": 10, "database": "d", "database_oid": 5, "query_id": 7, "toplevel": True}
    return {**blank, **key, "calls": calls, "execution_ns": execution_ns, **figures}


def dropped(oid, calls, **figures):
    return entry(calls, 10.0 * calls, database=DROPPED_DATABASE, database_oid=oid, **figures)


def counter(value, name="reads", view="pg_stat_io", of="client backend, relation, normal", oid=None):
    return {"view": view, "object": of, "oid": oid, "counter": name, "value": value}


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


def test_statements_of_dropped_databases_are_told_apart_by_number():
    before = [dropped(1, 9, temp_written=900), dropped(2, 4, temp_written=2_700_000), dropped(3, 6)]
    assert statement_deltas(before, before) == []
    after = [before[0], before[1], dropped(3, 8)]
    assert [(one["database_oid"], one["calls"]) for one in statement_deltas(before, after)] == [(3, 2)]


def test_entries_of_old_runs_that_names_alone_cannot_tell_apart_are_left_out():
    old = {"user_oid": None, "database_oid": None}
    before = [dropped(1, 9) | old, dropped(2, 4) | old, entry(3, 30.0) | old]
    after = [dropped(1, 9) | old, dropped(2, 4) | old, entry(5, 50.0) | old]
    assert [(one["database"], one["calls"]) for one in statement_deltas(before, after)] == [("d", 2)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (entry(3, 90.0), entry(5, 50.0)),  # thrown out, made anew, and called more often than before
        (entry(3, 30.0, since_us=1), entry(5, 50.0, since_us=2)),
    ],
)
def test_an_entry_made_anew_counts_whole_though_it_has_more_calls(before, after):
    found = statement_delta(before, after)
    assert (found["calls"], found["execution_ns"]) == (5, 50.0)


def test_no_figure_of_an_entry_is_negative():
    found = statement_delta(entry(3, 30.0, wal_bytes=500), entry(4, 40.0, wal_bytes=20))
    assert min(found[name] for name in StatementFacts.__dataclass_fields__) >= 0


def test_a_database_of_the_same_name_made_anew_is_another():
    def active(value, oid):
        return counter(value, "active_time", "pg_stat_database", "shop", oid)

    (grown,) = counter_deltas([active(70.0, 1)], [active(90.0, 2)])
    assert grown.delta == 90.0


def test_counters_that_were_reset_count_whole_though_they_grew_beyond_what_they_were():
    before = [counter(5.0), counter(9.0, "writes"), counter(1.0, "stats_reset")]
    after = [counter(8.0), counter(9.0, "writes"), counter(2.0, "stats_reset")]
    assert [(one.counter, one.delta) for one in counter_deltas(before, after)] == [
        ("reads", 8.0),
        ("writes", 9.0),
    ]


def test_counters_that_could_not_be_read_before_have_no_difference():
    assert counter_deltas([], [counter(8.0)], unread=["pg_stat_io"]) == ()
    (row,) = row_deltas([], [{"oid": 1, "seq_scans": 9}], ("seq_scans",), read=False)
    assert row["seq_scans"] == 0


def test_a_table_of_which_one_counter_fell_was_reset_as_a_whole():
    before = [{"oid": 1, "seq_scans": 4, "inserted": 100}]
    after = [{"oid": 1, "seq_scans": 9, "inserted": 7}]
    assert list(row_deltas(before, after, ("seq_scans", "inserted"))) == after


def test_a_database_made_in_between_was_not_reset():
    assert resets([], [counter(2.0, "stats_reset", "pg_stat_database", "new", 5)]) == ()


def test_resets_are_named_by_view_and_part():
    before = [counter(1.0, "stats_reset"), counter(1.0, "stats_reset", "pg_stat_database", "shop")]
    after = [
        counter(2.0, "stats_reset"),
        counter(2.0, "stats_reset", "pg_stat_database", "shop"),
        counter(1.0, "stats_reset", "pg_stat_wal", ""),
    ]
    before.append(counter(7.0, "wal_records", "pg_stat_wal", ""))
    assert resets(before, after) == ("pg_stat_database of shop", "pg_stat_io", "pg_stat_wal")
    assert resets(before, before) == ()


def test_tables_keep_their_state_and_tell_their_work():
    before = [{"oid": 1, "seq_scans": 4, "rows": 10}]
    after = [{"oid": 1, "seq_scans": 9, "rows": 12}, {"oid": 2, "seq_scans": 3, "rows": 1}]
    assert list(row_deltas(before, after, ("seq_scans",))) == [
        {"oid": 1, "seq_scans": 5, "rows": 12},
        {"oid": 2, "seq_scans": 3, "rows": 1},
    ]


def kernel(user_ns, system_ns=0.0, read_bytes=0):
    figures = {"user_ns": user_ns, "system_ns": system_ns, "read_bytes": read_bytes, "written_bytes": 0}
    return {**entry(0, 0.0), **figures}


def test_the_kernels_counts_have_resets_of_their_own():
    (grown,) = kernel_deltas([kernel(5.0, 2.0, 10)], [kernel(9.0, 3.0, 30)]).values()
    assert (grown.user_ns, grown.system_ns, grown.read_bytes) == (4.0, 1.0, 20)
    (reset,) = kernel_deltas([kernel(5.0, 2.0)], [kernel(9.0, 1.0)]).values()
    assert (reset.user_ns, reset.system_ns) == (9.0, 1.0)
    (new,) = kernel_deltas([], [kernel(3.0)]).values()
    whole = kernel_totals([grown, reset, new])
    assert (whole.user_ns, whole.system_ns, whole.read_bytes) == (16.0, 2.0, 20)
    assert kernel_totals([]) is None
