"""What a server counted between two snapshots, and what makes the difference doubtful. Pure.

Nobody's counters are reset for it: a difference is taken. If somebody else resets them in between, the later
value is what is known, and that is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from uncork.model.database_result import CounterFacts, StatementFacts

__all__ = [
    "RESET",
    "counter_deltas",
    "resets",
    "row_deltas",
    "statement_delta",
    "statement_key",
    "statement_totals",
]

Row = Mapping[str, Any]
Key = tuple[str, str, int, bool]

RESET: Final = "stats_reset"
_FIGURES: Final = tuple(name for name in StatementFacts.__dataclass_fields__)
_GAUGES: Final = frozenset({"numbackends", "op_bytes", "checksum_failures", "stats_reset"})
"""Columns that are no counters: what they are now says nothing of the time between."""


def statement_key(row: Row) -> Key:
    """Return what identifies an entry of pg_stat_statements."""
    return (row["user"], row["database"], row["query_id"], row["toplevel"])


def statement_delta(before: Row | None, after: Row) -> dict[str, Any] | None:
    """Return what one entry counted between the snapshots; None if it did not run.

    An entry that counts less than before was reset, or thrown out and made anew: all that it has is new.
    """
    if before is None or after["calls"] < before["calls"]:
        return dict(after) if after["calls"] else None
    if after["calls"] == before["calls"] and after["plans"] == before["plans"]:
        return None
    return {
        **after,
        **{name: None if after[name] is None else after[name] - (before[name] or 0) for name in _FIGURES},
    }


def statement_totals(rows: Iterable[Row]) -> StatementFacts:
    """Add up entries of one template, of several users or databases."""
    sums: dict[str, Any] = defaultdict(lambda: None)
    for row in rows:
        for name in _FIGURES:
            if row[name] is not None:
                sums[name] = row[name] + (sums[name] or 0)
    counted = {name: sums[name] for name in _FIGURES}
    optional = ("jit_functions", "jit_ns")
    return StatementFacts(**{n: v if n in optional else v or 0 for n, v in counted.items()})


def counter_deltas(before: Sequence[Row], after: Sequence[Row]) -> tuple[CounterFacts, ...]:
    """Return by how much counters grew; those that did not move are left out.

    A counter that is less than before was reset: all that it has is new.
    """
    earlier = {_place(row): row["value"] for row in before}
    found = []
    for row in after:
        if row["counter"] in _GAUGES:
            continue
        then = earlier.get(_place(row), 0.0)
        delta = row["value"] - then if row["value"] >= then else row["value"]
        if delta:
            found.append(CounterFacts(row["view"], row["object"], row["counter"], delta))
    return tuple(found)


def resets(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, ...]:
    """Return which counters somebody reset in between: a view, with what of it where it has parts."""
    earlier = {_place(row): row["value"] for row in before if row["counter"] == RESET}
    found = []
    for row in after:
        if row["counter"] == RESET and row["value"] != earlier.get(_place(row)):
            found.append(f"{row['view']} of {row['object']}" if row["object"] else row["view"])
    views = [name for name in found if name.startswith("pg_stat_io of ")]
    whole = ["pg_stat_io"] if views else []
    return tuple(sorted({*whole, *(name for name in found if name not in views)}))


def row_deltas(before: Sequence[Row], after: Sequence[Row], counters: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows of tables or indexes with their counters as differences; by their number (`oid`)."""
    earlier = {row["oid"]: row for row in before}
    found = []
    for row in after:
        then = earlier.get(row["oid"], {})
        changed = {name: _grown(then.get(name), row[name]) for name in counters}
        found.append({**row, **changed})
    return found


def _grown(before: int | None, after: int | None) -> int:
    then, now = before or 0, after or 0
    return now - then if now >= then else now


def _place(row: Row) -> tuple[str, str, str]:
    return (row["view"], row["object"], row["counter"])
