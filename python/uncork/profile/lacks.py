"""What a watched server did not tell: what is lost without it, and how to get it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.results.database import Lack

__all__ = ["find_lacks"]

_STATEMENTS_LOST: Final = "calls, rows, blocks, temporary files and WAL by template"
_LOAD: Final = (
    "add pg_stat_statements to shared_preload_libraries, restart, then CREATE EXTENSION pg_stat_statements"
)


def find_lacks(facts: Mapping[str, Any]) -> tuple[Lack, ...]:
    """Return what is lacking, the greatest loss first."""
    return (*_lacks(facts["server"], facts["snapshots"]), *_system(facts.get("system")))


def _lacks(server: Mapping[str, Any], snapshots: Mapping[str, Any]) -> Iterator[Lack]:
    version = server["number"]
    if not server["sees_all"]:
        yield Lack(
            "the right to see others' sessions",
            f'what sessions of other roles than "{server["role"]}" do, and the texts of their statements',
            f'GRANT pg_read_all_stats TO "{server["role"]}"',
        )
    if server["track_activities"] != "on":
        yield Lack("track_activities", "what sessions do", "SET track_activities = on for the server")
    yield from _statements(server)
    if version >= 14 and server["compute_query_id"] == "off":
        yield Lack(
            "compute_query_id",
            "the server's own numbers of statements: templates of sessions are matched by the grammar of "
            "their texts, which may be cut short",
            "compute_query_id = auto",
        )
    if server["track_io_timing"] != "on":
        yield Lack(
            "track_io_timing", "how long reading and writing blocks took", "track_io_timing = on (reload)"
        )
    if version < 14:
        yield Lack(
            "pg_stat_wal", "WAL of the whole server, and sessions' own times", "PostgreSQL 14 or newer"
        )
    if version < 16:
        yield Lack("pg_stat_io", "reads and writes by kind of process", "PostgreSQL 16 or newer")
    for moment in ("before", "after"):
        for what, reason in snapshots.get(moment, {}).get("failed", {}).items():
            yield Lack(what, f"its figures {moment} (the server said: {reason})", "watch again")


def _system(system: Mapping[str, Any] | None) -> Iterator[Lack]:
    """Yield what is lost when the server's processes are not here; of older runs nothing is known."""
    if system is not None and not system["server_here"]:
        yield Lack(
            "sight of the server's processes",
            "processor time by mode and by process, disks, pressure and throttling under the server",
            "run uncork on the server's machine, outside of containers other than its own",
        )


def _statements(server: Mapping[str, Any]) -> Iterator[Lack]:
    remedies = {
        "not loaded": _LOAD,
        "not created": f'CREATE EXTENSION pg_stat_statements in the database "{server["database"]}"',
        "too old": "ALTER EXTENSION pg_stat_statements UPDATE",
    }
    state = server["statements"]
    if state == "counting":
        return
    known = remedies.get(state)
    remedy = known or f"the server refuses it: {state}"
    yield Lack("pg_stat_statements", _STATEMENTS_LOST, remedy)
