"""The queries for tables, indexes and foreign keys of a watched database (PostgreSQL 13 to 18).

As in `snapshot_sql`, every query contains `MARK`, and names are qualified with pg_catalog. Queries for all
relations read only the catalogue and the counters. They open no relation, because the server locks each
relation that a session opens, and keeps it in that session's memory. They call the functions below the views
pg_stat_user_tables and pg_stat_user_indexes, which join every index again.

Whatever opens a relation is read for few relations at a time: ``%(oids)s``, without those in ``%(locked)s``,
which are under an ACCESS EXCLUSIVE lock.
"""

from __future__ import annotations

from typing import Final

from uncork.engines.watch.snapshot_sql import MARK, OURS

_COUNTERS: Final = """
       pg_catalog.pg_stat_get_numscans(c.oid), pg_catalog.pg_stat_get_tuples_returned(c.oid),
       pg_catalog.pg_stat_get_tuples_fetched(c.oid), pg_catalog.pg_stat_get_tuples_inserted(c.oid),
       pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_hot_updated(c.oid),
       pg_catalog.pg_stat_get_tuples_deleted(c.oid),
       pg_catalog.pg_stat_get_blocks_fetched(c.oid) - pg_catalog.pg_stat_get_blocks_hit(c.oid),
       pg_catalog.pg_stat_get_blocks_hit(c.oid)"""
"""Counters of a table. The scans and rows of its indexes are counted by index."""


def _time_us(*functions: str) -> str:
    calls = ", ".join(f"pg_catalog.pg_stat_get_{function}(c.oid)" for function in functions)
    # date_part is a tenth of the query faster than extract, which calculates with numeric.
    return f"(pg_catalog.date_part('epoch', greatest({calls})) * 1000000)::bigint"


def _fillfactor(default: int) -> str:
    return f"""CASE WHEN c.reloptions IS NULL THEN {default} ELSE
       coalesce((SELECT pg_catalog.split_part(o, '=', 2)::int FROM pg_catalog.unnest(c.reloptions) AS o
                  WHERE o LIKE 'fillfactor=%'), {default}) END"""


RELATIONS: Final = f"""
SELECT {MARK} c.oid::bigint, n.nspname, c.relname,
       CASE c.relkind WHEN 'p' THEN 'partitioned table' WHEN 'm' THEN 'materialized view' ELSE 'table' END,
       p.inhparent::bigint, CASE WHEN c.reltuples >= 0 THEN c.reltuples::float8 END, c.relpages::bigint,
       coalesce(t.relpages, 0)::bigint, {_fillfactor(100)},
       pg_catalog.pg_stat_get_live_tuples(c.oid), pg_catalog.pg_stat_get_dead_tuples(c.oid), {_COUNTERS},
       {_time_us("last_vacuum_time", "last_autovacuum_time")},
       {_time_us("last_analyze_time", "last_autoanalyze_time")},
       CASE WHEN c.relfrozenxid <> '0' THEN pg_catalog.age(c.relfrozenxid) END,
       pg_catalog.pg_stat_get_mod_since_analyze(c.oid),
       CASE WHEN c.reloptions IS NULL THEN true ELSE
       NOT EXISTS (SELECT FROM pg_catalog.unnest(c.reloptions) AS o
                    WHERE o IN ('autovacuum_enabled=false', 'autovacuum_enabled=off',
                                'autovacuum_enabled=0')) END
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class AS t ON t.oid = c.reltoastrelid AND t.relkind = 't' AND t.relpages > 0
  LEFT JOIN pg_catalog.pg_inherits AS p ON p.inhrelid = c.oid AND c.relispartition
 WHERE c.relkind IN ('r', 'm', 'p') AND {OURS}
"""

RELATION_COUNTERS: Final = f"""
SELECT {MARK} c.oid::bigint, {_COUNTERS}
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm', 'p') AND {OURS}
"""
"""The part of `RELATIONS` that differences need: all that is read before the watch, and kept during it."""

INDEX_COUNTERS: Final = f"""
SELECT {MARK} c.oid::bigint, pg_catalog.pg_stat_get_numscans(c.oid),
       pg_catalog.pg_stat_get_tuples_returned(c.oid), pg_catalog.pg_stat_get_tuples_fetched(c.oid)
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind = 'i' AND {OURS}
"""
"""The same of indexes. Their tables are known after the watch: the join doubles the cost of this query."""

_INDEXES: Final = f"""
SELECT {MARK} c.oid::bigint, i.indrelid::bigint, n.nspname, c.relname, am.amname,
       i.indkey, i.indclass, i.indcollation, i.indoption, i.indnkeyatts::int,
       i.indexprs IS NOT NULL, i.indpred IS NOT NULL, i.indisunique,
       i.indisprimary OR i.indisexclusion
       OR EXISTS (SELECT FROM pg_catalog.pg_constraint AS o
                   WHERE o.conindid = c.oid AND o.contype IN ('f', 'u')), i.indisvalid,
       c.relpages::bigint, CASE WHEN c.reltuples >= 0 THEN c.reltuples::float8 END, {_fillfactor(90)},
       pg_catalog.pg_stat_get_numscans(c.oid), pg_catalog.pg_stat_get_tuples_returned(c.oid),
       pg_catalog.pg_stat_get_tuples_fetched(c.oid), {{last_scan}}
  FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_am AS am ON am.oid = c.relam
 WHERE c.relkind = 'i' AND {OURS}
"""


def indexes(version: int) -> str:
    """Return the query for indexes, without their definitions."""
    return _INDEXES.format(last_scan=_time_us("lastscan") if version >= 16 else "NULL::bigint")


FOREIGN_KEYS: Final = f"""
SELECT {MARK} k.oid::bigint, k.conname, k.conrelid::bigint, k.confrelid::bigint,
       pg_catalog.array_to_string(k.conkey, ',')
  FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE k.contype = 'f' AND k.conparentid = 0 AND {OURS}
"""

# ---- a few relations at a time ----

SIZES: Final = f"""
SELECT {MARK} c.oid::bigint, pg_catalog.pg_relation_size(c.oid),
       CASE WHEN c.relkind = 'i' THEN NULL ELSE pg_catalog.pg_table_size(c.oid) END
  FROM pg_catalog.pg_class AS c
 WHERE c.oid = ANY (%(oids)s::oid[]) AND c.relkind IN ('r', 'm', 'i') AND c.oid <> ALL (%(locked)s::oid[])
"""

WIDTHS: Final = f"""
SELECT {MARK} c.oid::bigint, a.attnum::int, (1 - s.null_frac) * s.avg_width
  FROM pg_catalog.pg_stats AS s
  JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schemaname
  JOIN pg_catalog.pg_class AS c ON c.relname = s.tablename AND c.relnamespace = n.oid
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = s.attname
 WHERE NOT s.inherited AND s.schemaname = ANY (%(schemas)s::name[]) AND s.tablename = ANY (%(names)s::name[])
   AND c.oid = ANY (%(oids)s::oid[])
"""
"""Widths of columns, for tables that this role may read. pg_stats has names, no oids: the conditions on names
keep the server from reading all statistics."""

DEFINITIONS: Final = f"""
SELECT {MARK} i.indexrelid::bigint, pg_catalog.pg_get_indexdef(i.indexrelid),
       pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)
  FROM pg_catalog.pg_index AS i
 WHERE i.indexrelid = ANY (%(oids)s::oid[])
   AND i.indexrelid <> ALL (%(locked)s::oid[]) AND i.indrelid <> ALL (%(locked)s::oid[])
"""
"""Definitions of indexes. The definition of one that was dropped meanwhile is null."""

KEY_COLUMNS: Final = f"""
SELECT {MARK} k.oid::bigint, pg_catalog.string_agg(a.attname, ', ' ORDER BY x.place),
       max(s.null_frac), max(s.n_distinct), max(s.most_common_freqs[1])
  FROM pg_catalog.pg_constraint AS k
  JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL pg_catalog.unnest(k.conkey) WITH ORDINALITY AS x (number, place)
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = x.number
  LEFT JOIN pg_catalog.pg_stats AS s
    ON pg_catalog.cardinality(k.conkey) = 1 AND s.schemaname = n.nspname AND s.tablename = c.relname
   AND s.attname = a.attname AND s.inherited = (c.relkind = 'p')
   AND s.schemaname = ANY (%(schemas)s::name[]) AND s.tablename = ANY (%(names)s::name[])
 WHERE k.conrelid = ANY (%(oids)s::oid[]) AND k.contype = 'f' AND k.conparentid = 0
 GROUP BY k.oid
"""
"""The names of the columns of foreign keys, and what ANALYZE found in the column of a key that has only
one."""
