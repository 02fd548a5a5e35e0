"""Sentences about the entries that filters left out."""

from __future__ import annotations

from typing import Final

from uncork.model.results.log import LogResult
from uncork.model.units import format_count

_NAMED: Final = 3


def filter_words(result: LogResult) -> str:
    """Return what the filters left out, by option and name; an empty text without filters."""
    filters = result.filters
    if filters is None:
        return ""
    whole = result.entries + result.own + filters.entries
    if not filters.entries:
        return f"The filters ({_asked(result)}) left out none of {format_count(whole)} entries."
    parts = []
    for by in dict.fromkeys(out.by for out in filters.left_out):
        of = [out for out in filters.left_out if out.by == by]
        count = sum(out.entries for out in of)
        names = [f"{out.name or '(none)'} {format_count(out.entries)}" for out in of[:_NAMED]]
        more = f", {len(of) - _NAMED} more" if len(of) > _NAMED else ""
        listed = "" if by == "time of day" else f" ({', '.join(names)}{more})"
        parts.append(f"{format_count(count)} by {by}{listed}")
    return (
        f"The filters ({_asked(result)}) left out {format_count(filters.entries)} of "
        f"{format_count(whole)} entries: {'; '.join(parts)}. All numbers are of the other entries."
    )


def _asked(result: LogResult) -> str:
    filters = result.filters
    if filters is None:
        return ""
    tests = (
        ("database", filters.databases),
        ("user", filters.users),
        ("application", filters.applications),
        ("host", filters.hosts),
        ("time of day", filters.times_of_day),
    )
    return ", ".join(f"{name} {' or '.join(asked)}" for name, asked in tests if asked)
