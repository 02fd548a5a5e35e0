"""Numbers with units: parse them from text, format them for people.

Internally, a time is a whole number of nanoseconds, a size a whole number of bytes, and a ratio a float where
1 means "the same". People write and read ``250ms``, ``3%``, ``1.3 MB``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_DURATION: Final = {
    **{"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9},
    **{"min": 60 * 10**9, "h": 3600 * 10**9},
}
_BYTES: Final = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
}
_QUANTITY: Final = re.compile(r"\s*(\d+(?:_\d+)*(?:\.\d+)?)\s*([a-zµ%]+)\s*", re.IGNORECASE)


def parse_duration(text: str) -> int:
    """Return the nanoseconds in a text such as ``250ms``, ``1.5s``, ``30min`` or ``2h``.

    Raises ValueError if there is no unit, an unknown one, or no number.
    """
    return round(_parsed(text, _DURATION, 'a time with a unit, such as "250ms", "30s" or "5min"'))


def parse_bytes(text: str) -> int:
    """Return the bytes in a text such as ``512 B``, ``8kB``, ``1.5 MB`` or ``2 GiB``.

    Raises ValueError if there is no unit, an unknown one, or no number.
    """
    return round(_parsed(text, _BYTES, 'a size with a unit, such as "512 B", "8kB" or "1.5MB"'))


def parse_share(text: str) -> float:
    """Return the fraction in a percentage: ``3%`` is 0.03. Raises ValueError if it is not a percentage."""
    return _parsed(text, {"%": 1}, 'a percentage, such as "3%"') / 100


def _parsed(text: str, units: Mapping[str, int], expected: str) -> float:
    match = _QUANTITY.fullmatch(text)
    unit = "" if match is None else match[2].lower() if units is _BYTES else match[2]
    if match is None or unit not in units:
        raise ValueError(f'expected {expected}; found "{text}"')
    return float(match[1].replace("_", "")) * units[unit]


def format_duration(nanoseconds: float) -> str:
    """Format a time to three significant digits in a suitable unit: ``2.52 ms``, ``31.3 µs``."""
    magnitude = abs(nanoseconds)
    if magnitude >= 120e9:
        minutes, seconds = divmod(round(nanoseconds / 1e9), 60)
        return f"{minutes} min {seconds:02d} s"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if magnitude >= 0.9995 * scale:
            return f"{_three_digits(nanoseconds / scale)} {unit}"
    return f"{nanoseconds:.0f} ns"


def format_bytes(size: float) -> str:
    """Format a size to three significant digits in decimal units: ``117 MB``."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= 0.9995 * scale:
            return f"{_three_digits(size / scale)} {unit}"
    return f"{_three_digits(size)} B" if size % 1 else f"{size:.0f} B"


def format_count(number: float) -> str:
    """Format a count: whole numbers with thousands separated, fractions to three significant digits."""
    if float(number).is_integer() or abs(number) >= 1000:
        return f"{number:,.0f}".replace(",", " ")
    return _three_digits(number)


def count_words(number: float, noun: str) -> str:
    """Format a number of things: ``1 comparison``, ``12 comparisons``."""
    return f"{format_count(number)} {noun}{'' if number == 1 else 's'}"


def format_percent(ratio: float) -> str:
    """Format a ratio to the baseline as a signed change: 0.81 is ``−19 %``, 1.052 is ``+5.2 %``.

    Only a ratio of 0 is ``−100 %``; just above it there are up to four decimals: ``−99.8 %``.
    """
    change = (ratio - 1) * 100
    digits = 0 if abs(change) >= 9.95 else 1
    text = f"{abs(change):.{digits}f}"
    while ratio > 0 and change < 0 and float(text) == 100 and digits < 4:
        digits += 1
        text = f"{abs(change):.{digits}f}"
    if float(text) == 0:
        return "±0 %"
    return f"{'+' if change > 0 else '−'}{text} %"


def _three_digits(number: float) -> str:
    magnitude = abs(number)
    if magnitude >= 99.95:
        return f"{number:.0f}"
    if magnitude >= 9.995:
        return f"{number:.1f}"
    if magnitude >= 0.9995 or magnitude == 0:
        return f"{number:.2f}"
    return f"{number:.3g}"


def share_text(share: float) -> str:
    """Format a fraction as a percentage: ``62 %``, ``0.4 %``, ``under 0.1 %``; only all is ``100 %``."""
    percent = share * 100
    if 0 < percent < 0.1:
        return "under 0.1 %"
    if 99.9 < percent < 100:
        return "over 99.9 %"
    coarse = percent == 0 or 9.5 <= percent < 99 or percent >= 100
    return f"{percent:.0f} %" if coarse else f"{percent:.1f} %"


def series_words(words: Iterable[str], last: str = "and") -> str:
    """Join words into a series: ``a, b and c``."""
    items = list(words)
    return f" {last} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
