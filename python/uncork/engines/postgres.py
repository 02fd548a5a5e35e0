"""PostgreSQL as the runner uses it: an embedded or existing server with the run's databases."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg
from psycopg import sql

from uncork.engines import process
from uncork.engines.connecting import connect_error, reason_of
from uncork.engines.conninfo import Address, resolve
from uncork.engines.database_copy import AS_TEMPLATE, copy_database, give_settings, read_source
from uncork.engines.embedded import EmbeddedServer, other_runs
from uncork.engines.host import machine_facts
from uncork.engines.planner_statistics import vacuum_only
from uncork.engines.postmaster import local_postmaster
from uncork.engines.services.local import last_line_of
from uncork.engines.setting_check import (
    ServerCheck,
    extensions_lacking,
    libraries_to_load,
    refused_by_server,
    setting_text,
)
from uncork.engines.watch import observe
from uncork.errors import ServerCrash, SetupError
from uncork.model.answer import Answer
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.trial import Arm, Cell

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Databases")

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


def _server_errors(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Raise ServerCrash if the server went away, and SetupError if it refused a request."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except (psycopg.Error, SetupError) as error:
            if "No space left on device" in f"{error} {self.log_tail}":
                raise SetupError(
                    "the disk with the server's data is full (No space left on device); free some space, or "
                    "set UNCORK_SERVERS to a folder on a larger disk"
                ) from error
            raise _translated(error, self.log_tail) from error

    return guarded


def _translated(error: Exception, log_tail: str) -> Exception:
    if not isinstance(error, psycopg.Error):
        return error
    message = reason_of(error)
    gone = error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
    if isinstance(error, psycopg.OperationalError) and gone:
        lines = [line for line in log_tail.splitlines() if _FATAL.search(line)]
        return ServerCrash(f"the server went away: {message}{'; its log: ' + lines[-1] if lines else ''}")
    return SetupError(message)


PREFIX = "uncork_"

_AT_ONCE = 4
"""How many databases to restore at a time. On two processors, five of 12 MB take 0.35 s instead of 0.7 s."""


class Databases(ABC):
    """A run's own databases on a server: create, restore, warm and drop them.

    There is a template for each variant and cell, and a live copy for each arm. The experiment's
    set-up builds each template once; it is then vacuumed, analysed and checkpointed. Templates that
    keep the planner's statistics of a copied database are not analysed. A live copy is restored
    from its template file by file, so that every trial of an arm starts from the same pages. All
    names begin with `uncork_` and the run's tag. uncork touches no other database of the server.
    """

    def __init__(self) -> None:
        self._tag = secrets.token_hex(3)
        self._templates: dict[tuple[Cell, str], str] = {}
        self._live: dict[tuple[Cell, Arm], str] = {}
        self._extra: dict[str, str] = {}
        self._base: str | None = None
        self._base_settings: Mapping[str, str] = {}
        self._keep_statistics = False
        self._maintenance: str | None = None
        self._settings: dict[tuple[Cell, str], Mapping[str, object]] = {}
        self._control: psycopg.Connection | None = None
        self._clone: bool | None = None
        self.can_prewarm = True

    @property
    @abstractmethod
    def log_tail(self) -> str:
        """The last lines of the server's log, as far as it is readable."""

    @abstractmethod
    def _connect(self, database: str | None) -> psycopg.Connection:
        """Open an autocommit connection to a database by name, or to the maintenance database."""

    # ---- connections ----

    @property
    def control(self) -> psycopg.Connection:
        """A connection to the maintenance database, reopened after a restart."""
        if self._control is None or self._control.closed or self._control.broken:
            self._control = self._connect(self._maintenance)
        return self._control

    def disconnect(self) -> None:
        """Close the control connection, before the server restarts."""
        if self._control is not None:
            self._control.close()
            self._control = None

    def name(self, cell: Cell, arm: Arm) -> str:
        """Return the name of an arm's live database."""
        return self._live[(cell, arm)]

    def open(self, cell: Cell, arm: Arm) -> psycopg.Connection:
        """Open a connection to an arm's live database."""
        return self._connect(self.name(cell, arm))

    # ---- building and restoring ----

    def _build_base(self, conninfo: str, target: Address, *, keep_statistics: bool) -> str:
        """Copy a database, with which the templates of all variants begin; return how it was copied.

        With `keep_statistics`, the templates have the planner's statistics of the copy, and what
        their set-ups change of them. A copy by pg_dump has no statistics, so it is analysed first.
        All databases of variants have the database's own settings, unless a variant sets them.
        """
        source = read_source(conninfo)
        self._leave(source.name)
        name = f"{PREFIX}{self._tag}_c"
        self._base, self._base_settings = name, source.own_settings
        how = copy_database(
            conninfo, self.control, target, lambda template: self._create(name, template), name
        )
        self._keep_statistics = keep_statistics
        if keep_statistics and how != AS_TEMPLATE:
            with self._connect(name) as connection:
                connection.execute("VACUUM (ANALYZE)")
        return how

    @_server_errors
    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's template in a cell by running its set-up.

        Raises SetupError if the set-up fails, with the SQL error and its line, or if a setting
        cannot be set for one database.
        """
        name = f"{PREFIX}{self._tag}_t{len(self._templates)}"
        self._create(name, self._base)
        self._templates[(cell, variant)] = name
        self._settings[(cell, variant)] = settings
        where = f"set-up of variant {variant}{cell.at}"
        self._apply_settings(name, settings, where)
        self._fill(name, script, timeout_ns, where, analyse=not self._keep_statistics)

    @_server_errors
    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Create an extra database, beside the variants' own, by its name in the experiment.

        Raises:
            SetupError: with the SQL error and its line.
        """
        database = f"{PREFIX}{self._tag}_b{len(self._extra)}"
        self._create(database, None)
        self._extra[name] = database
        self._fill(database, script, timeout_ns, f"database {name}")

    def _leave(self, name: str) -> None:
        """Work from another maintenance database than this one, which our own session would keep in use."""
        if self.control.info.dbname == name:
            self.disconnect()
            self._maintenance = "postgres" if name != "postgres" else "template1"

    @_server_errors
    def restore(self, cell: Cell, arm: Arm) -> None:
        """Create an arm's live database, or restore it to the template's state.

        Raises SetupError if there is no space for the copy.
        """
        self._name_live(cell, arm)
        self._restore(self.control, cell, arm)

    @_server_errors
    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore and warm the databases of several arms, some in parallel, so that they share checkpoints.

        Raises SetupError if there is no space for the copies.
        """
        for home in homes:
            self._name_live(*home)
        if homes and self._clone is None:
            self._restore(self.control, *homes[0])  # finds out how files are copied here
            self.warm(*homes[0])
            homes = homes[1:]
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            for done in [pool.submit(self._restore_apart, *home) for home in homes]:
                done.result()

    def _restore_apart(self, cell: Cell, arm: Arm) -> None:
        with self._connect(self._maintenance) as control:
            self._restore(control, cell, arm)
        self.warm(cell, arm)

    def _name_live(self, cell: Cell, arm: Arm) -> None:
        self._live.setdefault((cell, arm), f"{PREFIX}{self._tag}_l{len(self._live)}")

    def _restore(self, control: psycopg.Connection, cell: Cell, arm: Arm) -> None:
        name = self._live[(cell, arm)]
        self._drop([name], control)
        self._create(name, self._templates[(cell, arm.variant)], control)
        settings = self._settings[(cell, arm.variant)]
        self._apply_settings(name, settings, f"variant {arm.variant}", control)

    @_server_errors
    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read every table and index of an arm into the server's cache, the same way for every arm."""
        self._warm(self.name(cell, arm))

    @_server_errors
    def warm_beside(self) -> None:
        """Read every table and index of the extra databases into the server's cache."""
        for name in self._extra.values():
            self._warm(name)

    def drop_all(self) -> None:
        """Drop every database of this run."""
        try:
            base = [] if self._base is None else [self._base]
            self._drop([*self._live.values(), *self._templates.values(), *self._extra.values(), *base])
            self._live.clear()
            self._templates.clear()
            self._extra.clear()
            self._base = None
        finally:
            self.disconnect()

    def drop_leftovers(self) -> list[str]:
        """Drop the databases of runs on this machine that were killed. Return their names."""
        rows = self.control.execute(_OWN).fetchall()
        dead = []
        for name, comment in rows:
            facts = _owner_facts(comment)
            if facts.get("host") == socket.gethostname() and not process.is_same(facts.get("owner")):
                dead.append(name)
        self._drop(dead)
        return dead

    # ---- steps ----

    def _fill(self, name: str, script: str, timeout_ns: int, where: str, *, analyse: bool = True) -> None:
        """Run a set-up, then vacuum, analyse and checkpoint the data."""
        with self._connect(name) as connection:
            self._extensions(connection)
            connection.execute(sql.SQL("SET statement_timeout = {}").format(timeout_ns // 1_000_000))
            try:
                connection.execute(script.encode())
                connection.execute("SET statement_timeout = 0")
                if analyse:
                    connection.execute("VACUUM (ANALYZE)")
                else:
                    vacuum_only(connection)
            except psycopg.errors.DiskFull as error:
                raise SetupError(f"{where}: the server's disk is full: {reason_of(error)}") from error
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise ServerCrash(f"{where}: the server went away: {error}") from error
                raise SetupError(f"{where}: {_with_line(error, script)}") from error
            except psycopg.Error as error:
                raise SetupError(f"{where}: {_with_line(error, script)}") from error
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            self.control.execute("CHECKPOINT")  # otherwise copying the files does it, without privilege

    def _warm(self, name: str) -> None:
        with self._connect(name) as connection:
            if self.can_prewarm:
                try:
                    connection.execute(_PREWARM)
                    return
                except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
                    self.can_prewarm = False
            for table in connection.execute(_TABLES).fetchall():
                connection.execute(
                    sql.SQL("SELECT count(*) FROM {} t WHERE t IS NOT NULL").format(sql.Identifier(*table))
                )

    def _create(self, name: str, template: str | None, control: psycopg.Connection | None = None) -> None:
        control = control or self.control
        command = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            command += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
            if control.info.server_version >= 150000:
                command += sql.SQL(" STRATEGY FILE_COPY")
        try:
            self._execute_copy(command, control)
        except psycopg.errors.DiskFull as error:
            raise SetupError(f"the server's disk is full: {reason_of(error)}") from error
        owner = {"host": socket.gethostname(), "owner": process.identity(os.getpid())}
        control.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), json.dumps(owner))
        )

    def _execute_copy(self, command: sql.Composed, control: psycopg.Connection) -> None:
        """Copy a database; from PostgreSQL 18 on, let the kernel clone or copy the files if it can."""
        if self._clone is None:
            self._clone = control.info.server_version >= 180000
            if self._clone:
                try:
                    control.execute("SET file_copy_method = clone")
                    control.execute(command)
                    return
                except (psycopg.errors.InvalidParameterValue, psycopg.errors.InternalError_):
                    self._clone = False
                except psycopg.OperationalError:
                    self._clone = False
            if not control.broken and control.info.server_version >= 180000:
                control.execute("SET file_copy_method = copy")
        elif self._clone:
            control.execute("SET file_copy_method = clone")
        control.execute(command)

    def _drop(self, names: Sequence[str], control: psycopg.Connection | None = None) -> None:
        for name in names:
            (control or self.control).execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def _apply_settings(
        self, name: str, settings: Mapping[str, object], where: str, control: psycopg.Connection | None = None
    ) -> None:
        control = control or self.control
        inherited = {own: value for own, value in self._base_settings.items() if own not in settings}
        give_settings(control, name, inherited)
        for setting, value in settings.items():
            text = setting_text(value)
            command = sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                sql.Identifier(name), sql.SQL(".").join(map(sql.Identifier, setting.split("."))), text
            )
            try:
                control.execute(command)
            except psycopg.errors.CantChangeRuntimeParam as error:
                raise SetupError(
                    f"{where}: {reason_of(error)}; this setting cannot differ between variants: move it to "
                    "[server.settings]"
                ) from error
            except psycopg.Error as error:
                raise SetupError(f"{where}: setting {setting} = {text}: {reason_of(error)}") from error

    def _extensions(self, connection: psycopg.Connection) -> None:
        """Create the extensions for warming and sizes in their own schema, if the server has them."""
        try:
            connection.execute("CREATE SCHEMA IF NOT EXISTS uncork_tools")
            for extension in ("pg_prewarm", "pgstattuple"):
                connection.execute(
                    sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA uncork_tools").format(
                        sql.Identifier(extension)
                    )
                )
        except psycopg.errors.Error:
            self.can_prewarm = False


_PREWARM = """
SELECT count(uncork_tools.pg_prewarm(c.oid::regclass))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm', 'i', 't') AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'uncork_tools')
   AND (n.nspname <> 'pg_toast' OR c.oid >= 16384)
   AND pg_relation_size(c.oid) > 0
"""

_TABLES = """
SELECT n.nspname, c.relname
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'uncork_tools')
"""

_OWN = """
SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname LIKE 'uncork\\_%'
"""


def _owner_facts(comment: str | None) -> dict[str, Any]:
    try:
        facts = json.loads(comment or "")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _with_line(error: psycopg.Error, script: str) -> str:
    """Return an SQL error's message with the line of the set-up where the server found it."""
    position = error.diag.statement_position
    message = f"{reason_of(error)} (SQLSTATE {error.sqlstate})"
    if position is None:
        return message
    before = script[: int(position) - 1]
    line = before.count("\n") + 1
    return f"line {line}: {message}: {script.splitlines()[line - 1].strip()}"


class PostgresServer(Databases):
    """The runner's `Server` port for PostgreSQL."""

    def __init__(self, own: EmbeddedServer | None, *, conninfo: str) -> None:
        super().__init__()
        self._own = own
        self._conninfo = conninfo
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
            self.control.execute("SELECT 1")
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
        self.drop_leftovers()
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
            self.disconnect()

    def _reach(self) -> psycopg.Connection:
        """Connect, and check that an existing server is new enough and lets us create databases."""
        self._resolved = resolve(self._conninfo if self._own is None else self._own.conninfo())
        try:
            control = self.control
        except psycopg.OperationalError as error:
            raise connect_error(error) from error
        if self._own is None:
            refuse_version(control.info.server_version)
            self._may_create(control)
        return control

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Return why a variant cannot run here, that is, which extension is missing; None if it can.

        An embedded server is restarted with the libraries that the extensions need at start. Raises
        SetupError if it does not start with them.
        """
        if not extensions:
            return None
        libraries = libraries_to_load(self.control, extensions)
        if libraries and self._own is not None:
            self.disconnect()
            self._own.load_libraries(libraries)
        return extensions_lacking(self.control, extensions)

    def restart(self) -> None:
        """Restart the embedded server. Does nothing to an existing server."""
        if self._own is None:
            return
        self.disconnect()
        self._own.restart()

    def recover(self) -> None:
        """Restart the embedded server after a crash, or reconnect to an existing server.

        Raises ServerCrash if that fails.
        """
        self.disconnect()
        if self._own is not None:
            self._own.recover()
            return
        if not self.alive:
            raise ServerCrash("the server went away and does not answer; all measurements so far are kept")
        self._postmaster = local_postmaster(self.control)

    def stop(self) -> None:
        """Stop and remove the embedded server, or drop the run's databases from an existing one."""
        if self._own is not None:
            self.disconnect()
            self._own.stop()
            return
        with contextlib.suppress(psycopg.Error):
            self.drop_all()

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
            # An experiment may forbid ALTER SYSTEM (allow_alter_system).
            with contextlib.suppress(
                psycopg.errors.InvalidParameterValue, psycopg.errors.FeatureNotSupported
            ):
                self._set_fsync("ALTER SYSTEM SET fsync = off")

    @_server_errors
    def end_setup(self) -> None:
        """Write all data of the embedded server to disk, and let it wait for its disk as configured."""
        if self._own is not None:
            with contextlib.suppress(
                psycopg.errors.InvalidParameterValue, psycopg.errors.FeatureNotSupported
            ):
                self._set_fsync("ALTER SYSTEM RESET fsync")
            self.control.execute("CHECKPOINT")
            self._own.write_to_disk()

    def _set_fsync(self, command: LiteralString) -> None:
        control = self.control
        control.execute(command)
        control.execute("SELECT pg_reload_conf()")
        self.disconnect()  # a new session has what the postmaster has read

    @_server_errors
    def build_base(self, conninfo: str, *, keep_statistics: bool = False) -> str:
        """Copy a database, with which the data of all variants begins; return how."""
        how = self._build_base(conninfo, self._address, keep_statistics=keep_statistics)
        # To leave the database that is copied, the control connection may be in another one now.
        self._statements = observe.has_statements(self.control, may_create=self._own is not None)
        return how

    @_server_errors
    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute statements that undo a trial, each in a transaction of its own."""
        with self.open(cell, arm) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @_server_errors
    def cool(self, cell: Cell, arm: Arm) -> None:
        """Restart the embedded server with empty caches: its own, and the machine's for its files."""
        if self._own is None:
            raise SetupError("uncork cannot empty the caches of an existing server")
        self.disconnect()
        self._own.restart(cold=True)

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Return the target of an arm's load."""
        return self._target(self.name(cell, arm))

    def beside(self, name: str, variant: str) -> Target:
        """Return the target of an extra database."""
        return self._target(self._extra[name])

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
        with self.open(cell, arm) as connection:
            return observe.first_column(connection, query)

    @_server_errors
    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows that does not depend on their order."""
        with self.open(cell, arm) as connection:
            return observe.answer_digest(connection, query)

    @_server_errors
    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Return the answers of a request's statements, in the form that all engines share."""
        with self.open(cell, arm) as connection:
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
        with self.open(cell, arm) as connection:
            for setting, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
            return observe.explain(connection, name, statement, values)

    @_server_errors
    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes."""
        with self.open(cell, arm) as connection:
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
            self.control, [self.name(cell, arm), *self._extra.values()], statements=self._statements
        )
        if not updates:
            return found
        with self.open(cell, arm) as connection:
            counts = observe.updates(connection)
        return found if counts is None else replace(found, updated=counts[0], hot_updated=counts[1])

    @_server_errors
    def facts(self) -> dict[str, dict[str, str]]:
        """Describe the server and, if it runs here, the machine."""
        kind = "embedded, started for this run" if self._own else "existing, not restarted by uncork"
        server = {"kind": kind, **observe.server_facts(self.control)}
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
