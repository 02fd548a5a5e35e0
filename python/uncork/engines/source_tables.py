"""Read the definitions and statistics of tables from a database; the connection only reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.model.source_table import SourceColumn, SourceTable

_LIMITS: Final = (
    "SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '10s', true), "
    "set_config('lock_timeout', '2s', true)"
)
"""Settings of one transaction: a pooler refuses startup options, and hands the session to an application."""

_TABLE: Final = """
SELECT c.oid, n.nspname, c.relkind, c.reltuples::bigint, pg_table_is_visible(c.oid),
       has_table_privilege(c.oid, 'SELECT')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass(%s)
"""
_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, t.typcategory AS category, t.typtype AS kind,
       format_type(t.typbasetype, t.typtypmod) AS base, tn.nspname AS type_schema,
       a.attnotnull AS not_null, a.attgenerated AS generated,
       pg_get_expr(d.adbin, d.adrelid) AS expression,
       ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder) AS labels,
       coalesce(s.n_distinct, 0) AS n_distinct, coalesce(s.null_frac, 0) AS null_frac,
       coalesce(s.avg_width, 0) AS avg_width, s.most_common_vals::text::text[] AS common,
       s.most_common_freqs AS shares, s.histogram_bounds::text::text[] AS bounds
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_namespace tn ON tn.oid = t.typnamespace
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN LATERAL (
       SELECT * FROM pg_stats
        WHERE schemaname = n.nspname AND tablename = c.relname AND attname = a.attname
        ORDER BY inherited DESC LIMIT 1) s ON true
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum
"""
_KEYS: Final = """
SELECT pg_get_constraintdef(oid), cardinality(conkey),
       (SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1])
  FROM pg_constraint WHERE conrelid = %s AND contype IN ('p', 'u') ORDER BY contype, conname
"""
_INDEXES: Final = """
SELECT pg_get_indexdef(i.indexrelid)
  FROM pg_index i
 WHERE i.indrelid = %s AND i.indisvalid
   AND NOT EXISTS (
       SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
 ORDER BY i.indexrelid::regclass::text
"""


def read_tables(conninfo: str, names: Sequence[str]) -> tuple[SourceTable, ...]:
    """Return what the server says about tables, by their names without quotes: ``orders``, ``shop.orders``.

    A table that is missing, not permitted, or cannot be copied is returned with the reason. Raises
    ConnectError if the server cannot be reached, or refuses the connection.
    """
    with connect_errors():
        connection = connect_to_watch(conninfo, prepare_threshold=None)
    with connection:
        return tuple(_read(connection, name) for name in names)


def _read(connection: psycopg.Connection, name: str) -> SourceTable:
    plain = name.rpartition(".")[2]
    try:
        with connection.transaction():
            connection.execute(_LIMITS)
            return _described(connection, name, plain)
    except psycopg.Error as error:
        return SourceTable(plain, unknown=reason_of(error))


def _described(connection: psycopg.Connection, name: str, plain: str) -> SourceTable:
    row = connection.execute(_TABLE, (sql.Identifier(*name.split(".")).as_string(),)).fetchone()
    if row is None:
        return SourceTable(plain, unknown="the database has no such table")
    oid, schema, kind, rows, visible, permitted = row
    if kind not in ("r", "p"):
        return SourceTable(plain, unknown="it is not a table; define what it reads")
    if not permitted:
        return SourceTable(plain, unknown="this role may not read it")
    keys = connection.execute(_KEYS, (oid,)).fetchall()
    indexes = connection.execute(_INDEXES, (oid,)).fetchall()
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        columns = [_column(row) for row in cursor.execute(_COLUMNS, (oid,)).fetchall()]
    return SourceTable(
        name=plain,
        schema="" if visible and "." not in name else str(schema),
        rows=max(int(rows), 0),
        columns=tuple(columns),
        keys=tuple(str(definition) for definition, _, _ in keys),
        unique=frozenset(str(column) for _, size, column in keys if size == 1),
        indexes=tuple(str(definition) for (definition,) in indexes),
    )


def _column(row: dict[str, Any]) -> SourceColumn:
    others = row["type_schema"] not in ("pg_catalog", "information_schema")
    own_type = others and row["kind"] in ("b", "c", "r")
    bounds = row["bounds"] or ()
    return SourceColumn(
        name=row["attname"],
        type=row["base"] if row["kind"] == "d" else row["type"],
        category="?" if own_type else row["category"],
        not_null=row["not_null"],
        generated=row["expression"] if row["generated"] == "s" else None,
        labels=tuple(row["labels"]),
        distinct=float(row["n_distinct"]),
        null_share=float(row["null_frac"]),
        width_bytes=int(row["avg_width"]),
        common=tuple(zip(row["common"] or (), row["shares"] or (), strict=False)),
        bounds=(bounds[0], bounds[-1]) if bounds else None,
    )
