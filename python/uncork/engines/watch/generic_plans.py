"""Ask the server for the generic plans of statements whose parameters are unknown, without executing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq

from uncork.engines.watch.snapshot_sql import MARK

__all__ = ["GenericPlan", "generic_plan"]

_NAME: Final = b"uncork_plan"
_PLANNED: Final = frozenset({"select", "insert", "update", "delete", "merge", "with", "values", "table"})
_GENERIC_PLAN: Final = 16
"""The first version of EXPLAIN (GENERIC_PLAN). It prunes no partitions; EXPLAIN EXECUTE with NULLs prunes
them by these NULLs."""
_DENIED: Final = b"42501"


@dataclass(frozen=True, slots=True)
class GenericPlan:
    """A plan in PostgreSQL's text format, or the server's reason why there is none.

    `denied` means that this role lacks a privilege on a table, which EXPLAIN checks as the statement does.
    """

    text: str | None
    reason: str = ""
    denied: bool = False


def generic_plan(connection: psycopg.Connection, version: int, statement: str) -> GenericPlan | None:
    """Return the generic plan of one statement with parameters ($1); None if it is no statement with a plan.

    The statement is prepared by the extended protocol, which rejects several statements at once, and is never
    executed. The caller sets the timeouts, and a session that is read-only.
    """
    word = statement.lstrip("( \t\n").partition(" ")[0].split("\n")[0].lower()
    if word not in _PLANNED:
        return None
    server, encoding = connection.pgconn, connection.info.encoding
    # Only superusers may set it. Otherwise pg_stat_statements counts each EXPLAIN as an entry of its own.
    server.exec_(f"SET {MARK} pg_stat_statements.track_utility = off".encode())
    prepared = server.prepare(_NAME, f"{MARK} {statement}".encode(encoding))
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        return _refused(prepared, encoding)
    try:
        if version >= _GENERIC_PLAN:
            query = f"EXPLAIN {MARK} (GENERIC_PLAN) {statement}"
        else:
            many = server.describe_prepared(_NAME).nparams
            values = f"({', '.join(['NULL'] * many)})" if many else ""
            server.exec_(f"SET {MARK} plan_cache_mode = force_generic_plan".encode())
            query = f"EXPLAIN {MARK} EXECUTE uncork_plan{values}"
        found = server.exec_(query.encode(encoding))
        if found.status != pq.ExecStatus.TUPLES_OK:
            return _refused(found, encoding)
        lines = (found.get_value(row, 0) or b"" for row in range(found.ntuples))
        return GenericPlan("\n".join(line.decode(encoding, "replace") for line in lines))
    finally:
        server.exec_(f"DEALLOCATE {MARK} uncork_plan".encode())


def _refused(found: pq.abc.PGresult, encoding: str) -> GenericPlan:
    reason = found.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"no reason given"
    denied = found.error_field(pq.DiagnosticField.SQLSTATE) == _DENIED
    return GenericPlan(None, reason.decode(encoding, "replace"), denied)
