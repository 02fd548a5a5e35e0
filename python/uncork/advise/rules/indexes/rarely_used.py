"""Indexes that nothing scans for now, and what may need them nevertheless. Pure.

A measurement of the statements that were captured within seconds cannot show what a nightly job, a monthly
report or a standby server needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncork.advise.evidence import Evidence, Existing
from uncork.advise.rules.writes.upkeep_cost import GRACE_DAYS, counted_days
from uncork.model.units import count_words, format_count


def serves_key(one: Existing, seen: Evidence) -> bool:
    """Return whether an index finds the rows that refer to a deleted one: deletes are rare, but need it."""
    for key in seen.keys_of.get(one.facts.table, ()):
        columns = {part.strip().strip('"') for part in key.columns.split(",")}
        if one.shape is not None and set(one.shape.columns[: len(columns)]) == columns:
            return True
    return False


def why_unprovable(indexes: Sequence[Existing], seen: Evidence) -> str:
    """Return why measuring without these indexes cannot prove that they are not needed.

    It is a sentence, empty if a measurement can: nothing scanned them for 30 days.
    """
    scanned = next((index.facts for index in indexes if index.facts.scans_ever), None)
    if scanned is not None and scanned.scans_ever:
        return (
            f"Statements that were not captured scanned {scanned.name} "
            f"{count_words(scanned.scans_ever, 'time')} since counting began: find them first."
        )
    days = counted_days(seen)
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
