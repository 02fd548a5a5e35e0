"""Read a server's counters, executed plans, sizes of relations, and settings."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from uncork.engines.connecting import connect_errors, connect_to_watch
from uncork.engines.host import machine_facts
from uncork.engines.watch.snapshot_sql import SETTINGS
from uncork.model.answer import Answer, canonical
from uncork.model.request import LoadRequest
from uncork.model.server import LOAD_APPLICATION, ExecutedPlan, Relation, Snapshot

_CAST = re.compile(r"\?::(?:\"[^\"]+\"|[a-z_]+(?: [a-z]+)*)(?:\([?,]+\))?(?:\[\])?")
_NUMBER = re.compile(r"(?<![\w$.])-?\d+(?:\.\d+)?(?![\w.])")


def first_column(connection: psycopg.Connection, query: str) -> list[str | None]:
    """Return the first column of a query's result in the server's text format."""
    result = connection.pgconn.exec_(query.encode())
    if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
        message = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b"it returns no rows"
        raise psycopg.DataError(message.decode(errors="replace"))
    values = (result.get_value(row, 0) for row in range(result.ntuples))
    return [None if value is None else bytes(value).decode() for value in values]


def answer_digest(connection: psycopg.Connection, query: str) -> str:
    """Return a digest of a query's rows that does not depend on their order."""
    rows = sorted(repr(row) for row in connection.execute(query.encode()).fetchall())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def answers(connection: psycopg.Connection, request: LoadRequest) -> list[Answer]:
    """Execute a request's operations once; return the answer of each statement that returns rows."""
    for name, value in request.settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    connection.execute(sql.SQL("SET statement_timeout = {}").format(max(1, request.deadline_ns // 1_000_000)))
    cursor = psycopg.RawCursor(connection)
    found = []
    for number in range(request.operations or 1):
        row = [column[number % len(column)] for column in request.parameters]
        with connection.transaction() if request.transaction else contextlib.nullcontext():
            for statement in request.statements:
                cursor.execute(statement.sql.encode(), [row[column] for column in statement.columns])
                if cursor.description is not None:
                    rows = tuple(tuple(map(canonical, values)) for values in cursor.fetchall())
                    found.append(Answer(number + 1, statement.name, rows))
    return found


def snapshot(control: psycopg.Connection, databases: Sequence[str], statements: bool) -> Snapshot:
    """Read the counters of some databases, summed; with `statements`, those of pg_stat_statements too."""
    ((checkpoint, workers),) = control.execute(_STATE).fetchall()
    found = Snapshot(checkpoint, workers)
    if statements:
        # From PostgreSQL 14 on, calls that are made inside functions do not count.
        called = "calls" if control.info.server_version < 140000 else "CASE WHEN toplevel THEN calls END"
        query = _STATEMENTS.format(called=called)
        with control.cursor(row_factory=dict_row) as cursor:
            (counts,) = cursor.execute(query, (list(databases),)).fetchall()
        found = replace(found, **counts)
    return found


def updates(connection: psycopg.Connection) -> tuple[int, int] | None:
    """Return how many rows of a database were updated since its counters began, and how many of them by HOT.

    Sessions report their counters when they end, and otherwise at most once a second. So this waits a little
    for sessions of the load that are about to end. None before PostgreSQL 15, where counters arrive later.
    """
    if connection.info.server_version < _COUNTERS_AT_ONCE:
        return None
    for _ in range(_MOST_LOOKS):
        row = connection.execute(_LEAVING, (LOAD_APPLICATION,)).fetchone()
        if row is None or not row[0]:
            break
        time.sleep(_BETWEEN_LOOKS_S)
    row = connection.execute(
        "SELECT coalesce(sum(n_tup_upd), 0)::bigint, coalesce(sum(n_tup_hot_upd), 0)::bigint "
        "FROM pg_stat_user_tables"
    ).fetchone()
    return None if row is None else (row[0], row[1])


def has_statements(control: psycopg.Connection, *, may_create: bool) -> bool:
    """Return whether pg_stat_statements counts here. `may_create` (for our own servers) creates it first."""
    try:
        if may_create:
            control.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        control.execute("SELECT 1 FROM pg_stat_statements(false) LIMIT 1")
        track = control.execute("SELECT current_setting('pg_stat_statements.track')").fetchone()
    except psycopg.Error:
        return False
    return track is not None and track[0] != "none"


def explain(
    connection: psycopg.Connection, name: str, statement: str, values: Sequence[str | None]
) -> ExecutedPlan | None:
    """Execute a statement under EXPLAIN (ANALYZE, BUFFERS) and roll back.

    Return None for statements that EXPLAIN does not support (utility commands).
    """
    arguments = sql.SQL(", ").join(sql.Literal(value) for value in values)
    execute = sql.SQL("EXECUTE uncork_plan") + (sql.SQL("({})").format(arguments) if values else sql.SQL(""))
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(b"PREPARE uncork_plan AS " + statement.encode())
            row = connection.execute(sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + execute).fetchone()
        with connection.transaction(force_rollback=True):
            text = connection.execute(sql.SQL("EXPLAIN (ANALYZE, BUFFERS) ") + execute).fetchall()
    except psycopg.errors.SyntaxError:
        return None
    finally:
        if not connection.broken:
            connection.execute("DEALLOCATE ALL")
    assert row is not None  # noqa: S101 -- EXPLAIN always answers
    document = row[0][0] if isinstance(row[0], list) else json.loads(row[0])[0]
    plan = document["Plan"]
    return ExecutedPlan(
        statement=name,
        text="\n".join(line for (line,) in text),
        shape="\n".join(_shape(plan, 0)),
        buffers=plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0),
        execution_ns=document.get("Execution Time", 0.0) * 1e6,
    )


_CONDITIONS = (
    *("Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter", "Sort Key"),
    "Group Key",
)


def _shape(node: Mapping[str, Any], depth: int) -> list[str]:
    name = str(node["Node Type"])
    if node.get("Operation"):
        name = str(node["Operation"])
    if node.get("Index Name"):
        name += f" using {node['Index Name']}"
    if node.get("Relation Name"):
        name += f" on {node['Relation Name']}"
    lines = ["  " * depth + name]
    for condition in _CONDITIONS:
        if condition in node:
            value = node[condition]
            shown = ", ".join(value) if isinstance(value, list) else str(value)
            lines.append("  " * depth + f"  {condition}: {_without_literals(shown)}")
    for child in node.get("Plans", ()):
        lines += _shape(child, depth + 1)
    return lines


def _without_literals(condition: str) -> str:
    """Replace literals and their casts by ?, so that plans for other values and types have the same shape."""
    parts = condition.replace("''", "").split("'")
    return _CAST.sub("?", _NUMBER.sub("?", "?".join(parts[::2])))


def relations(connection: psycopg.Connection) -> list[Relation]:
    """Return the tables and indexes of a database with their sizes; a table's size includes TOAST data."""
    rows = connection.execute(_RELATIONS).fetchall()
    found = []
    for oid, name, kind, table, size, estimate, btree in rows:
        depth = None
        if btree and size:
            query = "SELECT tree_level FROM uncork_tools.pgstatindex(%s::regclass)"
            with contextlib.suppress(psycopg.Error):
                ((depth,),) = connection.execute(query, (oid,)).fetchall()
        many = float(estimate) if kind == "table" and estimate >= 0 else None
        found.append(Relation(name, kind, table, size, many, depth))
    return found


def server_facts(control: psycopg.Connection) -> dict[str, str]:
    """Return the server's version and every setting that differs from PostgreSQL's default."""
    ((version,),) = control.execute("SELECT version()").fetchall()
    rows = control.execute(SETTINGS.encode()).fetchall()
    return {"version": version, **{f"setting {name}": str(value) for name, value, _, _ in rows}}


_STATEMENTS = """
SELECT coalesce(sum(shared_blks_hit), 0)::bigint AS shared_hit,
       coalesce(sum(shared_blks_read), 0)::bigint AS shared_read,
       coalesce(sum(shared_blks_dirtied), 0)::bigint AS shared_dirtied,
       coalesce(sum(temp_blks_written + temp_blks_read), 0)::bigint AS temp_blocks,
       coalesce(sum({called}), 0)::bigint AS queries, coalesce(sum(wal_bytes), 0)::bigint AS wal_bytes,
       coalesce(sum(wal_records), 0)::bigint AS wal_records
  FROM pg_stat_statements(false) WHERE dbid IN (SELECT oid FROM pg_database WHERE datname::text = ANY(%s))
"""

_LEAVING = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = %s AND pid <> pg_backend_pid()
"""
_COUNTERS_AT_ONCE = 150000
_MOST_LOOKS, _BETWEEN_LOOKS_S = 50, 0.002

_STATE = """
SELECT (SELECT checkpoint_lsn::text FROM pg_control_checkpoint()),
       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'autovacuum worker')
"""

_RELATIONS = """
SELECT c.oid, c.relname, CASE WHEN c.relkind = 'i' THEN 'index' ELSE 'table' END,
       coalesce(t.relname, c.relname),
       CASE WHEN c.relkind = 'i' THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END,
       c.reltuples, am.amname = 'btree'
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
  LEFT JOIN pg_am am ON am.oid = c.relam
 WHERE c.relkind IN ('r', 'm', 'i')
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'uncork_tools')
 ORDER BY coalesce(t.relname, c.relname), c.relkind DESC, c.relname
"""


# ---- before a load ----


_USUAL: Final = ("VACUUM pgbench_branches", "VACUUM pgbench_tellers", "TRUNCATE pgbench_history")
_ACCOUNTS: Final = "VACUUM (ANALYZE) pgbench_accounts"


def describe(conninfo: str) -> dict[str, dict[str, str]]:
    """Return facts about the server, with the settings that differ from the defaults, and about this machine.

    Raises ConnectError if the server cannot be reached, or refuses the connection.
    """
    with connect_errors():
        connection = connect_to_watch(conninfo)
    with connection:
        return {"server": server_facts(connection), "machine": machine_facts()}


def vacuum(conninfo: str, *, accounts: bool) -> list[str]:
    """Vacuum pgbench's small tables and empty its history, as pgbench does.

    With `accounts`, also vacuum and analyse the accounts table. Return a sentence for each command
    that the server refused; the load goes on without it. Raises ConnectError if the server cannot
    be reached, or refuses the connection.
    """
    refused = []
    with connect_errors():
        connection = connect_to_watch(conninfo)
    with connection:
        for command in (*_USUAL, *((_ACCOUNTS,) if accounts else ())):
            try:
                connection.execute(command)
            except psycopg.Error as error:
                refused.append(f"{command}: {error.diag.message_primary or error}")
    return refused
