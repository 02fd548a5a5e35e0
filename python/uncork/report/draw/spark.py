"""Values drawn small: as one path of an SVG drawing, or as bars of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["SPARK_HEIGHT", "spark_path", "spark_text"]

SPARK_HEIGHT: Final = 40
"""Height of the drawing; its width is the number of values."""
_BARS: Final = " ▁▂▃▄▅▆▇█"


def spark_path(values: Sequence[float]) -> str:
    """Return the outline of bars one wide, `SPARK_HEIGHT` at most; what is above nothing is seen."""
    steps, before = [], 0
    for place, height in enumerate(_heights(values, SPARK_HEIGHT)):
        if height != before:
            steps.append(f"H{place}V{SPARK_HEIGHT - height}")
            before = height
    return f"M0 {SPARK_HEIGHT}{''.join(steps)}H{len(values)}V{SPARK_HEIGHT}z"


def spark_text(values: Sequence[float]) -> str:
    """Return a character a value, the higher the taller."""
    return "".join(_BARS[height] for height in _heights(values, len(_BARS) - 1))


def _heights(values: Sequence[float], most: int) -> list[int]:
    """Scale values so that the greatest is `most`; all above nothing are at least 1."""
    greatest = max(values, default=0.0)
    return [math.ceil(value / greatest * most) if value > 0 else 0 for value in values]
