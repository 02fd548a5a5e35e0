"""PostgreSQL as the runner uses it: an embedded or existing server with the run's databases."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg

from uncork.engines.connecting import connect_error
from uncork.engines.conninfo import Address, resolve
from uncork.engines.databases import Databases
from uncork.engines.embedded import EmbeddedServer, other_runs
from uncork.engines.host import machine_facts
from uncork.engines.postmaster import local_postmaster
from uncork.engines.services.commands import last_line_of
from uncork.engines.setting_check import ServerCheck, extensions_lacking, libraries_to_load, refused_by_server
from uncork.engines.watch import observe
from uncork.errors import ServerCrash, SetupError
from uncork.model.answer import Answer
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.trial import Arm, Cell

P = ParamSpec("P")
R = TypeVar("R")

LEAST_VERSION = 13
"""The oldest major version to measure on: DROP DATABASE ... WITH (FORCE) requires it."""
_FATAL = re.compile(r"PANIC|FATAL|terminated by signal")


def embedded_server(
    settings: Mapping[str, object], *, binaries: Path | None = None, port: int | None = None
) -> PostgresServer:
    """Return an embedded server that is not started yet. See `EmbeddedServer` for the arguments."""
    return PostgresServer(EmbeddedServer(settings, binaries=binaries, port=port), conninfo="")


def existing_server(conninfo: str) -> PostgresServer:
    """Return an existing server, addressed as in libpq: URI or key=value, PG* variables, service, .pgpass."""
    return PostgresServer(None, conninfo=conninfo)


def _server_errors(
    method: Callable[Concatenate[PostgresServer, P], R],
) -> Callable[Concatenate[PostgresServer, P], R]:
    """Raise ServerCrash if the server went away, and SetupError if it refused a request."""

    @wraps(method)
    def guarded(self: PostgresServer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except (psycopg.Error, SetupError) as error:
            if "No space left on device" in f"{error} {self.log_tail}":
                raise SetupError(
                    "the disk with the server's data is full (No space left on device); free some space, or "
                    "set UNCORK_SERVERS to a folder on a larger disk"
                ) from error
            raise _translated(error, self) from error

    return guarded


def _translated(error: Exception, server: PostgresServer) -> Exception:
    if not isinstance(error, psycopg.Error):
        return error
    message = _one_line(error) if error.diag.message_primary is None else error.diag.message_primary
    gone = error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
    if isinstance(error, psycopg.OperationalError) and gone:
        lines = [line for line in server.log_tail.splitlines() if _FATAL.search(line)]
        return ServerCrash(f"the server went away: {message}{'; its log: ' + lines[-1] if lines else ''}")
    return SetupError(message)


class PostgresServer:
    """The runner's `Server` port for PostgreSQL."""

    def __init__(self, own: EmbeddedServer | None, *, conninfo: str) -> None:
        self._own = own
        self._conninfo = conninfo
        self._databases = Databases(self._connect)
        self._statements = False
        self._resolved: Address | None = None
        self._postmaster: int | None = None

    @property
    def log_tail(self) -> str:
        """The last lines of the embedded server's log; empty for an existing server."""
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
        """Start the embedded server, or connect to the existing one and check that we may create databases.

        Raises:
            SetupError: if the embedded server cannot be started, or the role may not create databases.
            ConnectError: if the existing server cannot be reached, or refuses the connection.
            UsageError: if its connection string demands something that the load engine does not support.
        """
        if self._own is not None:
            self._own.start()
        control = self._reach()
        if self._own is None:
            self._postmaster = local_postmaster(control)
        self._databases.drop_leftovers()
        self._statements = observe.has_statements(control, may_create=self._own is not None)

    def check(
        self, extensions: Mapping[str, Sequence[str]], settings: Mapping[str, Mapping[str, object]]
    ) -> ServerCheck:
        """Check that an existing server can run an experiment, as `start` does; change nothing there.

        Both arguments are by variant.

        Raises:
            ConnectError, SetupError, UsageError: see `start`.
        """
        try:
            control = self._reach()
            reasons = {name: extensions_lacking(control, wanted) for name, wanted in extensions.items()}
            refused = [
                (name, *found) for name, own in settings.items() for found in refused_by_server(control, own)
            ]
            return ServerCheck(
                version=control.info.server_version // 10000,
                lacking={name: reason for name, reason in reasons.items() if reason is not None},
                refused=refused,
            )
        finally:
            self._databases.disconnect()

    def _reach(self) -> psycopg.Connection:
        """Connect, and check that an existing server is new enough and lets us create databases."""
        self._resolved = resolve(self._conninfo if self._own is None else self._own.conninfo())
        try:
            control = self._databases.control
        except psycopg.OperationalError as error:
            raise connect_error(error) from error
        if self._own is None:
            refuse_version(control.info.server_version)
            self._may_create(control)
        return control

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Return why a variant cannot run here, that is, which extension is missing; None if it can.

        An embedded server is restarted with the libraries that the extensions need at start.

        Raises:
            SetupError: if it does not start with them.
        """
        if not extensions:
            return None
        libraries = libraries_to_load(self._databases.control, extensions)
        if libraries and self._own is not None:
            self._databases.disconnect()
            self._own.load_libraries(libraries)
        return extensions_lacking(self._databases.control, extensions)

    def restart(self) -> None:
        """Restart the embedded server. Does nothing to an existing server."""
        if self._own is None:
            return
        self._databases.disconnect()
        self._own.restart()

    def recover(self) -> None:
        """Restart the embedded server after a crash, or reconnect to an existing server.

        Raises:
            ServerCrash: if that fails.
        """
        self._databases.disconnect()
        if self._own is not None:
            self._own.recover()
            return
        if not self.alive:
            raise ServerCrash("the server went away and does not answer; all measurements so far are kept")
        self._postmaster = local_postmaster(self._databases.control)

    def stop(self) -> None:
        """Stop and remove the embedded server, or drop the run's databases from an existing one."""
        if self._own is not None:
            self._databases.disconnect()
            self._own.stop()
            return
        with contextlib.suppress(psycopg.Error):
            self._databases.drop_all()

    def crash(self) -> None:
        """Kill the embedded server, as a power cut would. For tests."""
        if self._own is not None:
            self._own.crash()

    def take_log(self, path: Path) -> None:
        """Move the embedded server's log to `path`; see `EmbeddedServer.take_log`.

        Raises:
            SetupError: for an existing server, whose log uncork must not move.
        """
        if self._own is None:
            raise SetupError(
                "uncork does not move the log of an existing server; use `uncork profile logs` to read it"
            )
        self._own.take_log(path)

    # ---- data ----

    @_server_errors
    def begin_setup(self) -> None:
        """Let the embedded server not wait for its disk; does nothing to an existing server.

        Copying a database makes some 300 files, and waiting for each takes longer than copying it.
        """
        if self._own is not None:
            self._set_fsync("ALTER SYSTEM SET fsync = off")

    @_server_errors
    def end_setup(self) -> None:
        """Write all data of the embedded server to disk, and let it wait for its disk as configured."""
        if self._own is not None:
            self._set_fsync("ALTER SYSTEM RESET fsync")
            self._databases.control.execute("CHECKPOINT")
            self._own.write_to_disk()

    def _set_fsync(self, command: LiteralString) -> None:
        control = self._databases.control
        control.execute(command)
        control.execute("SELECT pg_reload_conf()")
        self._databases.disconnect()  # a new session has what the postmaster has read

    @_server_errors
    def build_base(self, conninfo: str, *, keep_statistics: bool = False) -> str:
        """Copy a database, with which the data of all variants begins; return how."""
        how = self._databases.build_base(conninfo, self._address, keep_statistics=keep_statistics)
        # To leave the database that is copied, the control connection may be in another one now.
        self._statements = observe.has_statements(self._databases.control, may_create=self._own is not None)
        return how

    @_server_errors
    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's data in a cell."""
        self._databases.build(cell, variant, script, settings, timeout_ns)

    @_server_errors
    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Create an extra database, beside the variants' own."""
        self._databases.build_beside(name, script, timeout_ns)

    @_server_errors
    def restore(self, cell: Cell, arm: Arm) -> None:
        """Restore an arm's data to the state that `build` left."""
        self._databases.restore(cell, arm)

    @_server_errors
    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore and warm the data of several arms."""
        self._databases.restore_all(homes)

    @_server_errors
    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute statements that undo a trial, each in a transaction of its own."""
        with self._databases.open(cell, arm) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @_server_errors
    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read an arm's data into the cache."""
        self._databases.warm(cell, arm)

    @_server_errors
    def cool(self, cell: Cell, arm: Arm) -> None:
        """Restart the embedded server with empty caches: its own, and the machine's for its files."""
        if self._own is None:
            raise SetupError("uncork cannot empty the caches of an existing server")
        self._databases.disconnect()
        self._own.restart(cold=True)

    @_server_errors
    def warm_beside(self) -> None:
        """Read the extra databases into the cache."""
        self._databases.warm_beside()

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Return the target of an arm's load."""
        return self._target(self._databases.name(cell, arm))

    def beside(self, name: str, variant: str) -> Target:
        """Return the target of an extra database."""
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
        """Return a digest of a query's rows that does not depend on their order."""
        with self._databases.open(cell, arm) as connection:
            return observe.answer_digest(connection, query)

    @_server_errors
    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Return the answers of a request's statements, in the form that all engines share."""
        with self._databases.open(cell, arm) as connection:
            return observe.answers(connection, request)

    @_server_errors
    def explain(
        self,
        cell: Cell,
        arm: Arm,
        name: str,
        statement: str,
        values: Sequence[str | None],
        settings: Mapping[str, str],
    ) -> ExecutedPlan | None:
        """Execute a statement under EXPLAIN, roll back, and return its plan."""
        with self._databases.open(cell, arm) as connection:
            for setting, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
            return observe.explain(connection, name, statement, values)

    @_server_errors
    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes."""
        with self._databases.open(cell, arm) as connection:
            return observe.relations(connection)

    def command(
        self,
        cell: Cell,
        arm: Arm,
        command: Sequence[str],
        files: Mapping[str, str],
        environment: Mapping[str, str],
        timeout_ns: int,
    ) -> str:
        """Run a command about an arm's data; return the last line that it prints.

        Raises:
            SetupError: see `last_line_of`.
        """
        target = self.target(cell, arm)
        return last_line_of(
            command, files=files, environment=environment, target=target, timeout_ns=timeout_ns
        )

    @_server_errors
    def snapshot(self, cell: Cell, arm: Arm, *, updates: bool = False) -> Snapshot:
        """Read the counters of an arm's databases; with `updates` also those of updated rows."""
        found = observe.snapshot(
            self._databases.control, self._databases.in_use(cell, arm), statements=self._statements
        )
        if not updates:
            return found
        with self._databases.open(cell, arm) as connection:
            counts = observe.updates(connection)
        return found if counts is None else replace(found, updated=counts[0], hot_updated=counts[1])

    @_server_errors
    def facts(self) -> dict[str, dict[str, str]]:
        """Describe the server and, if it runs here, the machine."""
        kind = "embedded, started for this run" if self._own else "existing, not restarted by uncork"
        server = {"kind": kind, **observe.server_facts(self._databases.control)}
        if not self._statements:
            server["pg_stat_statements"] = (
                "not available, so no buffers, WAL or queries per operation "
                "(CREATE EXTENSION pg_stat_statements)"
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
                f'role "{name}" may not create databases on this server, and uncork works only in databases '
                f'that it creates; run ALTER ROLE "{name}" CREATEDB there, or leave --dsn out to use the '
                "embedded server"
            )


def refuse_version(version: int) -> None:
    """Raise SetupError if a server's version number is below the oldest that uncork can measure on."""
    if version // 10000 < LEAST_VERSION:
        raise SetupError(
            f"the server runs PostgreSQL {version // 10000}, and uncork measures on {LEAST_VERSION} or "
            "newer; name a newer server, or leave --dsn out to use the embedded server"
        )


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
