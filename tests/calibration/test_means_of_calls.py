"""One watch before and one after: means of calls get a false verdict no more often than stated.

The mean time of a statement varies from watch to watch by a factor whose logarithm is normal, and the times
of its calls are lognormal. Nothing differs unless a test says so.
"""

import math

import numpy as np
import pytest

from uncork.stats.run_comparison import ASSUMED_STD_DEV, LEAST_CALLS, Measured, claims, compare_runs

SPREAD = 1.5
"""Standard deviation of the logarithm of a call's time: the slowest of 100 takes 30 times the median."""


def watched(generator, calls, between, factor=1.0):
    """Return a mean of calls as a watch has it: its logarithm, and the standard error of that."""
    mean = factor * math.exp(generator.normal(0.0, between))
    if calls > 1_000:  # the mean of many calls is nearly normal; drawing them all would take long
        relative = math.sqrt((math.exp(SPREAD**2) - 1) / calls)
        return Measured(0.0, math.log(mean * max(0.1, generator.normal(1.0, relative))), relative)
    times = generator.lognormal(-(SPREAD**2) / 2, SPREAD, calls)
    error = float(times.std(ddof=1) / math.sqrt(calls) / times.mean())
    return Measured(0.0, math.log(mean * times.mean()), error)


def called_different(generator, runs, calls, between, factor=1.0):
    many = 0
    for _ in range(runs // 2):
        sides = watched(generator, calls, between), watched(generator, calls, between, factor)
        found = compare_runs(*sides, None, practical=0.03, confidence=0.95, calls=calls)
        many += claims([found], confidence=0.95) == ["differs"]
    return many / (runs // 2)


@pytest.mark.parametrize("calls", [LEAST_CALLS, 500, 20_000])
@pytest.mark.parametrize("between", [0.0, 0.15, ASSUMED_STD_DEV])
def test_without_a_change_there_is_hardly_ever_a_verdict(generator, runs, figure, calls, between):
    share = called_different(generator, runs, calls, between)
    figure(f"one watch before and after, no change, {calls} calls, varying by {between:.0%}", share)
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (runs // 2))


def test_watches_that_vary_more_than_assumed_are_called_different_more_often(generator, runs, figure):
    """The largest variation that was measured, of a statement on an overloaded machine."""
    share = called_different(generator, runs, 20_000, 0.42)
    figure("one watch before and after, no change, 20000 calls, varying by 42%", share)
    assert share <= 0.13


@pytest.mark.parametrize(("factor", "least"), [(0.2, 0.9), (0.1, 0.99), (33e-6 / 82e-3, 1.0)])
def test_large_changes_are_found(generator, runs, figure, factor, least):
    share = called_different(generator, runs, 500, 0.15, factor)
    figure(f"one watch before and after, {1 / factor:.0f} times faster, 500 calls: called different", share)
    assert share >= least
