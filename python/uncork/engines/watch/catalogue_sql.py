"""The queries for the catalogue of a watched database (PostgreSQL 13 to 18).

As in `snapshot_sql`, every query contains `MARK`, and names are qualified with pg_catalog. Functions
that print definitions (pg_get_expr, pg_get_viewdef, ...) take an ACCESS SHARE lock on their tables, so they
are not called for relations in ``%(locked)s``, which are under an ACCESS EXCLUSIVE lock.
"""

from __future__ import annotations

from typing import Final

from uncork.engines.watch.snapshot_sql import MARK, OURS

LOCKED: Final = f"""
SELECT {MARK} DISTINCT l.relation::bigint FROM pg_catalog.pg_locks AS l
 WHERE l.mode = 'AccessExclusiveLock' AND l.relation IS NOT NULL
   AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
"""

# ---- tables ----

_COLUMNS: Final = f"""
SELECT {MARK} a.attrelid::bigint, a.attnum::int, a.attname, pg_catalog.format_type(a.atttypid, NULL),
       pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
       CASE WHEN d.adrelid <> ALL (%(locked)s::oid[])
            THEN coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') ELSE '' END,
       CASE WHEN a.attidentity <> '' THEN 'identity' WHEN a.attgenerated = 's' THEN 'stored'
            WHEN a.attgenerated = 'v' THEN 'virtual' ELSE '' END,
       coalesce(o.collname, ''), {{target}},
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'select')
       AND NOT pg_catalog.row_security_active(a.attrelid)
  FROM pg_catalog.pg_attribute AS a
  LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation
 WHERE a.attrelid = ANY (%(tables)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum
"""


def columns(version: int) -> str:
    """Return the query for columns of tables."""
    target = "a.attstattarget" if version >= 17 else "nullif(a.attstattarget, -1)"
    return _COLUMNS.format(target=f"{target}::int")


STATISTICS: Final = f"""
SELECT {MARK} c.oid::bigint, s.attname, s.null_frac, s.avg_width, s.n_distinct, s.correlation,
       CASE WHEN %(values)s THEN
         (SELECT pg_catalog.array_agg(pg_catalog.left(v.value, 60) ORDER BY v.place)
            FROM pg_catalog.unnest(s.most_common_vals::text::text[]) WITH ORDINALITY AS v (value, place)
           WHERE v.place <= 10) END,
       CASE WHEN %(values)s THEN s.most_common_freqs[1:10] END,
       CASE WHEN %(values)s THEN
         (SELECT pg_catalog.array_agg(pg_catalog.left(v.value, 60) ORDER BY v.place)
            FROM pg_catalog.unnest(s.histogram_bounds::text::text[]) WITH ORDINALITY AS v (value, place)
            JOIN (SELECT DISTINCT 1 + pg_catalog.round(
                           (pg_catalog.array_length(s.histogram_bounds::text::text[], 1) - 1) * n / 9.0)
                    FROM pg_catalog.generate_series(0, 9) AS n) AS k (place) ON k.place = v.place) END
  FROM pg_catalog.pg_stats AS s
  JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schemaname
  JOIN pg_catalog.pg_class AS c ON c.relname = s.tablename AND c.relnamespace = n.oid
 WHERE s.schemaname = ANY (%(schemas)s::name[]) AND s.tablename = ANY (%(names)s::name[])
   AND c.oid = ANY (%(tables)s::oid[]) AND s.inherited = (c.relkind = 'p')
"""
"""What ANALYZE found. With ``%(values)s``, ten common values and ten bounds of at most 60 characters each.

pg_stats has names, no oids: the conditions on names keep the server from reading all statistics.
"""

CONSTRAINTS: Final = f"""
SELECT {MARK} k.oid::bigint, k.conrelid::bigint, k.conname,
       CASE k.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique' WHEN 'f' THEN 'foreign key'
                      WHEN 'c' THEN 'check' WHEN 'x' THEN 'exclusion' ELSE 'not null' END,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY x.place)
          FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS x (number, place)
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = x.number),
       CASE WHEN NOT ARRAY[k.conrelid, k.confrelid, k.conindid] && %(locked)s::oid[]
            THEN pg_catalog.pg_get_constraintdef(k.oid) ELSE '' END, k.convalidated,
       CASE WHEN k.contype <> 'f' THEN coalesce(i.relname, '') ELSE '' END,
       CASE WHEN k.contype = 'f' THEN k.confrelid::bigint END,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY x.place)
          FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS x (number, place)
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = x.number),
       CASE k.confdeltype {{actions}} END, CASE k.confupdtype {{actions}} END
  FROM pg_catalog.pg_constraint AS k LEFT JOIN pg_catalog.pg_class AS i ON i.oid = k.conindid
 WHERE k.conrelid = ANY (%(tables)s::oid[]) AND k.contype IN ('p', 'u', 'f', 'c', 'x', 'n')
 ORDER BY k.conrelid, k.oid
""".format(
    actions="WHEN 'a' THEN 'no action' WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade' "
    "WHEN 'n' THEN 'set null' WHEN 'd' THEN 'set default' ELSE ''"
)

TRIGGERS: Final = f"""
SELECT {MARK} t.oid::bigint, t.tgrelid::bigint, t.tgname, t.tgfoid::bigint,
       CASE WHEN t.tgtype & 64 <> 0 THEN 'instead of' WHEN t.tgtype & 2 <> 0 THEN 'before' ELSE 'after' END,
       t.tgtype & 1 <> 0,
       pg_catalog.array_remove(ARRAY[CASE WHEN t.tgtype & 4 <> 0 THEN 'insert' END,
                                     CASE WHEN t.tgtype & 16 <> 0 THEN 'update' END,
                                     CASE WHEN t.tgtype & 8 <> 0 THEN 'delete' END,
                                     CASE WHEN t.tgtype & 32 <> 0 THEN 'truncate' END], NULL),
       n.nspname, p.proname,
       CASE WHEN t.tgrelid <> ALL (%(locked)s::oid[]) THEN pg_catalog.pg_get_triggerdef(t.oid) ELSE '' END,
       t.tgenabled IN ('O', 'A')
  FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 WHERE t.tgrelid = ANY (%(tables)s::oid[]) AND NOT t.tgisinternal
 ORDER BY t.tgrelid, t.tgname
"""

POLICIES: Final = f"""
SELECT {MARK} p.oid::bigint, p.polrelid::bigint, p.polname,
       CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update'
                     WHEN 'd' THEN 'delete' ELSE 'all' END,
       p.polpermissive,
       CASE WHEN p.polrelid <> ALL (%(locked)s::oid[]) AND NOT EXISTS (
                   SELECT FROM pg_catalog.pg_depend AS d
                    WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid
                      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                      AND d.refobjid = ANY (%(locked)s::oid[]))
            THEN coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') ELSE '' END,
       EXISTS (SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_proc AS f ON f.oid = d.refobjid
                WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid
                  AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND f.provolatile = 'v'),
       ARRAY(SELECT r.rolname::text FROM pg_catalog.pg_roles AS r
              WHERE (r.rolname = ANY (%(roles)s::name[])
                     OR r.oid IN (SELECT a.usesysid FROM pg_catalog.pg_stat_activity AS a))
                AND NOT r.rolsuper AND NOT r.rolbypassrls
                AND (c.relforcerowsecurity OR NOT pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE'))
                AND (0 = ANY (p.polroles)
                     OR EXISTS (SELECT FROM pg_catalog.unnest(p.polroles) AS o (oid)
                                 WHERE pg_catalog.pg_has_role(r.oid, o.oid, 'USAGE')))
              ORDER BY 1)
  FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid
 WHERE p.polrelid = ANY (%(tables)s::oid[]) AND c.relrowsecurity
 ORDER BY p.polrelid, p.polname
"""
"""Policies, each with the roles that it applies to: roles in ``%(roles)s``, and roles of sessions.

Row security does not apply to superusers, to roles with BYPASSRLS, and to a table's owner unless forced.
"""

OPTIONS: Final = f"""
SELECT {MARK} c.oid::bigint, c.reloptions, t.reloptions,
       CASE c.relpersistence WHEN 'u' THEN 'unlogged' WHEN 't' THEN 'temporary' ELSE 'permanent' END,
       CASE WHEN c.relkind = 'p' THEN pg_catalog.pg_get_partkeydef(c.oid) ELSE '' END,
       CASE WHEN c.oid <> ALL (%(locked)s::oid[])
            THEN coalesce(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '') ELSE '' END,
       CASE WHEN t.oid <> ALL (%(locked)s::oid[]) THEN pg_catalog.pg_relation_size(t.oid) END
  FROM pg_catalog.pg_class AS c LEFT JOIN pg_catalog.pg_class AS t ON t.oid = c.reltoastrelid
 WHERE c.oid = ANY (%(tables)s::oid[])
"""

# ---- functions and views ----


def _of_extension(catalogue: str, oid: str) -> str:
    return f"""EXISTS (SELECT FROM pg_catalog.pg_depend AS e
                WHERE e.classid = 'pg_catalog.{catalogue}'::pg_catalog.regclass AND e.objid = {oid}
                  AND e.deptype = 'e')"""


FUNCTION_COUNTERS: Final = f"""
SELECT {MARK} f.funcid::bigint, f.calls, f.total_time, f.self_time
  FROM pg_catalog.pg_stat_user_functions AS f
 WHERE pg_catalog.current_setting('track_functions') <> 'none'
"""

_FUNCTIONS: Final = f"""
SELECT {MARK} p.oid::bigint, n.nspname, p.proname, l.lanname,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END,
       p.proisstrict, p.proretset, p.procost,
       CASE WHEN l.lanname IN ('sql', 'plpgsql') THEN pg_catalog.left(p.prosrc, 20000) ELSE '' END,
       p.prosecdef OR p.proconfig IS NOT NULL, {{body}}
  FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
  JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
 WHERE (p.oid = ANY (%(triggers)s::oid[]) OR p.proname = ANY (%(words)s::name[])) AND p.prokind IN ('f', 'p')
   AND {OURS} AND NOT {_of_extension("pg_proc", "p.oid")}
 ORDER BY p.oid = ANY (%(triggers)s::oid[]) DESC, p.oid LIMIT 200
"""


def functions(version: int) -> str:
    """Return the query for functions of triggers, and for those whose names occur in statements.

    The last column is true if the function's body was parsed when it was created (BEGIN ATOMIC).
    """
    return _FUNCTIONS.format(body="p.prosqlbody IS NOT NULL" if version >= 14 else "false")


FUNCTION_BODY: Final = f"""
SELECT {MARK} pg_catalog.left(pg_catalog.pg_get_function_sqlbody(%(oid)s::oid), 20000)
"""

VIEWS: Final = f"""
WITH RECURSIVE used (oid) AS (
  SELECT {MARK} c.oid
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('v', 'm') AND c.relname = ANY (%(words)s::name[]) AND {OURS}
     AND NOT {_of_extension("pg_class", "c.oid")}
  UNION
  SELECT d.refobjid
    FROM used AS u JOIN pg_catalog.pg_rewrite AS w ON w.ev_class = u.oid
    JOIN pg_catalog.pg_depend AS d ON d.objid = w.oid
     AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    JOIN pg_catalog.pg_class AS c ON c.oid = d.refobjid AND c.relkind IN ('v', 'm'))
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind = 'm',
       c.oid = ANY (%(locked)s::oid[])
       OR EXISTS (SELECT FROM pg_catalog.pg_rewrite AS w
                    JOIN pg_catalog.pg_depend AS d ON d.objid = w.oid
                     AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
                     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                   WHERE w.ev_class = c.oid AND d.refobjid = ANY (%(locked)s::oid[]))
  FROM used AS u JOIN pg_catalog.pg_class AS c ON c.oid = u.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE {OURS}
 ORDER BY c.relname = ANY (%(words)s::name[]) DESC, c.oid LIMIT 100
"""
"""Views whose names occur in statements, and the views that they use; the last column: locked."""

VIEW_DEFINITION: Final = f"SELECT {MARK} pg_catalog.pg_get_viewdef(%(oid)s::oid)"

# ---- settings ----

OWN_SETTINGS: Final = f"""
SELECT {MARK} pg_catalog.set_config(own.name, NULL, true)
  FROM pg_catalog.unnest(ARRAY['jit', 'lock_timeout', 'statement_timeout', 'plan_cache_mode']) AS own (name)
"""
"""Undo, until the end of the transaction, what uncork set for its own session."""

_NAMES: Final = (
    *("work_mem", "hash_mem_multiplier", "shared_buffers", "effective_cache_size", "maintenance_work_mem"),
    *("max_wal_size", "min_wal_size", "wal_compression", "full_page_writes", "synchronous_commit"),
    *("synchronous_standby_names", "commit_delay", "commit_siblings", "fsync", "wal_buffers", "wal_level"),
    *("wal_sync_method", "random_page_cost", "seq_page_cost", "plan_cache_mode", "huge_pages"),
    *("effective_io_concurrency", "maintenance_io_concurrency", "io_method", "io_workers"),
    *("default_statistics_target", "max_connections", "superuser_reserved_connections"),
    *("reserved_connections", "idle_in_transaction_session_timeout", "idle_session_timeout"),
    *("transaction_timeout", "statement_timeout", "lock_timeout", "deadlock_timeout", "temp_file_limit"),
    *("temp_buffers", "parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"),
    *("min_parallel_index_scan_size", "max_worker_processes", "from_collapse_limit"),
    *("join_collapse_limit", "geqo_threshold", "cursor_tuple_fraction", "constraint_exclusion"),
    *("shared_preload_libraries", "max_locks_per_transaction", "max_pred_locks_per_transaction"),
    *("subtransaction_buffers", "multixact_offset_buffers", "multixact_member_buffers"),
    *(
        "default_transaction_isolation",
        "default_toast_compression",
        "compute_query_id",
        "hot_standby_feedback",
    ),
    *("log_lock_waits", "log_temp_files", "log_checkpoints", "log_parameter_max_length", "block_size"),
    *("bgwriter_delay", "bgwriter_lru_maxpages", "bgwriter_lru_multiplier", "data_checksums"),
    *("max_standby_streaming_delay", "old_snapshot_threshold", "server_version_num"),
)
_PATTERNS: Final = (
    *("autovacuum", "autovacuum_%", "checkpoint_%", "cpu_%_cost", "jit%", "enable_%", "track_%"),
    *("max_parallel_%", "vacuum_%", "log_%min_duration%", "pg_stat_statements.%", "auto_explain.%"),
)


def _literals(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words).replace("_", r"\_")


SERVER_SETTINGS: Final = f"""
SELECT {MARK} s.name, pg_catalog.current_setting(s.name), s.source
  FROM pg_catalog.pg_settings AS s
 WHERE s.name IN ({", ".join(f"'{name}'" for name in _NAMES)})
    OR s.name LIKE ANY (ARRAY[{_literals(_PATTERNS)}])
 ORDER BY s.name
"""


def locale(version: int) -> str:
    """Return the query for the locale of the database's default collation."""
    own = "d.datlocale" if version >= 17 else "d.daticulocale" if version >= 15 else "NULL"
    return f"""
SELECT {MARK} 'lc_collate', coalesce({own}, d.datcollate), 'database'
  FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()
"""


ROLE_SETTINGS: Final = f"""
SELECT {MARK} coalesce(r.rolname, ''), coalesce(d.datname, ''), x.name,
       CASE WHEN k.name IS NOT NULL THEN x.value END
  FROM pg_catalog.pg_db_role_setting AS s
  LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = s.setrole
  LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase
 CROSS JOIN LATERAL (SELECT pg_catalog.split_part(c, '=', 1),
                            pg_catalog.substr(c, pg_catalog.strpos(c, '=') + 1)
                       FROM pg_catalog.unnest(s.setconfig) AS c) AS x (name, value)
  LEFT JOIN pg_catalog.pg_settings AS k ON pg_catalog.lower(k.name) = pg_catalog.lower(x.name)
 WHERE s.setdatabase = 0 OR d.datname = pg_catalog.current_database()
 ORDER BY 1, 2, 3
"""
"""Values of parameters that the server does not know are left out: applications keep secrets in them."""


# ---- relations ----
#
# Queries for all relations read only the catalogue and the counters. They open no relation, because
# the server locks each relation that a session opens, and keeps it in that session's memory. They
# call the functions below the views pg_stat_user_tables and pg_stat_user_indexes, which join every
# index again. Whatever opens a relation is read for few relations at a time: ``%(oids)s``, without
# those in ``%(locked)s``.


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
