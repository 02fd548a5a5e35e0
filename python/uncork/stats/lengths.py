"""Check whether short slices measure the same effect as long slices.

Arms that take turns quickly may disturb each other: each arm finds the processor's and the server's caches as
another arm left them. The longer the slices, the less a switch matters. So some rounds have long slices, and
each of them is compared with the rounds of short slices just before it. The ratio of the two effects is 1 if
the slice length does not matter.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import Effect
from uncork.stats.sample import Units


def short_to_long(units: Units, long_rounds: Collection[int]) -> Units:
    """Return one log ratio, short over long, for each round of long slices.

    The ratio is the mean effect of the rounds of short slices since the previous round of long slices, minus
    the effect of this round. A round of long slices that directly follows another gives no ratio.

    Args:
        units: the effect of each round, in order; see `stats.sample.round_units`.
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
    """Return whether short slices measure a different effect than long slices.

    True if the e-value against a ratio of 1 is at least `needed` and the estimated ratio lies beyond the
    practical threshold. A smaller disturbance changes no verdict by itself. Always false with fewer than
    `MINIMUM_ROUNDS` rounds of long slices.
    """
    if ratio is None or ratio.rounds < MINIMUM_ROUNDS:
        return False
    return ratio.e_value >= needed and abs(math.log(ratio.ratio)) > math.log1p(practical)
