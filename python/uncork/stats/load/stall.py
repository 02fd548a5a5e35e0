"""Whether answers of a load stood still because the server waited for an acknowledgement.

A server that leaves Nagle's algorithm on (RFC 896) and sends an answer in two pieces keeps the second back
until the first is acknowledged, and the receiving kernel delays that by 40 ms: each answer takes over 40 ms,
and nobody works. A service that needs 43 ms between the two pieces looks the same from outside. So the core
tries it: of silences in the middle of answers that last 10 ms half are hastened (what has come is
acknowledged at once), in an order by lot, and half left alone.

If the acknowledgement is nothing to the server, which of the silences ended early is a matter of the lot:
Fisher's exact test, which holds however long silences last. Besides, the effect must be large on both sides:
a silence that waits for an acknowledgement always ends with it, and never before. The simulation of
``tests/calibration/test_stalls.py`` shows how often this errs.
"""

from __future__ import annotations

from math import comb
from typing import Final

from uncork.model.load import Stalls

__all__ = ["waits_for_acknowledgements"]

MATTERS: Final = 0.01
"""A smaller part of answers that stood still does not reach the 99 % figure."""

ALPHA: Final = 0.002
"""How unlikely the difference must be by the lot alone. Six of each kind that differ cleanly suffice."""

CLEAR: Final = 0.2
"""The part of hastened silences that may last, and of those left alone that may be short all the same."""


def waits_for_acknowledgements(stalls: Stalls, answers: int) -> bool:
    """Say whether so many of all `answers` stood still for want of an acknowledgement that it matters."""
    if not stalls.kept or not stalls.hastened or stalls.answers < MATTERS * answers:
        return False
    lasting = stalls.hastened - stalls.hastened_short
    if lasting > CLEAR * stalls.hastened or stalls.kept_short > CLEAR * stalls.kept:
        return False
    return _by_lot(stalls) < ALPHA


def _by_lot(stalls: Stalls) -> float:
    """Return how likely the lot alone puts at least so many of the short silences among the hastened ones."""
    short = stalls.kept_short + stalls.hastened_short
    ways = (
        comb(stalls.hastened, many) * comb(stalls.kept, short - many)
        for many in range(stalls.hastened_short, min(short, stalls.hastened) + 1)
    )
    return sum(ways) / comb(stalls.kept + stalls.hastened, short)
