"""A scratch database: a copy of a database on its own server, on which anything may be executed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import psycopg
from psycopg import pq, sql

from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.engines.conninfo import resolve
from uncork.engines.copying.applying import refusal
from uncork.engines.database_copy import give_settings, read_own_settings
from uncork.engines.watch.observe import has_statements
from uncork.errors import RunError, SetupError
from uncork.model.units import format_duration

_NAME: Final = "uncork_rehearsal"
_INDEXABLE: Final = """
SELECT pg_catalog.quote_ident(a.attname)
  FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
 WHERE a.attrelid = pg_catalog.to_regclass(%(table)s::text) AND a.attnum > 0 AND NOT a.attisdropped
   AND (t.typtype = 'e' OR EXISTS (
          SELECT FROM pg_catalog.pg_opclass AS o JOIN pg_catalog.pg_am AS m ON m.oid = o.opcmethod
           WHERE m.amname = 'btree' AND o.opcdefault
             AND o.opcintype = CASE t.oid WHEN 1043 THEN 25 ELSE t.oid END))
 ORDER BY a.attnum
"""
"""varchar (1043) uses the operators of text (25)."""
_TYPES = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'uncork_types'"
_CHANGES = """
SELECT relid::bigint, schemaname, relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables
 WHERE n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY relid
"""
"""The rows changed by this transaction, and by earlier ones of the session that it has not reported yet."""
_COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_SEQUENCES = """
SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL
  FROM pg_sequences
"""

Column = tuple[str, str]


def count_statements(conninfo: str) -> int:
    """Create pg_stat_statements in a database of an own server; return the server's major version.

    Raises ConnectError if the server cannot be reached.
    """
    with connect_errors(), closing(connect_to_watch(conninfo)) as control:
        has_statements(control, may_create=True)
        return control.info.server_version // 10000


def indexable_columns(conninfo: str, tables: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table that can have a B-tree index, as SQL; none if there is no such table.

    Raises ConnectError if the server cannot be reached.
    """
    with connect_errors(), closing(connect_to_watch(conninfo)) as control:
        return {
            table: tuple(str(name) for (name,) in control.execute(_INDEXABLE, {"table": table}))
            for table in tables
        }


@dataclass(frozen=True, slots=True)
class Executed:
    """What a statement did: the server's words if it violated a constraint, and the rows that it changed.

    `violation` is empty if there was none; `rows` is None if the server refused the statement.
    """

    violation: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What statements left in the tables that they changed, directly and by triggers.

    `rows` are the number of rows and their digest by table, `columns` the digest of the values by
    column. No digest depends on the order of rows.
    """

    rows: Mapping[str, tuple[int, str]]
    columns: Mapping[Column, str]


def unstable_columns(first: LeftBehind, second: LeftBehind) -> frozenset[Column]:
    """Return the columns that have other values when the same is done again, such as times."""
    return frozenset(
        column for column, digest in first.columns.items() if second.columns.get(column) != digest
    )


class ScratchDatabase:
    """A copy of the database at `conninfo`, which no session may use meanwhile; dropped at the end.

    Raises ConnectError if the server cannot be reached; SetupError if the server refuses to copy
    the database.
    """

    def __init__(self, conninfo: str) -> None:
        self._limit_s = 0.0
        address = resolve(conninfo)
        self._drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_NAME))
        other = "postgres" if address.database != "postgres" else "template1"
        with connect_errors():
            self._control = connect_to_watch(address.conninfo(other))
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(_NAME), sql.Identifier(address.database)
        )
        if self._control.info.server_version >= 150000:
            command += sql.SQL(" STRATEGY FILE_COPY")
        try:
            self._control.execute(self._drop)
            self._control.execute(command)
            give_settings(self._control, _NAME, read_own_settings(self._control, address.database))
            self._own = connect_to_watch(address.conninfo(_NAME))
        except psycopg.Error as error:
            self._control.close()
            raise SetupError(f"cannot copy database {address.database}: {reason_of(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.close()
        with closing(self._control):
            self._control.execute(self._drop)

    def limit(self, seconds: float) -> None:
        """Let each later statement take this long at most; 0 is no limit."""
        self._limit_s = seconds
        self._own.execute(sql.SQL("SET statement_timeout = {}").format(round(seconds * 1000)))

    def set(self, settings: Mapping[str, str]) -> None:
        """Set settings of the session. Raises SetupError with the server's words."""
        try:
            for name, value in settings.items():
                self._own.execute("SELECT set_config(%s, %s, false)", [name, value])
        except psycopg.Error as error:
            raise SetupError(reason_of(error)) from error

    def execute(self, script: str) -> None:
        """Execute a script as one message.

        Raises:
            RunError: if the disk is full, which says nothing about the script.
            SetupError: with the server's words, or because the script takes longer than `limit`.
        """
        try:
            self._own.execute(script.encode())
        except psycopg.errors.DiskFull as error:
            raise RunError(refusal(error, "a change was made on it")) from error
        except psycopg.errors.QueryCanceled as error:
            longest = format_duration(self._limit_s * 1e9)
            raise SetupError(f"it did not end within {longest} on the copy") from error
        except psycopg.Error as error:
            raise SetupError(reason_of(error)) from error

    def size(self) -> int:
        """Return the bytes of the database."""
        row = self._own.execute("SELECT pg_database_size(current_database())").fetchone()
        return 0 if row is None else int(row[0])

    def plan(self, statement: str, settings: Mapping[str, str]) -> str | None:
        """Return the plan of a statement with values as JSON, without executing it; None if it is refused."""
        try:
            with self._own.transaction(force_rollback=True):
                for name, value in settings.items():
                    self._own.execute("SELECT set_config(%s, %s, true)", [name, value])
                row = self._own.execute(b"EXPLAIN (FORMAT JSON) " + statement.encode()).fetchone()
        except psycopg.Error:
            return None
        return None if row is None else json.dumps(row[0])

    def executed(self, statements: Sequence[str]) -> list[Executed]:
        """Execute statements one after the other, and revert them all.

        What one changes, the later ones see. Raises SetupError if the server goes away.
        """
        found = []
        with self._own.transaction(force_rollback=True):
            self._own.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for statement in statements:
                words, rows = "", None
                try:
                    with self._own.transaction():
                        rows = self._own.execute(statement.encode()).rowcount
                except psycopg.IntegrityError as error:
                    words = reason_of(error)
                except psycopg.Error as error:
                    if self._own.broken:
                        raise SetupError(reason_of(error)) from error
                found.append(Executed(words, rows))
        return found

    def some_rows(self, query: str, most: int) -> list[tuple[str, ...]]:
        """Return some rows of a query, chosen at random in the same way each time; none if it is refused."""
        chosen = f"SELECT * FROM ({query}) AS found ORDER BY random() LIMIT {most}"
        try:
            self._own.execute("SELECT setseed(0.5)")
            return self._own.execute(chosen.encode()).fetchall()
        except psycopg.Error as error:
            if self._own.broken:
                raise SetupError(reason_of(error)) from error
            return []

    def literal(self, value: str) -> str:
        """Return a value as a literal of SQL."""
        encoding = self._own.info.encoding
        return bytes(pq.Escaping(self._own.pgconn).escape_literal(value.encode(encoding))).decode(encoding)

    # ---- compare two ways of a client: the rows that it receives, and the rows in the tables afterwards ----

    # These methods raise SetupError with the server's words if it refuses a statement.

    def parameter_types(self, statement: str) -> tuple[str, ...]:
        """Return the types that the server gives to ``$1``, ``$2``, ...."""
        try:
            with self._own.transaction(force_rollback=True):
                self._own.execute(b"PREPARE uncork_types AS " + statement.encode())
                try:
                    row = self._own.execute(_TYPES.encode()).fetchone()
                finally:
                    self._own.execute("DEALLOCATE uncork_types")
        except psycopg.Error as error:
            raise SetupError(reason_of(error)) from error
        return () if row is None else tuple(row[0])

    def returned(self, statements: Sequence[str], skipped: int = 0) -> Counter[tuple[str, ...]]:
        """Return the rows that statements return, all together; `skipped` columns of each are left out."""
        found: Counter[tuple[str, ...]] = Counter()
        try:
            with self._own.transaction(force_rollback=True):
                for statement in statements:
                    for row in self._own.execute(statement.encode()).fetchall():
                        found[tuple(map(repr, row[skipped:]))] += 1
        except psycopg.Error as error:
            raise SetupError(reason_of(error)) from error
        return found

    def left_behind(self, statements: Sequence[str], without: Collection[Column] = ()) -> LeftBehind:
        """Return what statements leave behind; `without` are columns that the rows are compared without.

        All is reverted, and sequences go back to where they were.
        """
        try:
            sequences = self._own.execute(_SEQUENCES.encode()).fetchall()
            try:
                with self._own.transaction(force_rollback=True):
                    earlier = self._own.execute(_CHANGES.encode()).fetchall()
                    for statement in statements:
                        self._own.execute(statement.encode())
                    self._own.execute("SET CONSTRAINTS ALL IMMEDIATE")
                    changed = set(self._own.execute(_CHANGES.encode()).fetchall()).difference(earlier)
                    return self._digests([found[:3] for found in sorted(changed)], without)
            finally:
                if not self._own.broken:
                    for name, value, called in sequences:
                        self._own.execute("SELECT setval(%s::regclass, %s, %s)", [name, value, called])
        except psycopg.Error as error:
            raise SetupError(reason_of(error)) from error

    def _digests(self, tables: Iterable[tuple[int, str, str]], without: Collection[Column]) -> LeftBehind:
        rows: dict[str, tuple[int, str]] = {}
        columns: dict[Column, str] = {}
        for table, schema, relation in tables:
            name = relation if schema == "public" else f"{schema}.{relation}"
            known = [column for (column,) in self._own.execute(_COLUMNS.encode(), [table]).fetchall()]
            stable = [column for column in known if (name, column) not in without]
            digest = sql.SQL("coalesce(sum(hashtextextended(({})::text, 0)), 0)::text")
            row = sql.SQL("ROW({})").format(sql.SQL(", ").join(map(sql.Identifier, stable)))
            query = sql.SQL("SELECT count(*), {} FROM {}").format(
                sql.SQL(", ").join(
                    [digest.format(row), *(digest.format(sql.Identifier(column)) for column in known)]
                ),
                sql.Identifier(schema, relation),
            )
            found = self._own.execute(query).fetchone()
            if found is not None:
                rows[name] = (found[0], found[1])
                columns.update({(name, column): each for column, each in zip(known, found[2:], strict=True)})
        return LeftBehind(rows, columns)
