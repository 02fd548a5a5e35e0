"""Watch a server over one read-only connection: counters, active sessions, wait events and blockers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import QueryCanceled
from psycopg.pq.abc import PGresult

from uncork.engines.postmaster import local_postmaster
from uncork.engines.watch import catalogue_sql, snapshot_sql
from uncork.engines.watch.catalogue import CatalogueScope, ReadCatalogue, read_catalogue
from uncork.engines.watch.details import Details, add_details, add_index_scans, read_details
from uncork.engines.watch.planner import Planner
from uncork.engines.watch.session import WatchSession, add_own_query
from uncork.engines.watch.snapshot_sql import MARK
from uncork.errors import ConnectError, ServerCrash, UsageError
from uncork.model.tables.database import HIDDEN_STATEMENTS
from uncork.model.tables.register import TABLES
from uncork.model.tables.rows import Rows

__all__ = ["MARK", "Connections", "Look", "ServerSnapshot", "ServerWatch", "StatementCount", "check_conninfo"]

Row = dict[str, Any]

_SNAPSHOT_TIMEOUT: Final = "30s"
_SAMPLE_TIMEOUT: Final = "5s"
_LOCK_TIMEOUT: Final = "1s"
"""Timeouts of a snapshot's query and of a sample, and how long either may wait for a lock."""

_STATEMENT_COLUMNS: Final = tuple(
    column.name
    for column in TABLES["database_statements"].columns
    if column.name not in ("moment", "template")
)
_KERNEL_COLUMNS: Final = tuple(
    column.name for column in TABLES["database_kernel"].columns if column.name != "moment"
)
_KERNEL_NEEDED: Final = "exec_user_time"
"""A column of pg_stat_kcache since its version 2.2."""
_TICKS: Final = 3.0
"""pg_stat_kcache counts executions of fewer ticks of its clock as user time for their whole duration."""
_TABLE_COUNTERS: Final = (
    *("seq_scans", "seq_rows", "fetched", "inserted", "updated", "hot_updated", "deleted"),
    *("heap_read", "heap_hit"),
)
_RELATION_COLUMNS: Final = (
    *("oid", "schema", "name", "kind", "partition_of", "rows", "pages", "toast_pages", "fillfactor"),
    *("live", "dead", *_TABLE_COUNTERS, "vacuumed_us", "analysed_us", "frozen_age", "modified", "autovacuum"),
)
_RELATION_COUNTERS: Final = ("oid", *_TABLE_COUNTERS)
_INDEX_COUNTERS: Final = ("oid", "scans", "rows_read", "fetched")
_INDEX_COLUMNS: Final = (
    *("oid", "table_oid", "schema", "name", "method", "key", "class", "collation", "option", "key_columns"),
    *("has_expressions", "has_predicate", "unique", "constraint", "valid", "pages", "rows", "fillfactor"),
    *("scans", "rows_read", "fetched", "scanned_us"),
)
_REPEATED: Final = frozenset(
    ("schema", "kind", "method", "key", "class", "collation", "option", "user", "database")
)
"""Columns with few different texts."""
_COUNTER_COLUMNS: Final = ("view", "object", "oid", "counter", "value")
_FUNCTION_COLUMNS: Final = ("oid", "calls", "total_ms", "self_ms")
_HORIZON_COLUMNS: Final = ("kind", "name", "user", "database", "active", "held_age", "since_us")
_FOREIGN_KEY_COLUMNS: Final = ("oid", "name", "table_oid", "referred_oid", "numbers")
_ACTIVITY: Final[tuple[tuple[str, Callable[[str], int | str]], ...]] = (
    *(("pid", int), ("backend", str), ("state", str), ("wait_class", str), ("wait_event", str)),
    *(("query_id", int), ("application", str), ("user", str), ("database", str), ("leader_pid", int)),
    *(("transaction_us", int), ("state_us", int), ("held_age", int), ("blocked_by", str)),
    *(("comment", str), ("text", str)),
)
_SAMPLE: Final = b"uncork_sample"
_CANCELED: Final = b"57014"
_HIDDEN: Final = "<insufficient privilege>"
_EXPLAINED: Final = re.compile(re.escape(f"EXPLAIN {MARK} (") + r"[^)]*\) ")
"""The beginning of uncork's EXPLAIN, which PostgreSQL 16 stores with the statement."""
_COUNTS_SESSIONS: Final = 14
"""The first version whose pg_stat_database counts sessions."""


@dataclass(frozen=True, slots=True)
class Look:
    """One sample: `rows` have the columns of the table database_activity, plus the text of new statements.

    Instead of the column `origin`, a row has the statement's `comment`.

    `begun_ns` and `ended_ns` are readings of the monotonic clock. `hidden` counts the sessions that
    this role is not allowed to see.
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
    tables: dict[str, Rows]
    failed: Mapping[str, str]

    def add_index_scans(self, tables: Mapping[int, int]) -> None:
        """Add the scans of indexes to their tables. `tables` has the table of each index, by oid."""
        add_index_scans(self.tables["database_relations"], self.tables["database_indexes"], tables)

    def with_details(self, details: Details, block: int) -> ServerSnapshot:
        """Return this snapshot with sizes, widths and definitions; it must not be used any more.

        `block` is the size of a page in bytes.
        """
        relations, indexes = self.tables["database_relations"], self.tables["database_indexes"]
        kept = add_details(relations, indexes, self.tables["database_foreign_keys"], details, block)
        tables = {**self.tables, "database_indexes": kept}
        ended = time.time_ns() // 1000
        return ServerSnapshot(self.begun_us, ended, tables, {**self.failed, **details.failed})


def check_conninfo(conninfo: str) -> None:
    """Check the syntax of a connection string, without connecting.

    Raises UsageError if libpq cannot parse it, with libpq's reason.
    """
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        raise UsageError(f"the connection string is not valid: {' '.join(str(error).split())}") from error


class ServerWatch:
    """A read-only connection for watching a server.

    Raises ConnectError if the server cannot be reached, or refuses the connection; UsageError if it
    is older than PostgreSQL 13; from any method ServerCrash, if the server went away.
    """

    def __init__(self, conninfo: str) -> None:
        self._session = WatchSession(conninfo)
        self.version = self._session.connection.info.server_version // 10000
        if self.version < snapshot_sql.LEAST_VERSION:
            self.close()
            raise UsageError(
                f"cannot profile this server: it runs PostgreSQL {self.version}, and uncork needs "
                f"{snapshot_sql.LEAST_VERSION} or newer; `uncork profile logs` reads the logs of any version"
            )
        self.pid = self._session.pid
        add_own_query(snapshot_sql.activity(self.version))
        self._extension: str | None = None
        self._statements: str | None = None
        self._kernel: str | sql.Composed | None = None
        self._sees_all = True
        self._prepared = False
        self._session.set(lock_timeout=_LOCK_TIMEOUT)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def postmaster(self) -> int | None:
        """Return the process id of the postmaster, or None if it is not visible here or behind a pooler."""
        return None if self._session.pooled else local_postmaster(self._session.connection)

    def facts(self) -> dict[str, Any]:
        """Return the server's version, role, and which statistics it collects and lets this role read.

        `statements` is the state of pg_stat_statements: counting, not loaded, not created, too old,
        or the server's reason why it cannot be read. `kernel` is that of pg_stat_kcache, which
        counts only with it; `kernel_whole_ns` is the duration below which it counts an execution as
        processor time as a whole. `counts_own` says whether pg_stat_statements counts the
        statements of this session. Raises ConnectError if the server refuses even these queries;
        ServerCrash if the server went away.
        """
        names = (
            *("version", "database", "role", "role_oid", "database_oid", "sees_all", "standby"),
            *("block_size", "track_activities", "track_io_timing", "track_counts", "compute_query_id"),
        )
        try:
            (row,) = self._ask(snapshot_sql.SERVER)
            statements = self._find_statements()
            kernel, whole_ns = self._find_kernel()
        except psycopg.Error as error:
            raise ConnectError(
                f"cannot watch this server: it refuses to describe itself ({_reason(error)}); "
                "GRANT pg_monitor to the role"
            ) from error
        facts = dict(zip(names, row, strict=True))
        self._sees_all = facts["sees_all"]
        return {
            **facts,
            "number": self.version,
            "pooled": self._session.pooled,
            "counts_own": not self._session.hidden,
            "statements": statements,
            "kernel": kernel,
            "kernel_whole_ns": whole_ns,
        }

    def snapshot(self, *, whole: bool, between: Callable[[], None] | None = None) -> ServerSnapshot:
        """Read all counters; with `whole`, also tables, indexes, foreign keys and settings.

        `between` is called after each query, so that samples can be taken meanwhile. Whatever cannot be
        read is left out and listed in the snapshot's `failed`. No relation is opened: `details` does
        that.
        """
        begun = time.time_ns() // 1000
        self._set_timeout(_SNAPSHOT_TIMEOUT)
        failed: dict[str, str] = {}
        relations: tuple[str, tuple[str, ...]] = (catalogue_sql.RELATION_COUNTERS, _RELATION_COUNTERS)
        indexes: tuple[str, tuple[str, ...]] = (catalogue_sql.INDEX_COUNTERS, _INDEX_COUNTERS)
        if whole:
            relations = (catalogue_sql.RELATIONS, _RELATION_COLUMNS)
            indexes = (catalogue_sql.indexes(self.version), _INDEX_COLUMNS)
        functions = (catalogue_sql.FUNCTION_COUNTERS, _FUNCTION_COLUMNS)
        statements = (self._statements and self._extended(self._statements), _STATEMENT_COLUMNS)
        kernel = (self._kernel, _KERNEL_COLUMNS)
        steps: dict[str, Callable[[], Rows]] = {
            "database_statements": lambda: self._rows(*statements, "pg_stat_statements", failed),
            "database_kernel": lambda: self._rows(*kernel, "pg_stat_kcache", failed),
            "database_counters": lambda: self._counter_rows(failed),
            "database_relations": lambda: self._rows(*relations, "tables", failed),
            "database_indexes": lambda: self._rows(*indexes, "indexes", failed),
            "database_functions": lambda: self._rows(*functions, "counters of functions", failed),
        }
        if whole:
            horizons = (snapshot_sql.HORIZONS, _HORIZON_COLUMNS, "prepared transactions and slots", failed)
            settings = (snapshot_sql.SETTINGS, ("name", "value", "default", "source"), "settings", failed)
            keys = (catalogue_sql.FOREIGN_KEYS, _FOREIGN_KEY_COLUMNS, "foreign keys", failed)
            steps |= {
                "database_foreign_keys": lambda: self._rows(*keys),
                "database_horizons": lambda: self._rows(*horizons),
                "database_settings": lambda: self._rows(*settings),
            }
        tables: dict[str, Rows] = {}
        for name, step in steps.items():
            tables[name] = step()
            if between is not None:
                between()
        ended = time.time_ns() // 1000
        return ServerSnapshot(begun, ended, tables, failed)

    def details(
        self, snapshot: ServerSnapshot, used: Collection[int], between: Callable[[], None] = lambda: None
    ) -> Details:
        """Read sizes, widths and definitions of the tables that matter: the `used` ones, then the largest."""
        self._set_timeout(_SNAPSHOT_TIMEOUT)
        tables, indexes = snapshot.tables["database_relations"], snapshot.tables["database_indexes"]
        return read_details(self._ask, tables, indexes, used, between)

    def catalogue(self, scope: CatalogueScope) -> ReadCatalogue:
        """Read the catalogue of the connected database, as far as `scope` needs it."""
        self._set_timeout(_SNAPSHOT_TIMEOUT)
        return read_catalogue(self._ask, self.version, scope)

    def round_trip_ns(self) -> float | None:
        """Return the shortest time of an empty statement; None if the connection is lost."""
        return self._session.round_trip_ns()

    def begin_sampling(self) -> None:
        """Set the shorter statement timeout of samples."""
        self._set_timeout(_SAMPLE_TIMEOUT)

    def look(self, known: Collection[int], *, blockers: bool) -> Look | None:
        """Sample the sessions that work or wait; return None if the server did not answer in time.

        `known` are query ids whose texts are not needed again. `blockers` also asks which sessions
        block the waiting ones.
        """
        begun = time.monotonic_ns()
        try:
            found = self._sample(known, blockers)
        except psycopg.Error as error:
            raise _gone(error) from error
        if found is None:
            return None
        ended = time.monotonic_ns()
        value, encoding = found.get_value, self._session.connection.info.encoding
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
        """Return the number of connections; None if the server did not answer in time."""
        try:
            ((many, idle_us),) = self._ask(snapshot_sql.CONNECTIONS)
        except QueryCanceled:
            return None
        return Connections(many, tuple(idle_us or ()))

    def connection_limits(self) -> tuple[int, int]:
        """Return how many connections the server accepts, and how many it reserves for superusers."""
        ((most, reserved),) = self._ask(snapshot_sql.CONNECTION_LIMITS)
        return most, reserved

    @contextmanager
    def planning(self) -> Iterator[Planner]:
        """Plan statements over this connection; meanwhile timeouts are shorter."""
        try:
            yield Planner(self._session, self.version)
            self._session.set(lock_timeout=_LOCK_TIMEOUT)
        except psycopg.Error as error:
            raise _gone(error) from error

    def statement_counts(self) -> dict[int, StatementCount]:
        """Return what pg_stat_statements counted since its reset, by query id; empty unless it counts.

        Call `facts` first: it finds out where the extension is.
        """
        if self._statements is None:
            return {}
        toplevel = " AND s.toplevel" if "s.toplevel" in self._statements else ""
        query = snapshot_sql.STATEMENT_COUNTS.format(extension="{extension}", toplevel=toplevel)
        rows = self._answer(self._extended(query))
        return {number: StatementCount(calls, float(ns), many) for number, calls, ns, many in rows}

    def sessions_begun(self) -> int | None:
        """Return how many sessions have begun in the connected database; None before PostgreSQL 14."""
        if self.version < _COUNTS_SESSIONS:
            return None
        ((many,),) = self._answer(snapshot_sql.SESSIONS_BEGUN)
        return int(many)

    def session_ports(self) -> set[int]:
        """Return the client's port of each connection over TCP."""
        return {port for (port,) in self._answer(snapshot_sql.SESSION_PORTS)}

    def texts(self, wanted: Iterable[int]) -> dict[int, str]:
        """Return the texts of statements by query id, as far as pg_stat_statements has them."""
        if self._statements is None or self._extension is None:
            return {}
        try:
            rows = self._ask(self._extended(snapshot_sql.STATEMENT_TEXTS), {"wanted": list(wanted)})
        except QueryCanceled:
            return {}
        return {
            number: _EXPLAINED.sub("", text) for number, text in rows if text is not None and text != _HIDDEN
        }

    # ---- steps ----

    def _sample(self, known: Collection[int], blockers: bool) -> PGresult | None:
        """Return the result of one sample; None if the server cancelled it.

        This calls libpq directly: through a psycopg cursor, a sample took twice the processor time,
        most of it spent preparing the query and polling for the answer. The server's timeout limits
        how long this call blocks.
        """
        server = self._session.connection.pgconn
        query = snapshot_sql.activity(self.version).encode()
        if not self._prepared and not self._session.pooled:
            prepared = server.prepare(_SAMPLE, query)
            if prepared.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise psycopg.DatabaseError(prepared.error_message.decode(errors="replace"))
            self._prepared = True
        values = ("{" + ",".join(map(str, known)) + "}").encode(), b"t" if blockers else b"f"
        if self._session.pooled:
            for place, value in enumerate(values, 1):
                query = query.replace(b"$%d" % place, b"'%s'" % value)
            found = self._session.send(query)
        else:
            found = server.exec_prepared(_SAMPLE, values)
        if found.status == psycopg.pq.ExecStatus.TUPLES_OK:
            return found
        if found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == _CANCELED:
            return None
        raise psycopg.OperationalError(found.error_message.decode(errors="replace"))

    def _ask(
        self, query: str | sql.Composed, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of the last query in a text.

        Raise ServerCrash if the server went away, psycopg's errors otherwise.
        """
        try:
            return self._session.execute(query, parameters).fetchall()
        except psycopg.Error as error:
            if self._session.lost:
                raise _gone(error) from error
            raise

    def _answer(self, query: str | sql.Composed) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raise ServerCrash whatever the server says instead."""
        try:
            return self._ask(query)
        except psycopg.Error as error:
            raise _gone(error) from error

    def _set_timeout(self, timeout: str) -> None:
        try:
            self._session.set(statement_timeout=timeout)
        except psycopg.Error as error:
            raise _gone(error) from error

    def _extended(self, query: str) -> sql.Composed:
        return _query(query).format(extension=sql.Identifier(self._extension or ""))

    def _find_statements(self) -> str:
        ((schema, loaded),) = self._ask(snapshot_sql.EXTENSION)
        if schema is None:
            return "not created" if loaded else "not loaded"
        self._extension = schema
        columns = [name for (name,) in self._ask(snapshot_sql.STATEMENT_COLUMNS, {"schema": schema})]
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

    def _find_kernel(self) -> tuple[str, float | None]:
        """Return the state of pg_stat_kcache, and which executions it counts as a whole."""
        self._kernel = None
        found = self._ask(snapshot_sql.KERNEL)
        if not found or self._statements is None:
            return "not created", None
        ((schema, columns, ticks_s),) = found
        if ticks_s is None:
            return "not loaded", None
        if _KERNEL_NEEDED not in columns:
            return "too old", None
        query = _query(snapshot_sql.kernel_counts(toplevel="s.toplevel" in self._statements)).format(
            extension=sql.Identifier(schema)
        )
        try:
            self._ask(query + sql.SQL("LIMIT 1"))
        except psycopg.Error as error:
            return _reason(error), None
        self._kernel = query
        return "counting", _TICKS * 1e9 / int(ticks_s)

    def _counter_rows(self, failed: dict[str, str]) -> Rows:
        views: dict[str, str | sql.Composed] = dict(snapshot_sql.counters(self.version))
        if self._statements is not None and self.version >= 14:
            views["pg_stat_statements_info"] = self._extended(snapshot_sql.STATEMENTS_INFO)
        if self._statements is not None and not self._sees_all:
            toplevel = " AND s.toplevel" if "s.toplevel" in self._statements else ""
            hidden = snapshot_sql.HIDDEN_STATEMENTS.format(extension="{extension}", toplevel=toplevel)
            views[HIDDEN_STATEMENTS] = self._extended(hidden)
        found: list[tuple[Any, ...]] = []
        for view, query in views.items():
            try:
                cursor = self._session.execute(query)
                names = [column.name for column in cursor.description or ()]
                for row in cursor.fetchall():
                    found += _counters(view, dict(zip(names, row, strict=True)))
            except psycopg.Error as error:
                if self._session.lost:
                    raise _gone(error) from error
                failed[view] = _reason(error)
        return Rows(_COUNTER_COLUMNS, found)

    def _rows(
        self, query: str | sql.Composed | None, columns: Sequence[str], what: str, failed: dict[str, str]
    ) -> Rows:
        if query is None:
            return Rows(columns, ())
        rows = self._iterate(query, what, failed)
        places = tuple(place for place, name in enumerate(columns) if name in _REPEATED)
        return Rows(columns, _shared(rows, places) if places else rows)

    def _iterate(
        self, query: str | sql.Composed, what: str, failed: dict[str, str]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield a query's rows one by one, which takes less memory than all of them; none if it failed."""
        try:
            yield from self._session.execute(query)
        except psycopg.Error as error:
            if self._session.lost:
                raise _gone(error) from error
            failed[what] = _reason(error)


def _shared(rows: Iterable[tuple[Any, ...]], places: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield rows in which equal texts of some columns are the same object."""
    known: dict[str, str] = {}
    share = known.setdefault
    for row in rows:
        values = list(row)
        for place in places:
            if (value := values[place]) is not None:
                values[place] = share(value, value)
        yield tuple(values)


def _counters(view: str, row: Row) -> Iterable[tuple[Any, ...]]:
    """Yield the counters of one row of a view, including the time of the last reset in microseconds."""
    for name, value in row.items():
        number: float | None = None
        if name == "stats_reset" and isinstance(value, datetime):
            number = value.timestamp() * 1e6
        elif isinstance(value, int | float | Decimal) and not isinstance(value, bool) and name != "datid":
            number = float(value)
        if number is not None:
            yield view, row["object"], row.get("datid"), name, number


def _query(text: str) -> sql.SQL:
    return sql.SQL(text)


def _reason(error: psycopg.Error) -> str:
    # libpq explains a lost connection in further lines.
    return error.diag.message_primary or str(error).partition("\n")[0].strip()


def _gone(error: psycopg.Error) -> ServerCrash:
    return ServerCrash(f"the server went away: {_reason(error)}")
