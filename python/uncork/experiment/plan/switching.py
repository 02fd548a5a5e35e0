"""When observers are on and when off, within one load, and what was done in each slice of it. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PATTERNS", "done_between", "turns"]

PATTERNS = ((True, False, False, True), (False, True, True, False))
"""The two orders of a quadruple: on off off on, and the other way round."""


def turns(observers: Sequence[str], seed: int) -> Iterator[list[frozenset[str]]]:
    """Yield quadruples without end: who is on in each of four slices, each observer by a lot of its own."""
    lot = random.Random(seed)
    while True:
        orders = {name: PATTERNS[lot.randrange(2)] for name in observers}
        yield [frozenset(name for name, order in orders.items() if order[place]) for place in range(4)]


def done_between(begun: ArrayLike, ended: ArrayLike, counts: ArrayLike, length: float) -> NDArray[np.float64]:
    """Return how many operations ended between times, from a series of counts.

    `counts` holds one number for each interval of `length` from time 0 on; within an interval operations are
    taken to end evenly. Times outside of the series give what is not a number.
    """
    edges = np.arange(np.size(counts) + 1) * length
    total = np.concatenate(([0.0], np.cumsum(np.asarray(counts, dtype=np.float64))))
    first, last = (
        np.interp(np.asarray(time, dtype=np.float64), edges, total, left=np.nan, right=np.nan)
        for time in (begun, ended)
    )
    return np.asarray(last - first, dtype=np.float64)
