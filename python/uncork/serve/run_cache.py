"""A cache of the stored runs. It reads the list again when it is old, one reader at a time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from uncork.analysis.runs.listing import RunList, read_runs
from uncork.model.stored_run import StoredRun
from uncork.store.layout import Manifest

_FRESH_S: Final = 1.0
"""Age up to which a list is fresh. An older one is shown too, and read again in the background."""
_OLD_S: Final = 10.0
"""Age above which a list is not shown any more."""
_REST: Final = 4.0
"""Rest between two reads, as a multiple of the time the last read took, so that reading many runs does not
slow down many visitors."""


_MOST_VALUES: Final = 2_000

Value = TypeVar("Value")


class NoSuchRunError(Exception):
    """An address names a run that is not stored, or a file that no run has."""


@dataclass(frozen=True, slots=True)
class Seen:
    """All runs at one moment, newest first; the runs by id; damaged runs; the values to filter by.

    `number` increases whenever any run has changed.
    """

    list: RunList
    runs: tuple[StoredRun, ...]
    by_id: dict[str, StoredRun]
    damaged: tuple[str, ...]
    kinds: tuple[tuple[str, int], ...]
    statuses: tuple[tuple[str, int], ...]
    tags: tuple[tuple[str, int], ...]
    cases: tuple[tuple[str, int], ...]
    number: int = 0

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the manifests of all runs, oldest first."""
        return tuple(run.manifest for run in self.list.catalogue.runs)


class RunCache:
    """The runs of one folder. Use it in one event loop only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._seen: Seen | None = None
        self._at = 0.0
        self._took = 0.0
        self._reading: asyncio.Task[Seen] | None = None

    async def seen(self, *, newest: bool = False) -> Seen:
        """Return the runs; with `newest`, as they are now. Raises StoreError."""
        age = time.monotonic() - self._at
        if self._seen is not None and self._seen.runs and not newest and age < _OLD_S:
            if age > max(_FRESH_S, _REST * self._took):
                self._read_again()
            return self._seen
        if newest and self._reading is not None:  # that read may have begun before the change
            await asyncio.wait([self._reading])
        return await asyncio.shield(self._read_again())

    async def find(self, id: str) -> StoredRun:
        """Return a listed run by its id. Raises NoSuchRunError."""
        found = (await self.seen()).by_id.get(id)
        if found is None and time.monotonic() - self._at > _FRESH_S / 2:
            found = (await self.seen(newest=True)).by_id.get(id)
        if found is None:
            raise NoSuchRunError(id)
        return found

    def _read_again(self) -> asyncio.Task[Seen]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> Seen:
        began = time.monotonic()
        found = await asyncio.to_thread(_look, self.root, self._seen)
        self._seen, self._at, self._took = found, began, time.monotonic() - began
        return found


class ValueCache(Generic[Value]):
    """A value of each run by its id, read once per change. For one event loop only."""

    def __init__(self, read: Callable[[Sequence[StoredRun]], Mapping[str, Value]]) -> None:
        self._read = read
        self._kept: OrderedDict[tuple[str, str], Value] = OrderedDict()

    async def of(self, runs: Sequence[StoredRun]) -> dict[str, Value]:
        """Return the value of each run, by its id."""
        missing = [run for run in runs if (run.id, run.stamp) not in self._kept]
        if missing:
            read = await asyncio.to_thread(self._read, missing)
            self._kept |= {(run.id, run.stamp): read[run.id] for run in missing}
        found = {run.id: self._kept[run.id, run.stamp] for run in runs}
        while len(self._kept) > _MOST_VALUES:
            self._kept.popitem(last=False)
        return found


def _look(root: Path, before: Seen | None) -> Seen:
    found = read_runs(root, None if before is None else before.list)
    runs = tuple(reversed(found.runs))
    number = 0 if before is None else before.number + (runs != before.runs)
    tags = Counter(word for run in runs for word in (*run.names, *run.tags))
    return Seen(
        list=found,
        runs=runs,
        by_id={run.id: run for run in runs},
        damaged=tuple(str(error) for error in found.damaged),
        kinds=_counted(Counter(run.kind for run in runs)),
        statuses=_counted(Counter(run.status for run in runs)),
        tags=_counted(tags),
        cases=_counted(Counter(run.case for run in runs if run.case)),
        number=number,
    )


def _counted(counter: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counter.items()))
