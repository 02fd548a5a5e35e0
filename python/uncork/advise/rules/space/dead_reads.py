"""What dead rows cost statements, and what keeps autovacuum from removing them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.indexes.complete import served_completely
from uncork.advise.rules.indexes.whole_reads import reads_whole, selective
from uncork.advise.rules.server.counted import setting
from uncork.advise.rules.writes.within_functions import executed_within

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts
    from uncork.model.results.database_transactions import HorizonHolder

Delay = Literal["", "off", "late", "threshold", "slow"]
"""Why dead rows stay: autovacuum is off, has not run for long, is not due yet, or is too slow."""

_LATE_NS: Final = 600_000_000_000
"""Time since the last vacuum of a table with more than twice the threshold: ten rounds of autovacuum
(autovacuum_naptime). Until then autovacuum is merely on its way."""
_HELD: Final = 10_000
"""Transactions since the oldest open one from which on it, not autovacuum, keeps dead rows."""
_LONG_NS: Final = 60_000_000_000
"""Time that a transaction must be open, unless so many began since: autovacuum_naptime. A shorter one delays
autovacuum by at most one round."""
_SAME: Final = 0.9
"""Fraction of the oldest age from which on two ages are the same. A snapshot keeps what the transactions in
progress keep, so a short query looks as old as the transaction behind it."""
_BLOCKS: Final = 20
_TIMES: Final = 3.0
"""Blocks of a call, and how many times as many as its rows need, from which on it reads dead entries. An
index has three or four levels, and each row may be on a block of its own."""
_LEVELS: Final = 4
_DEAD: Final = 1_000
_SLOW: Final = 0.5
"""Part of autovacuum's time in which it pauses for its cost limit."""
_OWN: Final = ("session", "prepared transaction")
_DEFAULTS: Final = {"autovacuum_vacuum_threshold": 50.0, "autovacuum_vacuum_scale_factor": 0.2}


def dead_reads(table: TableFacts, evidence: Evidence) -> dict[int, float]:
    """Return the fraction of each statement's time that it spends on dead rows of a table.

    Of a scan of the whole table, it is the fraction of dead rows. A statement that an index serves completely
    needs a few blocks for each row that it returns; the others had only dead entries.
    """
    dead, live = table.dead or 0, table.live or 0
    if dead < _DEAD:
        return {}
    found: dict[int, float] = {}
    for statement in evidence.statements.values():
        if reads_whole(statement, table, evidence):
            if not selective(statement, table, evidence):  # else it lacks an index
                found[statement.number] = dead / (dead + live)
        elif served_completely(statement, table, evidence):
            blocks, needed = statement.a_call(statement.blocks), _needed(statement, table, evidence)
            if blocks is not None and needed and blocks >= max(_BLOCKS, _TIMES * needed):
                wasted = min(blocks - needed, float(dead), _own_blocks(statement, table, evidence))
                found[statement.number] = wasted / blocks
    return found


def _own_blocks(statement: Statement, table: TableFacts, evidence: Evidence) -> float:
    """Return how many blocks of a table a call touches at most, if some are those of its triggers' tables."""
    if not statement.calls or not executed_within(statement, evidence):
        return inf
    return (table.heap_hit + table.heap_read) / statement.calls


def _needed(statement: Statement, table: TableFacts, evidence: Evidence) -> float | None:
    """Return how many blocks a call would touch without dead rows; None if that is unknown."""
    rows = statement.a_call(statement.rows)
    if rows is None or statement.shape is None:
        return None
    changes = statement.shape.kind != "select"
    each = 2.0 + (_LEVELS * (1 + len(evidence.indexes.get(table.name, ()))) if changes else 0.0)
    return _LEVELS * len(statement.shape.tables) + rows * each


def threshold(table: TableFacts, evidence: Evidence) -> float:
    """Return from how many dead rows on autovacuum vacuums a table."""
    options = evidence.catalogue.options.get(table.name)
    values = {}
    for name, default in _DEFAULTS.items():
        own = "" if options is None else options.options.get(name, "")
        try:
            values[name] = float(own or setting(name, evidence) or default)
        except ValueError:
            values[name] = default
    base, factor = values.values()
    return base + factor * evidence.rows(table.name)


def held_back(evidence: Evidence) -> bool:
    """Return whether an open transaction keeps dead rows, whatever autovacuum does."""
    transactions = () if evidence.database is None else evidence.database.transactions
    return oldest_holder(evidence) is not None or any(
        (transaction.held_age or 0) >= _HELD for transaction in transactions
    )


def oldest_holder(evidence: Evidence) -> HorizonHolder | None:
    """Return what keeps the oldest dead rows, if it has kept them for long.

    Of several with the same age, it is the one that was open first; a slot only if nothing else is as old,
    because a standby reports the transactions in progress too.
    """
    holders = () if evidence.database is None else evidence.database.horizons
    oldest = max((holder.held_age for holder in holders), default=0)
    same = [holder for holder in holders if holder.held_age >= _SAME * oldest]
    found = max(same, key=lambda one: (one.kind in _OWN, one.open_ns or 0), default=None)
    if found is None or not (found.held_age >= _HELD or (found.open_ns or 0) >= _LONG_NS):
        return None
    return found


def autovacuum_delay(table: TableFacts, evidence: Evidence) -> Delay:
    """Return why autovacuum has not removed a table's dead rows; empty if it is on its way."""
    if table.autovacuum is False or setting("autovacuum", evidence) == "off":
        return "off"
    dead, limit = table.dead or 0, threshold(table, evidence)
    if dead < limit:
        return "threshold"
    if any(_pauses(evidence)):
        return "slow"
    ended_us = 0 if evidence.database is None else evidence.database.watch.ended_us
    if table.vacuumed_us is None or 1000.0 * (ended_us - table.vacuumed_us) < _LATE_NS:
        return ""
    return "late" if dead >= 2 * limit else ""


def _pauses(evidence: Evidence) -> Iterator[bool]:
    """Yield whether autovacuum pauses for its cost limit for most of its time, if it runs."""
    for process in () if evidence.database is None else evidence.database.background.children:
        if process.name == "autovacuum worker" and process.sessions:
            events = [event for of_class in process.children for event in of_class.children]
            pausing = sum(event.sessions for event in events if event.name == "VacuumDelay")
            yield pausing >= _SLOW * process.sessions
