"""Format points in time, time spans and shares."""

from __future__ import annotations

from datetime import UTC, datetime

from uncork.model.units import format_duration, share_text

__all__ = ["duration_text", "instant_text", "share_text", "span_text", "step_text"]


def duration_text(nanoseconds: float | None) -> str:
    """Format a duration; empty for None."""
    return "" if nanoseconds is None else format_duration(nanoseconds)


def instant_text(micros: int | None) -> str:
    """Format a point in time to the second, in UTC; empty for None."""
    if micros is None:
        return ""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def span_text(first_us: int | None, last_us: int | None) -> str:
    """Format a time span; the date appears once if both ends are on the same day."""
    first, last = instant_text(first_us), instant_text(last_us)
    if not first:
        return ""
    if first[:10] == last[:10]:
        return f"{first} to {last[11:]} UTC"
    return f"{first} to {last} UTC"


def step_text(seconds: int) -> str:
    """Format the length of a time bucket: ``30 s``, ``5 min``, ``6 h``."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
