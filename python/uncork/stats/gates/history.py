"""Compare a new run with earlier comparable runs: with one of them, or with their recent median.

The *past* of a metric is its values in comparable runs, in the order of time. Only the stretch since the last
change point counts (`stats.steps`). A new run is compared with the median of that stretch, because one
spoiled run hardly changes a median. If nothing differs, then with n runs in the stretch whose standard
deviation is s, and f = n - 1::

    log(new / median) ~ s · sqrt(1 + π / (2 n)) · t(f)

Against one chosen run of the past (a *baseline*), the factor is s · sqrt(2), and s leaves out the baseline.
The rest works as for any two runs (`stats.run_comparison`): the error rate is tightened for heavy tails, s is
inflated for correlation, and nothing is claimed from fewer than `KNOWN_RUNS` runs, or over a longer time than
`STRETCH` times what they span.

A load that is sent several times in a row counts as one run, represented by its median. Such runs were made
on the same day, so they reveal spoiled runs but not changes from day to day.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.stats.run_comparison import (
    ComparableRun,
    Measured,
    RunDifference,
    RunToRun,
    compare_runs,
    compare_shares,
    run_to_run,
)
from uncork.stats.steps import change_points

_SURE: Final = 10**12
"""A limit is known as well as the median of this many runs."""


@dataclass(frozen=True, slots=True)
class Past:
    """A metric in comparable runs since its last change, oldest first.

    `before` is the number of runs before that change.
    """

    runs: tuple[ComparableRun, ...]
    before: int = 0

    @property
    def median(self) -> float:
        """Return the median log value. Raises statistics.StatisticsError without runs."""
        return statistics.median(run.value for run in self.runs)

    @property
    def time_s(self) -> float:
        """Return the median time. Raises statistics.StatisticsError without runs."""
        return statistics.median(run.time_s for run in self.runs)

    def std_dev(self, baseline: ComparableRun | None = None) -> RunToRun | None:
        """Return how much such runs differ, without the baseline; None if fewer than two runs remain."""
        return run_to_run([[run for run in self.runs if run is not baseline]])


def past_of(runs: Sequence[ComparableRun]) -> Past:
    """Return the comparable runs since the last change point of the metric."""
    ordered = sorted(runs, key=lambda run: run.time_s)
    points = change_points([math.exp(run.value) for run in ordered]).points
    start = points[-1].index if points else 0
    return Past(tuple(ordered[start:]), start)


def beside_past(
    after: Sequence[ComparableRun],
    past: Past,
    *,
    confidence: float,
    baseline: ComparableRun | None = None,
    limit: float | None = None,
    resolution: float = 0.0,
) -> RunDifference:
    """Compare new runs, taken as one, with the past's median, one of its runs, or a log value `limit`.

    Raises:
        ValueError: there is no new run, or nothing to compare it with.
    """
    new = Measured(*_middle(after), resolution=resolution)
    if limit is not None:
        at = Measured(past.time_s if past.runs else new.time_s, limit)
        return compare_runs(at, new, past.std_dev(), practical=0.0, confidence=confidence, medians=_SURE)
    if baseline is not None:
        old = Measured(baseline.time_s, baseline.value, resolution=resolution)
        return compare_runs(old, new, past.std_dev(baseline), practical=0.0, confidence=confidence)
    if not past.runs:
        raise ValueError("there is no comparable run to compare with")
    old = Measured(past.time_s, past.median, resolution=resolution)
    many = max(2, len(past.runs))
    return compare_runs(old, new, past.std_dev(), practical=0.0, confidence=confidence, medians=many)


def share_beside_past(
    after: tuple[int, int],
    time_s: float,
    before: tuple[int, int],
    past: Past,
    *,
    confidence: float,
    baseline: ComparableRun | None = None,
) -> RunDifference:
    """Compare a share, given as (count, of), with that of all past runs together, or of one of them.

    `past` holds log odds.

    Raises:
        ValueError: there is nothing to compare it with.
    """
    if baseline is None and not past.runs:
        raise ValueError("there is no comparable run to compare with")
    times = (past.time_s if baseline is None else baseline.time_s, time_s)
    like = past.std_dev(baseline)
    return compare_shares(before, after, like, times, practical=0.0, confidence=confidence)


def _middle(runs: Sequence[ComparableRun]) -> tuple[float, float]:
    """Return the median time and value of runs made in a row."""
    if not runs:
        raise ValueError("there is no new run to compare")
    return statistics.median(run.time_s for run in runs), statistics.median(run.value for run in runs)
