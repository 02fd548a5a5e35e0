"""Compute the noise floor: how far the baseline differs from itself when it runs twice in every block."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from uncork.model.units import count_words
from uncork.stats.effect import Effect, estimate
from uncork.stats.sample import Units

LEAST_ROUNDS = 3
"""With fewer rounds the noise floor is unknown."""

FEW_ROUNDS = 5
WILD = 1.0
"""With fewer than `FEW_ROUNDS` rounds, a floor of a factor of two or more only means that there are too few:
one outlier causes it, and Student's t with two degrees of freedom more than doubles it."""

NORMAL_975 = 1.959964
"""The normal distribution's 0.975 quantile."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The differences between the A/A arms of an experiment.

    `floor` is the relative difference (0.012 is 1.2 %) below which the estimate of a thing against itself
    stays in 95 of 100 such comparisons. It is ``exp(|pooled effect| + t · std_dev / √rounds) - 1``, with the
    pooled standard deviation, the median number of rounds and Student's t for a two-sided 95 %. It is
    infinite, meaning unknown, with too few rounds. It is a yardstick for estimates; the intervals are valid
    without it. `worst` is how far from 1 the farthest A/A interval reaches. It was rejected as the floor
    because it grows with the number of cells, and with few rounds it is wide for lack of evidence, not
    because of noise.

    `ratio` is the pooled geometric effect (1 means none). `std_dev` is the pooled standard deviation of the
    log units within comparisons, or NaN if no comparison has two units. `false_alarms` counts comparisons
    whose uncorrected interval excludes 1: expect at most ``(1 - confidence) · len(effects)``.
    """

    floor: float
    worst: float
    ratio: float
    std_dev: float
    rounds: int
    confidence: float
    false_alarms: int
    effects: tuple[Effect, ...]
    sentence: str


def noise_floor(comparisons: Sequence[Units], confidence: float) -> NoiseFloor:
    """Return the noise floor from the A/A units (`sample.noise_units`) of every cell and workload.

    Raises:
        ValueError: There is no comparison, or one has no units.
    """
    if not comparisons:
        raise ValueError("a noise floor needs at least one A/A comparison")
    effects = tuple(estimate(units, confidence) for units in comparisons)
    total = sum(effect.rounds for effect in effects)
    pooled = math.fsum(value for units in comparisons for value in units.values) / total
    dof = total - len(effects)
    squares = math.fsum(effect.std_dev**2 * (effect.rounds - 1) for effect in effects if effect.rounds > 1)
    std_dev = math.sqrt(squares / dof) if dof else math.nan
    rounds = statistics.median_low(effect.rounds for effect in effects)
    reach = _student(dof) * std_dev / math.sqrt(rounds) if rounds >= LEAST_ROUNDS else math.inf
    floor = _relative(abs(pooled) + reach)
    if rounds < FEW_ROUNDS and floor >= WILD:
        floor = math.inf
    worst = max(max(effect.high, 1.0 / effect.low if effect.low else math.inf) for effect in effects) - 1.0
    return NoiseFloor(
        floor=floor,
        worst=worst,
        ratio=math.exp(pooled),
        std_dev=std_dev,
        rounds=rounds,
        confidence=confidence,
        false_alarms=sum(effect.excludes_none for effect in effects),
        effects=effects,
        sentence=_sentence(floor, rounds, comparisons[0].kind),
    )


def _student(dof: int) -> float:
    """Return Student's 0.975 quantile by Cornish-Fisher expansion (within 2 % from 4 degrees of freedom)."""
    z = NORMAL_975
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / dof + second / dof**2 + third / dof**3


def _relative(log_difference: float) -> float:
    return math.expm1(min(log_difference, 700.0)) if math.isfinite(log_difference) else math.inf


def _sentence(floor: float, rounds: int, kind: str) -> str:
    if math.isinf(floor):
        return f"the noise floor is unknown after {count_words(rounds, kind)}"
    if floor >= WILD:
        return f"the baseline against itself stays within a factor of {1 + floor:.2g} (95 of 100 comparisons)"
    share = f"{floor * 100:.0f}" if floor >= 0.095 else f"{floor * 100:.2g}"
    return f"the baseline against itself stays within ±{share} % (95 of 100 comparisons)"
