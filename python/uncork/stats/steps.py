"""Find change points: where a series of runs moved to another level, and how certain that is.

**Method.** This is the method of Hunter (Fleming and others, "Hunter: Using Change Point Detection to Hunt
for Performance Regressions", ICPE 2023), as implemented in Apache Otava:

1. Cut the series into windows of 50 runs that overlap by half.
2. Split each window where the energy distance between left and right is greatest (Matteson and James, "A
   Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", 2014). Continue as long as
   Student's t-test finds the parts different at ten times the requested error rate. These are the *weak*
   points.
3. Remove the weakest point, and repeat until each remaining point is significant between its neighbours.

`hunter` does this, and finds the same points as Otava. Otava itself needs a dozen packages that uncork does
not use, and pins NumPy, so it is not a dependency.

**Correction.** A t-test at a split that was found by searching does not hold its level. Of series of 200 runs
of pure noise, 6 % show a point at p < 0.001; of 40 runs, 20 % at p < 0.01. `change_points` therefore requires
a smaller p-value, so that at most the share `FALSE_ALARMS` of series of pure noise shows *any* point. By
simulation that is ``FALSE_ALARMS / (TRIES * n)`` for n runs. Each point also carries the chance that noise
alone shows a point as clear. A level must last `LEAST_STRETCH` runs: one or two distant runs are outliers, or
cannot be judged yet. If neighbouring runs are correlated, the standard errors of the tests are inflated
accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import lag_one
from uncork.stats.student import student_tail

WINDOW: Final = 50
"""Points per window, as in the paper."""
FALSE_ALARMS: Final = 0.05
"""At most this share of series of pure noise shows any change point."""
TRIES: Final = 1.5
"""Effective number of tests per run in a search: the maximum in simulations of 6 to 200 runs (0.4 to 1.5)."""
LEAST_POINTS: Final = 6
"""A series with fewer runs shows no change point."""
LEAST_STRETCH: Final = 3
"""Runs that a level must last. Otherwise one spoiled run in ten would show a false point in every tenth
series."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first point of a new level.

    `before` and `after` are the means of the stretches on either side, up to the next change points.
    `before_count` and `after_count` are the numbers of points in them. `p_value` is from the t-test between
    the two. `chance` is the probability that pure noise of the same length shows any point as clear.
    """

    index: int
    before: float
    after: float
    before_count: int
    after_count: int
    p_value: float
    chance: float


@dataclass(frozen=True, slots=True)
class Steps:
    """The change points of a series, in order.

    `suspected` is a change point supported by only the last one or two runs: it is too early to distinguish a
    new level from outliers. `inflation` is the factor by which correlation between runs inflated the standard
    errors.
    """

    points: tuple[ChangePoint, ...]
    suspected: ChangePoint | None
    inflation: float


def change_points(values: Sequence[float], *, false_alarms: float = FALSE_ALARMS) -> Steps:
    """Return the change points of a series; none if it has fewer than `LEAST_POINTS` values.

    Raises:
        ValueError: a value is not finite, or `false_alarms` is not between 0 and 1.
    """
    if not 0.0 < false_alarms < 1.0:
        raise ValueError(f"the rate of false alarms must lie between 0 and 1, not {false_alarms}")
    series = _checked(values)
    if len(series) < LEAST_POINTS:
        return Steps((), None, 1.0)
    limit = false_alarms / (TRIES * len(series))
    weak = _weak_points(series, WINDOW, 10 * limit)
    points = _merged(weak, series, limit, least_stretch=LEAST_STRETCH)
    inflation = _dependence(series, points)
    if inflation > 1.0:
        points = _merged(weak, series, limit, least_stretch=LEAST_STRETCH, inflation=inflation)
    last = _merged(weak, series, limit, inflation=inflation)[-1:]
    early = last[0] if last and last[0].after_count < LEAST_STRETCH else None
    return Steps(tuple(points), early, inflation)


def hunter(
    values: Sequence[float],
    *,
    window: int = WINDOW,
    max_p_value: float = 0.001,
    least_change: float = 0.0,
) -> list[ChangePoint]:
    """Return the change points that Hunter finds at a p-value that is not corrected for its search.

    Points whose means differ by a smaller fraction than `least_change` are dropped.

    Raises:
        ValueError: a value is not finite, or `window` is below 2.
    """
    if window < 2:
        raise ValueError(f"a window must hold at least 2 points, not {window}")
    series = _checked(values)
    weak = max_p_value * 10 if max_p_value < 0.05 else max_p_value * 2 if max_p_value < 0.5 else max_p_value
    places = _weak_points(series, window, weak)
    return _merged(places, series, max_p_value, least_change=least_change)


def energy_split(segment: FloatArray) -> tuple[int, float]:
    """Return where a segment of at least two points splits best, and the scaled energy distance there.

    The split is the index of the right part's first point. The right part need not reach the segment's end:
    of all pairs of adjacent parts, the function takes the one with the greatest ``m·n/(m + n) · (2·E|X - Y| -
    E|X - X'| - E|Y - Y'|)``.
    """
    count = len(segment)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = np.abs(segment[:, None] - segment[None, :]).cumsum(axis=0).cumsum(axis=1)
    whole = np.diagonal(sums)
    split, end = np.arange(1, count)[:, None], np.arange(2, count + 1)[None, :]
    left, right = split, end - split
    across = sums[1:count, 2:] - whole[1:count, None]
    within_left = whole[1:count, None] / 2.0
    within_right = (whole[None, 2:] - 2.0 * sums[1:count, 2:] + whole[1:count, None]) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = 2.0 * across / end
        distance = distance - np.where(left > 1, 2.0 * right * within_left / (end * (left - 1.0)), 0.0)
        distance = distance - np.where(right > 1, 2.0 * left * within_right / (end * (right - 1.0)), 0.0)
    distance = np.where(right > 0, distance, -math.inf)
    row, column = np.unravel_index(int(np.argmax(distance)), distance.shape)
    return int(row) + 1, float(distance[row, column])


# ---- weak points ----


def _weak_points(series: FloatArray, window: int, max_p_value: float) -> list[int]:
    """Return the points found in any window, in order."""
    found: set[int] = set()
    start = 0
    while start < len(series):
        places = _divided(series[start : start + window], max_p_value)
        found.update(start + place for place in places)
        start = max(start + places[-1] if places else 0, start + window // 2)
    return sorted(found)


def _divided(segment: FloatArray, max_p_value: float) -> list[int]:
    """Split a window where its parts differ most, until the best split is not significant."""
    places: list[int] = []
    best: dict[tuple[int, int], tuple[int, float]] = {}
    while True:
        bounds = [0, *places, len(segment)]
        parts = [(low, high) for low, high in pairwise(bounds) if high - low > 1]
        for low, high in parts:
            if (low, high) not in best:
                split, distance = energy_split(segment[low:high])
                best[low, high] = (low + split, distance)
        if not parts:
            return places
        low, high = max(parts, key=lambda part: best[part][1])
        split = best[low, high][0]
        if _p_value(segment[low:split], segment[split:high]) > max_p_value:
            return places
        places = sorted([*places, split])


def _p_value(left: FloatArray, right: FloatArray, inflation: float = 1.0) -> float:
    """Return the p-value of Student's t-test of two samples, with the reference's standard deviations.

    The reference divides by n, where the test should divide by n - 1. Otherwise results would differ from
    Otava's.
    """
    dof = len(left) + len(right) - 2
    if dof <= 0:
        return 1.0
    pooled = ((len(left) - 1) * left.var() + (len(right) - 1) * right.var()) / dof
    difference = abs(float(left.mean() - right.mean()))
    error = inflation * math.sqrt(pooled * (1.0 / len(left) + 1.0 / len(right)))
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return student_tail(difference / error, dof)


# ---- strong points ----


def _merged(
    places: Sequence[int],
    series: FloatArray,
    max_p_value: float,
    *,
    least_change: float = 0.0,
    least_stretch: int = 1,
    inflation: float = 1.0,
) -> list[ChangePoint]:
    """Remove the weakest point until all remaining points are significant and large enough.

    Points beside a stretch that is too short are removed first. After each removal, the neighbours are tested
    again (Otava does not test the left one again).
    """
    left = list(places)
    while True:
        points = _points(left, series, inflation)
        if not points:
            return []
        brief = [
            change_point
            for change_point in points
            if min(change_point.before_count, change_point.after_count) < least_stretch
        ]
        weakest = max(brief or points, key=lambda point: point.p_value)
        if not brief and weakest.p_value < max_p_value:
            weakest = min(points, key=_magnitude)
            if _magnitude(weakest) > least_change:
                return points
        left.remove(weakest.index)


def _points(places: Sequence[int], series: FloatArray, inflation: float = 1.0) -> list[ChangePoint]:
    bounds = [0, *places, len(series)]
    found = []
    for low, split, high in zip(bounds, bounds[1:], bounds[2:], strict=False):
        left, right = series[low:split], series[split:high]
        p_value = _p_value(left, right, inflation)
        found.append(
            ChangePoint(
                index=split,
                before=float(left.mean()),
                after=float(right.mean()),
                before_count=len(left),
                after_count=len(right),
                p_value=p_value,
                chance=min(1.0, TRIES * len(series) * p_value),
            )
        )
    return found


def _dependence(series: FloatArray, points: Sequence[ChangePoint]) -> float:
    """Return the factor by which correlation between neighbours inflates errors, with levels removed."""
    if len(series) < AUTOCORRELATION_UNITS:
        return 1.0
    bounds = [0, *(point.index for point in points), len(series)]
    parts = [series[low:high] for low, high in pairwise(bounds)]
    rest = np.concatenate([part - part.mean() for part in parts])
    return float(inflation_of(lag_one(rest), len(rest)))


def _magnitude(point: ChangePoint) -> float:
    """Return the greater of the changes relative to either side; a side of zero is ignored."""
    forward = abs(point.after / point.before - 1.0) if point.before else 0.0
    backward = abs(point.before / point.after - 1.0) if point.after else 0.0
    return max(forward, backward)


def _checked(values: Sequence[float]) -> FloatArray:
    series = np.asarray(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise ValueError("every value of a series must be finite")
    return series
