"""Profile a database server: watch it, store what was observed, and analyze it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Required, TypedDict, TypeVar, Unpack

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError
from uncork.store.layout import PARTS, Manifest
from uncork.workbench.load.progress_log import logged
from uncork.workbench.profile.database_watch import ProgressSnapshot, Watched, watch
from uncork.workbench.profile.storing import store_evidence
from uncork.workbench.run_record import RunRecord, draft, start_run

if TYPE_CHECKING:
    from uncork.model.results.database import DatabaseResult
    from uncork.model.stored_run import RunStatus
    from uncork.store.layout import Manifest

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    """A watched server as it was stored: its run, how that ended, and why early (empty if not)."""

    folder: Path
    status: RunStatus
    trouble: str


@dataclass(frozen=True, slots=True)
class DatabaseRun(DatabaseRecord):
    """A watched server, with the result."""

    result: DatabaseResult


class WatchKeywords(TypedDict, total=False):
    """How to watch a server.

    `begun` is called once connected, and `show` every second. `command` repeats the profile and
    holds no secret. If `anonymous`, no values of columns are stored.
    """

    seconds: Required[float]
    rate_hz: Required[float]
    command: Required[str]
    anonymous: bool
    begun: Callable[[], None]
    show: Callable[[ProgressSnapshot], None] | None


def profile_database(root: Path, address: Address, **how: Unpack[WatchKeywords]) -> DatabaseRun:
    """Watch a server as `record_database` does, and analyze what was observed."""
    record, result = _recorded(root, address, _result, **how)
    return DatabaseRun(record.folder, record.status, record.trouble, result)


def record_database(root: Path, address: Address, **how: Unpack[WatchKeywords]) -> DatabaseRecord:
    """Watch a server for some seconds or until Ctrl-C, and store what was observed.

    Raises:
        ConnectError: if the server cannot be reached, or refuses the connection.
        UsageError: if the server is too old.
        SetupError: if the run's folder cannot be written.
        StoreError: if the result cannot be written.
        ServerCrash: if the server goes away before the first sample.
    """
    return _recorded(root, address, lambda _watched, _manifest: None, **how)[0]


def _recorded(
    root: Path,
    address: Address,
    analyze: Callable[[Watched, Manifest], R],
    *,
    seconds: float,
    rate_hz: float,
    command: str,
    anonymous: bool = False,
    begun: Callable[[], None] = lambda: None,
    show: Callable[[ProgressSnapshot], None] | None = None,
) -> tuple[DatabaseRecord, R]:
    server, started = ServerWatch(address.conninfo()), time.monotonic_ns()
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", address.database).strip("-")
    manifest = draft(
        kind="database",
        name=f"database-{word or 'postgres'}",
        question=f"database: {address.database}, {rate_hz:g} samples a second",
        server=f"existing: {address.place}",
        options={"command": command},
    )
    with closing(server), start_run(root, manifest, undone="nothing was stored") as run:
        begun()
        watched = watch(server, seconds, rate_hz, logged(run.folder, show), values=not anonymous)
        from uncork.store.tables import release_memory  # noqa: PLC0415 -- not before the first sample

        release_memory()
        result = store_evidence(
            run,
            watched.status,
            time.monotonic_ns() - started,
            watched.facts,
            watched.tables,
            partial(analyze, watched),
        )
    record = DatabaseRecord(run.folder, watched.status, watched.trouble)
    del watched
    release_memory()
    return record, result


def _result(watched: Watched, manifest: Manifest) -> DatabaseResult:
    # Imported after the watch, whose first sample comes sooner without.
    from uncork.analysis.database.result import database_result, database_run_facts  # noqa: PLC0415
    from uncork.report.database.answer import answer_database  # noqa: PLC0415

    return answer_database(database_result(database_run_facts(manifest), watched.facts, watched.tables))


DATABASE_PART: Final = "database"
_RATE_HZ: Final = 10.0
"""Samples a second for the findings; a load samples sessions too, for its bottleneck."""
_LONGEST_S: Final = 7 * 86_400.0


def new_part(folder: Path, name: str, manifest: Manifest) -> RunRecord:
    """Start a part of a run."""
    place = folder / PARTS / name
    place.mkdir(parents=True, exist_ok=True)
    return RunRecord(place, replace(manifest, id=folder.name))


def watch_until(conninfo: str, over: threading.Event) -> Watched:
    """Watch a database until `over` is set.

    Raises:
        ConnectError, ServerCrash: if the server cannot be reached, or goes away before the first sample.
    """
    with closing(ServerWatch(conninfo)) as server:
        return watch(server, _LONGEST_S, _RATE_HZ, ended=over.is_set)


def store_watch(folder: Path, watched: Watched, elapsed_ns: int, place: str, command: str) -> None:
    """Store a watch as the part `database` of a run. `place` is the server's, without secrets.

    Raises StoreError if it cannot be written.
    """
    manifest = draft(
        kind="database",
        name=DATABASE_PART,
        question=f"database: {place.rpartition('/')[2]}, {_RATE_HZ:g} samples a second",
        server=f"existing: {place}",
        options={"command": command},
    )
    record = new_part(folder, DATABASE_PART, manifest)
    store_evidence(record, watched.status, elapsed_ns, watched.facts, watched.tables, lambda _: None)


@contextmanager
def watched_part(folder: Path, conninfo: str, place: str, command: str) -> Iterator[list[str]]:
    """Watch a database while the block runs, and store the watch; yield a list for what went wrong.

    Raises StoreError if the watch cannot be written.
    """
    over, missing = threading.Event(), list[str]()
    begun = time.monotonic_ns()
    with ThreadPoolExecutor(1, "uncork-database") as pool:
        watching = pool.submit(watch_until, conninfo, over)
        try:
            yield missing
        finally:
            over.set()
    try:
        watched = watching.result()
    except UncorkError as error:
        missing.append(f"findings about the database: {' '.join(str(error).split())}")
        return
    store_watch(folder, watched, time.monotonic_ns() - begun, place, command)
