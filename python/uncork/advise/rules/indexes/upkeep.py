"""What the upkeep of indexes costs, and what may need an index that nothing scans for now. Pure.

A measurement of the statements that were captured within seconds cannot show what a nightly job, a monthly
report or a standby server needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Existing
from uncork.model.units import count_words, format_count

if TYPE_CHECKING:
    from uncork.model.database.finding import Bill
    from uncork.model.results.database import TableFacts

LEAST_BYTES: Final = 10_000_000
"""Bytes of indexes below which their size alone is not worth a finding."""
GRACE_DAYS: Final = 30.0
"""Days of counting below which an index may belong to a job that has not run yet: a monthly report."""
_WRITES: Final = ("insert", "update", "delete", "merge", "copy")


def upkeep_bill(table: TableFacts, indexes: Collection[Existing], evidence: Evidence) -> Bill:
    """Return what statements spend on maintaining some of a table's indexes.

    A row written goes to the table and to each index, so each of them has an equal part of the work. A HOT
    update changes no index; a delete leaves its entries to VACUUM.
    """
    return evidence.bill_without_wal(templates_of(table, indexes, evidence))


def templates_of(table: TableFacts, indexes: Collection[Existing], evidence: Evidence) -> dict[int, float]:
    """Return the statements that write to a table, with the fraction of their time for some indexes of it.

    An update of a column of an index that nothing reads is left to the rule about heap-only updates.
    """
    each = len(indexes) / (1 + max(len(indexes), len(evidence.indexes.get(table.name, ()))))
    unread = {
        column
        for index in indexes
        if index.shape is not None and index.facts.warning == "unused"
        for column in index.shape.columns
    }
    moved = 1 - table.hot_updated / table.updated if table.updated else 1.0
    found = {}
    for statement in evidence.statements.values():
        if statement.shape is None or statement.shape.kind not in _WRITES:
            continue
        if not statement.changes(table.name):
            continue
        if unread.intersection(statement.shape.set_columns):
            continue
        fraction = {"delete": 0.0, "update": each * moved}.get(statement.shape.kind, each)
        if fraction:
            found[statement.number] = fraction
    return found


def counted_days(evidence: Evidence) -> float | None:
    """Return for how many days the server has counted the scans of indexes; None if it is unknown."""
    database = evidence.database
    if database is None or database.counted_since_us is None:
        return None
    return (database.watch.ended_us - database.counted_since_us) / 86_400e6


def serves_key(existing: Existing, evidence: Evidence) -> bool:
    """Return whether an index finds the rows that refer to a deleted one: deletes are rare, but need it."""
    for key in evidence.keys_of.get(existing.facts.table, ()):
        columns = {part.strip().strip('"') for part in key.columns.split(",")}
        if existing.shape is not None and set(existing.shape.columns[: len(columns)]) == columns:
            return True
    return False


def why_unprovable(indexes: Sequence[Existing], evidence: Evidence) -> str:
    """Return why measuring without these indexes cannot prove that they are not needed.

    It is a sentence, empty if a measurement can: nothing scanned them for 30 days.
    """
    scanned = next((index.facts for index in indexes if index.facts.scans_ever), None)
    if scanned is not None and scanned.scans_ever:
        return (
            f"Statements that were not captured scanned {scanned.name} "
            f"{count_words(scanned.scans_ever, 'time')} since counting began: find them first."
        )
    days = counted_days(evidence)
    if days is not None and days >= GRACE_DAYS:
        return ""
    if days is None:
        return (
            "It is unknown since when the server counts scans, so a job that runs seldom may need it. "
            f"Compare its scans {GRACE_DAYS:.0f} days apart, on every standby server too."
        )
    return (
        f"Scans were counted for {format_count(round(days, 1))} days, so a job that runs seldom may need it. "
        f"Wait until {GRACE_DAYS:.0f} days without a scan are counted, on every standby server too."
    )
