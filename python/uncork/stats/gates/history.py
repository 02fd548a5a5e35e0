"""A run beside what comparable runs were before it: against one of them, or the median since the last change.

The *past* of a figure is its value in comparable runs, in the order of time. What it stands for now is the
stretch since the last change point (`stats.steps`), and the median of that is what a new run is held
against, for one spoiled run in it changes the median hardly at all. If nothing differs, then with n runs in
the stretch that scatter by s, f = n - 1::

    log(new / median) ~ s · sqrt(1 + π / (2 n)) · t(f)

Against one run of the past that people chose (a *baseline*) it is s · sqrt(2), the baseline left out of s.
The rest is as between any two runs (`stats.run_comparison`): tightened for tails, widened for dependence, and
nothing is claimed from fewer than `KNOWN_RUNS` runs, or farther away in time than `STRETCH` times what they
span.

A load carried out several times in a row is taken as one run, by its median: such runs share the day they
were made on, so that they tell of spoiled runs, and not of what changes from day to day.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.stats.run_comparison import (
    LikeRun,
    Measured,
    RunDifference,
    RunToRun,
    compare_runs,
    compare_shares,
    run_to_run,
)
from uncork.stats.steps import change_points

__all__ = ["Past", "beside_past", "past_of", "share_beside_past"]

_SURE: Final = 10**12
"""A limit is known as well as a median of so many runs."""


@dataclass(frozen=True, slots=True)
class Past:
    """A figure in comparable runs since its last change, oldest first; `before` counts those before it."""

    runs: tuple[LikeRun, ...]
    before: int = 0

    @property
    def median(self) -> float:
        """The median log value. Raises statistics.StatisticsError without runs."""
        return statistics.median(run.value for run in self.runs)

    @property
    def time_s(self) -> float:
        """The median time. Raises statistics.StatisticsError without runs."""
        return statistics.median(run.time_s for run in self.runs)

    def scatter(self, baseline: LikeRun | None = None) -> RunToRun | None:
        """Return how much such runs differ, without the one that is held against; None of fewer than two."""
        return run_to_run([[run for run in self.runs if run is not baseline]])


def past_of(runs: Sequence[LikeRun]) -> Past:
    """Return what of a figure's comparable runs it stands for now: those since the last change point."""
    ordered = sorted(runs, key=lambda run: run.time_s)
    points = change_points([math.exp(run.value) for run in ordered]).points
    start = points[-1].index if points else 0
    return Past(tuple(ordered[start:]), start)


def beside_past(
    after: Sequence[LikeRun],
    past: Past,
    *,
    confidence: float,
    baseline: LikeRun | None = None,
    limit: float | None = None,
    resolution: float = 0.0,
) -> RunDifference:
    """Compare new runs, taken as one, with the past's median, with a run of it, or with a log value `limit`.

    Raises:
        ValueError: there is no new run, or nothing to compare it with.
    """
    new = Measured(*_middle(after), resolution=resolution)
    if limit is not None:
        at = Measured(past.time_s if past.runs else new.time_s, limit)
        return compare_runs(at, new, past.scatter(), practical=0.0, confidence=confidence, medians=_SURE)
    if baseline is not None:
        old = Measured(baseline.time_s, baseline.value, resolution=resolution)
        return compare_runs(old, new, past.scatter(baseline), practical=0.0, confidence=confidence)
    if not past.runs:
        raise ValueError("there is no comparable run to compare with")
    old = Measured(past.time_s, past.median, resolution=resolution)
    many = max(2, len(past.runs))
    return compare_runs(old, new, past.scatter(), practical=0.0, confidence=confidence, medians=many)


def share_beside_past(
    after: tuple[int, int],
    time_s: float,
    before: tuple[int, int],
    past: Past,
    *,
    confidence: float,
    baseline: LikeRun | None = None,
) -> RunDifference:
    """Compare a share, told as (count, of), with that of all the past's runs together, or of one of them.

    `past` is of log odds.

    Raises:
        ValueError: there is nothing to compare it with.
    """
    if baseline is None and not past.runs:
        raise ValueError("there is no comparable run to compare with")
    times = (past.time_s if baseline is None else baseline.time_s, time_s)
    like = past.scatter(baseline)
    return compare_shares(before, after, like, times, practical=0.0, confidence=confidence)


def _middle(runs: Sequence[LikeRun]) -> tuple[float, float]:
    """Return the median time and value of runs made in a row."""
    if not runs:
        raise ValueError("there is no new run to compare")
    return statistics.median(run.time_s for run in runs), statistics.median(run.value for run in runs)
