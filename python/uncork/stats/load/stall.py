"""Detect answers that stalled because the server waited for a TCP acknowledgement.

A server that leaves Nagle's algorithm on (RFC 896) and sends an answer in two pieces holds the second piece
back until the first is acknowledged. The receiving kernel delays the acknowledgement by 40 ms. So each answer
takes over 40 ms while nobody works. A service that needs 43 ms between the two pieces looks the same from
outside. So the core runs an experiment. It watches silences that last 10 ms in the middle of answers, and
picks half of them at random. It hastens these: it acknowledges at once what has arrived. It leaves the other
half alone.

If the acknowledgement does not matter to the server, only chance decides which silences end early. Fisher's
exact test checks that; it is valid however long silences last. In addition, the effect must be large on both
sides: a silence that waits for an acknowledgement always ends with it, and never earlier. The simulation in
``tests/calibration/test_stalls.py`` shows how often this is wrong.
"""

from __future__ import annotations

from math import comb
from typing import Final

from uncork.model.load import Stalls

MATTERS: Final = 0.01
"""If a smaller fraction of answers stalled, the p99 is not affected."""

ALPHA: Final = 0.002
"""How unlikely the difference must be by chance alone. Six clearly different silences of each kind
suffice."""

CLEAR: Final = 0.2
"""The fraction of hastened silences that may last, and of those left alone that may be short."""


def waits_for_acknowledgements(stalls: Stalls, answers: int) -> bool:
    """Return whether enough of all `answers` stalled for lack of an acknowledgement to matter."""
    if not stalls.kept or not stalls.hastened or stalls.answers < MATTERS * answers:
        return False
    lasting = stalls.hastened - stalls.hastened_short
    if lasting > CLEAR * stalls.hastened or stalls.kept_short > CLEAR * stalls.kept:
        return False
    return _by_lot(stalls) < ALPHA


def _by_lot(stalls: Stalls) -> float:
    """Return the probability that chance alone hastens at least as many of the short silences."""
    short = stalls.kept_short + stalls.hastened_short
    ways = (
        comb(stalls.hastened, many) * comb(stalls.kept, short - many)
        for many in range(stalls.hastened_short, min(short, stalls.hastened) + 1)
    )
    return sum(ways) / comb(stalls.kept + stalls.hastened, short)
