"""How a budget is shared out among rounds, and a round's time among the comparisons in it: pure.

Rounds are as short as their overhead allows. Many short rounds make a narrower interval than few long ones
of the same total time (by 15 % from 8 to 30, see `stats.interval.radius`), they average what varies between
lives of the server, and what is clear is decided early. But each costs a restart, and no verdict rests on
fewer than `minimum_rounds`: until these are over, a round may take no more than its share of what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["OVERHEAD_NS", "round_share", "shares"]

OVERHEAD_NS = 500_000_000
"""What restarting, putting data back and warming take in a round, until the first one has shown it."""

_OVERHEADS = 5
"""A round is at least so many times as long as its overhead: four fifths of it measure."""


def round_share(
    left_ns: int,
    *,
    done: int,
    minimum: int,
    maximum: int,
    overhead_ns: float = OVERHEAD_NS,
    least_ns: float = 0.0,
) -> int:
    """Return how long the next round may take.

    Args:
        left_ns: what is left of the budget.
        done: rounds that are over.
        minimum: rounds that a verdict needs.
        maximum: the most rounds there may be.
        overhead_ns: what a round takes besides measuring.
        least_ns: what a round takes that measures as little as possible.
    """
    needed = max(minimum - done, 1)
    affordable = int(left_ns // max(_OVERHEADS * overhead_ns, least_ns, 1.0))
    return int(left_ns // max(min(affordable, maximum - done), needed))


def shares(time_ns: float, least_ns: Sequence[float]) -> list[float]:
    """Share time out equally, but to everyone at least what it needs.

    Whoever needs more than an equal share gets what it needs; the others share the rest. Where there is not
    enough for all, everyone gets what it needs all the same.
    """
    open_places = set(range(len(least_ns)))
    left, found = time_ns, list(map(float, least_ns))
    while open_places:
        equal = left / len(open_places)
        greedy = {place for place in open_places if least_ns[place] > equal}
        if not greedy:
            for place in open_places:
                found[place] = max(equal, float(least_ns[place]))
            break
        open_places -= greedy
        left -= sum(least_ns[place] for place in greedy)
    return found
