"""Parts shared by drawings: colours, ticks and their labels."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from uncork.model.units import format_duration

INK, SOFT, GRID, BAND, PAGE = "var(--ink)", "var(--soft)", "var(--grid)", "var(--band)", "var(--card)"
"""Colours of a drawing: variables of the page's style sheet, so that one drawing serves light and dark."""

_DAY_S: Final = 86_400
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(days * _DAY_S for days in (1, 2, 7, 14, 28, 91, 365)),
)
"""Allowed distances between ticks of the time of day, in seconds."""
_MOST_TIMES: Final = 8


def colour(number: int) -> str:
    """Return one of the page's eight colours."""
    return f"var(--v{number})"


def clock_ticks(start_s: float, length_s: float) -> tuple[list[float], list[str]]:
    """Return ticks at round times of day, in seconds since `start_s`, with their labels in UTC.

    Midnight is labelled with the date. Labels have seconds only if ticks are less than a minute apart.
    """
    step = next((step for step in _STEPS_S if length_s / step <= _MOST_TIMES), _STEPS_S[-1])
    ticks = range(math.ceil(start_s / step) * step, math.floor(start_s + length_s) + 1, step)
    times = [datetime.fromtimestamp(tick, UTC) for tick in ticks]
    form = "%H:%M:%S" if step < 60 else "%H:%M"
    labels = [
        f"{time:{form}}" if tick % _DAY_S else f"{time.day} {time:%b}"
        for tick, time in zip(ticks, times, strict=True)
    ]
    return [tick - start_s for tick in ticks], labels


def clock_title(start_s: float, length_s: float) -> str:
    """Return the title of a time-of-day axis, with its date or first date."""
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (start_s, start_s + length_s))
    return f"{first}, UTC" if first == last else f"UTC, from {first} on"


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis."""
    decades = math.log10(high / low)
    steps = (
        (1, 1.5, 2, 3, 4, 5, 7)
        if decades < 0.8
        else (1, 2, 5)
        if decades < 2
        else (1, 3)
        if decades < 3.2
        else (1,)
    )
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def even_ticks(low: float, high: float) -> list[float]:
    """Return about five ticks of a linear axis, at round values."""
    if high <= low:
        return [low]
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def value_label(value: float, unit: str) -> str:
    """Format a value of an axis by its `unit`: ns in a suitable unit of time, a share, or a number."""
    if unit == "share":
        return f"{value * 100:g} %"
    if unit != "ns":
        return short_number(value)
    number, _, name = format_duration(value).partition(" ")
    return f"{float(number):g} {name}" if name in ("ns", "µs", "ms", "s") else format_duration(value)


def short_number(number: float) -> str:
    """Format a number in a few characters: ``250k``."""
    for suffix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale:
            return f"{number / scale:g}{suffix}"
    return f"{number:g}"
