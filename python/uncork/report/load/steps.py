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
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "unknown": "unknown",
}
_NOTES: Final[Mapping[LoadStepName, str]] = {
    "generator": "between statements",
    "network": "at least: empty statements, without load",
    "plan": "pg_stat_statements",
    "execute": "pg_stat_statements",
    "commit": "samples: commits",
}
_COUNTED: Final = "parsing, sending results, waiting for a processor"
_UNCOUNTED: Final = "parsing, planning, sending results, waiting for a processor"


def steps_table(result: LoadResult) -> Table | None:
    """Return where the time of a transaction went; None unless the load was watched."""
    if not result.steps:
        return None
    planned = any(one.name == "plan" for one in result.steps)
    notes = {**_NOTES, "unknown": _COUNTED if planned else _UNCOUNTED}
    return Table(
        "Where the time of a transaction went, while the load was sent again",
        (Column("step", header=True), Column("each", number=True), Column("share", number=True)),
        tuple(
            (Value(_NAMES[one.name], note=notes[one.name]), duration_cell(one.ns), share_cell(one.share))
            for one in result.steps
        ),
    )
