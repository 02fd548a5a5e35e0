"""Read from a source what its planner knows: sizes of relations, statistics of columns, settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg

from uncork.engines.watch.connection import MARK

_OWN: Final = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"
_RELATIONS: Final = f"""
SELECT n.nspname::text, c.relname::text, c.relkind::text, c.relpages, c.reltuples, c.relallvisible,
       coalesce((to_jsonb(c) ->> 'relallfrozen')::int, 0),
       CASE WHEN c.relkind IN ('r', 'm', 'i') THEN
            pg_relation_size(c.oid) / current_setting('block_size')::int ELSE 0 END
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace {MARK}
 WHERE {_OWN} AND c.relkind IN ('r', 'm', 'i', 'p', 'I') AND c.relpersistence <> 't'
"""
STATISTICS: Final = (
    *(("inherited", "boolean"), ("null_frac", "real"), ("avg_width", "integer"), ("n_distinct", "real")),
    *(("most_common_vals", "text"), ("most_common_freqs", "real[]"), ("histogram_bounds", "text")),
    *(("correlation", "real"), ("most_common_elems", "text"), ("most_common_elem_freqs", "real[]")),
    *(("elem_count_histogram", "real[]"), ("range_length_histogram", "text"), ("range_empty_frac", "real")),
    ("range_bounds_histogram", "text"),
)
"""The columns of pg_stats, and the types with which pg_restore_attribute_stats takes them."""
_STATISTICS: Final = f"""
SELECT schemaname::text, tablename::text, attname::text,
       {", ".join(f"{name}::text" for name, _ in STATISTICS)}
  FROM pg_stats {MARK}
 WHERE schemaname <> 'information_schema' AND schemaname NOT LIKE 'pg\\_%'
"""
_SETTINGS: Final = f"""
SELECT name, current_setting(name) FROM pg_settings {MARK}
 WHERE 'EXPLAIN' = ANY (pg_settings_get_flags(name)) AND context IN ('user', 'superuser')
"""
"""Settings that the planner uses are those that EXPLAIN (SETTINGS) shows."""
_EXTENDED: Final = f"""
SELECT format('%I.%I', n.nspname, s.stxname)
  FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace {MARK} WHERE {_OWN} ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or an index: what the last VACUUM or ANALYZE stored, and how many pages it has now."""

    schema: str
    name: str
    kind: str
    stored_pages: int
    rows: float
    visible: int
    frozen: int
    pages: int


@dataclass(frozen=True, slots=True)
class SourceSizes:
    """What the planner of a source knows.

    `statistics` are rows of pg_stats as text: schema, table, column, then `STATISTICS`. `extended`
    are the names of objects of CREATE STATISTICS. `block_size` is the size of a page in bytes.
    """

    relations: tuple[Relation, ...]
    statistics: tuple[tuple[str | None, ...], ...]
    settings: tuple[tuple[str, str], ...]
    extended: tuple[str, ...]
    block_size: int


def read_sizes(connection: psycopg.Connection[Any]) -> SourceSizes:
    """Read the sizes of all tables and indexes of users over a read-only connection.

    Raises psycopg.Error if the server went away or did not answer in time.
    """
    with connection.transaction():
        # EXPLAIN shows what changes plans; the watch itself has changed jit.
        settings = [(n, v) for n, v in connection.execute(_SETTINGS.encode()).fetchall() if n != "jit"]
        return SourceSizes(
            tuple(Relation(*row) for row in connection.execute(_RELATIONS.encode()).fetchall()),
            tuple(connection.execute(_STATISTICS.encode()).fetchall()),
            tuple(settings),
            tuple(name for (name,) in connection.execute(_EXTENDED.encode()).fetchall()),
            int(connection.execute(b"SELECT current_setting('block_size')").fetchone()[0]),  # type: ignore[index]
        )
