"""Find what a watched server did not provide, what the report lacks without it, and how to get it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.database.missing import Missing, grant

_STATEMENTS_LOST: Final = "calls, rows, blocks, temporary files and WAL by template"
_NO_QUERY_ID: Final = (
    "query ids (uncork then matches sessions to templates by the texts of statements, which may be truncated)"
)
_NO_SESSIONS: Final = (
    "sessions' own times, and how many connections are opened (so a connection for each request is not found)"
)
_LOAD: Final = (
    "add pg_stat_statements to shared_preload_libraries, restart, then CREATE EXTENSION pg_stat_statements"
)


_LEAST_FILE_WAITS: Final = 0.05
"""Share of the busy time from which on it matters how long reads and writes of blocks took. Below, their
times could change no answer, and nobody should have to change the server for them."""


def find_missing(facts: Mapping[str, Any], *, file_waits: float) -> tuple[Missing, ...]:
    """Return what is missing, the greatest loss first.

    `file_waits` is the share of the busy time in which sessions waited for files of tables and indexes.
    """
    return (
        *_missing(facts["server"], facts["snapshots"], blocks=file_waits >= _LEAST_FILE_WAITS),
        *_catalogue(facts["server"], facts["catalogue"]),
        *_system(facts["system"], pooled=facts["server"]["pooled"]),
    )


def _missing(server: Mapping[str, Any], snapshots: Mapping[str, Any], *, blocks: bool) -> Iterator[Missing]:
    version = server["number"]
    if not server["sees_all"]:
        yield Missing(
            "the right to see other roles' sessions",
            f'what sessions of roles other than "{server["role"]}" do, and the texts of their statements',
            grant("pg_read_all_stats", server["role"]),
        )
    if server["track_activities"] != "on":
        yield Missing("track_activities", "what sessions do", "set track_activities = on, and reload")
    yield from _statements(server)
    yield from _kernel(server)
    if version >= 14 and server["compute_query_id"] == "off":
        yield Missing("compute_query_id", _NO_QUERY_ID, "set compute_query_id = auto, and reload")
    if blocks and server["track_io_timing"] != "on":
        lost = "how long reading and writing blocks took"
        yield Missing("track_io_timing", lost, "set track_io_timing = on, and reload")
    if version < 14:
        upgrade = "upgrade to PostgreSQL 14 or newer"
        yield Missing("pg_stat_wal", "WAL of the whole server", upgrade)
        yield Missing("pg_stat_database.sessions", _NO_SESSIONS, upgrade)
        yield Missing("pg_stat_activity.query_id", _NO_QUERY_ID, upgrade)
    if blocks and version < 16:
        lost = "reads and writes by kind of process"
        yield Missing("pg_stat_io", lost, "upgrade to PostgreSQL 16 or newer")
    for moment in ("before", "after"):
        for what, reason in snapshots.get(moment, {}).get("failed", {}).items():
            lost = f"its values {moment} the watch (server: {reason})"
            yield Missing(what, lost, "profile the server again")


_OF_CATALOGUE: Final = {
    "locks": "which tables are locked (uncork waits for their locks up to 1 s)",
    "columns": "columns of tables with their types and defaults",
    "statistics of columns": "the planner's statistics of columns",
    "constraints": "keys and other constraints of tables",
    "triggers": "triggers of tables, and their functions",
    "functions": "the sources of functions that statements and triggers call",
    "views": "the queries of some views",
    "options of tables": "storage parameters and partitions of tables",
    "server settings": "settings that have their default values",
    "settings of roles": "settings of roles and databases",
}
"""What is lost if a part of the catalogue could not be read."""


def _catalogue(server: Mapping[str, Any], catalogue: Mapping[str, Any]) -> Iterator[Missing]:
    """Yield what is missing of the catalogue, which is empty if the watch ended before it was read."""
    hidden, left_out = catalogue.get("tables_hidden", 0), catalogue.get("tables_left_out", 0)
    if hidden:
        yield Missing(
            "the right to read the tables",
            f"the planner's statistics of columns of {_tables(hidden)}",
            f"{grant('pg_read_all_data', server['role'])} (PostgreSQL 14 and later; for tables with "
            "row-level security, the role also needs BYPASSRLS)",
        )
    if left_out:
        yield Missing(
            "a catalogue of fewer tables",
            f"columns, constraints and triggers of the {_tables(left_out)} that were used least",
            "profile for a shorter time, in which fewer tables are used",
        )
    for what, reason in catalogue.get("failed", {}).items():
        lost = _OF_CATALOGUE.get(what, what)
        yield Missing(f"the server's answer ({reason})", lost, "profile the server again")


def _tables(many: int) -> str:
    return f"{many} table{'s' * (many != 1)}"


def _system(system: Mapping[str, Any] | None, *, pooled: bool) -> Iterator[Missing]:
    """Yield what is missing if the server's processes are not visible here."""
    if system is not None and not system["server_here"]:
        direct = "connect to the server itself, not through a pooler, and " if pooled else ""
        yield Missing(
            "access to the server's processes",
            "processor time by mode and by process, disks, pressure and throttling of the server",
            f"{direct}run uncork on the server's machine, in the same container as the server or in none",
        )


def _kernel(server: Mapping[str, Any]) -> Iterator[Missing]:
    """Yield pg_stat_kcache if it is in the database but does not count. Few servers have it at all."""
    state = server.get("kernel", "not created")
    if state in ("counting", "not created"):
        return
    remedies = {
        "not loaded": "add pg_stat_kcache to shared_preload_libraries, after pg_stat_statements, and restart",
        "too old": "install pg_stat_kcache 2.2 or newer, then ALTER EXTENSION pg_stat_kcache UPDATE",
    }
    yield Missing(
        "pg_stat_kcache",
        "user and system time, and reads from disks, by template",
        remedies.get(state) or f"fix the server's error: {state}",
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
    schema = state.removeprefix("permission denied for schema ")
    if schema != state:
        remedies[state] = grant(f'USAGE ON SCHEMA "{schema}"', server["role"])
    remedy = remedies.get(state) or f"fix the server's error: {state}"
    yield Missing("pg_stat_statements", _STATEMENTS_LOST, remedy)
