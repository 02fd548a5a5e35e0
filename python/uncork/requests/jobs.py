"""Requests for loads over SQL or HTTP, for sweeps, and for pgbench's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from uncork.engines.conninfo import Address, is_conninfo, resolve
from uncork.model.http import HttpSpec
from uncork.model.load import LoadSpec
from uncork.model.sweep import SweepSpec

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
    password: str | None = field(default=None, repr=False)
    embedded: bool = False
    binaries: Path | None = None

    def address(self) -> Address:
        """Resolve the options to an address, without network access.

        Raises:
            ConnectError, UsageError: if they are invalid, or require a feature that load does not support.
        """
        conninfo, database = self.dsn or "", self.database
        if database is not None and is_conninfo(database):
            conninfo, database = database, None
        return resolve(
            conninfo,
            host=self.host,
            port=self.port,
            user=self.user,
            dbname=database,
            password=self.password,
        )


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
    their scale is read from the server; `scale` is the value for scripts otherwise. `advise`: afterwards,
    send the load again while the database is watched. `command` repeats the job and contains no secret.

    With `advise`, and if the load goes through a pooler, `postgres` is the connection string of the
    server that is watched, and `pooler` that of PgBouncer's console. `logs` are the server's logs.
    """

    spec: LoadSpec
    server: ServerOptions
    tables: TablesOptions | None
    needs_tables: bool
    scale: int | None
    vacuum: Vacuum
    command: str
    advise: bool = False
    postgres: str | None = field(default=None, repr=False)
    pooler: str | None = field(default=None, repr=False)
    logs: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpJob:
    """Load a service. `command` repeats the job and contains no secret.

    `service_pids` are the service's processes; if empty, they are found by its port. `postgres` is
    the connection string of the database behind the service. `advise`: see `LoadJob`.
    """

    spec: HttpSpec
    command: str
    service_pids: tuple[int, ...] = ()
    postgres: str | None = None
    advise: bool = False


AnyLoad = LoadJob | HttpJob


@dataclass(frozen=True, slots=True)
class ServiceJob:
    """Profile a service for `seconds` with the load `spec`, or with the traffic that is there (`send` False).

    `postgres` is the database behind it. `pids` are the service's processes; if empty, they are
    found by its port. `code`: also record functions. `logs` are the database's logs, read for the
    time of the profile. `pooler` is the connection string of PgBouncer's console. `command` repeats
    the profile and holds no secret.
    """

    spec: HttpSpec
    postgres: Address | None
    pids: tuple[int, ...]
    seconds: float
    send: bool
    code: bool
    command: str
    logs: tuple[Path, ...] = ()
    pooler: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CureJob:
    """Try the changes of the findings of a stored watch on a copy of the database.

    `watched` is the folder of the watch, `log` that of a run of the server's logs, and `log_files`
    are the logs themselves, which show transactions, if they are at hand. `source` is the
    connection string of the database to copy, which is only read; `copy` that of a copy that exists
    already. `binaries` is a folder with the server's programs for the copy. `disk` is how many
    bytes all copies together may take, `max_read` how many bytes a second to read of the source at
    most. `only` are rules, and `finding` is the number of the only finding to try. `earlier` is the
    folder of a cure that ended early, whose decided findings are not tried again. `settings` are
    more settings of the copy's server. `command` repeats the cure and holds no secret.
    """

    watched: Path
    source: str = field(repr=False)
    command: str
    budget_s: float
    disk: int
    max_read: int
    log: Path | None = None
    log_files: tuple[str, ...] = ()
    copy: str | None = field(default=None, repr=False)
    binaries: Path | None = None
    only: tuple[str, ...] = ()
    finding: int | None = None
    dry_run: bool = False
    earlier: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A requested sweep; `start` is None if a short closed loop finds the first rate.

    With `verify`, a load below the knee follows: see `uncork.model.sweep.Verification`.
    """

    spec: SweepSpec
    start: float | None
    verify: bool = False
