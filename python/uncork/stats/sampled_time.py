"""The interval of a mean over time, from the means of equal parts of that time.

Sessions that were sampled are no independent observations: a statement that runs for a second is seen in all
samples of that second. The means of *batches*, equal parts of the time, are nearly independent if batches are
long compared with statements (batch means; Law, Simulation Modeling and Analysis, 5th ed., section 9.5). What
dependence remains between neighbours widens the interval: the variance is multiplied by (1 + r) / (1 - r),
the factor for a first-order autoregressive process with the lag-1 autocorrelation r. ``r`` is estimated too
low from few batches, by about 2 / n, which is added.

``tests/calibration/test_sampled_time.py`` simulates the coverage, also with samples that become rare. If
statements are short, or one ran often during the watch, 93 to 97 % of the 95 % intervals hold the truth; if a
statement ran fewer than ten times, its interval is too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from uncork.stats.student import student_reach

BATCHES: Final = 20
"""Parts to divide the time into: enough for an estimate of the variance, few enough to be long."""
_CONFIDENCE: Final = 0.95
_LEAST: Final = 4
_MOST_CORRELATION: Final = 0.9
_LEAST_FREEDOM: Final = 3.0


def batch_places(times: Sequence[float]) -> list[int]:
    """Return the batch of each sample, from 0: batches are equal parts of the time, not of the samples.

    `times` are how long each sample stands for. A busy machine samples less often, so its samples stand for
    more. There are `BATCHES` batches, or as many as samples if these are fewer.
    """
    batches, whole = min(BATCHES, len(times)), math.fsum(times)
    ends = accumulate(times)
    return [
        min(batches - 1, int((end - time / 2) / whole * batches)) if whole else 0
        for time, end in zip(times, ends, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class MeanOverTime:
    """A mean with its 95 % interval, which ends at 0; the interval is infinite with too few batches."""

    mean: float
    low: float
    high: float


def mean_over_time(batches: Sequence[float]) -> MeanOverTime:
    """Return the mean of batches of equal length, none of which is negative."""
    many = len(batches)
    mean = math.fsum(batches) / many if many else 0.0
    if many < _LEAST:
        return MeanOverTime(mean, 0.0, math.inf)
    off = [value - mean for value in batches]
    squares = math.fsum(value * value for value in off)
    if not squares:
        return MeanOverTime(mean, mean, mean)
    products = math.fsum(value * other for value, other in zip(off[1:], off[:-1], strict=True))
    correlation = min(_MOST_CORRELATION, max(0.0, products / squares + 2 / many))
    wider = (1 + correlation) / (1 - correlation)
    freedom = max(_LEAST_FREEDOM, (many - 1) / wider)
    reach = student_reach(_CONFIDENCE, freedom) * math.sqrt(squares / (many - 1) / many * wider)
    return MeanOverTime(mean, max(0.0, mean - reach), mean + reach)
