"""Compare two runs made at different times, using how much comparable runs differ from one to the next.

Such runs cannot be interleaved, so their difference includes everything that changed in the meantime. Only
other runs show how much that is: *comparable runs*, of the same load on the same machine. Let s be the
standard deviation of their log values within groups of comparable runs, with f degrees of freedom (the number
of runs minus the number of groups; the two compared runs are left out). If nothing differs, the log ratio of
two more such runs has Student's t distribution::

    log(after / before) ~ s · sqrt(2) · t(f)

The interval is therefore ``log ratio ± t · sqrt(2) · s``.

Four corrections apply:

- Runs have heavier tails than a normal distribution (a neighbour on the machine, a cold disk). So the
  interval uses an error rate `TAILS` times smaller than requested, and p-values are multiplied by the same
  factor.
- Variation within the two runs needs no extra term: it is part of how runs vary.
- With fewer than `KNOWN_RUNS` comparable runs, s is unknown and nothing is claimed. The same holds if the two
  runs are farther apart in time than `STRETCH` times the span of the comparable runs, because what changes
  over such a time is unknown.
- From `AUTOCORRELATION_UNITS` runs in a group on, correlation between neighbours inflates s.

A share (of failures) is compared by its log odds, ``log((count + 1/2) / (of - count + 1/2))``. Its error is
never smaller than that of independent draws, ``1/(count + 1/2) + 1/(of - count + 1/2)`` in either run.

The mean time of a call of a statement rests on thousands of calls, so that even one watch before a change and
one after it show much, although too few comparable watches are known. Then their means are assumed to vary
from watch to watch with a standard deviation of `ASSUMED_STD_DEV` (of the logarithm), besides the standard
errors of the means within the watches. Only a change of about a factor of 2.7 or more then has a verdict.

Effects that were measured side by side within each run (a variant against its baseline) are compared by their
own anytime-valid intervals, each at half the error rate.

Intervals and p-values here are for one look at two runs that were chosen before they were seen. Over many
metrics and runs, Benjamini and Hochberg's procedure (1995) controls the false discovery rate. It requires
that metrics are independent, or rise and fall together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from uncork.model.results.run_comparison import RunVerdict
from uncork.model.units import count_words
from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import lag_one, radius
from uncork.stats.student import student_quantile, student_tail

KNOWN_RUNS: Final = 5
"""With fewer comparable runs it is unknown how much they differ, so no verdict is given."""
TAILS: Final = 2.5
"""The error rate is divided by this factor. If run-to-run noise has Student's t with 3 degrees of freedom, or
is exponential, the real error rate then stays at about the stated 5 % with five comparable runs (without the
factor: 9 and 10 %). With normal noise it is 2 %."""
STRETCH: Final = 1.5
"""Two runs may be this many times farther apart than comparable runs span: the first and last of a series
are."""
ASSUMED_STD_DEV: Final = 0.3
"""How much the mean time of a call is assumed to vary between watches of the same load, as long as too few
comparable watches are known. In 20 windows of 12 s on 2 cores with a queue of 15 processes, nine statements
varied by 0.08 to 0.42, half of them by up to 0.15."""
LEAST_CALLS: Final = 50
"""With fewer calls in a watch, the spread of its times is too uncertain for a verdict from one pair."""
_FREEDOM: Final = KNOWN_RUNS - 1
_SIDES: Final = math.sqrt(2.0)
_MEDIAN: Final = math.pi / 2.0
"""The variance of a median of n values, times n, relative to the variance of one value."""
_FLAT: Final = math.sqrt(3.0)
"""A value rounded to steps of 2r has a root-mean-square error of r/sqrt(3)."""
_LEAST: Final = 1e-12

Claim = Literal["differs", "alike", ""]


@dataclass(frozen=True, slots=True)
class ComparableRun:
    """A comparable run: its log value (or log odds), and when it was made, in seconds since a fixed time."""

    time_s: float
    value: float


@dataclass(frozen=True, slots=True)
class RunToRun:
    """How much comparable runs differ from one to the next.

    `std_dev` is the standard deviation of a run's log value, with `dof` degrees of freedom. `runs` is the
    number of runs it is based on. `span_s` is the longest time that a group of them spans. `inflation` is the
    factor, 1 or more, for correlation between neighbours; `std_dev` already includes it.
    """

    std_dev: float
    dof: int
    runs: int
    span_s: float
    inflation: float = 1.0

    @property
    def known(self) -> bool:
        """Return whether there are enough comparable runs for a verdict."""
        return self.dof >= _FREEDOM


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric of one run: its log value, and the standard error of that value within the run.

    `within` is None if the run does not provide it. `resolution` is the relative half-width of the steps to
    which the metric is rounded: 0.0005 for three significant digits.
    """

    time_s: float
    value: float
    within: float | None = None
    resolution: float = 0.0


@dataclass(frozen=True, slots=True)
class RunDifference:
    """The ratio of a metric of two runs (for shares, of their odds), with its interval and p-values.

    `low` and `high` are None if there is no interval. `differs` is the p-value of no difference. `alike` is
    the p-value of a difference beyond the practical threshold; it is as strict as the interval, so it is
    small only if the interval lies inside the threshold. Both are 1 if nothing may be claimed, and `unknown`
    then gives the reason, without a full stop. `assumed` means that the variation from run to run is assumed,
    not known. `error` is the standard error of the log ratio, with `dof`
    degrees of freedom.
    """

    ratio: float
    low: float | None
    high: float | None
    error: float | None
    differs: float = 1.0
    alike: float = 1.0
    unknown: str = ""
    warnings: tuple[str, ...] = ()
    dof: float = math.inf
    assumed: bool = False

    def p_value(self, ratio: float) -> float:
        """Return the p-value of the true ratio being `ratio`, as strict as the interval; 1 if unknown."""
        if self.unknown or self.error is None:
            return 1.0
        return _tail(abs(math.log(self.ratio) - math.log(ratio)), self.error, self.dof)


def run_to_run(groups: Sequence[Sequence[ComparableRun]]) -> RunToRun | None:
    """Return how much comparable runs differ, pooled within groups; None if no group has two runs.

    Each group must hold runs of one kind. A real change within a group counts as noise, so intervals become
    too wide, never too narrow.
    """
    repeated = [sorted(group, key=lambda run: run.time_s) for group in groups if len(group) > 1]
    if not repeated:
        return None
    squares, dof, inflation = 0.0, 0, 1.0
    for group in repeated:
        values = [run.value for run in group]
        mean = math.fsum(values) / len(values)
        squares += math.fsum((value - mean) ** 2 for value in values)
        dof += len(values) - 1
        if len(values) >= AUTOCORRELATION_UNITS:
            inflation = max(inflation, float(inflation_of(lag_one(values), len(values))))
    return RunToRun(
        std_dev=inflation * math.sqrt(squares / dof),
        dof=dof,
        runs=sum(map(len, repeated)),
        span_s=max(group[-1].time_s - group[0].time_s for group in repeated),
        inflation=inflation,
    )


def compare_runs(
    before: Measured,
    after: Measured,
    like: RunToRun | None,
    *,
    practical: float,
    confidence: float,
    medians: int = 1,
    calls: int = 0,
) -> RunDifference:
    """Compare one metric of two runs, using comparable runs that do not include these two.

    If `medians` is above 1, `before` is not a run but the median of that many comparable runs. `calls` is the
    smaller number of calls that either value is the mean of; 0 if they are no means of calls.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    difference = after.value - before.value
    rounding = math.hypot(before.resolution, after.resolution) / _FLAT
    unknown = _unknown(before, after, like)
    if calls and (like is None or not like.known) and before.within is not None and after.within is not None:
        few = f"one of the watches has only {count_words(calls, 'call')}; a verdict needs {LEAST_CALLS}"
        error = math.hypot(before.within, after.within, _SIDES * ASSUMED_STD_DEV, rounding)
        unknown = few if calls < LEAST_CALLS else ""
        found = _interval(difference, error, math.inf, confidence, practical, unknown, ())
        return replace(found, alike=1.0, assumed=True)
    if like is None:
        if before.within is None or after.within is None:
            return RunDifference(_ratio(difference), None, None, None, unknown=unknown)
        error = math.hypot(before.within, after.within, rounding)
        return _interval(difference, error, math.inf, confidence, practical, unknown, ())
    sides = _SIDES if medians == 1 else math.sqrt(1.0 + _MEDIAN / medians)
    error = math.hypot(sides * like.std_dev, rounding)
    return _interval(difference, error, like.dof, confidence, practical, unknown, _warnings(like))


def compare_shares(
    before: tuple[int, int],
    after: tuple[int, int],
    like: RunToRun | None,
    times_s: tuple[float, float],
    *,
    practical: float,
    confidence: float,
) -> RunDifference:
    """Compare a share of two runs, given as (count, of), by its odds; `like` describes log odds."""
    odds = [log_odds(*share) for share in (before, after)]
    draws = math.sqrt(sum(_draws(*share) for share in (before, after)))
    first, last = (Measured(time, value) for time, value in zip(times_s, odds, strict=True))
    unknown = _unknown(first, last, like)
    dof = math.inf if like is None else like.dof
    spread = 0.0 if like is None else _SIDES * like.std_dev
    # Use the wider one: the error of draws with normal tails, or of runs with Student's t.
    scale = _reach(math.inf, confidence) / _reach(dof, confidence)
    error = max(spread, draws * scale)
    warnings = () if like is None else _warnings(like)
    return _interval(odds[1] - odds[0], error, dof, confidence, practical, unknown, warnings)


def compare_effects(
    before: tuple[float, int, float],
    after: tuple[float, int, float],
    *,
    practical: float,
    confidence: float,
    minimum_rounds: int,
) -> RunDifference:
    """Compare effects that were each measured side by side, given as (log ratio, rounds, standard deviation).

    Each effect's confidence sequence holds at half the error rate, so their sum holds for the difference. The
    p-value is the smallest error rate at which the interval excludes "no difference".
    """
    difference = after[0] - before[0]
    if min(before[1], after[1]) < minimum_rounds:
        fewest = min(before[1], after[1])
        unknown = f"one of the runs has only {count_words(fewest, 'round')}; a verdict needs {minimum_rounds}"
    else:
        unknown = ""

    def half(alpha: float) -> float:
        return sum(float(radius(count, spread, 1.0 - alpha / 2.0)) for _, count, spread in (before, after))

    def least(distance: float) -> float:
        low, high = 1e-12, 1.0 - 1e-9
        if distance <= half(high) or unknown:
            return 1.0
        while high / low > 1.0001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if half(middle) < distance else (middle, high)
        return high

    width = half(1.0 - confidence)
    bounded = math.isfinite(width)
    return RunDifference(
        ratio=_ratio(difference),
        low=_ratio(difference - width) if bounded else None,
        high=_ratio(difference + width) if bounded else None,
        error=None,
        differs=least(abs(difference)),
        alike=least(math.log1p(practical) - abs(difference)),
        unknown=unknown,
    )


def benjamini_hochberg(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Return for each p-value whether it is kept, at a false discovery rate of at most `alpha`.

    Raises:
        ValueError: A p-value is not between 0 and 1, or `alpha` is not.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise ValueError("p-values must lie between 0 and 1")
    bar, many = -1.0, len(p_values)
    for place, p in enumerate(sorted(p_values), start=1):
        if p <= place * alpha / many:
            bar = p
    return [p <= bar for p in p_values]


def claims(differences: Sequence[RunDifference], *, confidence: float) -> list[Claim]:
    """Return what may be claimed about each difference, corrected for their number; empty means no claim.

    If both claims hold, the result is "differs": the difference exists but is below the practical threshold.
    """
    differ = benjamini_hochberg([difference.differs for difference in differences], 1.0 - confidence)
    alike = benjamini_hochberg([difference.alike for difference in differences], 1.0 - confidence)
    return [
        "differs" if differs else "alike" if same else "" for differs, same in zip(differ, alike, strict=True)
    ]


def log_odds(count: int, of: int) -> float:
    """Return the log odds of a share, with half a case added on either side.

    Raises:
        ValueError: the count is below zero, or above the whole.
    """
    if not 0 <= count <= of:
        raise ValueError(f"a share needs a count between 0 and its whole, not {count} of {of}")
    return math.log((count + 0.5) / (of - count + 0.5))


# ---- steps ----


def _interval(
    difference: float,
    error: float,
    dof: float,
    confidence: float,
    practical: float,
    unknown: str,
    warnings: tuple[str, ...],
) -> RunDifference:
    half = _reach(dof, confidence) * error
    tail = _tail(abs(difference), error, dof)
    room = math.log1p(practical) - abs(difference)
    return RunDifference(
        ratio=_ratio(difference),
        low=_ratio(difference - half),
        high=_ratio(difference + half),
        error=error,
        differs=1.0 if unknown else tail,
        alike=1.0 if unknown or room <= 0.0 else _tail(room, error, dof),
        unknown=unknown,
        warnings=warnings,
        dof=dof,
    )


def _tail(distance: float, error: float, dof: float) -> float:
    if error <= _LEAST:
        return 1.0 if distance <= _LEAST else 0.0
    return min(1.0, TAILS * student_tail(distance / error, _finite(dof)))


def _reach(dof: float, confidence: float) -> float:
    return student_quantile(1.0 - (1.0 - confidence) / (2.0 * TAILS), _finite(dof))


def _finite(dof: float) -> float:
    return min(dof, 1e6)  # as good as normal


def _draws(count: int, of: int) -> float:
    return 1.0 / (count + 0.5) + 1.0 / (of - count + 0.5)


def _unknown(before: Measured, after: Measured, like: RunToRun | None) -> str:
    """Return why nothing may be claimed; empty if something may."""
    if like is None or not like.known:
        found = "no other is" if like is None else f"only {like.runs} {'is' if like.runs == 1 else 'are'}"
        return (
            f"too few comparable runs to know how much such runs differ: {found} stored, "
            f"and a verdict needs {KNOWN_RUNS} of one kind"
        )
    apart = abs(after.time_s - before.time_s)
    if apart > STRETCH * like.span_s:
        return (
            f"these two runs are {_time(apart)} apart, but comparable runs span only {_time(like.span_s)}, "
            "so what changes over a longer time is unknown"
        )
    return ""


def _warnings(like: RunToRun) -> tuple[str, ...]:
    if like.std_dev <= _LEAST:
        return (f"all {like.runs} comparable runs gave the same value",)
    if like.inflation > 1.0:
        return (
            "consecutive comparable runs are correlated; the interval was inflated by a factor of "
            f"{like.inflation:.2f}, which may not be enough",
        )
    return ()


def _time(seconds: float) -> str:
    for unit, length in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= 0.95 * length:
            many = seconds / length
            text = f"{many:.0f}" if many >= 10 else f"{many:.2g}"
            return f"{text} {unit}{'' if text == '1' else 's'}"
    return f"{seconds:.0f} s"


def _ratio(log_ratio: float) -> float:
    return math.exp(min(max(log_ratio, -700.0), 700.0))


def interval_reason(found: RunDifference, verdict: RunVerdict) -> str:
    """Return why a metric has its verdict: lower case, without a full stop."""
    if found.unknown:
        return found.unknown
    if verdict is RunVerdict.NO_PRACTICAL_DIFFERENCE:
        return "the interval lies within the practical threshold"
    if verdict is not RunVerdict.NOT_ENOUGH_EVIDENCE:
        return "the interval excludes no difference"
    if found.low is None or found.high is None:
        return "no finite interval yet"
    if found.low <= 1.0 <= found.high:
        return "the interval includes no difference"
    return "the interval excludes no difference, but not clearly enough among so many metrics"
