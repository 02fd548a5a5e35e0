"""Detect whether the hypervisor throttled a machine after a period of full use. Pure.

Machines with CPU credits (EC2's T, Azure's B, the shared cores of others) run at full speed until the credits
are spent, then at a fraction of it while the load stays high. A guest cannot see its credits, only steal,
which begins after a period of full use and lasts while the processors are in demand. Steal by a neighbour
comes and goes, whatever the load here. A neighbour that starts and stays cannot be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from uncork.model.system import ModeHistory, Slowdown

_FULL: Final = 0.9
"""Use counts as full from this fraction of the processors on, including stolen time."""
_BEFORE_S: Final = 60
"""How long use must have been full, with hardly any steal, before the slowdown."""
_AFTER_S: Final = 60
"""How long steal must have lasted since, while use was full."""
_CALM: Final = 0.03
"""The highest mean steal in the period before that still counts as hardly any."""
_TAKEN: Final = 0.2
"""The least steal, and its least rise, of a throttled machine; credits give back 5 to 60 % of a processor."""
_STAYS: Final = 0.95
"""The fraction of steps, before and since, that must satisfy the rule; a sampler's steps are uneven."""


def find_slowdown(history: ModeHistory, cpus: int) -> Slowdown | None:
    """Find the start of lasting steal after a period of full use; None if there is none.

    If several moments qualify, return the one with the greatest rise. The error rates of the thresholds are
    measured in `tests/calibration/test_spent_credits.py`.
    """
    steal = [value / cpus for value in history.modes.get("steal", ())]
    if not steal:
        return None
    wanted = [sum(values) / cpus for values in zip(*history.modes.values(), strict=True)]
    full = [value >= _FULL for value in wanted]
    before = max(1, -(-_BEFORE_S // history.step_s))
    after = max(1, -(-_AFTER_S // history.step_s))
    calm = _counts(good and value <= _TAKEN / 2 for good, value in zip(full, steal, strict=True))
    sums, fulls = [0.0, *accumulate(steal)], _counts(full)
    held = _counts(good and value >= _TAKEN for good, value in zip(full, steal, strict=True))
    steals_while_full = [
        0.0,
        *accumulate(value if good else 0.0 for good, value in zip(full, steal, strict=True)),
    ]
    best: tuple[float, int] | None = None
    for place in range(before, len(steal) - after + 1):
        wanted_since = fulls[-1] - fulls[place]
        if wanted_since < after or calm[place] - calm[place - before] < _STAYS * before:
            continue
        was = (sums[place] - sums[place - before]) / before
        now = (steals_while_full[-1] - steals_while_full[place]) / wanted_since
        stays = held[-1] - held[place] >= _STAYS * wanted_since
        if was <= _CALM and stays and now - was >= _TAKEN and (best is None or now - was > best[0]):
            best = (now - was, place)
    if best is None:
        return None
    place = best[1]
    since = place
    while since and calm[since] - calm[since - 1]:
        since -= 1
    wanted_since = fulls[-1] - fulls[place]
    return Slowdown(
        start_s=history.start_s + place * history.step_s,
        full_s=max(before, place - since) * history.step_s,
        before=(sums[place] - sums[min(since, place - before)]) / max(before, place - since),
        after=(steals_while_full[-1] - steals_while_full[place]) / wanted_since,
    )


def _counts(flags: Iterable[bool]) -> list[int]:
    """Return how many flags are set before each position, and before the end."""
    return [0, *accumulate(int(flag) for flag in flags)]
