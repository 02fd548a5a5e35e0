"""Watch a database while something else loads it, and store the watch as a part of that run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError
from uncork.store.layout import PARTS, Manifest
from uncork.workbench.profile.database_watch import Watched, watch
from uncork.workbench.profile.storing import store_evidence
from uncork.workbench.run_record import RunRecord, draft

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
