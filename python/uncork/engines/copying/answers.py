"""Compare what two ways of a client do on a scratch database: the rows they return, and those they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from uncork.engines.copying.scratch import ScratchDatabase
from uncork.errors import SetupError

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


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What statements left in the tables that they changed, directly and by triggers.

    `rows` are the number of rows and their digest by table, `columns` the digest of the values by column. No
    digest depends on the order of rows.
    """

    rows: Mapping[str, tuple[int, str]]
    columns: Mapping[Column, str]


def unstable_columns(first: LeftBehind, second: LeftBehind) -> frozenset[Column]:
    """Return the columns that have other values when the same is done again, such as times."""
    return frozenset(
        column for column, digest in first.columns.items() if second.columns.get(column) != digest
    )


class ScratchAnswers(ScratchDatabase):
    """A scratch database on which statements are executed, compared, and reverted.

    Methods raise SetupError with the server's words if it refuses a statement.
    """

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
            raise self._refused(error) from error
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
            raise self._refused(error) from error
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
            raise self._refused(error) from error

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

    def _refused(self, error: psycopg.Error) -> SetupError:
        return SetupError(error.diag.message_primary or " ".join(str(error).split()))
