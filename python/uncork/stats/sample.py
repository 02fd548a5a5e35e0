"""Turn the trials of an experiment into units: the independent numbers that effects are computed from.

A unit is one log ratio. If the server restarts between rounds, the unit is the round: a server process can be
slow for its whole life because of its memory layout alone, and then it spoils one unit instead of all. If no
restart is possible, the unit is the block, and a warning says what such units cannot show.

Within a block the variant is compared with the *geometric* mean of the baseline's two trials::

    log(variant) - (log(baseline) + log(again)) / 2

If the variant equals the baseline, the expectation is exactly zero for any shape of noise. With the
arithmetic mean it would not be zero: by Jensen's inequality, the log of a mean is at least the mean of the
logs. The baseline would look larger, and every variant's latency better than it is (by about a quarter of the
variance of a trial's log: 0.06 % at 5 % noise, 1 % at 20 %).

The ratios of a round's blocks are combined by their median, because a disturbance of a tenth of a second
doubles whole trials. On a shared virtual machine, the standard deviation of units of 8 blocks was half of
what it was with their mean. The median of skewed noise is not centred. But the difference of two trials of
equal arms is symmetric for any noise. So each block's variant is compared with *one* of the baseline's
trials, in turn; the same is done with the turns swapped, and the two medians are averaged::

    ( median(v1 - a1, v2 - b2, v3 - a3, ...) + median(v1 - b1, v2 - a2, v3 - b3, ...) ) / 2

This is exactly centred for a variant equal to the baseline. For one or two blocks it is the mean above.

Counts always satisfy: complete_blocks + dropped_blocks = blocks that contain any of the comparison's arms.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

UnitKind = Literal["round", "block", "host", "wave"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One trial's value of a metric: finite and above zero, in any unit that its whole block shares."""

    round: int
    block: int
    arm: str
    value: float


@dataclass(frozen=True, slots=True)
class Units:
    """The log ratios of one comparison, in the order of their rounds (or blocks).

    `labels` holds each unit's (round, block); the block is 0 if the unit is a round. For hosts and
    waves, it holds (number of the host or wave, 0).
    """

    values: tuple[float, ...]
    kind: UnitKind = "round"
    labels: tuple[tuple[int, int], ...] = ()
    complete_blocks: int = 0
    dropped_blocks: int = 0

    def __len__(self) -> int:
        return len(self.values)


def round_units(observations: Iterable[Observation], *, baseline: str, again: str, variant: str) -> Units:
    """Return one unit per round: the median of the log ratio over its complete blocks (see the module).

    A block is complete if it holds the baseline, the baseline again and the variant. Incomplete blocks are
    dropped and counted; a round without a complete block gives no unit. Other arms are ignored, so all
    observations of a cell and workload can be passed unfiltered.

    Raises:
        ValueError: A value is not finite or not above zero, or an arm occurs twice in a block.
    """
    return _by_round(_ratios(observations, above=variant, below=(baseline, again)))


def block_units(observations: Iterable[Observation], *, baseline: str, again: str, variant: str) -> Units:
    """Return one unit per block, for servers that cannot be restarted; otherwise like `round_units`."""
    return _by_block(_ratios(observations, above=variant, below=(baseline, again)))


def grouped_units(units: Units, groups: Mapping[int, int], kind: UnitKind) -> Units:
    """Return one unit per group: the mean of its rounds. `groups` maps each round to its host or its wave.

    A variant may gain more on one kind of machine than on another. Rounds of one host share this difference,
    so they say nothing about other hosts: about those, each host is one observation. Rounds that several
    hosts measure at the same time, a wave, likewise share what is peculiar to that time.
    """
    of_group: dict[int, list[float]] = defaultdict(list)
    for value, (number, _) in zip(units.values, units.labels, strict=True):
        of_group[groups[number]].append(value)
    return Units(
        values=tuple(math.fsum(values) / len(values) for values in of_group.values()),
        kind=kind,
        labels=tuple((group, 0) for group in of_group),
        complete_blocks=units.complete_blocks,
        dropped_blocks=units.dropped_blocks,
    )


def noise_units(
    observations: Iterable[Observation], *, baseline: str, again: str, kind: UnitKind = "round"
) -> Units:
    """Return the A/A units: log(again) - log(baseline). Their true mean is zero.

    Their standard deviation is slightly larger than that of a variant's units: they compare two trials, not
    one trial with the mean of two. The factor is the square root of 4/3 if trials are independent. So a noise
    floor based on them is slightly too high, never too low.
    """
    ratios = _ratios(observations, above=again, below=(baseline,))
    return _by_round(ratios) if kind == "round" else _by_block(ratios)


@dataclass(frozen=True, slots=True)
class _Ratios:
    """For each complete block, its log ratio to each of the `below` arms, in their order."""

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
            raise ValueError(f"round {seen.round}, block {seen.block}: arm {seen.arm} occurs twice")
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
    """Average, over the turns of the baseline's trials, the median over blocks."""
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
