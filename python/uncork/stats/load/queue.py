"""Expected queue length for a number of servers: the M/M/c queue (Erlang, 1917). Pure."""

from __future__ import annotations

import math


def mean_waiting(servers: int, use: float) -> float:
    """Return the mean number of waiting customers for `servers` servers with utilisation `use`, from 0 to 1.

    Arrivals are independent and service times exponential; if they vary less, fewer customers wait. At full
    utilisation the queue is infinite.
    """
    if use >= 1.0:
        return math.inf
    offered, blocked = servers * use, 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    waits = blocked / (1.0 - use * (1.0 - blocked))
    return waits * use / (1.0 - use)
