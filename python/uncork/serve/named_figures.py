"""The metrics of named runs, such as the baseline, for Prometheus; each run is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from uncork.analysis.runs.figures import FIGURED, remembered_figures
from uncork.errors import UncorkError
from uncork.model.results.figure import RunFigures
from uncork.model.stored_run import StoredRun
from uncork.store.remote.mirrors import fetched

_MOST: Final = 50
"""Named runs whose metrics are served, the newest first."""


class NamedFigures:
    """The metrics of named runs. Use it in one event loop only."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], RunFigures | None] = {}

    async def of(self, runs: Sequence[StoredRun]) -> list[tuple[str, RunFigures]]:
        """Return each name with its run's metrics, in the order of names; runs without any are left out."""
        named = sorted((run for run in runs if _counts(run)), key=lambda run: run.started_at, reverse=True)
        named = named[:_MOST]
        missing = [run for run in named if (run.id, run.stamp) not in self._kept]
        if missing:
            self._kept |= await asyncio.to_thread(_read, missing)
        keys = {(run.id, run.stamp) for run in named}
        self._kept = {key: kept for key, kept in self._kept.items() if key in keys}
        return sorted(_by_name(named, self._kept), key=lambda pair: pair[0])


def _by_name(
    runs: Sequence[StoredRun], kept: dict[tuple[str, str], RunFigures | None]
) -> Iterator[tuple[str, RunFigures]]:
    for run in runs:
        figures = kept[run.id, run.stamp]
        if figures is not None:
            yield from ((name, figures) for name in run.names)


def _counts(run: StoredRun) -> bool:
    return bool(run.names) and run.kind in FIGURED and run.status == "complete"


def _read(runs: Sequence[StoredRun]) -> dict[tuple[str, str], RunFigures | None]:
    found: dict[tuple[str, str], RunFigures | None] = dict.fromkeys((run.id, run.stamp) for run in runs)
    by_folder = {run.folder: run for run in runs}
    with suppress(UncorkError):  # the address cannot be reached: what was read so far is served
        for folder in fetched(list(by_folder)):
            with suppress(UncorkError):  # damaged
                run = by_folder[folder]
                found[run.id, run.stamp] = remembered_figures(folder)
    return found
