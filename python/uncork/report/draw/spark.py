"""Sparklines: values drawn small, as an SVG path or as bars of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

SPARK_HEIGHT: Final = 40
"""Height of a drawing; its width is the number of values."""
_BARS: Final = " ▁▂▃▄▅▆▇█"


def spark_path(values: Sequence[float]) -> str:
    """Return the outline of bars of width 1, up to `SPARK_HEIGHT` tall; values above 0 are always visible."""
    steps, before = [], 0
    for place, height in enumerate(_heights(values, SPARK_HEIGHT)):
        if height != before:
            steps.append(f"H{place}V{SPARK_HEIGHT - height}")
            before = height
    return f"M0 {SPARK_HEIGHT}{''.join(steps)}H{len(values)}V{SPARK_HEIGHT}z"


def spark_text(values: Sequence[float]) -> str:
    """Return one character per value; larger values have taller bars."""
    return "".join(_BARS[height] for height in _heights(values, len(_BARS) - 1))


def _heights(values: Sequence[float], most: int) -> list[int]:
    """Scale values so that the largest is `most`; values above 0 become at least 1."""
    greatest = max(values, default=0.0)
    return [math.ceil(value / greatest * most) if value > 0 else 0 for value in values]
