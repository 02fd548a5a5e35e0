"""Watch the database while a load is sent once more, because watching would disturb what is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uncork.engines.conninfo import Address, resolve
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole, pool_counted
from uncork.engines.watch.session import WatchSession
from uncork.errors import ConnectError, ServerCrash, UncorkError, UsageError
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.profile.logs import LogRequest, read_logs
from uncork.requests.jobs import LoadJob
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.profile.databases import watched_part
from uncork.workbench.profile.log_files import expand
from uncork.workbench.run_record import RunRecord

_WATCHED_NS: Final = 5_000_000_000
"""Fifty samples of the sessions."""
_NEXT: Final = 1
"""Another piece of the random sequence than the load itself has sent."""


def watch_again(
    record: RunRecord,
    target: LoadTarget,
    measured: LoadMeasurement,
    notify: Callable[[str], None],
    sources: StepSources | None,
) -> None:
    """Send a load that was measured for five seconds more, and store the watch of its database in `record`.

    What could not be watched is written into the manifest. A load that did not complete is not repeated.
    `sources` divide the time of a load by SQL further. Raises StoreError if the watch cannot be written.
    """
    conninfo = target.components.conninfo
    if (
        conninfo is None
        or measured.totals.outcome is not LoadOutcome.COMPLETE
        or not measured.totals.succeeded
    ):
        return
    notify("sending the load for 5 s more, to name what is wrong with the database")
    command = str(record.manifest.options.get("command", ""))
    missing: list[str] = []
    found: dict[str, Any] = {}
    try:
        with (
            watched_part(record.folder, conninfo, resolve(conninfo).place, command) as missing,
            nullcontext(dict[str, float]()) if sources is None else sources.counted(missing) as pool,
        ):
            again = target.turn(_NEXT, _WATCHED_NS).carry_out()
            seen = watched_load(again, time.time_ns() // 1000)
        if seen is not None:
            found = {"watched_load": seen, **({"watched_pool": pool} if pool else {})}
            if sources is not None:
                begun_us = seen["ended_us"] - seen["elapsed_ns"] // 1000
                found |= sources.read(begun_us, seen["ended_us"], missing)
    except KeyboardInterrupt:
        missing = [*missing, "findings about the database: interrupted"]
    if found or missing:
        lacking = {"not_watched": missing} if missing else {}
        record.change(options={**record.manifest.options, **found, **lacking})


def watched_load(again: LoadMeasurement, ended_us: int) -> dict[str, int] | None:
    """Return what the clients saw of the load that was watched; None unless all of it is known.

    Times of operations count from their actual start, and are of successes only.
    """
    totals = again.totals
    kind = "operation" if all(times.kind != "service" for times in again.times) else "service"
    operations = [times for times in again.times if times.kind == kind]
    if totals.outcome is not LoadOutcome.COMPLETE or not operations or totals.http is not None:
        return None
    return {
        "ended_us": ended_us,
        "elapsed_ns": totals.elapsed_ns,
        "operations": totals.succeeded,
        "operations_ns": sum(operation.sum_ns for operation in operations),
        "statements": totals.statements,
        "statements_ns": sum(times.sum_ns for times in again.times if times.kind == "statement"),
        "round_trips": totals.round_trips,
    }


_LOGGED: Final = ("parse", "bind", "execute", "statement", "untold")
"""The kinds of durations in a server's log. A duration is *untold* if its line does not say of what it is."""


def check_sources(job: LoadJob) -> None:
    """Check the sources of a load before it is sent: the server and its pooler answer, and the logs exist.

    Raises:
        ConnectError: if the server or the console cannot be reached, or refuses.
        UsageError: if a connection string is invalid, or a log is not there or cannot be read.
    """
    for option, conninfo, connected in (
        ("--postgres", job.postgres, ServerWatch),
        ("--pooler", job.pooler, PoolerConsole),
    ):
        if conninfo is not None:
            try:
                connected(conninfo).close()
            except UncorkError as error:
                raise type(error)(f"{option}: {error}") from error
    for log in expand(list(job.logs)):
        if not log.is_file() or not os.access(log, os.R_OK):
            trouble = "this file cannot be read" if log.exists() else "there is no such file"
            raise UsageError(f"--logs {log}: {trouble}; name a log that the server writes on this machine")


@dataclass(frozen=True, slots=True)
class StepSources:
    """The sources of a load's steps. `load` is the address to which it is sent: a server, or its pooler.

    `pooler` is the connection string of PgBouncer's console. `logs` are files, globs and folders.
    """

    load: Address
    pooler: str | None = field(default=None, repr=False)
    logs: tuple[Path, ...] = ()

    @contextmanager
    def counted(self, missing: list[str]) -> Iterator[dict[str, float]]:
        """Yield what PgBouncer counts for the load's database while the block runs; filled afterwards."""
        counted: dict[str, float] = {}
        with ExitStack() as stack:
            if self.pooler is not None:
                try:
                    console = stack.enter_context(closing(PoolerConsole(self.pooler)))
                    counted = stack.enter_context(pool_counted(console, missing, self.load.database))
                except (ConnectError, ServerCrash) as error:
                    missing.append(f"what the transactions waited for PgBouncer: {error}")
            yield counted

    def read(self, begun_us: int, ended_us: int, missing: list[str]) -> dict[str, Any]:
        """Return what the way to the server and the logs show of a load that has ended.

        ``load_path`` says whether the load goes through a pooler, and how long an empty statement takes on
        its way. ``watched_log`` has the number and the nanoseconds of each kind of duration in the logs.
        """
        found: dict[str, Any] = {}
        try:
            with closing(WatchSession(self.load.conninfo())) as session:
                found["load_path"] = {"pooled": session.pooled, "round_trip_ns": session.round_trip_ns()}
        except UncorkError as error:
            missing.append(f"how long the network takes: {' '.join(str(error).split())}")
        if self.logs:
            try:
                request = LogRequest(tuple(expand(list(self.logs))), begin_us=begun_us, end_us=ended_us)
                steps = read_logs(request).facts["steps"]
                found["watched_log"] = {
                    kind: {"count": steps[kind]["count"], "ns": steps[kind]["sum"] * 1000} for kind in _LOGGED
                }
            except UncorkError as error:
                missing.append(f"the time of parsing: {' '.join(str(error).split())}")
        return found
