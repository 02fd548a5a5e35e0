"""How a budget is shared out among rounds, and a round's time among the comparisons in it: pure.

No verdict rests on fewer than `minimum_rounds` lives of the server, so these come first: until they are over,
a round may take no more than its share of what is left. Then rounds of about `ROUND_NS` follow. More rounds
than some ten narrow an interval only by what varies between lives, and each costs a restart.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ROUND_NS", "round_share", "shares"]

ROUND_NS = 10_000_000_000
"""How long a round takes where the budget holds many of them."""

_USUAL_ROUNDS = 8
"""Into so many rounds a budget is cut that holds fewer of the usual length: the interval of 8 units of equal
total time is 10 % narrower than that of 5, and 4 % wider than that of 12 (`stats.interval.radius`)."""

_OVERHEADS = 4
"""A round is at least so many times as long as what restarting and warming take in it."""


def round_share(
    left_ns: int,
    *,
    done: int,
    minimum: int,
    maximum: int,
    overhead_ns: float = 0.0,
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
    wanted = max(_USUAL_ROUNDS - done, left_ns // ROUND_NS, needed)
    affordable = int(left_ns // max(_OVERHEADS * overhead_ns, least_ns, 1.0))
    rounds = max(min(wanted, affordable, maximum - done), needed)
    return int(left_ns // rounds)


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
