"""Divide the time of a load's transactions by step: in the generator, on the way, in the server. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.analysis.database.steps import active_sessions, commit_sessions, waits_of_statements
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadStep, LoadStepName, StepGap

_MOST: Final = 1.15
"""Statements that a source may count for each statement of the load; more are of other clients."""
_LEAST_POOLED: Final = 0.85
_LEAST_LOGGED: Final = 0.75
"""Fractions of the load's statements that PgBouncer and the log must have at least. A log whose times are
whole seconds lacks up to one of five seconds."""
_LEAST_BOUND: Final = 0.9
"""Durations of bind for each execution in a log that has all; one with a threshold lacks the short ones."""


@dataclass(frozen=True, slots=True)
class WatchedLoad:
    """What was counted while a load was watched.

    `load` is what the clients saw, `pool` what PgBouncer's console counted for the load's database, and `log`
    the durations in the server's log by kind; both are None unless they were read. `path` says whether the
    load goes through a pooler, and how long an empty statement takes on its way; empty if unknown.
    """

    load: Mapping[str, int]
    pool: Mapping[str, float] | None = None
    log: Mapping[str, Mapping[str, int]] | None = None
    path: Mapping[str, Any] = field(default_factory=dict)


def watched_of(options: Mapping[str, Any]) -> WatchedLoad | None:
    """Return what a manifest's options hold of a load that was watched; None if it was not."""
    load = options.get("watched_load")
    if load is None:
        return None
    path = options.get("load_path", {})
    return WatchedLoad(load, options.get("watched_pool"), options.get("watched_log"), path)


def load_steps(watched: WatchedLoad, database: DatabaseResult) -> tuple[LoadStep, ...]:
    """Return where the time of a transaction went while the load was watched. The steps add up to the whole.

    No step exceeds what the steps before it left. Empty if pg_stat_statements was not read, or if other
    clients sent statements too. The load must not have several transactions in flight on a connection.
    """
    load, counted = watched.load, database.counted
    whole_ns, operations = load["operations_ns"], load["operations"]
    if counted is None or not operations or not whole_ns:
        return ()
    elapsed_us = load["elapsed_ns"] / 1000
    begun_us = load["ended_us"] - elapsed_us
    seen_us = min(load["ended_us"], counted.ended_us) - max(begun_us, counted.begun_us)
    if seen_us <= 0 or counted.calls * elapsed_us / seen_us > _MOST * load["statements"]:
        return ()

    def steps() -> Iterator[tuple[LoadStepName, float]]:
        rate = elapsed_us / seen_us
        yield "generator", float(max(0, whole_ns - load["statements_ns"]))
        if watched.pool is not None and _pool_gap(watched) is None:
            yield "pool", watched.pool["wait_us"] * 1000
        trip_ns = watched.path.get("round_trip_ns") or database.watch.round_trip_ns
        if trip_ns is not None:
            yield "network", load["round_trips"] * trip_ns
        committing = commit_sessions(database.tree) * load["elapsed_ns"]
        yield "commit", committing
        planning = (counted.planning_ns or 0.0) * rate
        parsing, binding = _logged(watched, planning)
        if parsing is not None and binding is not None:
            yield "parse", parsing
            yield "bind", binding
        if counted.planning_ns is not None:
            yield "plan", planning
        active = active_sessions(database.tree) * load["elapsed_ns"]
        known = committing + planning + counted.execution_ns * rate + (parsing or 0.0) + (binding or 0.0)
        executing = counted.execution_ns * rate
        for wait, sessions in waits_of_statements(database.tree):
            inside = min(executing, sessions * load["elapsed_ns"])
            executing -= inside
            yield wait, inside
        yield "execute", executing
        yield "server", max(0.0, active - known)

    left, found = float(whole_ns), []
    for name, ns in steps():
        taken = min(ns, left)
        left -= taken
        found.append(LoadStep(name, taken / operations, taken / whole_ns))
    return (*found, LoadStep("unknown", left / operations, left / whole_ns))


def _logged(watched: WatchedLoad, planning: float) -> tuple[float | None, float | None]:
    """Return the time of parsing, and of binding without `planning`, from the log; None if unknown.

    The log may lack the statements of a moment, so the durations of those it has stand for all.
    """
    log = watched.log
    if log is None or _log_gap(watched, log) is not None:
        return None, None
    for_all = watched.load["statements"] / log["execute"]["count"]
    return log["parse"]["ns"] * for_all, max(0.0, log["bind"]["ns"] * for_all - planning)


# ---- what no source counted ----


def step_gaps(watched: WatchedLoad, protocol: str) -> tuple[StepGap, ...]:
    """Return the steps that no source counted. `protocol` is the load's."""
    if protocol == "simple":
        parse: StepGap | None = StepGap("parse", "simple protocol")
    elif watched.log is None:
        parse = StepGap("parse", "no source")
    else:
        parse = _log_gap(watched, watched.log)
    return tuple(gap for gap in (_pool_gap(watched), parse) if gap is not None)


def _pool_gap(watched: WatchedLoad) -> StepGap | None:
    if watched.pool is None:
        return StepGap("pool", "no source") if watched.path.get("pooled") else None
    seen, sent = round(watched.pool["queries"]), watched.load["round_trips"]
    if seen < _LEAST_POOLED * sent:
        return StepGap("pool", "incomplete", seen, sent)
    return StepGap("pool", "others", seen, sent) if seen > _MOST * sent else None


def _log_gap(watched: WatchedLoad, log: Mapping[str, Mapping[str, int]]) -> StepGap | None:
    """Return why a log does not have the time of parsing of the load's statements; None if it has."""
    executed, sent = log["execute"]["count"], watched.load["statements"]
    seen = executed + log["statement"]["count"]
    if log["untold"]["count"] > seen:
        return StepGap("parse", "unlabelled", seen, sent)
    if seen > _MOST * sent:
        return StepGap("parse", "others", seen, sent)
    if log["statement"]["count"] > executed:
        return StepGap("parse", "simple protocol", seen, sent)
    if not executed or seen < _LEAST_LOGGED * sent or log["bind"]["count"] < _LEAST_BOUND * executed:
        return StepGap("parse", "incomplete", seen, sent)
    return None
