"""Watch a server over one read-only connection: counters, active sessions, wait events and blockers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import QueryCanceled
from psycopg.pq.abc import PGresult

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.postmaster import local_postmaster
from uncork.engines.watch import snapshot_sql
from uncork.engines.watch.generic_plans import GenericPlan, generic_plan
from uncork.engines.watch.snapshot_sql import MARK
from uncork.errors import ServerCrash, UsageError
from uncork.model.tables.database import DROPPED_DATABASE, DROPPED_ROLE
from uncork.model.tables.register import TABLES

__all__ = ["MARK", "Connections", "Look", "ServerSnapshot", "ServerWatch", "StatementCount", "check_conninfo"]

Row = dict[str, Any]

_SNAPSHOT_TIMEOUT: Final = "30s"
_SAMPLE_TIMEOUT: Final = "5s"
_PLAN_TIMEOUT: Final = "1s"
_LOCK_TIMEOUT: Final = "1s"
"""Timeouts of a snapshot's query, of a sample and of EXPLAIN, and how long any may wait for a lock."""

_STATEMENT_COLUMNS: Final = tuple(
    column.name
    for column in TABLES["database_statements"].columns
    if column.name not in ("moment", "template")
)
_RELATION_COLUMNS: Final = (
    *("oid", "schema", "name", "kind", "partition_of", "rows", "pages", "fillfactor", "live", "dead"),
    *("seq_scans", "seq_rows", "index_scans", "index_rows", "inserted", "updated", "hot_updated", "deleted"),
    *("heap_read", "heap_hit", "vacuumed_us", "analysed_us", "frozen_age", "modified", "autovacuum"),
)
_INDEX_COLUMNS: Final = (
    *("oid", "table_oid", "schema", "name", "method", "definition", "keys", "included", "expressions"),
    *("predicate", "unique", "constraint", "valid", "pages", "rows", "fillfactor", "scans", "rows_read"),
    "scanned_us",
)
_FOREIGN_KEY_COLUMNS: Final = ("oid", "name", "table_oid", "referred_oid", "columns", "numbers")
_ACTIVITY: Final[tuple[tuple[str, Callable[[str], int | str]], ...]] = (
    *(("pid", int), ("backend", str), ("state", str), ("wait_class", str), ("wait_event", str)),
    *(("query_id", int), ("application", str), ("user", str), ("database", str), ("leader_pid", int)),
    *(("transaction_us", int), ("state_us", int), ("held_age", int), ("blocked_by", str)),
    *(("comment", str), ("text", str)),
)
_SAMPLE: Final = b"uncork_sample"
_CANCELED: Final = b"57014"
_HIDDEN: Final = "<insufficient privilege>"


@dataclass(frozen=True, slots=True)
class Look:
    """One sample: `rows` have the columns of the table database_activity, plus the text of new statements.

    Instead of the column `origin`, a row has the statement's `comment`.

    `begun_ns` and `ended_ns` are readings of the monotonic clock. `hidden` counts the sessions that this role
    is not allowed to see.
    """

    begun_ns: int
    ended_ns: int
    rows: tuple[Row, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class Connections:
    """The number of client connections, and for how long each idle connection has been idle, in µs."""

    many: int
    idle_us: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StatementCount:
    """How often a statement was executed, for how long in total, and how many rows it returned or changed."""

    calls: int
    execution_ns: float
    rows: int


@dataclass(frozen=True, slots=True)
class ServerSnapshot:
    """The server's counters at one moment: rows by stored table, without the column `moment`.

    `failed` maps what could not be read to the server's reason. Times are microseconds since 1970.
    """

    begun_us: int
    ended_us: int
    tables: Mapping[str, tuple[Row, ...]]
    failed: Mapping[str, str]


def check_conninfo(conninfo: str) -> None:
    """Check the syntax of a connection string, without connecting.

    Raises:
        UsageError: if libpq cannot parse it, with libpq's reason.
    """
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        raise UsageError(f"the connection string is not valid: {' '.join(str(error).split())}") from error


class ServerWatch:
    """A read-only connection for watching a server.

    Raises:
        ConnectError: if the server cannot be reached, or refuses the connection.
        UsageError: if it is older than PostgreSQL 13.
    """

    def __init__(self, conninfo: str) -> None:
        try:
            self._connection = connect_to_watch(conninfo)
        except psycopg.Error as error:
            raise connect_error(error) from error
        self.version = self._connection.info.server_version // 10000
        if self.version < snapshot_sql.LEAST_VERSION:
            self.close()
            raise UsageError(
                f"cannot profile this server: it runs PostgreSQL {self.version}, and uncork needs "
                f"{snapshot_sql.LEAST_VERSION} or newer; `uncork profile logs` reads the logs of any version"
            )
        self.pid = self._connection.info.backend_pid
        self._extension: str | None = None
        self._statements: str | None = None
        self._prepared = False
        for command in (
            f"SET {MARK} SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            f"SET {MARK} lock_timeout = '{_LOCK_TIMEOUT}'",
            f"SET {MARK} jit = off",
        ):
            self._connection.execute(command.encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def postmaster(self) -> int | None:
        """Return the process id of the postmaster, or None unless it runs on this machine."""
        return local_postmaster(self._connection)

    def facts(self) -> dict[str, Any]:
        """Return the server's version, role, and which statistics it collects and lets this role read.

        `statements` is the state of pg_stat_statements: counting, not loaded, not created, too old, or the
        server's reason why it cannot be read.
        """
        names = (
            *("version", "database", "role", "sees_all", "standby", "block_size", "track_activities"),
            *("track_io_timing", "track_counts", "compute_query_id"),
        )
        (row,) = self._ask(snapshot_sql.SERVER)
        facts = dict(zip(names, row, strict=True))
        return {**facts, "number": self.version, "statements": self._find_statements()}

    def snapshot(self, *, sizes: bool, between: Callable[[], None] | None = None) -> ServerSnapshot:
        """Read all counters. With `sizes`, also read sizes of tables and indexes, foreign keys and settings.

        `between` is called after each query, so that samples can be taken meanwhile. Whatever
        cannot be read is left out and listed in the snapshot's `failed`.

        Raises:
            ServerCrash: if the server went away.
        """
        begun = time.time_ns() // 1000
        self._set_timeout(_SNAPSHOT_TIMEOUT)
        failed: dict[str, str] = {}
        relations, indexes = snapshot_sql.RELATIONS, snapshot_sql.indexes(self.version)
        steps: dict[str, Callable[[], list[Row]]] = {
            "database_statements": lambda: self._statement_rows(failed),
            "database_counters": lambda: self._counter_rows(failed),
            "database_relations": lambda: self._rows(relations, _RELATION_COLUMNS, "tables", failed),
            "database_indexes": lambda: self._rows(indexes, _INDEX_COLUMNS, "indexes", failed),
        }
        tables: dict[str, list[Row]] = {}
        for name, step in steps.items():
            tables[name] = step()
            if between is not None:
                between()
        if sizes:
            self._add_sizes(tables, failed)
            tables["database_foreign_keys"] = self._rows(
                snapshot_sql.FOREIGN_KEYS, _FOREIGN_KEY_COLUMNS, "foreign keys", failed
            )
            names = ("name", "value", "default", "source")
            tables["database_settings"] = self._rows(snapshot_sql.SETTINGS, names, "settings", failed)
        ended = time.time_ns() // 1000
        return ServerSnapshot(begun, ended, {name: tuple(rows) for name, rows in tables.items()}, failed)

    def begin_sampling(self) -> None:
        """Set the shorter statement timeout of samples."""
        self._set_timeout(_SAMPLE_TIMEOUT)

    def look(self, known: Collection[int], *, blockers: bool) -> Look | None:
        """Sample the sessions that work or wait; return None if the server did not answer in time.

        `known` are query ids whose texts are not needed again. `blockers` also asks which sessions block the
        waiting ones.

        Raises:
            ServerCrash: if the server went away.
        """
        begun = time.monotonic_ns()
        try:
            found = self._sample(known, blockers)
        except psycopg.Error as error:
            raise _gone(error) from error
        if found is None:
            return None
        ended = time.monotonic_ns()
        value, encoding = found.get_value, self._connection.info.encoding
        rows = [
            {
                name: None if (text := value(row, place)) is None else read(text.decode(encoding, "replace"))
                for place, (name, read) in enumerate(_ACTIVITY)
            }
            for row in range(found.ntuples)
        ]
        seen = tuple(row for row in rows if row["backend"] is not None)
        hidden = sum(row["backend"] is None and row["user"] is not None for row in rows)
        return Look(begun, ended, seen, hidden)

    def connections(self) -> Connections | None:
        """Return the number of connections; None if the server did not answer in time.

        Raises:
            ServerCrash: if the server went away.
        """
        try:
            ((many, idle_us),) = self._ask(snapshot_sql.CONNECTIONS)
        except QueryCanceled:
            return None
        return Connections(many, tuple(idle_us or ()))

    def connection_limits(self) -> tuple[int, int]:
        """Return how many connections the server accepts, and how many of those it reserves for superusers.

        Raises:
            ServerCrash: if the server went away.
        """
        ((most, reserved),) = self._ask(snapshot_sql.CONNECTION_LIMITS)
        return most, reserved

    def generic_plan(self, statement: str) -> GenericPlan | None:
        """Return the generic plan of a statement with parameters; None if it is no statement with a plan.

        Raises:
            ServerCrash: if the server went away.
        """
        self._set_timeout(_PLAN_TIMEOUT)
        try:
            found = generic_plan(self._connection, self.version, statement)
        except psycopg.Error as error:
            raise _gone(error) from error
        if self._connection.closed or self._connection.broken:
            raise ServerCrash("the server went away: the connection was lost during EXPLAIN")
        return found

    def statement_counts(self) -> dict[int, StatementCount]:
        """Return what pg_stat_statements counted since its reset, by query id; empty unless it counts.

        Call `facts` first: it finds out where the extension is.

        Raises:
            ServerCrash: if the server went away, or did not answer in time.
        """
        if self._statements is None:
            return {}
        toplevel = " AND s.toplevel" if "s.toplevel" in self._statements else ""
        query = snapshot_sql.STATEMENT_COUNTS.format(extension="{extension}", toplevel=toplevel)
        try:
            rows = self._ask(self._extended(query))
        except psycopg.Error as error:
            raise _gone(error) from error
        return {number: StatementCount(calls, float(ns), many) for number, calls, ns, many in rows}

    def session_ports(self) -> set[int]:
        """Return the client's port of each connection over TCP.

        Raises:
            ServerCrash: if the server went away, or did not answer in time.
        """
        try:
            return {port for (port,) in self._ask(snapshot_sql.SESSION_PORTS)}
        except psycopg.Error as error:
            raise _gone(error) from error

    def texts(self, wanted: Iterable[int]) -> dict[int, str]:
        """Return the texts of statements by query id, as far as pg_stat_statements has them.

        Raises:
            ServerCrash: if the server went away.
        """
        if self._statements is None or self._extension is None:
            return {}
        try:
            rows = self._ask(self._extended(snapshot_sql.STATEMENT_TEXTS), {"wanted": list(wanted)})
        except QueryCanceled:
            return {}
        return {number: text for number, text in rows if text is not None and text != _HIDDEN}

    # ---- steps ----

    def _sample(self, known: Collection[int], blockers: bool) -> PGresult | None:
        """Return the result of one sample; None if the server cancelled it.

        This calls libpq directly: through a psycopg cursor, a sample took twice the processor time, most of
        it spent preparing the query and polling for the answer. The server's timeout limits how long this
        call blocks.
        """
        server = self._connection.pgconn
        if not self._prepared:
            query = snapshot_sql.activity(self.version).encode()
            prepared = server.prepare(_SAMPLE, query)
            if prepared.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise psycopg.DatabaseError(prepared.error_message.decode(errors="replace"))
            self._prepared = True
        numbers = "{" + ",".join(map(str, known)) + "}"
        found = server.exec_prepared(_SAMPLE, [numbers.encode(), b"t" if blockers else b"f"])
        if found.status == psycopg.pq.ExecStatus.TUPLES_OK:
            return found
        if found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == _CANCELED:
            return None
        raise psycopg.OperationalError(found.error_message.decode(errors="replace"))

    def _ask(
        self, query: str | sql.Composed, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return a query's rows. Raise ServerCrash if the server went away, psycopg's errors otherwise."""
        try:
            composed = query if isinstance(query, sql.Composed) else _query(query)
            return self._connection.execute(composed, parameters).fetchall()
        except psycopg.Error as error:
            if self._connection.closed or self._connection.broken:
                raise _gone(error) from error
            raise

    def _set_timeout(self, timeout: str) -> None:
        try:
            self._connection.execute(f"SET {MARK} statement_timeout = '{timeout}'".encode())
        except psycopg.Error as error:
            raise _gone(error) from error

    def _extended(self, query: str) -> sql.Composed:
        return _query(query).format(extension=sql.Identifier(self._extension or ""))

    def _find_statements(self) -> str:
        ((schema, loaded),) = self._ask(snapshot_sql.EXTENSION)
        if schema is None:
            return "not created" if loaded else "not loaded"
        self._extension = schema
        view = f"{sql.Identifier(schema).as_string()}.pg_stat_statements"
        columns = [name for (name,) in self._ask(snapshot_sql.STATEMENT_COLUMNS, {"view": view})]
        if "wal_records" not in columns:
            return "too old"
        query = snapshot_sql.statements(columns)
        try:
            self._ask(self._extended(query + "LIMIT 1"))
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return "not loaded"
        except psycopg.Error as error:
            return _reason(error)
        self._statements = query
        return "counting"

    def _statement_rows(self, failed: dict[str, str]) -> list[Row]:
        if self._statements is None:
            return []
        rows = self._rows(self._extended(self._statements), _STATEMENT_COLUMNS, "pg_stat_statements", failed)
        return [
            {**row, "user": row["user"] or DROPPED_ROLE, "database": row["database"] or DROPPED_DATABASE}
            for row in rows
        ]

    def _counter_rows(self, failed: dict[str, str]) -> list[Row]:
        views: dict[str, str | sql.Composed] = dict(snapshot_sql.counters(self.version))
        if self._statements is not None and self.version >= 14:
            views["pg_stat_statements_info"] = self._extended(snapshot_sql.STATEMENTS_INFO)
        found: list[Row] = []
        for view, query in views.items():
            try:
                composed = query if isinstance(query, sql.Composed) else _query(query)
                cursor = self._connection.execute(composed)
                names = [column.name for column in cursor.description or ()]
                for row in cursor.fetchall():
                    found += _counters(view, dict(zip(names, row, strict=True)))
            except psycopg.Error as error:
                if self._connection.closed or self._connection.broken:
                    raise _gone(error) from error
                failed[view] = _reason(error)
        return found

    def _rows(
        self, query: str | sql.Composed, columns: Sequence[str], what: str, failed: dict[str, str]
    ) -> list[Row]:
        try:
            return [dict(zip(columns, row, strict=True)) for row in self._ask(query)]
        except psycopg.Error as error:
            failed[what] = _reason(error)
            return []

    def _add_sizes(self, tables: Mapping[str, list[Row]], failed: dict[str, str]) -> None:
        """Add sizes on disk and widths of columns to tables and indexes, where the server reports them."""
        sizes = {
            row["oid"]: row
            for row in self._rows(snapshot_sql.SIZES, ("oid", "main", "table"), "sizes", failed)
        }
        widths: dict[int, dict[int, float]] = {}
        for row in self._rows(snapshot_sql.WIDTHS, ("oid", "number", "width"), "widths of columns", failed):
            widths.setdefault(row["oid"], {})[row["number"]] = float(row["width"])
        index_bytes: dict[int, int] = {}
        for index in tables["database_indexes"]:
            size = sizes.get(index["oid"])
            index["bytes"] = None if size is None else size["main"]
            index_bytes[index["table_oid"]] = index_bytes.get(index["table_oid"], 0) + (index["bytes"] or 0)
            index["key_width"] = _key_width(index, widths)
        for table in tables["database_relations"]:
            size = sizes.get(table["oid"])
            table["bytes"] = None if size is None else size["table"]
            table["main_bytes"] = None if size is None else size["main"]
            table["index_bytes"] = index_bytes.get(table["oid"], 0)
            of_table = widths.get(table["oid"])
            table["row_width"] = None if of_table is None else sum(of_table.values())


def _key_width(index: Row, widths: Mapping[int, Mapping[int, float]]) -> float | None:
    """Add up the widths of an index's columns. Widths of expressions are recorded under the index itself."""
    columns = [int(key.split(":")[0]) for key in (index["keys"] or "").split(",") if key]
    columns += [int(number) for number in index["included"].split(",") if number]
    of_table, own = widths.get(index["table_oid"], {}), widths.get(index["oid"], {})
    found = [
        own.get(place) if number == 0 else of_table.get(number) for place, number in enumerate(columns, 1)
    ]
    known = [width for width in found if width is not None]
    return sum(known) if len(known) == len(columns) else None


def _counters(view: str, row: Row) -> Iterable[Row]:
    """Yield the counters of one row of a view, including the time of the last reset in microseconds."""
    for name, value in row.items():
        number: float | None = None
        if name == "stats_reset" and isinstance(value, datetime):
            number = value.timestamp() * 1e6
        elif isinstance(value, int | float | Decimal) and not isinstance(value, bool) and name != "datid":
            number = float(value)
        if number is not None:
            yield {
                "view": view,
                "object": row["object"],
                "oid": row.get("datid"),
                "counter": name,
                "value": number,
            }


def _query(text: str) -> sql.SQL:
    return sql.SQL(text)


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or " ".join(str(error).split())


def _gone(error: psycopg.Error) -> ServerCrash:
    return ServerCrash(f"the server went away: {_reason(error)}")
