"""The table of busy sessions by step: planning, executing, waiting for the client, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncork.model.results.database import DatabaseResult, StepName
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import share_cell
from uncork.report.database.words import sessions_text

_NAMES: Final[Mapping[StepName, str]] = {
    "plan": "planning",
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "idle in transaction": "idle in transaction",
    "unknown": "unknown",
}
_UNCOUNTED: Final = "parsing, planning, statements that had not ended"
_COUNTED: Final = "parsing, statements that had not ended"


def steps_table(result: DatabaseResult) -> Table | None:
    """Return how busy sessions' time divides into steps; None if pg_stat_statements was not read."""
    if not result.steps:
        return None
    planned = any(step.name == "plan" for step in result.steps)
    notes: Mapping[StepName, str] = {
        "plan": "pg_stat_statements",
        "execute": "pg_stat_statements",
        "commit": "commits",
        "unknown": _COUNTED if planned else _UNCOUNTED,
    }
    return Table(
        "Busy sessions by step",
        (
            Column("step", header=True),
            Column("sessions", number=True),
            Column("share", number=True),
        ),
        tuple(
            (
                Value(_NAMES[step.name], note=notes.get(step.name, "")),
                Value(sessions_text(step.sessions), sort=step.sessions),
                share_cell(step.share),
            )
            for step in result.steps
        ),
    )
