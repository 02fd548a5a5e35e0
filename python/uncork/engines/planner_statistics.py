"""Keep what a planner knows about the rows: over a VACUUM, and from one server to another."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

import psycopg

from uncork.engines.sparse.source_sizes import STATISTICS, Relation

RESTORES: Final = 18
"""The first version of PostgreSQL that can restore the planner's statistics."""

Name = tuple[str, str]
"""The schema and the name of a relation."""

_SIZES: Final = """
SELECT c.oid::int8, c.relpages, c.reltuples
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm', 'i') AND n.nspname !~ '^(pg_|information_schema$)'
"""
_RESTORE: Final = """
SELECT count(pg_catalog.pg_restore_relation_stats(
         'schemaname', n.nspname::text, 'relname', c.relname::text,
         'relpages', before.pages, 'reltuples', before.rows))
  FROM json_to_recordset(%s::json) AS before(oid int8, pages int, rows real)
  JOIN pg_catalog.pg_class c ON c.oid = before.oid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE (c.relpages, c.reltuples) IS DISTINCT FROM (before.pages, before.rows)
"""
_CLEAR: Final = """
SELECT count(pg_catalog.pg_clear_attribute_stats(
         n.nspname::text, c.relname::text, a.attname::text, s.stainherit)::text)
  FROM pg_catalog.pg_statistic s
  JOIN pg_catalog.pg_class c ON c.oid = s.starelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = s.starelid AND a.attnum = s.staattnum
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
  JOIN pg_catalog.pg_class t ON t.oid = coalesce(i.indrelid, c.oid)
  JOIN pg_catalog.pg_namespace m ON m.oid = t.relnamespace
  JOIN json_to_recordset(%s::json) AS wanted(schema text, name text)
    ON (wanted.schema, wanted.name) = (m.nspname::text, t.relname::text)
"""
_PRESENT: Final = """
SELECT n.nspname::text, c.relname::text
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname !~ '^(pg_|information_schema$)'
"""


def vacuum_only(connection: psycopg.Connection[Any]) -> None:
    """Vacuum a database, and keep the planner's statistics.

    VACUUM counts rows and pages as ANALYZE does. From PostgreSQL 18 on, the former numbers are
    restored, so that a table that was never analysed stays one. Before that, only the statistics of
    columns are kept. Raises psycopg.Error if the connection fails.
    """
    restores = connection.info.server_version // 10_000 >= RESTORES
    before = connection.execute(_SIZES.encode()).fetchall() if restores else []
    connection.execute("VACUUM")
    if before:
        sizes = [{"oid": oid, "pages": pages, "rows": rows} for oid, pages, rows in before]
        connection.execute(_RESTORE.encode(), [json.dumps(sizes)])


def replace_statistics(
    connection: psycopg.Connection[Any],
    tables: Collection[Name],
    relations: Iterable[Relation],
    columns: Iterable[tuple[str | None, ...]],
) -> None:
    """Replace the statistics of tables and their indexes by those of another server, or keep them all.

    A table without statistics there has none afterwards. How many pages are visible to all stays as
    it is, because the server knows it of its own pages. The connection is in autocommit mode, on a
    server of at least version `RESTORES`. Raises psycopg.Error if the server refuses something;
    then nothing changed.
    """
    with connection.transaction():
        wanted = [{"schema": schema, "name": name} for schema, name in tables]
        connection.execute(_CLEAR.encode(), [json.dumps(wanted)])
        present = {(schema, name) for schema, name in connection.execute(_PRESENT.encode()).fetchall()}
        restore_relations(
            connection, [relation for relation in relations if (relation.schema, relation.name) in present]
        )
        restore_columns(connection, [row for row in columns if (row[0], row[1]) in present])


def restore_relations(
    connection: psycopg.Connection[Any], relations: Iterable[Relation], *, visible: bool = False
) -> None:
    """Store the numbers of rows and pages of relations; with `visible`, also of pages visible to all.

    Raises psycopg.Error if the server refuses something.
    """
    with connection.pipeline():
        for relation in relations:
            values: list[tuple[str, str, object]] = [
                ("schemaname", "text", relation.schema),
                ("relname", "text", relation.name),
                ("relpages", "int", relation.stored_pages),
                ("reltuples", "real", relation.rows),
            ]
            if visible:
                values += [
                    ("relallvisible", "int", relation.visible),
                    ("relallfrozen", "int", relation.frozen),
                ]
            _call(connection, "pg_restore_relation_stats", values)


def restore_columns(connection: psycopg.Connection[Any], columns: Iterable[tuple[str | None, ...]]) -> None:
    """Store the statistics of columns; each is a row of pg_stats as `SourceSizes` has it.

    Raises psycopg.Error if the server refuses something.
    """
    with connection.pipeline():
        for schema, table, column, *found in columns:
            values: list[tuple[str, str, object]] = [
                ("schemaname", "text", schema),
                ("relname", "text", table),
                ("attname", "text", column),
            ]
            values += [
                (name, kind, value)
                for (name, kind), value in zip(STATISTICS, found, strict=True)
                if value is not None
            ]
            _call(connection, "pg_restore_attribute_stats", values)


def _call(
    connection: psycopg.Connection[Any], function: str, values: Iterable[tuple[str, str, object]]
) -> None:
    given = list(values)
    arguments = ", ".join(f"'{name}', %s::{kind}" for name, kind, _ in given)
    call = f"SELECT pg_catalog.{function}({arguments})"
    connection.execute(call.encode(), [value for _, _, value in given])
