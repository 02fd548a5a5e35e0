"""The databases of a run: a template for each variant and cell, and a live copy for each arm.

The experiment's set-up builds each template once; it is then vacuumed, analysed and checkpointed. Templates
that keep the planner's statistics of a copied database are not analysed. A live copy is restored from its
template file by file, so that every trial of an arm starts from the same pages. All names begin with
`uncork_` and the run's tag. uncork touches no other database of the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg import sql

from uncork.engines import process
from uncork.engines.conninfo import Address
from uncork.engines.database_copy import AS_TEMPLATE, copy_database, give_settings, read_source
from uncork.engines.planner_statistics import vacuum_only
from uncork.engines.setting_check import setting_text
from uncork.errors import ServerCrash, SetupError
from uncork.model.trial import Arm, Cell

Connect = Callable[[str | None], psycopg.Connection]
PREFIX = "uncork_"

_AT_ONCE = 4
"""How many databases to restore at a time. On two processors, five of 12 MB take 0.35 s instead of 0.7 s."""


class Databases:
    """Create, restore, warm and drop the run's own databases.

    Args:
        connect: opens an autocommit connection to a database by name, or to the maintenance database.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._tag = secrets.token_hex(3)
        self._templates: dict[tuple[Cell, str], str] = {}
        self._live: dict[tuple[Cell, Arm], str] = {}
        self._beside: dict[str, str] = {}
        self._base: str | None = None
        self._base_settings: Mapping[str, str] = {}
        self._keep_statistics = False
        self._maintenance: str | None = None
        self._settings: dict[tuple[Cell, str], Mapping[str, object]] = {}
        self._control: psycopg.Connection | None = None
        self._clone: bool | None = None
        self.can_prewarm = True

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

    def beside(self, name: str) -> str:
        """Return the name on the server of an extra database, beside the variants' own."""
        return self._beside[name]

    def in_use(self, cell: Cell, arm: Arm) -> list[str]:
        """Return the databases that an arm's services may read: its own, and the extra ones."""
        return [self.name(cell, arm), *self._beside.values()]

    def open(self, cell: Cell, arm: Arm) -> psycopg.Connection:
        """Open a connection to an arm's live database."""
        return self._connect(self.name(cell, arm))

    # ---- building and restoring ----

    def build_base(self, conninfo: str, target: Address, *, keep_statistics: bool = False) -> str:
        """Copy a database, with which the templates of all variants begin; return how it was copied.

        With `keep_statistics`, the templates have the planner's statistics of the copy, and what their
        set-ups change of them. A copy by pg_dump has no statistics, so it is analysed first. All databases of
        variants have the database's own settings, unless a variant sets them.

        Raises:
            ConnectError: if its server cannot be reached.
            SetupError: if it cannot be copied.
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

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's template in a cell by running its set-up.

        Raises:
            SetupError: if the set-up fails, with the SQL error and its line, or if a setting cannot be set
                for one database.
        """
        name = f"{PREFIX}{self._tag}_t{len(self._templates)}"
        self._create(name, self._base)
        self._templates[(cell, variant)] = name
        self._settings[(cell, variant)] = settings
        where = f"set-up of variant {variant}{cell.at}"
        self._apply_settings(name, settings, where)
        self._fill(name, script, timeout_ns, where, analyse=not self._keep_statistics)

    def build_beside(self, beside: str, script: str, timeout_ns: int) -> None:
        """Create an extra database, beside the variants' own, by its name in the experiment.

        Raises:
            SetupError: with the SQL error and its line.
        """
        name = f"{PREFIX}{self._tag}_b{len(self._beside)}"
        self._create(name, None)
        self._beside[beside] = name
        self._fill(name, script, timeout_ns, f"database {beside}")

    def _leave(self, name: str) -> None:
        """Work from another maintenance database than this one, which our own session would keep in use."""
        if self.control.info.dbname == name:
            self.disconnect()
            self._maintenance = "postgres" if name != "postgres" else "template1"

    def restore(self, cell: Cell, arm: Arm) -> None:
        """Create an arm's live database, or restore it to the template's state.

        Raises:
            SetupError: if there is no space for the copy.
        """
        self._name_live(cell, arm)
        self._restore(self.control, cell, arm)

    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore and warm the databases of several arms, some in parallel, so that they share checkpoints.

        Raises:
            SetupError: if there is no space for the copies.
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

    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read every table and index of an arm into the server's cache, the same way for every arm."""
        self._warm(self.name(cell, arm))

    def warm_beside(self) -> None:
        """Read every table and index of the extra databases into the server's cache."""
        for name in self._beside.values():
            self._warm(name)

    def drop_all(self) -> None:
        """Drop every database of this run."""
        try:
            base = [] if self._base is None else [self._base]
            self._drop([*self._live.values(), *self._templates.values(), *self._beside.values(), *base])
            self._live.clear()
            self._templates.clear()
            self._beside.clear()
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
                raise SetupError(f"{where}: the server's disk is full: {_primary(error)}") from error
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
            raise SetupError(f"the server's disk is full: {_primary(error)}") from error
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
        self,
        name: str,
        settings: Mapping[str, object],
        where: str,
        control: psycopg.Connection | None = None,
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
                    f"{where}: {_primary(error)}; this setting cannot differ between variants: move it to "
                    "[server.settings]"
                ) from error
            except psycopg.Error as error:
                raise SetupError(f"{where}: setting {setting} = {text}: {_primary(error)}") from error

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


def _primary(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip()


def _with_line(error: psycopg.Error, script: str) -> str:
    """Return an SQL error's message with the line of the set-up where the server found it."""
    position = error.diag.statement_position
    message = f"{_primary(error)} (SQLSTATE {error.sqlstate})"
    if position is None:
        return message
    before = script[: int(position) - 1]
    line = before.count("\n") + 1
    return f"line {line}: {message}: {script.splitlines()[line - 1].strip()}"
