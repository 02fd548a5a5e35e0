"""Divide the time of busy sessions by step: planning, executing, waiting for the client. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from uncork.model.results.database import IDLE, TimeNode, TimeStep

__all__ = ["steps_of"]


def steps_of(
    tree: TimeNode, statements: Iterable[Mapping[str, Any]], elapsed_ns: float
) -> tuple[TimeStep, ...]:
    """Return the steps of busy sessions' time. They add up to the tree.

    `statements` has the growth of pg_stat_statements in `elapsed_ns`. Statements within functions are left
    out, because the time of the outer statement contains theirs. Planning is a step only if the server
    counts it (pg_stat_statements.track_planning). What no source explains is `unknown`: parsing, statements
    that had not ended, and planning if it is not counted.
    """
    counted = [row for row in statements if row["toplevel"] is not False]
    if not tree.sessions or elapsed_ns <= 0 or not counted:
        return ()
    left = tree.sessions
    found: list[TimeStep] = []

    def take(name: Any, sessions: float) -> None:
        nonlocal left
        # Statements that began before the watch can make the counters exceed the samples.
        sessions = min(sessions, left)
        left -= sessions
        found.append(TimeStep(name, sessions, sessions / tree.sessions))

    take("idle in transaction", sum(one.sessions for one in tree.children if one.name == IDLE))
    if any(row["plans"] for row in counted):
        take("plan", sum(row["planning_ns"] for row in counted) / elapsed_ns)
    take("execute", sum(row["execution_ns"] for row in counted) / elapsed_ns)
    take("unknown", left)
    return tuple(found)
