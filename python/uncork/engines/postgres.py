"""PostgreSQL as the runner sees it: an embedded or existing server, with the run's databases on it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import psycopg

from uncork.engines.conninfo import Address, resolve
from uncork.engines.databases import Databases
from uncork.engines.embedded import EmbeddedServer, other_runs
from uncork.engines.extensions import extensions_lacking, libraries_to_load
from uncork.engines.host import machine_facts
from uncork.engines.postmaster import local_postmaster
from uncork.engines.watch import observe
from uncork.errors import ConnectError, ServerCrash, SetupError
from uncork.model.answer import Answer
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.trial import Arm, Cell

__all__ = ["PostgresServer", "embedded_server", "existing_server"]

P = ParamSpec("P")
R = TypeVar("R")

_FATAL = re.compile(r"PANIC|FATAL|terminated by signal")


def embedded_server(
    settings: Mapping[str, object], *, binaries: Path | None = None, port: int | None = None
) -> PostgresServer:
    """Return a server of our own, not yet started: see `EmbeddedServer` for the arguments."""
    return PostgresServer(EmbeddedServer(settings, binaries=binaries, port=port), conninfo="")


def existing_server(conninfo: str) -> PostgresServer:
    """Return a server that runs already, reached as libpq would: URI or key=value, PG*, service, .pgpass."""
    return PostgresServer(None, conninfo=conninfo)


def _server_errors(
    method: Callable[Concatenate[PostgresServer, P], R],
) -> Callable[Concatenate[PostgresServer, P], R]:
    """Tell a server that went away (ServerCrash) from a request that it refuses (SetupError)."""

    @wraps(method)
    def guarded(self: PostgresServer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except (psycopg.Error, SetupError) as error:
            if "No space left on device" in f"{error} {self.last_words}":
                raise SetupError(
                    "no space for the server's data (No space left on device); free some, or set "
                    "UNCORK_SERVERS to a folder on a larger disk"
                ) from error
            raise _translated(error, self) from error

    return guarded


def _translated(error: Exception, server: PostgresServer) -> Exception:
    if not isinstance(error, psycopg.Error):
        return error
    message = _one_line(error) if error.diag.message_primary is None else error.diag.message_primary
    gone = error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
    if isinstance(error, psycopg.OperationalError) and gone:
        words = [line for line in server.last_words.splitlines() if _FATAL.search(line)]
        return ServerCrash(f"the server went away: {message}{'; its log: ' + words[-1] if words else ''}")
    return SetupError(message)


class PostgresServer:
    """The runner's `Server` port on PostgreSQL."""

    def __init__(self, own: EmbeddedServer | None, *, conninfo: str) -> None:
        self._own = own
        self._conninfo = conninfo
        self._databases = Databases(self._connect)
        self._statements = False
        self._resolved: Address | None = None
        self._postmaster: int | None = None

    @property
    def last_words(self) -> str:
        """The end of the embedded server's log; empty for an existing server."""
        return "" if self._own is None else self._own.log_tail

    # ---- life ----

    @property
    def restartable(self) -> bool:
        """True for the embedded server."""
        return self._own is not None

    @property
    def alive(self) -> bool:
        """Whether the server answers."""
        if self._own is not None:
            return self._own.alive
        try:
            self._databases.control.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def start(self) -> None:
        """Start the embedded server, or connect to the existing one and see that we may make databases.

        Raises:
            SetupError: if the embedded server cannot be started, or the role may not create databases.
            ConnectError: if the existing server cannot be reached or refuses the login.
            UsageError: if its connection string demands what load cannot fulfil.
        """
        if self._own is not None:
            self._own.start()
        self._resolved = resolve(self._conninfo if self._own is None else self._own.conninfo())
        try:
            control = self._databases.control
        except psycopg.OperationalError as error:
            raise ConnectError(_one_line(error)) from error
        if self._own is None:
            self._may_create(control)
            self._postmaster = local_postmaster(control)
        self._databases.drop_leftovers()
        self._statements = observe.has_statements(control, may_create=self._own is not None)

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Say why a variant cannot be run here: an extension that it needs is not to be had.

        What such extensions must have loaded as the server starts, a server of our own then loads.

        Raises:
            SetupError: if it does not start with it.
        """
        if not extensions:
            return None
        libraries = libraries_to_load(self._databases.control, extensions)
        if libraries and self._own is not None:
            self._databases.disconnect()
            self._own.load_libraries(libraries)
        return extensions_lacking(self._databases.control, extensions)

    def restart(self) -> None:
        """Begin a new life of the embedded server; does nothing to an existing one."""
        if self._own is None:
            return
        self._databases.disconnect()
        self._own.restart()

    def recover(self) -> None:
        """Bring the embedded server back after a crash, or wait for an existing one to return.

        Raises:
            ServerCrash: if it does not.
        """
        self._databases.disconnect()
        if self._own is not None:
            self._own.recover()
            return
        if not self.alive:
            raise ServerCrash("the server went away and does not answer; what was measured is kept")
        self._postmaster = local_postmaster(self._databases.control)

    def stop(self) -> None:
        """Drop the run's databases; end and remove the embedded server."""
        if self._own is not None:
            self._databases.disconnect()
            self._own.stop()
            return
        with contextlib.suppress(psycopg.Error):
            self._databases.drop_all()

    def crash(self) -> None:
        """Kill the embedded server, as a power cut would: for tests."""
        if self._own is not None:
            self._own.crash()

    def take_log(self, path: Path) -> None:
        """Move what the embedded server has logged so far to `path`; see `EmbeddedServer.take_log`.

        Raises:
            SetupError: for an existing server, whose log is not ours.
        """
        if self._own is None:
            raise SetupError("the log of an existing server is its own; `uncork profile logs` reads it")
        self._own.take_log(path)

    # ---- data ----

    @_server_errors
    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Make a variant's data in a cell."""
        self._databases.build(cell, variant, script, settings, timeout_ns)

    @_server_errors
    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Make a database beside the variants' own."""
        self._databases.build_beside(name, script, timeout_ns)

    @_server_errors
    def restore(self, cell: Cell, arm: Arm) -> None:
        """Put an arm's data into the state that `build` left."""
        self._databases.restore(cell, arm)

    @_server_errors
    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore and warm the data of several arms."""
        self._databases.restore_all(homes)

    @_server_errors
    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute statements that undo a trial, each by itself."""
        with self._databases.open(cell, arm) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @_server_errors
    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read an arm's data into the cache."""
        self._databases.warm(cell, arm)

    @_server_errors
    def warm_beside(self) -> None:
        """Read the databases beside the variants' own into the cache."""
        self._databases.warm_beside()

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Say where an arm's load goes."""
        return self._target(self._databases.name(cell, arm))

    def beside(self, name: str, variant: str) -> Target:
        """Say where a database beside the variants' own is."""
        return self._target(self._databases.beside(name))

    def _target(self, database: str) -> Target:
        return Target(
            database=database,
            connection=asdict(self._address),
            pid=self._postmaster if self._own is None else self._own.pid,
            cpu=None if self._own is None else max(os.sched_getaffinity(0)),
        )

    # ---- questions ----

    @_server_errors
    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        """Return a query's first column as text."""
        with self._databases.open(cell, arm) as connection:
            return observe.first_column(connection, query)

    @_server_errors
    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows in any order."""
        with self._databases.open(cell, arm) as connection:
            return observe.answer_digest(connection, query)

    @_server_errors
    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Return what a request's statements answer, in the form that all engines share."""
        with self._databases.open(cell, arm) as connection:
            return observe.answers(connection, request)

    @_server_errors
    def explain(
        self, cell: Cell, arm: Arm, name: str, statement: str, values: Sequence[str | None]
    ) -> ExecutedPlan | None:
        """Execute a statement under EXPLAIN and undo it."""
        with self._databases.open(cell, arm) as connection:
            return observe.explain(connection, name, statement, values)

    @_server_errors
    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes."""
        with self._databases.open(cell, arm) as connection:
            return observe.relations(connection)

    @_server_errors
    def snapshot(self, cell: Cell, arm: Arm) -> Snapshot:
        """Read the counters that concern an arm."""
        return observe.snapshot(
            self._databases.control, self._databases.in_use(cell, arm), statements=self._statements
        )

    @_server_errors
    def facts(self) -> dict[str, dict[str, str]]:
        """Describe the server and, if it runs here, the machine."""
        kind = "embedded, started for this run" if self._own else "existing, not restarted by uncork"
        server = {"kind": kind, **observe.server_facts(self._databases.control)}
        if not self._statements:
            server["pg_stat_statements"] = (
                "not available: no buffers, WAL or queries an operation (CREATE EXTENSION pg_stat_statements)"
            )
        machine = machine_facts()
        if others := other_runs():
            machine["other uncork runs at start"] = str(others)
        return {"server": server, "machine": machine}

    # ---- steps ----

    def _connect(self, database: str | None) -> psycopg.Connection:
        return psycopg.connect(self._address.conninfo(database), autocommit=True)

    @property
    def _address(self) -> Address:
        if self._resolved is None:
            raise SetupError("the server was not started")
        return self._resolved

    @staticmethod
    def _may_create(control: psycopg.Connection) -> None:
        row = control.execute(
            "SELECT rolcreatedb OR rolsuper, current_user FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        if row is None or not row[0]:
            name = row[1] if row else "this role"
            raise SetupError(
                f'role "{name}" may not create databases there, and uncork works only in databases of its '
                f'own: ALTER ROLE "{name}" CREATEDB, or leave --dsn out to use the embedded server'
            )


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
