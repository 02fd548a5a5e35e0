"""Divide the time of a load's transactions by step: in the generator, on the way, in the server. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uncork.analysis.database.steps import active_sessions, commit_sessions, waits_of_statements
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadStep, LoadStepName

__all__ = ["load_steps"]

_MOST_CALLS: Final = 1.15
"""Statements that the server may count for each statement of the load; more are of other clients."""


def load_steps(
    watched: Mapping[str, int], database: DatabaseResult, pipeline_depth: int
) -> tuple[LoadStep, ...]:
    """Return where the time of a transaction went while the load was watched. The steps add up to the whole.

    `watched` is what the clients saw of that load. `network`, `plan`, `execute` and the waits come from the
    server and its watch; no step exceeds what the steps before it left. Empty if pg_stat_statements was
    not read, if other clients sent statements too, or if transactions overlap on a connection.
    """
    counted = database.counted
    whole_ns, operations = watched["operations_ns"], watched["operations"]
    if counted is None or not operations or not whole_ns or pipeline_depth > 1:
        return ()
    elapsed_us = watched["elapsed_ns"] / 1000
    begun_us = watched["ended_us"] - elapsed_us
    seen_us = min(watched["ended_us"], counted.ended_us) - max(begun_us, counted.begun_us)
    if seen_us <= 0 or counted.calls * elapsed_us / seen_us > _MOST_CALLS * watched["statements"]:
        return ()

    def steps() -> Iterator[tuple[LoadStepName, float]]:
        rate = elapsed_us / seen_us
        yield "generator", float(max(0, whole_ns - watched["statements_ns"]))
        if database.watch.round_trip_ns is not None:
            yield "network", watched["round_trips"] * database.watch.round_trip_ns
        committing = commit_sessions(database.tree) * watched["elapsed_ns"]
        yield "commit", committing
        planning = (counted.planning_ns or 0.0) * rate
        if counted.planning_ns is not None:
            yield "plan", planning
        active = active_sessions(database.tree) * watched["elapsed_ns"]
        uncounted = max(0.0, active - committing - planning - counted.execution_ns * rate)
        executing = counted.execution_ns * rate
        for wait, sessions in waits_of_statements(database.tree):
            inside = min(executing, sessions * watched["elapsed_ns"])
            executing -= inside
            yield wait, inside
        yield "execute", executing
        yield "server", uncounted

    left, found = float(whole_ns), []
    for name, ns in steps():
        taken = min(ns, left)
        left -= taken
        found.append(LoadStep(name, taken / operations, taken / whole_ns))
    return (*found, LoadStep("unknown", left / operations, left / whole_ns))
