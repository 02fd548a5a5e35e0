"""What a load by SQL, by HTTP or a sweep is asked to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uncork.engines.conninfo import Address, resolve
from uncork.model.http import HttpSpec
from uncork.model.load import LoadSpec
from uncork.model.sweep import SweepSpec

__all__ = ["HttpJob", "LoadJob", "ServerOptions", "SweepRequest", "TablesJob", "TablesOptions", "Vacuum"]


Vacuum = Literal["none", "usual", "all"]
"""What is vacuumed before the load: nothing, pgbench's small tables, or all four."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Which server: one of our own (`embedded`), or the one that libpq would take with these words."""

    dsn: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    embedded: bool = False
    binaries: Path | None = None

    def address(self) -> Address:
        """Resolve the words to an address, without touching the network.

        Raises:
            ConnectError, UsageError: if they are wrong, or demand what load cannot fulfil.
        """
        conninfo, database = self.dsn or "", self.database
        if database is not None and re.match(r"postgres(ql)?://|[^/]*=", database):
            conninfo, database = database, None
        return resolve(conninfo, host=self.host, port=self.port, user=self.user, dbname=database)


@dataclass(frozen=True, slots=True)
class TablesOptions:
    """How pgbench's tables are made: see `engines.tpcb.initialise`."""

    scale: int = 1
    steps: str = "dtgvp"
    fillfactor: int = 100
    foreign_keys: bool = False
    unlogged: bool = False
    tablespace: str | None = None
    index_tablespace: str | None = None
    partitions: int = 0
    partition_method: Literal["range", "hash"] = "range"


@dataclass(frozen=True, slots=True)
class TablesJob:
    """Make pgbench's tables, and nothing else."""

    server: ServerOptions
    tables: TablesOptions


@dataclass(frozen=True, slots=True)
class LoadJob:
    """Load a server.

    `tables` are made before, on a server of our own. `needs_tables` says that a script uses them, so that
    their scale is asked for; `scale` is what scripts see when none does. `command` repeats the job and holds
    no secret.
    """

    spec: LoadSpec
    server: ServerOptions
    tables: TablesOptions | None
    needs_tables: bool
    scale: int | None
    vacuum: Vacuum
    command: str


@dataclass(frozen=True, slots=True)
class HttpJob:
    """Load a service. `command` repeats the job and holds no secret.

    `service_pids` are the service's processes, found by its port where none is named; `postgres` is how to
    reach the database behind it.
    """

    spec: HttpSpec
    command: str
    service_pids: tuple[int, ...] = ()
    postgres: str | None = None


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep as asked for; `start` is None for rates whose beginning a short closed loop finds."""

    spec: SweepSpec
    start: float | None
