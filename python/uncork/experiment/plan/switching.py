"""Schedule observers on and off within one load, and count the operations of each slice. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

PATTERNS = ((True, False, False, True), (False, True, True, False))
"""The two orders of a quadruple: on-off-off-on and its opposite."""


def turns(observers: Sequence[str], seed: int) -> Iterator[list[frozenset[str]]]:
    """Yield quadruples endlessly: the observers that are on in each of four slices, chosen at random."""
    lot = random.Random(seed)
    while True:
        orders = {name: PATTERNS[lot.randrange(2)] for name in observers}
        yield [frozenset(name for name, order in orders.items() if order[place]) for place in range(4)]


def done_between(begun: ArrayLike, ended: ArrayLike, counts: ArrayLike, length: float) -> NDArray[np.float64]:
    """Return how many operations ended between two times, from a series of counts.

    `counts` holds one number for each interval of `length`, starting at time 0. Operations are assumed to end
    evenly within an interval. Times outside the series give NaN.
    """
    edges = np.arange(np.size(counts) + 1) * length
    total = np.concatenate(([0.0], np.cumsum(np.asarray(counts, dtype=np.float64))))
    first, last = (
        np.interp(np.asarray(time, dtype=np.float64), edges, total, left=np.nan, right=np.nan)
        for time in (begun, ended)
    )
    return np.asarray(last - first, dtype=np.float64)
