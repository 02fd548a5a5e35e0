"""Requests for loads over SQL or HTTP, for sweeps, and for pgbench's tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uncork.engines.conninfo import Address, resolve
from uncork.model.http import HttpSpec
from uncork.model.load import LoadSpec
from uncork.model.sweep import SweepSpec

__all__ = [
    "HttpJob",
    "LoadJob",
    "ServerOptions",
    "ServiceJob",
    "SweepRequest",
    "TablesJob",
    "TablesOptions",
    "Vacuum",
]


Vacuum = Literal["none", "usual", "all"]
"""Tables to vacuum before the load: none, pgbench's small tables, or all four."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The server: a temporary one (`embedded`), or the one that libpq would connect to with these options."""

    dsn: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    embedded: bool = False
    binaries: Path | None = None

    def address(self) -> Address:
        """Resolve the options to an address, without network access.

        Raises:
            ConnectError, UsageError: if they are invalid, or require a feature that load does not support.
        """
        conninfo, database = self.dsn or "", self.database
        if database is not None and re.match(r"postgres(ql)?://|[^/]*=", database):
            conninfo, database = database, None
        return resolve(conninfo, host=self.host, port=self.port, user=self.user, dbname=database)


@dataclass(frozen=True, slots=True)
class TablesOptions:
    """How to create pgbench's tables: see `engines.tpcb.initialise`."""

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
    """Create pgbench's tables, and nothing else."""

    server: ServerOptions
    tables: TablesOptions


@dataclass(frozen=True, slots=True)
class LoadJob:
    """Load a server.

    `tables` are created first, on a temporary server. `needs_tables`: a script uses pgbench's tables, so
    their scale is read from the server; `scale` is the value for scripts otherwise. `command` repeats the job
    and contains no secret.
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
    """Load a service. `command` repeats the job and contains no secret.

    `service_pids` are the service's processes; if empty, they are found by its port. `postgres` is the
    connection string of the database behind the service.
    """

    spec: HttpSpec
    command: str
    service_pids: tuple[int, ...] = ()
    postgres: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceJob:
    """Profile a service for `seconds` with the load `spec`, or with the traffic that is there (`send` False).

    `postgres` is the database behind it. `pids` are the service's processes; if empty, they are found by its
    port. `code`: also record functions. `logs` are the database's logs, read for the time of the profile.
    `command` repeats the profile and holds no secret.
    """

    spec: HttpSpec
    postgres: Address | None
    pids: tuple[int, ...]
    seconds: float
    send: bool
    code: bool
    command: str
    logs: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A requested sweep; `start` is None if a short closed loop finds the first rate."""

    spec: SweepSpec
    start: float | None
