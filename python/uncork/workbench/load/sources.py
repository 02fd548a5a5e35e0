"""Read what divides the time of a watched load by SQL besides the watch: its pooler, and the server's log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole, pool_counted
from uncork.engines.watch.session import WatchSession
from uncork.errors import ConnectError, ServerCrash, UncorkError, UsageError
from uncork.profile.logs import LogRequest, read_logs
from uncork.requests.jobs import LoadJob
from uncork.workbench.profile.log_files import expand

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
