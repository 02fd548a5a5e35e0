"""Caches: the stored runs, and their reports as pages, drawn on request until the cache is full."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from uncork.analysis.runs.figures import FIGURED
from uncork.analysis.runs.listing import RunList, read_runs
from uncork.analysis.runs.telemetry import run_telemetry
from uncork.model.stored_run import StoredRun
from uncork.report.blocks import Document
from uncork.report.write.exports import export, files_of
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text
from uncork.report.write.otlp import otlp_requests
from uncork.store.layout import Manifest
from uncork.workbench.documents.run_document import (
    RunDocument,
    comparison_document,
    history_document,
    run_document,
)

_MOST_BYTES: Final = 256 << 20
_AT_ONCE: Final = 2
_PATIENCE_S: Final = 8.0
"""Longest time a request waits for a page. After it, the visitor is told to wait while drawing continues."""
_WAITING: Final = 40
"""Most reports that may wait. Only `_AT_ONCE` are drawn at a time, because drawing takes processor time."""


class TooBusyError(Exception):
    """Too many reports wait to be drawn. Not an `UncorkError`, because nothing is wrong with the run."""


class StillDrawingError(Exception):
    """A page takes long to draw. Drawing continues; a later request gets the page."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn page; for a report, also the document and JSON for its exports."""

    html: str
    document: Document | None = None
    json: str = ""

    @property
    def size(self) -> int:
        """Return the approximate size in memory, in characters."""
        return len(self.html) + len(self.json)


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """A request for a history: metric, subject (empty: the whole run), and one run of the series (`like`)."""

    metric: str
    subject: str
    like: str

    @property
    def query(self) -> str:
        """Return the query string of its address."""
        return urlencode({"like": self.like, "metric": self.metric, "of": self.subject})


class ReportCache:
    """Draws each report once and keeps it. Use it in one event loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Drawn] = OrderedDict()
        self._bytes = 0
        self._drawing: dict[tuple[str, str], asyncio.Task[Drawn]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def report(self, run: StoredRun) -> Drawn:
        """Return a run's report. Raises UncorkError, TooBusyError, or StillDrawingError."""
        key = run.id, await asyncio.to_thread(_content_stamp, run.folder)
        return await self._made(key, lambda: _drawn(run))

    async def _made(self, key: tuple[str, str], make: Callable[[], Drawn]) -> Drawn:
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        if key not in self._drawing:
            if len(self._drawing) >= _WAITING:
                raise TooBusyError("Too many reports are being drawn; try again in a minute")
            self._drawing[key] = asyncio.create_task(self._draw(key, make))
            self._drawing[key].add_done_callback(_heard)
        try:
            return await asyncio.wait_for(asyncio.shield(self._drawing[key]), _PATIENCE_S)
        except TimeoutError as error:
            raise StillDrawingError(
                "everything on the page is read and drawn when it is first opened"
            ) from error

    async def comparison(
        self, root: Path, before: StoredRun, others: Sequence[StoredRun], manifests: Sequence[Manifest]
    ) -> Drawn:
        """Return the page that compares runs with one of them. Raises as `report` does."""
        runs = (before, *others)
        stamps = [await asyncio.to_thread(_content_stamp, run.folder) for run in runs]
        key = "compared " + " ".join(run.id for run in runs), " ".join(stamps)
        return await self._made(key, lambda: _compared(root, before, others, manifests))

    async def history(
        self, root: Path, wanted: HistoryWanted, manifests: Sequence[Manifest], stamp: str
    ) -> Drawn:
        """Return a metric's history; `stamp` changes when runs do. Raises as `report` does."""
        key = f"history {wanted.query}", stamp
        return await self._made(key, lambda: _history(root, wanted, manifests))

    async def export(self, drawn: Drawn, number: int, form: str) -> bytes:
        """Return a chart or table of a page as a file. Raises UncorkError, also if it does not exist."""
        async with self._places:
            return await asyncio.to_thread(export, document_of(drawn), number, form)

    async def markdown(self, run: StoredRun) -> str:
        """Return a run's report as Markdown. Raises UncorkError as `report` does."""
        drawn = await self.report(run)
        return await asyncio.to_thread(markdown_text, document_of(drawn))

    async def telemetry(self, run: StoredRun) -> bytes:
        """Return a run's time series as lines of OTLP. Raises UncorkError if it has none."""
        async with self._places:
            return await asyncio.to_thread(_telemetry, run)

    async def _draw(self, key: tuple[str, str], make: Callable[[], Drawn]) -> Drawn:
        try:
            async with self._places:
                drawn = await asyncio.to_thread(make)
        finally:
            del self._drawing[key]
        self._kept[key] = drawn
        self._bytes += drawn.size
        while self._bytes > _MOST_BYTES and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.size
        return drawn


def _heard(task: asyncio.Task[Drawn]) -> None:
    """Retrieve the task's exception, because nobody may be waiting for the task any more."""
    if not task.cancelled():
        task.exception()


def document_of(drawn: Drawn) -> Document:
    """Return a report as a document."""
    if drawn.document is None:
        raise AssertionError("reports have a document")
    return drawn.document


def compared_query(before: StoredRun, others: Sequence[StoredRun]) -> str:
    """Return the query string of a comparison of runs with one of them."""
    return urlencode([("against", before.id), *(("run", run.id) for run in others)])


def _drawn(run: StoredRun) -> Drawn:
    made = run_document(run.folder)
    here = f"/runs/{quote(run.id)}"
    links = [("All runs", "/"), ("Tags and exports", f"{here}/details"), ("Cases", "/cases")]
    if run.kind in FIGURED:
        links.insert(1, ("History", f"/history?{urlencode({'like': run.id})}"))
    if run.status == "running":
        links.insert(1, ("Follow it", f"{here}/live"))
    return _page(made, links, lambda number, form: f"{here}/exports/{number}.{form}")


def _compared(
    root: Path, before: StoredRun, others: Sequence[StoredRun], manifests: Sequence[Manifest]
) -> Drawn:
    links = [("All runs", "/"), *((run.id, f"/runs/{quote(run.id)}") for run in (before, *others))]
    made = comparison_document(root, before.folder, [run.folder for run in others], manifests)
    query = compared_query(before, others)
    return _page(made, links, lambda number, form: f"/compare/exports/{number}.{form}?{query}")


def _history(root: Path, wanted: HistoryWanted, manifests: Sequence[Manifest]) -> Drawn:
    made = history_document(root, wanted.metric, wanted.subject, wanted.like, manifests)
    links = [
        ("All runs", "/"),
        ("Histories", "/history"),
        (f"Other metrics of {wanted.like}", f"/history?{urlencode({'like': wanted.like})}"),
    ]
    if made.result.changes:
        before, since = made.result.changes[-1].last, made.result.changes[-1].since
        beside = urlencode([("against", before), ("run", since)])
        links.append(("Compare before and after the last change", f"/compare?{beside}"))
    return _page(made, links, lambda number, form: f"/history/exports/{number}.{form}?{wanted.query}")


def _page(
    made: RunDocument[object], links: Sequence[tuple[str, str]], address: Callable[[int, str], str]
) -> Drawn:
    return Drawn(html_page(made.document, links, files_of(made.document, address)), made.document, made.json)


def _telemetry(run: StoredRun) -> bytes:
    return "".join(f"{line}\n" for line in otlp_requests(run_telemetry(run.folder))).encode()


def _content_stamp(folder: Path) -> str:
    newest, files = 0, 0
    for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        newest, files = max(newest, place.stat().st_mtime_ns), files + 1
    return f"{newest}-{files}"


# ---- the stored runs, listed again when the list is old, one reader at a time ----


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
