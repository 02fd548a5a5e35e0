"""Profile a database's server: watch it, keep what was seen, say what it means."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uncork.analysis.database.result import database_result, database_run_facts
from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UsageError
from uncork.model.results.database import DatabaseResult
from uncork.report.database.answer import answer_database
from uncork.workbench.load.progress_log import noted
from uncork.workbench.profile.database_watch import Glance, watch
from uncork.workbench.profile.seen import Seen, announce, now_text, store_evidence

__all__ = ["DatabaseRun", "check_rate", "profile_database"]

_RATES: Final = (0.1, 200.0)


@dataclass(frozen=True, slots=True)
class DatabaseRun:
    """A server that was watched: where its run is, what a report says of it, and why it broke off, if so."""

    folder: Path
    result: DatabaseResult
    trouble: str


def check_rate(rate_hz: float) -> None:
    """Refuse a rate at which no server can be sampled; raises UsageError."""
    least, most = _RATES
    if not least <= rate_hz <= most:
        raise UsageError(f"--rate {rate_hz:g}: from {least:g} to {most:g} samples a second are possible")


def profile_database(
    root: Path,
    address: Address,
    *,
    seconds: float,
    rate_hz: float,
    command: str,
    begun: Callable[[], None] | None = None,
    show: Callable[[Glance], None] | None = None,
) -> DatabaseRun:
    """Watch a server for some seconds or until Ctrl-C, store what was seen, and say what it means.

    `begun` is called when we are let in, `show` every second. `command` repeats it and holds no secret.

    Raises:
        ConnectError: if the server cannot be reached or refuses us.
        UsageError: if it is too old.
        SetupError: if the run cannot be laid out.
        StoreError: if it cannot be written.
        ServerCrash: if the server goes away before anything was seen.
    """
    server = ServerWatch(address.conninfo())
    place = f"{address.user}@{address.host}:{address.port}/{address.database}"
    started = time.monotonic_ns()
    running = Seen(
        kind="database",
        name=f"database-{_word(address.database)}",
        question=f"database: {address.database}, {rate_hz:g} samples a second",
        server=f"existing: {place}",
        status="running",
        started_at=now_text(),
        elapsed_ns=0,
        command=command,
        facts={},
        tables={},
    )
    try:
        if begun is not None:
            begun()
        folder = announce(root, running)
        try:
            watched = watch(server, seconds, rate_hz, noted(folder, show))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        server.close()
    seen = replace(
        running,
        status=watched.status,
        elapsed_ns=time.monotonic_ns() - started,
        facts=watched.facts,
        tables=watched.tables,
    )
    folder, result = store_evidence(
        root,
        seen,
        lambda manifest: answer_database(
            database_result(database_run_facts(manifest), watched.facts, watched.tables)
        ),
        folder,
    )
    return DatabaseRun(folder, result, watched.trouble)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "postgres"
