"""Table cells: a formatted number, with the value for sorting."""

from __future__ import annotations

from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Value
from uncork.report.quantity_words import instant_text, share_text


def duration_cell(nanoseconds: float | None) -> Value:
    """Return a cell with a duration; empty for None."""
    if nanoseconds is None:
        return Value("")
    return _cell(round(nanoseconds), format_duration(nanoseconds))


def count_cell(count: float | None, note: str = "") -> Value:
    """Return a cell with a count; empty for None."""
    return _cell(count, "" if count is None else format_count(count), note)


def bytes_cell(size: int) -> Value:
    """Return a cell with a size."""
    return _cell(size, format_bytes(size))


def share_cell(share: float) -> Value:
    """Return a cell with a share of a whole, 0 to 1."""
    return Value(share_text(share), sort=round(share, 9), bar=share)


def instant_cell(micros: int | None) -> Value:
    """Return a cell with a point in time, to the second; empty for None."""
    return _cell(micros, instant_text(micros))


def _cell(number: float | None, text: str, note: str = "") -> Value:
    return Value(text, note=note, sort=number)
