"""Find a trend in the rounds of an experiment: a machine that warms up, data that grow. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from uncork.stats.steady import Steadiness, find_steady_part

Rounds = Sequence[tuple[int, float | None]]
"""A metric by round, in order."""


def rounds_warning(arms: Iterable[tuple[Rounds, bool]]) -> str | None:
    """Return a warning if the baseline was not steady over the rounds; None if it was, or if it is unknown.

    `arms` are the baseline's arms in all cells and workloads, each with whether larger values are better.
    They are judged together, as the mean change of a round from each arm's own mean, so that one run has one
    test. Arms that miss a round do not count.
    """
    series = [
        [-math.log(value) if inverse else math.log(value) for _, value in arm if value]
        for arm, inverse in arms
        if all(value for _, value in arm)
    ]
    length = max((len(one) for one in series), default=0)
    whole = [[value - fmean(one) for value in one] for one in series if len(one) == length]
    means = [fmean(values) for values in zip(*whole, strict=True)]
    found = find_steady_part(means)
    return None if found.verdict in ("steady", "unknown") else _words(found, means)


def _words(found: Steadiness, means: Sequence[float]) -> str:
    rounds = len(means)
    if found.start is None:
        opening = f"the baseline kept changing over the {rounds} rounds"
    else:
        change = math.expm1(fmean(means[: found.start]) - fmean(means[found.start :])) * 100.0
        many = "round" if found.start == 1 else f"{found.start} rounds"
        word = "worse" if change > 0 else "better"
        size = f"{abs(change):.2g} % {word} than later"
        opening = f"in the first {many} of {rounds}, the baseline's metric was {size}"
    return (
        f"{opening}: the machine or the data were not steady. Effects compare within blocks, where this "
        "cancels if it affects all variants alike; the values themselves include it. Raise "
        "warmup_operations, or let the machine do the same work before the experiment"
    )
