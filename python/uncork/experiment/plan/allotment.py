"""Divide a budget among set-up, rounds and evidence, and a round's time among its comparisons. Pure.

Rounds are as short as their overhead allows. Many short rounds give a narrower interval than few long rounds
of the same total time (by 15 % from 8 to 30 rounds, see `stats.interval.radius`). They also average out
differences between server restarts, and clear effects are decided early. But each round costs a restart, and
a verdict needs `minimum_rounds`: until these are complete, a round may take no more than its share of the
remaining time.
"""

from __future__ import annotations

from collections.abc import Sequence

OVERHEAD_NS = 500_000_000
"""Assumed time per round for restarting, until the second round has measured it."""

_OVERHEADS = 5
"""A round takes at least this many times its overhead, so four fifths of it measure."""


_LEAST_PART = 4
"""If set-up and evidence leave less than one part in this many of the budget, the rounds may overspend it."""

_OVERSPENT_PART = 10
"""A budget is overspent by one part in this many at most, and only for rounds that a verdict needs."""

_REPORT_NS = 2_000_000_000
"""Approximate time for starting uncork and writing the report."""

_REPORT_PART = 10
"""Starting and reporting reserve at most one part in this many of the budget."""


def reserved_ns(budget_ns: int, evidence_ns: int) -> int:
    """Return the part of a budget that follows the rounds: evidence and the report."""
    return evidence_ns + min(_REPORT_NS, budget_ns // _REPORT_PART)


def end_of_rounds(budget_ns: int, *, before_ns: int, after_ns: int) -> int:
    """Return how much of a budget is used when the rounds end.

    `before_ns` is the time of set-up, and `after_ns` is reserved for what follows the rounds. If both leave
    less than a quarter of the budget for the rounds, the run may take a tenth longer than the budget.
    """
    needed_ns = before_ns + budget_ns // _LEAST_PART
    return max(budget_ns - after_ns, min(needed_ns, latest_end(budget_ns, after_ns)))


def latest_end(budget_ns: int, after_ns: int) -> int:
    """Return how much of a budget may be used when the last round ends that a verdict needs."""
    return budget_ns + budget_ns // _OVERSPENT_PART - after_ns


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
        left_ns: remaining budget.
        done: completed rounds.
        minimum: rounds that a verdict needs.
        maximum: maximum number of rounds.
        overhead_ns: time of a round besides measuring.
        least_ns: time of a round that measures as little as possible.
    """
    needed = max(minimum - done, 1)
    affordable = int(left_ns // max(_OVERHEADS * overhead_ns, least_ns, 1.0))
    return int(left_ns // max(min(affordable, maximum - done), needed))


def shares(time_ns: float, least_ns: Sequence[float]) -> list[float]:
    """Divide time equally, but give everyone at least what it needs.

    Whoever needs more than an equal share gets what it needs, and the others share the rest. If the time is
    too short for all, everyone still gets what it needs.
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
