"""Which sources divide a transaction's time: PgBouncer's console and the log, if they have this load."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.database_results import database_result

from uncork.analysis.load.result import WatchedLoad, load_steps, step_gaps, watched_of
from uncork.model.results.database import CountedTime, TimeNode
from uncork.model.results.load import StepGap

LOAD = {
    "ended_us": 5_000_000,
    "elapsed_ns": 5_000_000_000,
    "operations": 500,
    "operations_ns": 80_000_000_000,
    "statements": 1000,
    "statements_ns": 80_000_000_000,
    "round_trips": 1000,
}
POOL = {"queries": 1003, "wait_us": 70_000_000}
LOG = {
    "parse": {"count": 980, "ns": 98_000_000},
    "bind": {"count": 980, "ns": 196_000_000},
    "execute": {"count": 980, "ns": 1_000_000_000},
    "statement": {"count": 0, "ns": 0},
    "untold": {"count": 0, "ns": 0},
}
COUNTED = CountedTime(
    begun_us=0, ended_us=5_000_000, calls=1010, planning_ns=150_000_000, execution_ns=2_000_000_000
)
IDLE = TimeNode("all", "", 0.0, 1.0, None, ())
WATCHED = WatchedLoad(LOAD, POOL, LOG, {"pooled": True, "round_trip_ns": 100_000})


def steps_of(watched, counted=COUNTED):
    seen = replace(database_result(), counted=counted, tree=IDLE)
    return {one.name: one.ns for one in load_steps(watched, seen)}


def logged(**changes):
    return {**LOG, **{kind: {"count": count, "ns": 10**8} for kind, count in changes.items()}}


def test_pool_and_log_are_steps_of_a_transaction():
    found = steps_of(WATCHED)
    assert found["pool"] == pytest.approx(140e6)  # 70 s over 500 transactions
    assert found["network"] == pytest.approx(200e3)  # two round trips on the way of the load
    assert found["parse"] == pytest.approx(200e3)  # 98 ms for 980 of 1 000 statements
    assert found["bind"] == pytest.approx(100e3)  # 200 ms, without 150 ms of planning
    assert found["plan"] == pytest.approx(300e3)
    assert step_gaps(WATCHED, "extended") == ()


def test_binding_contains_planning_if_that_is_not_counted():
    found = steps_of(WATCHED, replace(COUNTED, planning_ns=None))
    assert "plan" not in found
    assert found["bind"] == pytest.approx(400e3)


@pytest.mark.parametrize(
    ("pool", "path", "gap"),
    [
        (None, {}, None),
        (None, {"pooled": False}, None),
        (None, {"pooled": True}, StepGap("pool", "no source")),
        ({"queries": 0, "wait_us": 0}, {"pooled": False}, StepGap("pool", "incomplete", 0, 1000)),
        ({"queries": 300, "wait_us": 9}, {"pooled": True}, StepGap("pool", "incomplete", 300, 1000)),
        ({"queries": 1200, "wait_us": 9}, {"pooled": True}, StepGap("pool", "others", 1200, 1000)),
    ],
)
def test_a_console_that_has_not_this_load_alone_is_no_source(pool, path, gap):
    watched = replace(WATCHED, pool=pool, path=path)
    assert "pool" not in steps_of(watched)
    assert step_gaps(watched, "extended") == (() if gap is None else (gap,))


@pytest.mark.parametrize(
    ("log", "protocol", "gap"),
    [
        (None, "extended", StepGap("parse", "no source")),
        (None, "simple", StepGap("parse", "simple protocol")),
        (logged(parse=0, bind=0, execute=0, statement=1000), "simple", StepGap("parse", "simple protocol")),
        (logged(execute=0), "extended", StepGap("parse", "incomplete", 0, 1000)),
        (logged(execute=700), "extended", StepGap("parse", "incomplete", 700, 1000)),
        (logged(parse=3, bind=10), "extended", StepGap("parse", "incomplete", 980, 1000)),  # a threshold
        (logged(execute=1200), "extended", StepGap("parse", "others", 1200, 1000)),
        (logged(execute=0, untold=3000), "extended", StepGap("parse", "unlabelled", 0, 1000)),
    ],
)
def test_a_log_without_all_durations_is_no_source(log, protocol, gap):
    watched = replace(WATCHED, log=log)
    assert "parse" not in steps_of(watched)
    assert step_gaps(watched, protocol) == (gap,)


def test_prepared_statements_are_parsed_before():
    watched = replace(WATCHED, log=logged(parse=0))
    assert "parse" in steps_of(watched)
    assert step_gaps(watched, "prepared") == ()


def test_runs_of_older_versions_have_steps():
    assert watched_of({}) is None
    older = watched_of({"watched_load": LOAD})
    assert older == WatchedLoad(LOAD)
    assert sum(steps_of(older).values()) == pytest.approx(160e6)
