"""Format the values of metrics with their units."""

from __future__ import annotations

from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.load.words import rate_text, share_text
from uncork.report.words import effect_text


def figure_value(value: float, unit: str) -> str:
    """Format the value of a metric with its unit."""
    if unit == "ns":
        return format_duration(value)
    if unit == "B":
        return format_bytes(value)
    if unit == "/s":
        return f"{rate_text(value)}/s"
    if unit == "ratio":
        return effect_text(value)
    if unit == "share":
        return share_text(round(value * 10**9), 10**9)
    return format_count(value)


def number_text(number: float) -> str:
    """Format a number to three significant digits, or as an integer from 100 on."""
    return format_count(round(number)) if number >= 100 else f"{number:.3g}"
