"""From the trials of an experiment to units: the independent numbers that effects are computed from.

A unit is one log ratio. Where the server restarts between rounds, the unit is the round: a server process
can be slow for its whole life by its memory layout alone, and then spoils one unit instead of all. Where no
restart is possible, the unit is the block, and the units say what they cannot see.

Within a block the variant stands against the *geometric* mean of the baseline's two trials::

    log(variant) - (log(baseline) + log(again)) / 2

so that a variant equal to the baseline has expectation exactly zero whatever the noise's shape. Against the
arithmetic mean it would not: by Jensen's inequality log of a mean is at least the mean of logs, so the
baseline would look larger and every variant's latency better than it is (by about a quarter of the variance
of a trial's log: 0.06 % at 5 % noise, 1 % at 20 %).

Over a round's blocks the ratios are combined by their median, because what disturbs a machine for a tenth
of a second doubles whole trials: on a shared virtual machine, units of 8 blocks scattered half as much as
by their mean. The median of skewed noise is not centred by itself; but the difference of two trials of equal
arms is symmetric whatever their noise, so each block's variant is set against *one* of the baseline's trials,
in turn, the other turn likewise, and the two medians are averaged::

    ( median(v1 - a1, v2 - b2, v3 - a3, ...) + median(v1 - b1, v2 - a2, v3 - b3, ...) ) / 2

That is exactly centred for a variant equal to the baseline, and for one or two blocks it is the mean above.

Counts obey: complete_blocks + dropped_blocks = the blocks in which any of the comparison's arms was seen.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Observation", "UnitKind", "Units", "block_units", "noise_units", "round_units"]

UnitKind = Literal["round", "block"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One trial's value of a metric: finite and above zero, in any unit that all its block shares."""

    round: int
    block: int
    arm: str
    value: float


@dataclass(frozen=True, slots=True)
class Units:
    """The log ratios of one comparison, in the order of their rounds (or blocks).

    `labels` holds each unit's (round, block); the block is 0 where the unit is a round.
    """

    values: tuple[float, ...]
    kind: UnitKind = "round"
    labels: tuple[tuple[int, int], ...] = ()
    complete_blocks: int = 0
    dropped_blocks: int = 0

    def __len__(self) -> int:
        return len(self.values)


def round_units(observations: Iterable[Observation], *, baseline: str, again: str, variant: str) -> Units:
    """Return one unit a round: the median over its complete blocks of the log ratio (see the module).

    A block is complete when it holds the baseline, the baseline again and the variant. Incomplete blocks are
    dropped and counted, a round without a complete block gives no unit. Arms other than these three are
    passed over, so all observations of a cell and workload can be given as they are.

    Raises:
        ValueError: A value is not finite or not above zero, or an arm stands twice in a block.
    """
    return _by_round(_ratios(observations, above=variant, below=(baseline, again)))


def block_units(observations: Iterable[Observation], *, baseline: str, again: str, variant: str) -> Units:
    """Return one unit a block, for servers that cannot be restarted. Otherwise like `round_units`."""
    return _by_block(_ratios(observations, above=variant, below=(baseline, again)))


def noise_units(
    observations: Iterable[Observation], *, baseline: str, again: str, kind: UnitKind = "round"
) -> Units:
    """Return the A/A units: log(again) - log(baseline). Their true mean is zero.

    They scatter a little more than a variant's units (two trials against each other, not one against the
    mean of two: by the square root of 4/3 where trials are independent), so a noise floor made of them is
    slightly too high, never too low.
    """
    ratios = _ratios(observations, above=again, below=(baseline,))
    return _by_round(ratios) if kind == "round" else _by_block(ratios)


@dataclass(frozen=True, slots=True)
class _Ratios:
    """For each complete block its log ratio to each of the arms below, in their order."""

    by_block: dict[tuple[int, int], tuple[float, ...]]
    dropped: int


def _ratios(observations: Iterable[Observation], *, above: str, below: Sequence[str]) -> _Ratios:
    arms = {above, *below}
    if len(arms) != 1 + len(below):
        raise ValueError(f"arms of a comparison must differ: {[above, *below]}")
    blocks: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for seen in observations:
        if seen.arm not in arms:
            continue
        if not (math.isfinite(seen.value) and seen.value > 0):
            raise ValueError(
                f"round {seen.round}, block {seen.block}, arm {seen.arm}: "
                f"a metric must be finite and above zero, not {seen.value}"
            )
        block = blocks[seen.round, seen.block]
        if seen.arm in block:
            raise ValueError(f"round {seen.round}, block {seen.block}: arm {seen.arm} stands there twice")
        block[seen.arm] = math.log(seen.value)
    by_block = {
        place: tuple(logs[above] - logs[arm] for arm in below)
        for place, logs in sorted(blocks.items())
        if arms <= logs.keys()
    }
    return _Ratios(by_block, len(blocks) - len(by_block))


def _by_round(ratios: _Ratios) -> Units:
    rounds: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for (number, _block), ratio in ratios.by_block.items():
        rounds[number].append(ratio)
    return Units(
        values=tuple(_combined(blocks) for blocks in rounds.values()),
        kind="round",
        labels=tuple((number, 0) for number in rounds),
        complete_blocks=len(ratios.by_block),
        dropped_blocks=ratios.dropped,
    )


def _combined(blocks: Sequence[tuple[float, ...]]) -> float:
    """Average, over the turns of the arms below, the median over blocks."""
    turns = len(blocks[0])
    medians = (
        statistics.median(block[(place + turn) % turns] for place, block in enumerate(blocks))
        for turn in range(turns)
    )
    return math.fsum(medians) / turns


def _by_block(ratios: _Ratios) -> Units:
    return Units(
        values=tuple(math.fsum(block) / len(block) for block in ratios.by_block.values()),
        kind="block",
        labels=tuple(ratios.by_block),
        complete_blocks=len(ratios.by_block),
        dropped_blocks=ratios.dropped,
    )
