"""Forecast how narrow an interval will be for a given time, and how much time a given width takes. Pure.

The statistical unit is a round: `blocks` blocks of `cycles` cycles each (a cycle holds one slice of every
arm). A log ratio varies between rounds, between the blocks of a round and between the cycles of a block, with
standard deviations σ. The standard deviation of a unit is then::

    sqrt(σ_round² + m(blocks) · (σ_block² + σ_cycle² / cycles) / blocks)

where m is the cost of the median over blocks relative to their mean (`stats.sample` combines blocks by
median). The interval after n rounds is expected to be ``radius(n, 1) · c4(n)`` times as wide, where c4 is the
mean standard deviation of n normal units over the true one. More cycles help less and less, because only more
rounds average out differences between rounds. Each additional round costs a restart.

The components are estimated from stored cycles by the method of moments for nested random effects with
unequal numbers (Henderson's method I, "Estimation of variance and covariance components", Biometrics 9, 1953;
the formulas are in Searle, Casella and McCulloch, "Variance Components", 1992, chapter 5). Alternative not
taken: REML, which is more precise for very unequal numbers but has no closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from uncork.model.units import share_text
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import Effect
from uncork.stats.interval import log_e_value, radius

Part = Literal["rounds", "blocks", "cycles"]

MOST_LONGER: Final = 20
"""Nothing is forecast that needs more than this many times the units so far."""
_SCALES: Final = 400
"""Steps of the integral over the estimated standard deviation."""
_MOST_CHANGE: Final = 100.0
_HALVINGS: Final = 20

_MEDIAN_BLOCKS = (1, 2, 4, 6, 8, 10, 12, 16, 20)
_MEDIAN_COST = (1.0, 1.0, 1.14, 1.20, 1.24, 1.27, 1.29, 1.31, 1.32)
"""Variance of `sample.round_units` over that of the plain mean, under normal noise; 200 000 simulated
rounds."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Time costs in nanoseconds: one cycle, and the overhead of a block and of a round."""

    cycle_ns: float
    block_ns: float
    round_ns: float

    def of_round(self, blocks: int, cycles: int) -> float:
        """Return the time of one round with this many blocks, each with this many cycles."""
        return self.round_ns + blocks * (self.block_ns + cycles * self.cycle_ns)


@dataclass(frozen=True, slots=True)
class StdDevs:
    """Standard deviations of a log ratio between cycles of a block, blocks of a round, and rounds."""

    cycle: float
    block: float
    round: float

    def of_unit(self, blocks: int, cycles: int) -> float:
        """Return the standard deviation of one round's unit."""
        return math.sqrt(sum(self.variances(blocks, cycles).values()))

    def variances(self, blocks: int, cycles: int) -> dict[Part, float]:
        """Return what each component contributes to the variance of a unit."""
        share = float(np.interp(blocks, _MEDIAN_BLOCKS, _MEDIAN_COST)) / blocks
        return {
            "rounds": self.round**2,
            "blocks": self.block**2 * share,
            "cycles": self.cycle**2 * share / cycles,
        }

    def sentence(self, blocks: int, cycles: int) -> str:
        """Return a sentence naming the component that dominates a unit's variance, and what reduces it."""
        parts = self.variances(blocks, cycles)
        whole = math.fsum(parts.values())
        if whole <= 0.0:
            return "there is no variance: every cycle gave the same ratio"
        name, most = max(parts.items(), key=lambda part: part[1])
        remedy = {
            "rounds": "more rounds narrow the interval; longer rounds do not",
            "blocks": "more blocks or more rounds narrow the interval; longer blocks do not",
            "cycles": "more measuring time narrows the interval, in any round",
        }[name]
        return f"{share_text(most / whole)} of the variance is between {name}: {remedy}"


@dataclass(frozen=True, slots=True)
class Design:
    """A plan: rounds, blocks per round, cycles per block.

    `half_width` is the expected half-width of the interval as a ratio (0.03 is ±3 %). `total_ns` is the time
    that the plan takes.
    """

    rounds: int
    blocks: int
    cycles: int
    half_width: float
    total_ns: float

    @property
    def cycles_a_round(self) -> int:
        """Return the number of cycles per round, over all its blocks."""
        return self.blocks * self.cycles


def expected_half_width(
    std_dev: StdDevs, *, rounds: int, blocks: int, cycles: int, confidence: float
) -> float:
    """Return the expected half-width of the interval, as a ratio; infinite with too few rounds."""
    if rounds < 2:
        return math.inf
    width = _width(rounds, confidence) * std_dev.of_unit(blocks, cycles)
    return math.expm1(min(width, 700.0)) if math.isfinite(width) else math.inf


def detection_power(change: float, rounds: int, std_dev: float, confidence: float) -> float:
    """Return the probability that the interval after `rounds` rounds excludes "no effect" if there is one.

    Args:
        change: the true change as a fraction: 0.2 is 20 % more.
        rounds: the number of units, 3 or more for a finite interval.
        std_dev: the standard deviation of the log units.
        confidence: one minus the error rate of the interval.
    """
    if std_dev <= 0.0:
        return 1.0 if change else 0.0
    width = float(radius(rounds, 1.0, confidence))
    if math.isinf(width):
        return 0.0
    # The mean and the standard deviation s of the units are independent: average over s, which is chi.
    dof = rounds - 1
    scales = np.linspace(0.005, 4.0, _SCALES)
    log_density = (dof - 1) * np.log(scales) - dof * scales**2 / 2.0
    weights = np.exp(log_density - log_density.max())
    effect = abs(math.log1p(change)) / std_dev
    normal, root = NormalDist(), math.sqrt(rounds)
    found = [
        normal.cdf((effect - width * scale) * root) + normal.cdf((-effect - width * scale) * root)
        for scale in scales.tolist()
    ]
    return float((weights * found).sum() / weights.sum())


def detectable_change(power: float, rounds: int, std_dev: float, confidence: float) -> float | None:
    """Return the smallest change that is found with a probability of `power`, as a fraction.

    None if no change up to a factor of `_MOST_CHANGE` is. The arguments are those of `detection_power`.
    """
    low, high = 0.0, math.log(_MOST_CHANGE)
    if detection_power(math.expm1(high), rounds, std_dev, confidence) < power:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if detection_power(math.expm1(middle), rounds, std_dev, confidence) < power:
            low = middle
        else:
            high = middle
    return math.expm1(high)


def rounds_to_decide(effect: Effect, practical: float, comparisons: int) -> int | None:
    """Return how many units in all will probably decide an open comparison; None if more than `MOST_LONGER`.

    The effect and the variation of its units are taken as they are, and the claim has to be as strong as if
    it were the only one of `comparisons`, with at least as many units as a verdict needs. The answer is also
    None with a single unit. How far off it is: docs/concepts/error-rates.md.

    Args:
        effect: the comparison so far.
        practical: the smallest difference that matters, as in `stats.compare.judge`.
        comparisons: how many are judged together.
    """
    if effect.rounds < 2 or not math.isfinite(effect.std_dev):
        return None
    counts = np.arange(max(effect.rounds + 1, MINIMUM_ROUNDS), MOST_LONGER * effect.rounds + 1)
    distance, bar = abs(math.log(effect.ratio)), math.log(comparisons / (1.0 - effect.confidence))
    width = effect.inflation * radius(counts, effect.std_dev, effect.confidence)
    within = max(math.log1p(practical) - distance, 0.0)
    decided = [
        (log_e_value(counts, room / effect.inflation, effect.std_dev) >= bar) & (width <= room)
        for room in (distance, within)
    ]
    enough = np.flatnonzero(decided[0] | decided[1])
    return int(counts[enough[0]]) if enough.size else None


def estimate_scatter(rounds: Sequence[Sequence[Sequence[float]]]) -> StdDevs:
    """Estimate the standard deviations from log ratios, nested as rounds, blocks and cycles.

    Negative variance estimates are returned as 0; see `variance_parts`.

    Raises:
        ValueError: A round or a block is empty, or there are none.
    """
    return StdDevs(*(math.sqrt(max(part, 0.0)) for part in variance_parts(rounds)))


def cautious_scatter(rounds: Sequence[Sequence[Sequence[float]]], usual: StdDevs) -> StdDevs:
    """Estimate the standard deviations for a forecast; a component too small to be seen is not taken as zero.

    The estimates between blocks and between rounds have a standard error even if the true component is zero.
    A smaller estimate is raised to that error, but not above the `usual` value. So a short measurement never
    promises that longer ones become arbitrarily narrow. `rounds`: see `estimate_scatter`.

    Raises:
        ValueError: A round or a block is empty, or there are none.
    """
    cycle, block, around = (max(part, 0.0) for part in variance_parts(rounds))
    blocks = sum(len(sequence) for sequence in rounds)
    mean = cycle * blocks / sum(len(sequence) for several in rounds for sequence in several)
    if blocks > len(rounds):
        hidden = mean * math.sqrt(2.0 / (blocks - len(rounds)))
        block = max(block, min(hidden, usual.block**2))
    if len(rounds) > 1:
        hidden = (block + mean) * len(rounds) / blocks * math.sqrt(2.0 / (len(rounds) - 1))
        around = max(around, min(hidden, usual.round**2))
    return StdDevs(math.sqrt(cycle), math.sqrt(block), math.sqrt(around))


def variance_parts(rounds: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float, float]:
    """Return unbiased estimates of the variances between cycles, blocks and rounds; they may be negative.

    `rounds`: see `estimate_scatter`. Rounds and blocks may differ in size. A component that the data cannot
    show (one round, one block in every round, one cycle in every block) is 0, and its contribution counts in
    another component.

    Raises:
        ValueError: A round or a block is empty, or there are none.
    """
    if not rounds or any(not blocks or any(not len(cycles) for cycles in blocks) for blocks in rounds):
        raise ValueError("every round needs a block, and every block a cycle")
    values = [[np.asarray(cycles, dtype=np.float64) for cycles in blocks] for blocks in rounds]
    counts = [np.array([len(cycles) for cycles in blocks], dtype=np.float64) for blocks in values]
    sizes = np.array([count.sum() for count in counts])
    total, number_of_blocks = sizes.sum(), sum(len(blocks) for blocks in values)
    means = [np.array([cycles.mean() for cycles in blocks]) for blocks in values]
    centres = np.array(
        [(count * mean).sum() / count.sum() for count, mean in zip(counts, means, strict=True)]
    )
    within = sum(float(((cycles - cycles.mean()) ** 2).sum()) for blocks in values for cycles in blocks)
    between_blocks = sum(
        float((count * (mean - centre) ** 2).sum())
        for count, mean, centre in zip(counts, means, centres, strict=True)
    )
    overall = float((sizes * centres).sum() / total)
    between_rounds = float((sizes * (centres - overall) ** 2).sum())
    per_round = sum(float((count**2).sum() / count.sum()) for count in counts)
    per_total = sum(float((count**2).sum()) for count in counts) / total

    dof = (total - number_of_blocks, number_of_blocks - len(values), len(values) - 1)
    cycle = within / dof[0] if dof[0] else 0.0
    block = (between_blocks - dof[1] * cycle) / (total - per_round) if dof[1] else 0.0
    spread = total - float((sizes**2).sum()) / total
    rest = between_rounds - dof[2] * cycle - (per_round - per_total) * block
    around = rest / spread if dof[2] else 0.0
    return float(cycle), float(block), float(around)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Whether a budget fits the rounds that a verdict needs, and what would fit if it does not.

    `least_ns` is the smallest sufficient budget: set-up, then `minimum_rounds` rounds of the fewest blocks
    and cycles. `rounds` is how many whole rounds fit the budget. `pairs` (cells times workloads) and
    `variants` (besides the baseline) are the largest numbers that fit the budget, each with the other
    unchanged; 0 if not even one fits.
    """

    fits: bool
    budget_ns: float
    least_ns: float
    rounds: int
    pairs: int
    variants: int


def feasible(
    *,
    budget_ns: float,
    setup_ns: float,
    round_ns: float,
    block_ns: float,
    slice_ns: float,
    variants: int,
    pairs: int,
    blocks: int,
    minimum_rounds: int,
    cycles: int = 1,
) -> Feasibility:
    """Return whether `minimum_rounds` fit a budget.

    Args:
        budget_ns: the longest that the run may take, including `setup_ns`.
        setup_ns: time before the first round that counts against the budget.
        round_ns: overhead of a round (restart, warm-up).
        block_ns: overhead of a block of one pair.
        slice_ns: one slice of one arm. A cycle holds one slice of each variant and two of the baseline.
        variants: number of variants that are compared with the baseline.
        pairs: cells times workloads; each has its own blocks.
        blocks: fewest blocks of a pair in a round.
        minimum_rounds: a verdict needs at least this many.
        cycles: fewest cycles of a block.
    """

    def round_of(pairs: int, variants: int) -> float:
        return round_ns + pairs * blocks * (block_ns + cycles * (variants + 2) * slice_ns)

    measuring = max(budget_ns - setup_ns, 0.0)
    room = measuring / minimum_rounds
    one = round_of(pairs, variants)

    def most(limit: int, lasts: Sequence[float]) -> int:
        return next((number for number in range(limit, 0, -1) if lasts[number] <= room), 0)

    return Feasibility(
        fits=one <= room,
        budget_ns=budget_ns,
        least_ns=setup_ns + minimum_rounds * one,
        rounds=int(measuring // one) if one > 0.0 else minimum_rounds,
        pairs=most(pairs, [round_of(number, variants) for number in range(pairs + 1)]),
        variants=most(variants, [round_of(pairs, number) for number in range(variants + 1)]),
    )


def _width(rounds: int, confidence: float) -> float:
    """Return the expected half-width (log) of the interval of `rounds` units with standard deviation 1."""
    half = (rounds - 1) / 2.0
    mean = math.sqrt(1.0 / half) * math.exp(math.lgamma(rounds / 2.0) - math.lgamma(half))
    return float(radius(rounds, 1.0, confidence)) * mean
