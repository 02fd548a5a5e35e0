"""When observers are on, and what was done meanwhile."""

from collections import Counter
from itertools import islice, product

import numpy as np
import pytest

from uncork.experiment.plan.switching import PATTERNS, done_between, turns


def test_each_observer_is_switched_by_a_lot_of_its_own():
    seen = list(islice(turns(("system", "sessions"), 3), 400))
    orders = [
        tuple(tuple(name in on for on in quadruple) for name in ("system", "sessions")) for quadruple in seen
    ]
    counts = Counter(orders)
    assert set(counts) == set(product(PATTERNS, PATTERNS))
    assert all(70 < count < 130 for count in counts.values())


def test_the_same_seed_gives_the_same_turns():
    assert list(islice(turns(("a", "b"), 5), 20)) == list(islice(turns(("a", "b"), 5), 20))
    assert list(islice(turns(("a", "b"), 5), 20)) != list(islice(turns(("a", "b"), 6), 20))


def test_a_quadruple_is_on_as_long_as_off_and_its_middle_is_the_same():
    for order in PATTERNS:
        assert sum(order) == 2
        assert sum(place for place, on in enumerate(order) if on) == 3


def test_operations_are_shared_out_evenly_within_an_interval():
    done = done_between([0, 5, 10], [10, 15, 30], [10, 20, 40], 10)
    assert done.tolist() == pytest.approx([10, 5 + 10, 20 + 40])


def test_what_lies_outside_of_the_series_is_not_known():
    done = done_between([-1, 0, 29], [5, 30, 31], [1, 1, 1], 10)
    assert np.isnan(done).tolist() == [True, False, True]
