"""Tables with many dead rows for which autovacuum is off, or overdue. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.server.counted import setting
from uncork.advise.rules.space.dead_reads import autovacuum_delay, dead_reads, held_back
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, format_duration, share_text

_PART: Final = 0.2
"""Dead rows as a fraction of all rows: autovacuum_vacuum_scale_factor. Autovacuum tolerates this many."""
_ROWS: Final = 10_000


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.database is None:
        return
    off = setting("autovacuum", evidence) == "off"
    for table in evidence.tables.values():
        delay = autovacuum_delay(table, evidence)
        if delay not in ("off", "late"):
            continue
        dead = table.dead or 0
        rows = (table.live or 0) + dead
        parts = {} if delay == "late" and held_back(evidence) else dead_reads(table, evidence)
        bill = evidence.bill_of(parts)
        costs_time = worth(bill)
        if not costs_time and (dead < _ROWS or dead < _PART * rows):
            continue
        since_us = None if table.vacuumed_us is None else evidence.database.watch.ended_us - table.vacuumed_us
        reason = (
            "and autovacuum is off"
            if delay == "off" or since_us is None
            else f"and was last vacuumed {format_duration(1000.0 * max(0, since_us))} ago"
        )
        numbers = evidence.by_cost(parts) if costs_time else []
        yield Finding(
            RULE.name,
            f"Table {table.name} has {format_count(dead)} dead rows ({share_text(dead / rows)} of all), "
            f"{reason}",
            objects=(table.name,),
            bill=bill if costs_time else None,
            templates=tuple(numbers),
            statement=evidence.statements[numbers[0]].text if numbers else "",
            cost=f"{format_count(dead)} dead rows",
            candidates=_candidates(table.name, off=off, disabled=delay == "off"),
            proof="After VACUUM, pg_stat_user_tables.n_dead_tup must stay below a fifth of the rows.",
        )


def _candidates(table: str, *, off: bool, disabled: bool) -> tuple[Candidate, ...]:
    name = sql_name(table)
    if not disabled:
        return (
            Candidate(
                "maintenance",
                f"Run VACUUM (VERBOSE, ANALYZE) on table {table}: its output shows why dead rows cannot be "
                "removed.",
                sql=f"VACUUM (VERBOSE, ANALYZE) {name};",
            ),
        )
    turn_on = (
        Candidate(
            "setting",
            "Turn autovacuum on for the server.",
            sql="ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();",
            undo="ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf();",
        )
        if off
        else Candidate(
            "ddl",
            f"Turn autovacuum on for table {table}.",
            sql=f"ALTER TABLE {name} RESET (autovacuum_enabled);",
            undo=f"ALTER TABLE {name} SET (autovacuum_enabled = off);",
        )
    )
    once = Candidate(
        "maintenance", f"Then run VACUUM (ANALYZE) on table {table} once.", f"VACUUM (ANALYZE) {name};"
    )
    return (turn_on, once)


RULE: Final = Rule("dead-rows", _find, depth=2)
