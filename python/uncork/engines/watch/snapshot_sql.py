"""The queries for watching a server, in the dialect of its version (PostgreSQL 13 to 18).

Every query contains `MARK`, which identifies uncork's own statements in pg_stat_statements. Names
are qualified with pg_catalog so that a search_path cannot redirect them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from uncork.model.server import WATCH_APPLICATION
from uncork.model.tables.database import DROPPED_DATABASE, DROPPED_ROLE

LEAST_VERSION: Final = 13
MARK: Final = "/* uncork */"


def backend(version: int) -> str:
    """Return the query for the id of a session's process, and whether uncork may hide itself.

    A role that may set pg_stat_statements.track can keep the statements of its session out of
    pg_stat_statements.
    """
    may_hide = "pg_catalog.current_setting('is_superuser') = 'on'"
    if version >= 15:
        may_hide = "pg_catalog.has_parameter_privilege('pg_stat_statements.track', 'SET')"
    return f"SELECT {MARK} pg_catalog.pg_backend_pid(), {may_hide}"


SERVER: Final = f"""
SELECT {MARK} pg_catalog.version(), pg_catalog.current_database(), current_user,
       (SELECT r.oid::bigint FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user),
       (SELECT d.oid::bigint FROM pg_catalog.pg_database AS d
         WHERE d.datname = pg_catalog.current_database()),
       pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage'),
       pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('block_size')::int,
       pg_catalog.current_setting('track_activities'), pg_catalog.current_setting('track_io_timing'),
       pg_catalog.current_setting('track_counts'),
       pg_catalog.current_setting('compute_query_id', true)
"""

_ENDED: Final = """coalesce(a.state = 'active' AND a.wait_event = 'ClientRead'
             AND clock_timestamp() - a.state_change < interval '20 ms', false)"""
"""Detects statements that ended while the server was reading pg_stat_activity.

The server reads states first and wait events later. A short statement, such as a COMMIT, can end in between;
its session then shows a wait for the client that the statement did not have. What the statement did wait for
is unknown. A COPY that waits for its client has been active for longer than 20 ms."""

_COMMENT: Final = """pg_catalog.left(coalesce(
         pg_catalog.substring(a.query, '/[*]([^*]*)[*]/[[:space:];]*$'),
         pg_catalog.substring(a.query, '^[[:space:]]*/[*]([^*]*)[*]/')), 500)"""
"""The comment at the end or the beginning of a statement, in which libraries such as sqlcommenter name the
code that sent it. The server cuts long statements (track_activity_query_size), so a comment at the end can be
missing."""

_ACTIVITY: Final = f"""
SELECT {MARK} a.pid, a.backend_type, a.state, CASE WHEN NOT {_ENDED} THEN a.wait_event_type END,
       CASE WHEN NOT {_ENDED} THEN a.wait_event END, {{query_id}},
       a.application_name, a.usename, a.datname, a.leader_pid,
       (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - a.state_change) * 1000000)::bigint,
       greatest(pg_catalog.age(a.backend_xid), pg_catalog.age(a.backend_xmin)),
       CASE WHEN $2::boolean AND a.wait_event_type = 'Lock'
            THEN pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ',') END,
       {_COMMENT},
       CASE WHEN {{unknown}} THEN a.query END
  FROM pg_catalog.pg_stat_activity AS a
 WHERE a.pid <> pg_catalog.pg_backend_pid() AND a.state IS DISTINCT FROM 'idle'
   AND a.application_name IS DISTINCT FROM '{WATCH_APPLICATION}'
   AND a.wait_event_type IS DISTINCT FROM 'Activity'
"""
"""The sessions that work or wait.

The query leaves out watching sessions of uncork, from this process and others, and processes that merely wait
for their next task (class Activity). Ages are a few tenths of a millisecond too long, and more on a machine
whose processors are all busy, because the server reads all states before it returns the first row.
"""


CONNECTIONS: Final = f"""
SELECT {MARK} pg_catalog.count(*) FILTER (WHERE a.backend_type = 'client backend'
                                          OR (a.backend_type IS NULL AND a.usesysid IS NOT NULL)),
       pg_catalog.array_agg((extract(epoch FROM clock_timestamp() - a.state_change) * 1000000)::bigint)
         FILTER (WHERE a.state = 'idle' AND a.backend_type = 'client backend'
                   AND a.pid <> pg_catalog.pg_backend_pid())
  FROM pg_catalog.pg_stat_activity AS a
"""
"""The number of connections, including our own and those hidden from this role, and the ages of idle ones."""

CONNECTION_LIMITS: Final = f"""
SELECT {MARK} pg_catalog.current_setting('max_connections')::int,
       pg_catalog.current_setting('superuser_reserved_connections')::int
       + coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::int
"""


STATEMENT_COUNTS: Final = f"""
SELECT {MARK} s.queryid, pg_catalog.sum(s.calls)::bigint, pg_catalog.sum(s.total_exec_time) * 1e6,
       pg_catalog.sum(s.rows)::bigint
  FROM {{extension}}.pg_stat_statements(false) AS s
 WHERE s.queryid IS NOT NULL{{toplevel}}
 GROUP BY s.queryid
"""
"""Executions of each statement, by any role in any database; `{{extension}}` is its schema."""

SESSIONS_BEGUN: Final = f"""
SELECT {MARK} d.sessions FROM pg_catalog.pg_stat_database AS d
 WHERE d.datname = pg_catalog.current_database()
"""
"""How many sessions began in the connected database, since PostgreSQL 14."""

SESSION_PORTS: Final = f"""
SELECT {MARK} a.client_port
  FROM pg_catalog.pg_stat_activity AS a
 WHERE a.client_port > 0 AND a.pid <> pg_catalog.pg_backend_pid()
   AND a.application_name IS DISTINCT FROM '{WATCH_APPLICATION}'
"""
"""The client's end of each connection over TCP."""

LOCKS_HELD: Final = f"""
SELECT {MARK} l.virtualtransaction, l.relation::bigint, l.mode
  FROM pg_catalog.pg_locks AS l
 WHERE l.pid = %(pid)s AND l.locktype = 'relation' AND l.granted AND l.relation >= 16384
"""
"""Locks of a session on relations that users made.

Each query also locks catalogues, whose oids are smaller, while it reads them. These locks conflict
only with changes of the catalogues themselves, such as VACUUM FULL.
"""


def activity(version: int) -> str:
    """Return the query of one sample. $1: query ids whose texts are known; $2: whether to list blockers."""
    if version >= 14:
        return _ACTIVITY.format(
            query_id="a.query_id", unknown="a.query_id IS NULL OR a.query_id <> ALL ($1::bigint[])"
        )
    return _ACTIVITY.format(query_id="NULL::bigint", unknown="$1::bigint[] IS NOT NULL")


# ---- pg_stat_statements ----


def statements(columns: Collection[str]) -> str:
    """Return the query for all counters of pg_stat_statements, without texts; `{extension}` is its schema.

    `columns` are the columns of its view. An extension that was not updated with its server has fewer
    columns; the query returns null for the missing ones. The oldest supported version is 1.8 (PostgreSQL 13).
    """

    def known(column: str, otherwise: str = "NULL") -> str:
        return f"s.{column}" if column in columns else otherwise

    def time(column: str, before: str) -> str:
        return f"s.{column if column in columns else before} * 1e6"

    jit = [f"s.{name}" for name in _JIT_TIMES if name in columns]
    return f"""
SELECT {MARK} s.userid::bigint, s.dbid::bigint, coalesce(r.rolname, '{DROPPED_ROLE}'),
       coalesce(d.datname, '{DROPPED_DATABASE}'), s.queryid,
       {known("toplevel", "true")}, s.calls,
       s.total_exec_time * 1e6, s.plans, s.total_plan_time * 1e6, s.rows, s.shared_blks_hit,
       s.shared_blks_read, s.shared_blks_dirtied, s.shared_blks_written, s.temp_blks_read,
       s.temp_blks_written, {time("shared_blk_read_time", "blk_read_time")},
       {time("shared_blk_write_time", "blk_write_time")}, s.wal_records, s.wal_fpi,
       s.wal_bytes::bigint, {known("jit_functions")}, {f"({' + '.join(jit)}) * 1e6" if jit else "NULL"},
       {"(extract(epoch FROM s.stats_since) * 1000000)::bigint" if "stats_since" in columns else "NULL"},
       s.calls * (s.stddev_exec_time * s.stddev_exec_time + s.mean_exec_time * s.mean_exec_time) * 1e12
  FROM {{extension}}.pg_stat_statements(false) AS s
  LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = s.userid
  LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.dbid
 WHERE s.queryid IS NOT NULL
"""


_JIT_TIMES: Final = (
    *("jit_generation_time", "jit_deform_time", "jit_inlining_time", "jit_optimization_time"),
    "jit_emission_time",
)

STATEMENT_COLUMNS: Final = f"""
SELECT {MARK} a.attname
  FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s AND c.relname = 'pg_stat_statements' AND a.attnum > 0
"""
"""Columns of the extension's view. Unlike to_regclass, this needs no privilege on its schema."""

EXTENSION: Final = f"""
SELECT {MARK} (SELECT n.nspname FROM pg_catalog.pg_extension AS e
                 JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
                WHERE e.extname = 'pg_stat_statements'),
       EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'pg_stat_statements.max')
"""
"""The extension's schema, null unless it was created in this database, and whether its library is loaded."""

STATEMENTS_INFO: Final = f"SELECT {MARK} '' AS object, * FROM {{extension}}.pg_stat_statements_info"

HIDDEN_STATEMENTS: Final = f"""
SELECT {MARK} '' AS object, coalesce(pg_catalog.sum(s.calls), 0)::float8 AS calls,
       coalesce(pg_catalog.sum(s.total_exec_time), 0) AS total_exec_time
  FROM {{extension}}.pg_stat_statements(false) AS s
  JOIN pg_catalog.pg_database AS d ON d.oid = s.dbid AND d.datname = pg_catalog.current_database()
 WHERE s.queryid IS NULL{{toplevel}}
"""
"""Executions in the connected database whose query ids and texts the server hides from this role; it shows
their counters to every role."""

STATEMENT_TEXTS: Final = f"""
SELECT {MARK} s.queryid,
       coalesce(pg_catalog.min(s.query) FILTER (WHERE pg_catalog.strpos(s.query, '{MARK}') = 0),
                pg_catalog.min(s.query))
  FROM {{extension}}.pg_stat_statements(true) AS s
 WHERE s.queryid = ANY (%(wanted)s::bigint[]) GROUP BY s.queryid
"""
"""A text of each statement, preferably as an application sent it: uncork's EXPLAIN has the same query id."""

# ---- pg_stat_kcache ----

KERNEL: Final = f"""
SELECT {MARK} n.nspname, p.proargnames, pg_catalog.current_setting('pg_stat_kcache.linux_hz', true)
  FROM pg_catalog.pg_extension AS e
  JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
  JOIN pg_catalog.pg_proc AS p ON p.pronamespace = n.oid AND p.proname = 'pg_stat_kcache'
 WHERE e.extname = 'pg_stat_kcache'
"""
"""The extension's schema, the columns of its function, and the resolution of its clock.

There is no row unless it was created in this database; the last column is null unless its library is loaded.
"""


def kernel_counts(*, toplevel: bool) -> str:
    """Return the query for what the kernel counted of statements; `{extension}` is pg_stat_kcache's schema.

    `toplevel` says whether pg_stat_statements distinguishes statements within functions.
    """
    top = "k.top" if toplevel else "true"
    return f"""
SELECT {MARK} k.userid::bigint, k.dbid::bigint, k.queryid, {top},
       pg_catalog.sum(k.exec_user_time) * 1e9, pg_catalog.sum(k.exec_system_time) * 1e9,
       pg_catalog.sum(k.exec_reads)::bigint, pg_catalog.sum(k.exec_writes)::bigint
  FROM {{extension}}.pg_stat_kcache() AS k
 WHERE k.queryid IS NOT NULL
 GROUP BY k.userid, k.dbid, k.queryid, {top}
"""


# ---- counters ----


def counters(version: int) -> dict[str, str]:
    """Return one query per statistics view of the server: a column `object`, then any columns.

    The reader skips columns that are not numbers, except stats_reset, the time from which they count. Views
    of databases also return the database's oid (`datid`), because a name can be reused by another database.
    """
    found = {
        "pg_stat_database": f"SELECT {MARK} coalesce(datname, '(shared)') AS object, * "
        "FROM pg_catalog.pg_stat_database",
        "pg_stat_bgwriter": f"SELECT {MARK} '' AS object, * FROM pg_catalog.pg_stat_bgwriter",
        "pg_stat_archiver": f"SELECT {MARK} '' AS object, archived_count, failed_count, stats_reset "
        "FROM pg_catalog.pg_stat_archiver",
    }
    if version >= 14:
        found["pg_stat_wal"] = f"SELECT {MARK} '' AS object, * FROM pg_catalog.pg_stat_wal"
    if version >= 16:
        found["pg_stat_io"] = (
            f"SELECT {MARK} backend_type || ', ' || object || ', ' || context AS object, "
            f"reads, {'read_bytes' if version >= 18 else 'reads * op_bytes AS read_bytes'}, read_time, "
            f"writes, {'write_bytes' if version >= 18 else 'writes * op_bytes AS write_bytes'}, write_time, "
            f"extends, {'extend_bytes' if version >= 18 else 'extends * op_bytes AS extend_bytes'}, "
            "extend_time, hits, evictions, reuses, fsyncs, fsync_time, stats_reset FROM pg_catalog.pg_stat_io"
        )
    if version >= 17:
        found["pg_stat_checkpointer"] = f"SELECT {MARK} '' AS object, * FROM pg_catalog.pg_stat_checkpointer"
    return found


# ---- values of columns, horizons, settings ----

OURS: Final = """
n.nspname <> 'information_schema' AND n.nspname !~ '^pg_(catalog|toast|temp_|toast_temp_)'
"""

COLUMN_VALUES: Final = f"""
SELECT {MARK} DISTINCT ON (w.number) w.number,
       CASE WHEN t.typcategory <> 'A' THEN s.most_common_vals::text::text[] END,
       CASE WHEN t.typcategory <> 'A' THEN s.histogram_bounds::text::text[] END,
       CASE WHEN t.typcategory <> 'A' THEN s.most_common_freqs END
  FROM ROWS FROM (pg_catalog.unnest(%(schemas)s::text[]), pg_catalog.unnest(%(tables)s::text[]),
                  pg_catalog.unnest(%(columns)s::text[]))
       WITH ORDINALITY AS w (schema, name, attribute, number)
  JOIN pg_catalog.pg_class AS c ON c.relname = w.name
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
   AND CASE WHEN w.schema = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = w.schema END
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = w.attribute
  JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
  JOIN pg_catalog.pg_stats AS s
    ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
 ORDER BY w.number, s.inherited DESC
"""
"""Values that ANALYZE stored, of columns that this role may read."""

HORIZONS: Final = f"""
SELECT {MARK} 'prepared transaction', p.gid, p.owner::text, p.database::text, true,
       pg_catalog.age(p.transaction), (extract(epoch FROM p.prepared) * 1000000)::bigint
  FROM pg_catalog.pg_prepared_xacts AS p
 UNION ALL
SELECT 'replication slot', s.slot_name::text, NULL, s.database::text, s.active, pg_catalog.age(s.xmin), NULL
  FROM pg_catalog.pg_replication_slots AS s WHERE s.xmin IS NOT NULL
"""
"""What keeps dead rows from VACUUM besides sessions. Every role may read it."""

SESSION_SETTINGS: Final = f"""
SELECT {MARK} s.name, s.reset_val FROM pg_catalog.pg_settings AS s
 WHERE s.name IN ('jit', 'jit_above_cost', 'track_activity_query_size')
"""
"""Settings as a session begins with them. uncork's own session turns jit off."""

VALUES_OF_SETTINGS: Final = f"""
SELECT {MARK} s.name, pg_catalog.current_setting(s.name) FROM pg_catalog.pg_settings AS s
 WHERE s.name = ANY (%(names)s)
"""

SETTINGS: Final = rf"""
SELECT {MARK} s.name, pg_catalog.current_setting(s.name),
       coalesce(s.boot_val, '')
       || CASE WHEN s.unit ~ '^[0-9]' THEN ' × ' || s.unit ELSE coalesce(' ' || s.unit, '') END,
       s.source
  FROM pg_catalog.pg_settings AS s
 WHERE s.setting IS DISTINCT FROM s.boot_val AND s.source NOT IN ('client', 'session')
   AND s.name NOT LIKE 'lc\_%' AND s.name NOT LIKE '%\_file' AND s.name NOT LIKE '%directory%'
   AND s.name NOT IN ('unix_socket_directories', 'port', 'listen_addresses', 'primary_conninfo',
                      'ssl_passphrase_command', 'restore_command', 'archive_command')
 ORDER BY s.name
"""


# ---- samples ----


EXTENT: Final = f"""
SELECT {MARK}
       (SELECT coalesce(sum(pg_catalog.pg_relation_size(f.oid)), 0)
               / pg_catalog.current_setting('block_size')::int
          FROM pg_catalog.pg_class AS f
         WHERE f.oid = c.oid OR f.oid IN (SELECT p.relid 
                         FROM pg_catalog.pg_partition_tree(c.oid) AS p))::bigint,
       c.reltuples::float8
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s::text AND c.relname = %(name)s::text AND c.relkind IN ('r', 'p', 'm')
"""
"""Blocks and rows of a table with its partitions; its rows are below 1 if nothing counted them."""

CATEGORY: Final = f"""
SELECT {MARK} CASE t.typcategory WHEN 'A' THEN 'array' WHEN 'R' THEN 'range' WHEN 'I' THEN 'network'
            ELSE pg_catalog.format_type(t.oid, NULL) END
  FROM pg_catalog.pg_type AS t WHERE t.oid = %(type)s::oid
"""

_GIVEN: Final = """
  pg_catalog.array_to_string(%(types)s::oid[], ','),
  pg_catalog.array_to_string(pg_catalog.array_replace(%(types)s::oid[], 1043::oid, 25::oid), ',')
"""
"""The types of the operands, also with text in place of varchar, because the server converts it so."""

_FUNCTION: Final = f"""
SELECT {MARK} coalesce(
         bool_and(p.provolatile = 'i' AND p.prokind = 'f')
           FILTER (WHERE pg_catalog.array_to_string(p.proargtypes::oid[], ',') IN ({_GIVEN})),
         bool_and(p.provolatile = 'i' AND p.prokind = 'f'))
  FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.proname = %(name)s::text
   AND CASE WHEN %(schema)s::text = '' THEN pg_catalog.pg_function_is_visible(p.oid)
            ELSE n.nspname = %(schema)s::text END
   AND (p.provariadic <> 0 OR coalesce(pg_catalog.array_length(%(types)s::oid[], 1), 0)
                              BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs)
"""

_OPERATOR: Final = f"""
SELECT {MARK} coalesce(
         bool_and(p.provolatile = 'i')
           FILTER (WHERE pg_catalog.concat_ws(',', nullif(o.oprleft, 0), o.oprright) IN ({_GIVEN})),
         bool_and(p.provolatile = 'i'))
  FROM pg_catalog.pg_operator AS o JOIN pg_catalog.pg_proc AS p ON p.oid = o.oprcode
  JOIN pg_catalog.pg_namespace AS n ON n.oid = o.oprnamespace
 WHERE o.oprname = %(name)s::text
   AND CASE WHEN %(schema)s::text = '' THEN pg_catalog.pg_operator_is_visible(o.oid)
            ELSE n.nspname = %(schema)s::text END
   AND (o.oprleft = 0) = (pg_catalog.array_length(%(types)s::oid[], 1) = 1)
"""

_CAST: Final = f"""
SELECT {MARK} CASE WHEN s.oid = t.oid OR k.castmethod = 'b' THEN true
                   WHEN k.castmethod = 'f' THEN f.provolatile = 'i'
                   ELSE o.provolatile = 'i' AND i.provolatile = 'i' END
  FROM pg_catalog.pg_type AS s
  JOIN pg_catalog.pg_type AS t ON t.oid = (%(types)s::oid[])[2]
  JOIN pg_catalog.pg_proc AS o ON o.oid = s.typoutput
  JOIN pg_catalog.pg_proc AS i ON i.oid = t.typinput
  LEFT JOIN pg_catalog.pg_cast AS k ON k.castsource = s.oid AND k.casttarget = t.oid
  LEFT JOIN pg_catalog.pg_proc AS f ON f.oid = k.castfunc
 WHERE s.oid = (%(types)s::oid[])[1]
"""

IMMUTABLE: Final = {"function": _FUNCTION, "operator": _OPERATOR, "cast": _CAST}
"""Whether what an expression calls is immutable: the one with these types, or else all with its name."""
