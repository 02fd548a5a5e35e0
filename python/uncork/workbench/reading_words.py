"""Progress messages of reading logs."""

from __future__ import annotations

from uncork.model.units import format_bytes, format_count


def reading_line(done: int, entries: int, size: int | None, seconds: float) -> str:
    """Return the progress of reading logs: `done` of `size` bytes (None if unknown) in `seconds`."""
    rate = done / seconds
    left = f", {max(0.0, (size - done) / rate):.0f} s left" if size else ""
    share = f"{100 * min(1.0, done / size):.0f} %, " if size else ""
    return f"{share}{format_count(entries)} entries, {format_bytes(rate)}/s{left}"
