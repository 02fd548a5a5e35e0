"""Rounds of several hosts become one unit per host."""

import pytest

from uncork.stats.sample import Units, grouped_units


def test_a_host_is_the_mean_of_its_rounds():
    rounds = Units((0.1, 0.3, -0.2), labels=((1, 0), (2, 0), (3, 0)), complete_blocks=6, dropped_blocks=1)
    found = grouped_units(rounds, {1: 1, 2: 1, 3: 2}, "host")
    assert found.values == pytest.approx((0.2, -0.2))
    assert (found.kind, found.labels) == ("host", ((1, 0), (2, 0)))
    assert (found.complete_blocks, found.dropped_blocks) == (6, 1)
