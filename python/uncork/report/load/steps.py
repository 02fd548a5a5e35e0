"""The table of a transaction's time by step, from the generator to the server and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncork.model.results.load import LoadResult, LoadStepName
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import duration_cell, share_cell

__all__ = ["steps_table"]

_NAMES: Final[Mapping[LoadStepName, str]] = {
    "generator": "in the generator",
    "network": "network and protocol",
    "plan": "planning",
    "locks": "waiting for locks",
    "storage": "reading and writing",
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "server": "in the server otherwise",
    "unknown": "unknown",
}
_NOTES: Final[Mapping[LoadStepName, str]] = {
    "generator": "between statements",
    "network": "at least: empty statements, without load",
    "plan": "pg_stat_statements",
    "locks": "samples: within statements",
    "storage": "samples: within statements",
    "execute": "pg_stat_statements, without these waits",
    "commit": "samples: commits",
}
_OTHERWISE: Final = "samples: parsing, sending results, waiting for a processor"
_UNPLANNED: Final = "samples: parsing, planning, sending results, waiting for a processor"


def steps_table(result: LoadResult) -> Table | None:
    """Return where the time of a transaction went; None unless the load was watched."""
    if not result.steps:
        return None
    planned = any(one.name == "plan" for one in result.steps)
    notes = {**_NOTES, "server": _OTHERWISE if planned else _UNPLANNED}
    return Table(
        "Where the time of a transaction went, while the load was sent again",
        (Column("step", header=True), Column("each", number=True), Column("share", number=True)),
        tuple(
            (
                Value(_NAMES[one.name], note=notes.get(one.name, "")),
                duration_cell(one.ns),
                share_cell(one.share),
            )
            for one in result.steps
        ),
    )
