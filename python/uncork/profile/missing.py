"""Find what a watched server did not provide, what the report lacks without it, and how to get it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.results.database import Missing

__all__ = ["find_missing"]

_STATEMENTS_LOST: Final = "calls, rows, blocks, temporary files and WAL by template"
_LOAD: Final = (
    "add pg_stat_statements to shared_preload_libraries, restart, then CREATE EXTENSION pg_stat_statements"
)


def find_missing(facts: Mapping[str, Any]) -> tuple[Missing, ...]:
    """Return what is missing, the greatest loss first."""
    return (*_missing(facts["server"], facts["snapshots"]), *_system(facts.get("system")))


def _missing(server: Mapping[str, Any], snapshots: Mapping[str, Any]) -> Iterator[Missing]:
    version = server["number"]
    if not server["sees_all"]:
        yield Missing(
            "the right to see other roles' sessions",
            f'what sessions of roles other than "{server["role"]}" do, and the texts of their statements',
            f'GRANT pg_read_all_stats TO "{server["role"]}"',
        )
    if server["track_activities"] != "on":
        yield Missing("track_activities", "what sessions do", "set track_activities = on, and reload")
    yield from _statements(server)
    if version >= 14 and server["compute_query_id"] == "off":
        yield Missing(
            "compute_query_id",
            "query ids (uncork then matches sessions to templates by the texts of statements, which may be "
            "truncated)",
            "set compute_query_id = auto, and reload",
        )
    if server["track_io_timing"] != "on":
        yield Missing(
            "track_io_timing",
            "how long reading and writing blocks took",
            "set track_io_timing = on, and reload",
        )
    if version < 14:
        yield Missing(
            "pg_stat_wal",
            "WAL of the whole server, and sessions' own times",
            "upgrade to PostgreSQL 14 or newer",
        )
    if version < 16:
        yield Missing(
            "pg_stat_io", "reads and writes by kind of process", "upgrade to PostgreSQL 16 or newer"
        )
    for moment in ("before", "after"):
        for what, reason in snapshots.get(moment, {}).get("failed", {}).items():
            yield Missing(
                what, f"its values {moment} the watch (server: {reason})", "profile the server again"
            )


def _system(system: Mapping[str, Any] | None) -> Iterator[Missing]:
    """Yield what is missing if the server's processes are not visible here. Old runs do not record this."""
    if system is not None and not system["server_here"]:
        yield Missing(
            "access to the server's processes",
            "processor time by mode and by process, disks, pressure and throttling of the server",
            "run uncork on the server's machine, in the same container as the server or in none",
        )


def _statements(server: Mapping[str, Any]) -> Iterator[Missing]:
    remedies = {
        "not loaded": _LOAD,
        "not created": f'CREATE EXTENSION pg_stat_statements in the database "{server["database"]}"',
        "too old": "ALTER EXTENSION pg_stat_statements UPDATE",
    }
    state = server["statements"]
    if state == "counting":
        return
    known = remedies.get(state)
    remedy = known or f"fix the server's error: {state}"
    yield Missing("pg_stat_statements", _STATEMENTS_LOST, remedy)
