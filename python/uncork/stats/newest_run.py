"""Judge the newest run of a series: is its metric worse than in the runs just before it? Pure.

The N runs before the newest are the *window*. The new value is compared with their median as in
`stats.gates.history`: the interval follows from how much these runs differ from one to the next, so at least
`KNOWN_RUNS` of them are needed. The window is chosen before its values are seen, and nothing is searched for.
The stated error rate therefore holds for one look at one metric. A change of level within the window counts
as variation: it makes the interval wider, never narrower.

With 1 as no difference, turned so that larger is worse:

- *broken*: the interval lies above 1.
- *kept*: the interval's bad end is at most what matters in practice above 1.
- *not decided*: neither, or there is no interval.

Shares are compared by their odds, and what matters in practice is a difference of shares. Metrics without
noise are compared with the run just before. Effects, which were measured side by side within each run, are
compared with the one in the middle, by their own intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.guard import GateOutcome
from uncork.model.units import count_words
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.gates.history import Past, beside_past, share_beside_past
from uncork.stats.run_comparison import KNOWN_RUNS, ComparableRun, RunDifference, compare_effects, log_odds

POINTS: Final = 0.01
"""The difference of shares that matters in practice."""

Timed = tuple[float, Figure]
"""When a run was made, in seconds since 1970, and its metric."""


@dataclass(frozen=True, slots=True)
class NewestJudgement:
    """The newest run beside its window.

    `before` is the window's value in the metric's base unit: the median; for a share that of all operations;
    without noise the value of the run just before. `ratio`, `low` and `high` are the change and its interval
    (for shares of odds), None if there is none. `reason` is a clause.
    """

    outcome: GateOutcome
    before: float | None
    ratio: float | None
    low: float | None
    high: float | None
    reason: str
    warnings: tuple[str, ...] = ()


def judge_newest(
    new: Timed, window: Sequence[Timed], *, confidence: float, practical: float
) -> NewestJudgement:
    """Judge a run against the runs just before it, oldest first; undecided if there are none.

    Raises:
        ValueError: if neither direction of the metric is better, or `confidence` is not between 0 and 1.
    """
    figure, known = new[1], [figure for _, figure in window]
    if not figure.better:
        raise ValueError(f'neither direction of "{figure.name}" is better')
    if not known:
        return NewestJudgement(GateOutcome.UNDECIDED, None, None, None, None, _few(0))
    if figure.scale == "exact":
        return _exact(figure, known[-1])
    if figure.scale == "effect":
        return _effect(figure, known, confidence, practical)
    if figure.scale == "share":
        return _share(new, window, confidence)
    if min(figure.value, *(figure.value for figure in known)) <= 0.0:
        return _around_zero(figure, known)
    past = Past(tuple(ComparableRun(time_s, figure.log_value) for time_s, figure in window))
    found = beside_past(
        [ComparableRun(new[0], figure.log_value)],
        past,
        confidence=confidence,
        resolution=max(figure.resolution, known[-1].resolution),
    )
    return _judged(figure, found, math.exp(past.median), math.log1p(practical), len(known))


def _share(new: Timed, window: Sequence[Timed], confidence: float) -> NewestJudgement:
    time_s, figure = new
    known = [figure for _, figure in window]
    count, of = sum(figure.count for figure in known), sum(figure.of for figure in known)
    share = count / of if of else 0.0
    if figure.count == count == 0:
        reason = f"0 of {count_words(figure.of, 'operation')}, as before"
        return NewestJudgement(GateOutcome.KEPT, share, None, None, None, reason)
    past = Past(tuple(ComparableRun(at, log_odds(figure.count, figure.of)) for at, figure in window))
    found = share_beside_past((figure.count, figure.of), time_s, (count, of), past, confidence=confidence)
    slack = _slack((count + 0.5) / (of + 1.0), worse=POINTS if figure.better == "lower" else -POINTS)
    return _judged(figure, found, share, slack, len(known))


def _slack(share: float, worse: float) -> float:
    """Return the distance of log odds between a share and a share that is worse by what matters."""
    end = share + worse
    if not 0.0 < end < 1.0:
        return math.inf
    return abs(math.log(end / (1.0 - end)) - math.log(share / (1.0 - share)))


def _effect(figure: Figure, known: Sequence[Figure], confidence: float, practical: float) -> NewestJudgement:
    middle = sorted(known, key=lambda one: one.value)[(len(known) - 1) // 2]
    found = compare_effects(
        (middle.log_value, middle.rounds, middle.std_dev),
        (figure.log_value, figure.rounds, figure.std_dev),
        practical=practical,
        confidence=confidence,
        minimum_rounds=MINIMUM_ROUNDS,
    )
    return _judged(figure, found, middle.value, math.log1p(practical), KNOWN_RUNS)


def _judged(figure: Figure, found: RunDifference, before: float, slack: float, runs: int) -> NewestJudgement:
    """Judge an interval; `slack` is what matters in practice, as a distance of logarithms."""
    unknown = _few(runs) if runs < KNOWN_RUNS else found.unknown
    if unknown or found.low is None or found.high is None:
        reason = unknown or "there is no finite interval yet"
        return NewestJudgement(GateOutcome.UNDECIDED, before, found.ratio, None, None, reason, found.warnings)
    ends = math.log(found.low), math.log(found.high)
    good, bad = ends if figure.better == "lower" else (-ends[1], -ends[0])
    if good > 0.0:
        outcome, reason = GateOutcome.BROKEN, "the interval excludes no difference"
    elif bad <= slack:
        outcome, reason = GateOutcome.KEPT, "the interval excludes a change for the worse that matters"
    else:
        outcome, reason = (
            GateOutcome.UNDECIDED,
            "the interval includes no difference and a change that matters",
        )
    return NewestJudgement(outcome, before, found.ratio, found.low, found.high, reason, found.warnings)


def _exact(figure: Figure, before: Figure) -> NewestJudgement:
    difference = figure.value - before.value
    worse = difference > 0.0 if figure.better == "lower" else difference < 0.0
    ratio = figure.value / before.value if before.value > 0.0 and figure.value > 0.0 else None
    outcome = GateOutcome.BROKEN if worse else GateOutcome.KEPT
    return NewestJudgement(outcome, before.value, ratio, None, None, "counted, without noise")


def _around_zero(figure: Figure, known: Sequence[Figure]) -> NewestJudgement:
    """Judge values of which some are 0 or less, and have no ratio: only the same value can be judged."""
    middle = sorted(run.value for run in known)[(len(known) - 1) // 2]
    if len(known) >= KNOWN_RUNS and {run.value for run in known} == {figure.value}:
        reason = "the same value as in all runs before it"
        return NewestJudgement(GateOutcome.KEPT, middle, None, None, None, reason)
    reason = "some values are 0 or less, which have no ratio"
    return NewestJudgement(GateOutcome.UNDECIDED, middle, None, None, None, reason)


def _few(runs: int) -> str:
    there = "there is" if runs == 1 else "there are"
    return f"{there} only {count_words(runs, 'comparable run')} before it; {KNOWN_RUNS} are needed"
