"""The interval of a mean over time: its limits."""

import math

from uncork.stats.sampled_time import mean_over_time


def test_equal_batches_have_no_spread():
    found = mean_over_time([0.5] * 20)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def test_the_interval_ends_at_zero_and_contains_the_mean():
    found = mean_over_time([0.0] * 19 + [4.0])
    assert found.low == 0.0 < found.mean == 0.2 < found.high


def test_neighbours_that_are_alike_widen_the_interval():
    mixed, sorted_ = mean_over_time([0.0, 1.0] * 10), mean_over_time([0.0] * 10 + [1.0] * 10)
    assert mixed.mean == sorted_.mean
    assert sorted_.high - sorted_.low > 3 * (mixed.high - mixed.low)


def test_few_batches_have_no_upper_bound():
    found = mean_over_time([1.0, 2.0])
    assert (found.mean, found.low, found.high) == (1.5, 0.0, math.inf)
    assert mean_over_time([]).mean == 0.0
