"""Find the parts of a load whose latencies disagree with those of the others.

All parts load the same server at the same time, so what the server does meets all of them alike. In each
interval, a part's quantile is compared with the median of the others' (in logarithms, so that a factor is a
factor). The mean difference gets an interval from batches of intervals, widened for batches that depend on
each other, and for the number of comparisons (Bonferroni). A part disagrees if the difference is certain and
larger than `MATTERS`: machines at different distances from the server differ a little, and that is no fault.
A part that is slow for most of the time differs so unevenly that its interval is wide. So a part also
disagrees if it is the farthest from the others, by more than `MATTERS`, in more intervals than chance allows:
of k parts that are alike, each is the largest in one of k intervals. The part that differs most is named
first; then the rest is compared without it, because it would also shift the median that the others are
compared with. ``tests/calibration/test_parts.py`` simulates the false alarms and the power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from uncork.stats.student import student_quantile

MATTERS: Final = 1.25
"""A part disagrees if its quantile is at least this factor above or below that of the others."""
LEAST_INTERVALS: Final = 5
"""With fewer intervals in which the parts can be compared, none is named."""
_MOST_BATCHES: Final = 20
_CORRELATED: Final = 3.0
"""How much larger the variance of a mean is if batches have a correlation of 0.5 with the next one."""
_AGAIN: Final = 0.25
"""The least chance that a part is the farthest: who was it in one interval is likely to be it again."""
_WRONG: Final = 0.01
"""The probability that any part of a load is named although all are alike."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A part's quantile over that of the others, as a factor."""

    part: int
    quantile: str
    factor: float


def disagreements(quantiles: Mapping[str, Mapping[int, Sequence[float | None]]]) -> list[Disagreement]:
    """Return the parts that disagree, the most distant first. Pure.

    `quantiles` has, for each quantile by name, the value of each part in each interval; None where nothing
    succeeded. All sequences of a quantile have the same length. Of two parts, both are named: nothing says
    which of them is odd.
    """
    wrong = _WRONG / max(1, sum(len(parts) for parts in quantiles.values()))
    named: list[Disagreement] = []
    for name, parts in quantiles.items():
        left = dict(parts)
        while len(left) > 1:
            factors = {part: _certain_factor(part, left, wrong) for part in left}
            found = [
                Disagreement(part, name, factor) for part, factor in factors.items() if factor is not None
            ]
            if not found:
                break
            found.sort(key=lambda one: -abs(math.log(one.factor)))
            odd = found if len(left) == 2 else found[:1]
            named += odd
            for disagreement in odd:
                del left[disagreement.part]
    return named


def _certain_factor(part: int, parts: Mapping[int, Sequence[float | None]], wrong: float) -> float | None:
    """Return the factor between a part and the others; None if it may be chance, or is small."""
    differences = []
    for place, value in enumerate(parts[part]):
        beside = [values[place] for number, values in parts.items() if number != part]
        known = [math.log(value) for value in beside if value]
        if value and known:
            differences.append(math.log(value) - median(known))
    if len(differences) < LEAST_INTERVALS:
        return None
    size = math.ceil(len(differences) / _MOST_BATCHES)
    batches = [
        math.fsum(differences[start : start + size]) / size
        for start in range(0, len(differences) - size + 1, size)
    ]
    mean = math.fsum(batches) / len(batches)
    if abs(mean) <= math.log(MATTERS):
        return None
    variance = math.fsum((batch - mean) ** 2 for batch in batches) / (len(batches) - 1)
    error = math.sqrt(_CORRELATED * variance / len(batches))
    half = student_quantile(1 - wrong / 4, len(batches) - 1) * error
    certain = abs(mean) > half or _is_farthest(part, parts, math.copysign(1.0, mean), wrong / 4)
    return math.exp(mean) if certain else None


def _is_farthest(part: int, parts: Mapping[int, Sequence[float | None]], side: float, wrong: float) -> bool:
    """Return whether a part is the largest (`side` 1) or smallest (-1) more often than chance allows."""
    times = many = 0
    for place, value in enumerate(parts[part]):
        beside = [values[place] for number, values in parts.items() if number != part]
        known = [side * math.log(value) for value in beside if value]
        if value and len(known) == len(beside):
            many += 1
            own = side * math.log(value)
            times += own > max(known) and own > median(known) + math.log(MATTERS)
    chance = max(1 / len(parts), _AGAIN)
    tail = (math.comb(many, k) * chance**k * (1 - chance) ** (many - k) for k in range(times, many + 1))
    return math.fsum(tail) < wrong
