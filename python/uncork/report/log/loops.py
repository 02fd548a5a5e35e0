"""What the list of templates says of statements that clients repeat in loops."""

from __future__ import annotations

from uncork.model.results.log import LogResult
from uncork.model.units import format_count


def loop_notes(result: LogResult) -> dict[int, str]:
    """Return a note on each template that a loop repeats, by its number."""
    found: dict[int, str] = {}
    for loop in result.loops:
        where = "transaction" if loop.in_transaction else "session"
        for template in loop.templates:
            words = f"repeated up to {format_count(template.longest)} times in a {where}"
            found.setdefault(template.number, words)
    return found
