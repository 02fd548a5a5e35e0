"""Check an effect by ranks, which a few extreme units hardly move: Hodges-Lehmann with its interval.

The estimate is the median of all pairwise means of the units (Walsh averages). The interval lies between two
of these means, which the distribution of Wilcoxon's signed-rank statistic selects: without an effect, each
unit's sign is as likely to be plus as minus (Hodges and Lehmann, "Estimates of location based on rank tests",
Annals of Mathematical Statistics 34, 1963; Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods",
2014, section 3.2). It assumes independent units that are symmetric around the effect, and nothing about their
tails. Unlike the main interval (`stats.interval`), it is for a number of units that was chosen in advance: it
checks the verdict, and never gives one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from uncork.model.results.experiment import RankEffect

_EXACT: Final = 60
"""Up to this many units, the distribution of the signed-rank statistic is computed exactly."""
_MOST: Final = 2_000
"""Of more units, equally spaced ones are taken, because the number of pairs grows with the square."""


def rank_effect(units: Sequence[float], confidence: float) -> RankEffect | None:
    """Return the effect of log ratios by ranks; None with fewer units than such an interval needs.

    At 95 %, that is six: the signs of five units are all equal by chance in more than 5 of 100 cases.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    values = np.asarray(units, dtype=np.float64)
    if len(values) > _MOST:
        values = values[np.linspace(0, len(values) - 1, _MOST).astype(int)]
    beyond = _beyond(len(values), confidence)
    if beyond < 1:
        return None
    first, second = np.triu_indices(len(values))
    means = np.sort((values[first] + values[second]) / 2.0)
    low, high = means[beyond - 1], means[-beyond]
    return RankEffect(*(math.exp(float(logarithm)) for logarithm in (np.median(means), low, high)))


def contradiction(ratio: float, low: float | None, high: float | None, ranks: RankEffect) -> bool:
    """Return whether an effect and its interval contradict the ranks: so a few units decide it.

    They do if the effect lies outside the ranks' interval, or if its interval excludes 1 and theirs does not.
    """
    known = low is not None and high is not None and not low <= 1.0 <= high
    return not ranks.low <= ratio <= ranks.high or (known and ranks.low <= 1.0 <= ranks.high)


@lru_cache(maxsize=256)
def _beyond(count: int, confidence: float) -> int:
    """Return which smallest (and largest) pairwise mean bounds the interval; 0 if none can."""
    half = (1.0 - confidence) / 2.0
    if count <= _EXACT:
        ways = np.zeros(count * (count + 1) // 2 + 1)
        ways[0] = 1.0
        for rank in range(1, count + 1):
            ways[rank:] += ways[:-rank].copy()
        return int(np.searchsorted(np.cumsum(ways) / 2.0**count, half, side="right"))
    mean = count * (count + 1) / 4.0
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24.0)
    return max(math.floor(mean + NormalDist().inv_cdf(half) * spread), 0)
