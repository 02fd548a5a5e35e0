"""Find where a system saturates as its load grows, and up to which load it meets an objective. Pure.

**The knee** is the load beyond which latency grows faster than throughput. With throughput X and mean latency
R, that is where ``d log R = d log X``: where their quotient, the *power* ``X / R``, is greatest (Kleinrock,
"Power and deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979). So
the knee is the level with the most power, and no threshold has to be chosen. Alternatives not taken: Kneedle
(it finds bends in noise, and its answer depends on the range that was swept), and the peak of a fitted law (a
hard limit has none).

Levels are measured in rounds, each level once per round in random order, so that drift affects all equally.
Two levels are compared by their differences within rounds. A level is excluded when another level is proven
to have more power, by a confidence sequence (`uncork.stats.interval`) at ``α / (levels - 1)``. The true best
level remains with probability 1 - α whenever one looks. The knee lies between the neighbours of the remaining
levels. That is the reported interval, and it assumes only that power rises to one peak and falls after it.

**Saturation.** In a closed loop without think time, clients = throughput × latency (Little, "A proof for the
queuing formula L = λW", Operations Research 9, 1961). Once throughput is flat, latency grows in proportion to
the clients: additional clients only wait. A level is saturated when throughput at every higher level is
proven to exceed its own by less than `FLAT`. Levels are tested from the highest down, and the first failure
ends the test. So a level is wrongly called saturated with probability at most α, whenever one looks
(fixed-sequence testing: Maurer, Hothorn and Lehmacher, 1995).

**An objective** (such as p99 below 250 ms) is judged level by level in the same way, on the log of the
measured value over the limit, with one unit per round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from uncork.stats.interval import confidence_sequence

FLAT: Final = 0.1
"""Throughput that grows by less than this ratio is flat."""
_APART: Final = 2.0
"""Throughput must be known up to this multiple of a saturated level."""

Holds = Literal["yes", "no", "open"]
"""Whether a level meets an objective: proven, disproven, or not known yet."""

Rounds = Mapping[float, Mapping[int, float]]
"""For each level, the value that each round measured."""


@dataclass(frozen=True, slots=True)
class Knee:
    """The load with the greatest power.

    `level` is the best measured level. The knee lies above `low` and below `high`, which are measured loads.
    Either is None if no load was measured on that side, so the knee may be anywhere there. `left` are the
    levels that may be the best, and `rounds` is the number of rounds used.
    """

    level: float
    low: float | None
    high: float | None
    left: tuple[float, ...]
    rounds: int
    confidence: float


def find_knee(powers: Rounds, visited: Sequence[float], confidence: float) -> Knee | None:
    """Find the knee from the log of power by level and round; `visited` lists all loads that were measured.

    Return None if no round measured all levels.
    """
    levels = sorted(powers)
    rounds = _shared(powers, levels)
    if not rounds:
        return None
    means = {level: math.fsum(powers[level][number] for number in rounds) / len(rounds) for level in levels}
    best = max(levels, key=lambda level: means[level])
    out = beaten(
        {level: {number: powers[level][number] for number in rounds} for level in levels}, confidence
    )
    left = tuple(level for level in levels if level not in out)
    below = [load for load in visited if load < left[0]]
    above = [load for load in visited if load > left[-1]]
    return Knee(
        level=best,
        low=max(below, default=None),
        high=min(above, default=None),
        left=left,
        rounds=len(rounds),
        confidence=confidence,
    )


@dataclass(frozen=True, slots=True)
class Saturation:
    """The lowest measured load from which on throughput is flat.

    `growth` is an upper bound for the growth of throughput up to `top`, the highest load compared, as a
    ratio: 0.04 is 4 %.
    """

    level: float
    top: float
    growth: float


def find_saturation(throughputs: Rounds, confidence: float) -> Saturation | None:
    """Find where throughput becomes flat, from its log by level and round; None unless that is proven."""
    levels = sorted(throughputs)
    rounds = _shared(throughputs, levels)
    if not rounds:
        return None
    one_sided = 1.0 - 2.0 * (1.0 - confidence)
    found = None
    for level in reversed(levels[:-1]):
        growths = (
            [throughputs[higher][number] - throughputs[level][number] for number in rounds]
            for higher in levels
            if higher > level
        )
        most = max(confidence_sequence(growth, one_sided)[1] for growth in growths)
        if most >= math.log1p(FLAT):
            break
        if levels[-1] >= _APART * level:
            found = Saturation(level, levels[-1], math.expm1(most))
    return found


def beaten(values: Rounds, confidence: float) -> frozenset[float]:
    """Return the levels that some other level is proven to exceed.

    With probability `confidence`, the level with the greatest expectation is not among them, at any look.
    """
    levels = sorted(values)
    if len(levels) < 2:
        return frozenset()
    sure = 1.0 - 2.0 * (1.0 - confidence) / (len(levels) - 1)  # one-sided, so the error rate doubles
    out = set()
    for level in levels:
        for other in levels:
            rounds = sorted(values[level].keys() & values[other].keys())
            if other == level or not rounds:
                continue
            less = [values[other][number] - values[level][number] for number in rounds]
            if math.fsum(less) > 0.0 and confidence_sequence(less, sure)[0] > 0.0:
                out.add(level)
                break
    return frozenset(out)


def judge_limit(values: Sequence[float], limit: float, confidence: float) -> Holds:
    """Return whether a quantity above 0, measured once per round, is below its limit in a typical round."""
    if not values:
        return "open"
    if any(math.isinf(value) for value in values):
        return "no"
    low, high = confidence_sequence([math.log(value / limit) for value in values], confidence)
    return "yes" if high < 0.0 else "no" if low > 0.0 else "open"


def judge_share(parts: Sequence[int], wholes: Sequence[int], limit: float, confidence: float) -> Holds:
    """Return whether the failure rate is below its limit, from the counts of each round.

    The counts are added up, and the limit must lie outside Wilson's interval for them. Because failures come
    in bursts, the rounds must also agree: all must be on the same side of the limit.
    """
    part, whole = sum(parts), sum(wholes)
    if not whole:
        return "open"
    low, high = wilson(part, whole, confidence)
    shares = [part / many for part, many in zip(parts, wholes, strict=True) if many]
    if high < limit and all(share < limit for share in shares):
        return "yes"
    return "no" if low > limit and all(share > limit for share in shares) else "open"


def wilson(part: int, whole: int, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a proportion ("Probable inference", JASA 22, 1927)."""
    z = _normal_quantile(0.5 + confidence / 2.0)
    share, square = part / whole, z * z / whole
    middle = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(share * (1.0 - share) * square + square * square / 4.0) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist  # noqa: PLC0415 -- standard library, loaded only when needed

    return NormalDist().inv_cdf(probability)


def _shared(values: Rounds, levels: Sequence[float]) -> list[int]:
    """Return the rounds in which every level was measured."""
    if not levels:
        return []
    shared = set(values[levels[0]])
    for level in levels[1:]:
        shared &= set(values[level])
    return sorted(shared)
