"""Divide the time of busy sessions by step: planning, executing, committing, waiting for the client. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from uncork.model.bottleneck import COMMIT_EVENTS
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import CountedTime, TimeNode, TimeStep


def counted_time(
    statements: Iterable[Mapping[str, Any]], snapshots: Mapping[str, Mapping[str, Any]]
) -> CountedTime | None:
    """Add up the growth of pg_stat_statements between two snapshots; None if nothing ran.

    Statements within functions are left out, because the time of the outer statement contains theirs.
    """
    counted = [row for row in statements if row["toplevel"] is not False]
    if not counted:
        return None
    planned = any(row["plans"] for row in counted)
    return CountedTime(
        begun_us=snapshots["before"]["begun_us"],
        ended_us=snapshots["after"]["begun_us"],
        calls=sum(row["calls"] for row in counted),
        planning_ns=sum(row["planning_ns"] for row in counted) if planned else None,
        execution_ns=sum(row["execution_ns"] for row in counted),
    )


def commit_sessions(tree: TimeNode) -> float:
    """Return how many sessions waited for a commit to be written, on average."""
    return sum(
        event.sessions
        for of_class in tree.children
        for event in of_class.children
        if event.kind == "event" and event.name in COMMIT_EVENTS
    )


def active_sessions(tree: TimeNode) -> float:
    """Return how many sessions were active on average: busy, and not idle in transaction."""
    return sum(child.sessions for child in tree.children if child.name != IDLE)


def waits_of_statements(tree: TimeNode) -> tuple[tuple[Literal["locks", "storage"], float], ...]:
    """Return how many sessions waited within statements on average: for locks, and for storage."""
    sessions = {child.name: child.sessions for child in tree.children}
    commits = sum(
        event.sessions
        for of_class in tree.children
        for event in of_class.children
        if of_class.name == "IO" and event.kind == "event" and event.name in COMMIT_EVENTS
    )
    return ("locks", sessions.get("Lock", 0.0)), ("storage", max(0.0, sessions.get("IO", 0.0) - commits))


def steps_of(tree: TimeNode, counted: CountedTime) -> tuple[TimeStep, ...]:
    """Return the steps of busy sessions' time. They add up to the tree.

    Planning is a step only if the server counts it (pg_stat_statements.track_planning). What no source
    explains is `unknown`: parsing, statements that had not ended, and planning if it is not counted.
    """
    elapsed_ns = (counted.ended_us - counted.begun_us) * 1000
    if not tree.sessions or elapsed_ns <= 0:
        return ()
    left = tree.sessions
    found: list[TimeStep] = []

    def take(name: Any, sessions: float) -> None:
        nonlocal left
        # Statements that began before the watch can make the counters exceed the samples.
        sessions = min(sessions, left)
        left -= sessions
        found.append(TimeStep(name, sessions, sessions / tree.sessions))

    take("idle in transaction", sum(child.sessions for child in tree.children if child.name == IDLE))
    take("commit", commit_sessions(tree))
    if counted.planning_ns is not None:
        take("plan", counted.planning_ns / elapsed_ns)
    take("execute", counted.execution_ns / elapsed_ns)
    take("unknown", left)
    return tuple(found)
