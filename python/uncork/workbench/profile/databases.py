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
from typing import TYPE_CHECKING, Final, TypeVar

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError, UsageError
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

_RATES: Final = (0.1, 200.0)


@dataclass(frozen=True, slots=True)
class DatabaseRun:
    """A watched server: its run, the result, and why watching stopped early (empty if it did not)."""

    folder: Path
    result: DatabaseResult
    trouble: str


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    """A watched server as it was stored: its run, how that ended, and why early (empty if not)."""

    folder: Path
    status: RunStatus
    trouble: str


def check_rate(rate_hz: float) -> None:
    """Check a sampling rate; raises UsageError if it is out of range."""
    least, most = _RATES
    if not least <= rate_hz <= most:
        raise UsageError(f"--rate {rate_hz:g}: give from {least:g} to {most:g} samples a second")


def profile_database(
    root: Path,
    address: Address,
    *,
    seconds: float,
    rate_hz: float,
    command: str,
    anonymous: bool = False,
    begun: Callable[[], None] | None = None,
    show: Callable[[ProgressSnapshot], None] | None = None,
) -> DatabaseRun:
    """Watch a server as `record_database` does, and analyze what was observed."""
    record, result = _recorded(
        root, address, seconds, rate_hz, command, _result, anonymous=anonymous, begun=begun, show=show
    )
    return DatabaseRun(record.folder, result, record.trouble)


def record_database(
    root: Path,
    address: Address,
    *,
    seconds: float,
    rate_hz: float,
    command: str,
    anonymous: bool = False,
    begun: Callable[[], None] | None = None,
    show: Callable[[ProgressSnapshot], None] | None = None,
) -> DatabaseRecord:
    """Watch a server for `seconds` or until Ctrl-C, and store what was observed.

    `begun` is called once connected, and `show` every second. `command` repeats the profile and holds no
    secret. If `anonymous`, no values of columns are stored.

    Raises:
        ConnectError: if the server cannot be reached, or refuses the connection.
        UsageError: if the server is too old.
        SetupError: if the run's folder cannot be written.
        StoreError: if the result cannot be written.
        ServerCrash: if the server goes away before the first sample.
    """
    record, _ = _recorded(
        root, address, seconds, rate_hz, command, _nothing, anonymous=anonymous, begun=begun, show=show
    )
    return record


def _recorded(
    root: Path,
    address: Address,
    seconds: float,
    rate_hz: float,
    command: str,
    analyze: Callable[[Watched, Manifest], R],
    *,
    anonymous: bool,
    begun: Callable[[], None] | None,
    show: Callable[[ProgressSnapshot], None] | None,
) -> tuple[DatabaseRecord, R]:
    """Watch a server; return its run, and what `analyze` makes of it."""
    server, started = ServerWatch(address.conninfo()), time.monotonic_ns()
    manifest = draft(
        kind="database",
        name=f"database-{_word(address.database)}",
        question=f"database: {address.database}, {rate_hz:g} samples a second",
        server=f"existing: {address.place}",
        options={"command": command},
    )
    with closing(server), start_run(root, manifest, undone="nothing was stored") as run:
        if begun is not None:
            begun()
        watched = watch(server, seconds, rate_hz, logged(run.folder, show), values=not anonymous)
        from uncork.store.profile_tables import release_memory  # noqa: PLC0415 -- not before the first sample

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


def _nothing(_watched: Watched, _manifest: Manifest) -> None:
    """Analyze nothing: the caller reads what was stored."""


def _result(watched: Watched, manifest: Manifest) -> DatabaseResult:
    # Imported after the watch, whose first sample comes sooner without.
    from uncork.analysis.database.result import database_result, database_run_facts  # noqa: PLC0415
    from uncork.report.database.answer import answer_database  # noqa: PLC0415

    return answer_database(database_result(database_run_facts(manifest), watched.facts, watched.tables))


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "postgres"


# ---- the watch of a database that something else loads ----


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

    Raises:
        StoreError: if it cannot be written.
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

    Raises:
        StoreError: if the watch cannot be written.
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
