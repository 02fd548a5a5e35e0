"""Whether short slices measure the same effect as long ones.

Arms that take turns quickly may disturb each other: each finds the processor's and the server's caches as
another has left them. What a switch costs weighs less the longer the slices are. So some rounds have long
slices, and each of them is set against the rounds of short slices just before it: the ratio of the two
effects is 1 where the length of a slice does not matter.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import Effect
from uncork.stats.sample import Units

__all__ = ["is_disturbed", "short_to_long"]


def short_to_long(units: Units, long_rounds: Collection[int]) -> Units:
    """Return one log ratio for each round of long slices.

    It is the mean effect in the rounds of short slices since the last such round, less the effect in this
    one. A round of long slices right after another gives none.

    Args:
        units: the effect of each round, in their order, see `stats.sample.round_units`.
        long_rounds: which rounds had long slices.
    """
    values, labels, short = [], [], []
    for label, value in zip(units.labels, units.values, strict=True):
        if label[0] not in long_rounds:
            short.append(value)
        elif short:
            values.append(statistics.fmean(short) - value)
            labels.append(label)
            short = []
    return Units(tuple(values), "round", tuple(labels))


def is_disturbed(ratio: Effect | None, practical: float, needed: float) -> bool:
    """Say whether short slices measure another effect than long ones.

    True where the e-value against a ratio of 1 is at least `needed`, and the estimated ratio lies beyond the
    practical threshold: a smaller disturbance changes no verdict by itself. Never with fewer than
    `MINIMUM_ROUNDS` rounds of long slices.
    """
    if ratio is None or ratio.rounds < MINIMUM_ROUNDS:
        return False
    return ratio.e_value >= needed and abs(math.log(ratio.ratio)) > math.log1p(practical)
