"""What the upkeep of indexes costs the statements that write to their table. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Existing

if TYPE_CHECKING:
    from uncork.model.database.finding import Bill
    from uncork.model.results.database import TableFacts

LEAST_BYTES: Final = 10_000_000
"""Bytes of indexes below which their size alone is not worth a finding."""
GRACE_DAYS: Final = 30.0
"""Days of counting below which an index may belong to a job that has not run yet: a monthly report."""
_WRITES: Final = ("insert", "update", "delete", "merge", "copy")


def upkeep_bill(table: TableFacts, indexes: Collection[Existing], seen: Evidence) -> Bill:
    """Return what statements spend on maintaining some of a table's indexes.

    A row written goes to the table and to each index, so each of them has an equal part of the work. A HOT
    update changes no index; a delete leaves its entries to VACUUM.
    """
    return seen.bill_without_wal(templates_of(table, indexes, seen))


def templates_of(table: TableFacts, indexes: Collection[Existing], seen: Evidence) -> dict[int, float]:
    """Return the statements that write to a table, with the fraction of their time for some indexes of it.

    An update of a column of an index that nothing reads is left to the rule about heap-only updates.
    """
    each = len(indexes) / (1 + max(len(indexes), len(seen.indexes.get(table.name, ()))))
    unread = {
        column
        for index in indexes
        if index.shape is not None and index.facts.warning == "unused"
        for column in index.shape.columns
    }
    moved = 1 - table.hot_updated / table.updated if table.updated else 1.0
    found = {}
    for statement in seen.statements.values():
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


def counted_days(seen: Evidence) -> float | None:
    """Return for how many days the server has counted the scans of indexes; None if it is unknown."""
    database = seen.database
    if database is None or database.counted_since_us is None:
        return None
    return (database.watch.ended_us - database.counted_since_us) / 86_400e6
