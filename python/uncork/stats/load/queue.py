"""How many wait where so many serve: the M/M/c queue (Erlang, 1917). Pure."""

from __future__ import annotations

import math

__all__ = ["mean_waiting"]


def mean_waiting(servers: int, use: float) -> float:
    """Return how many wait on average for one of some servers that are in use so much, from 0 to 1.

    Arrivals are independent of each other and times of service exponential: where they vary less, fewer wait.
    With all in use all the time there is no end to it.
    """
    if use >= 1.0:
        return math.inf
    offered, blocked = servers * use, 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    waits = blocked / (1.0 - use * (1.0 - blocked))
    return waits * use / (1.0 - use)
