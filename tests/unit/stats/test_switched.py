"""Estimates of what an observer costs that was switched within one load."""

import math

import numpy as np
import pytest

from uncork.experiment.plan.switching import PATTERNS
from uncork.stats.ab_switching import LEAST_UNITS, UNIT, adjusted_estimate, disagree, plain_estimate

FEWEST = UNIT * LEAST_UNITS
ON = np.array([PATTERNS[place % 2] for place in range(FEWEST)])
NONE = np.zeros((FEWEST, 4, 0))


@pytest.fixture
def noise():
    return np.random.default_rng(7)


def test_a_cost_without_noise_is_found_exactly():
    logs = 5.0 + math.log(0.97) * ON
    for found in (plain_estimate(np.exp(logs), ON), adjusted_estimate(logs, ON, NONE)):
        assert found.interval(0.95) == pytest.approx((0.97, 0.97, 0.97))
        assert found.units == LEAST_UNITS


def test_an_even_drift_cancels():
    logs = math.log(0.99) * ON + 0.1 * np.arange(ON.size).reshape(ON.shape)
    assert adjusted_estimate(logs, ON, NONE).mean == pytest.approx(math.log(0.99))


def test_what_others_take_is_taken_out(noise):
    others = noise.uniform(0, 1, ON.shape)
    logs = math.log(0.99) * ON - 2.0 * others + noise.normal(0, 0.001, ON.shape)
    free = adjusted_estimate(logs, ON, NONE)
    freed = adjusted_estimate(logs, ON, np.stack([others, np.zeros(ON.shape)], axis=-1))
    assert freed.error < free.error / 50
    assert freed.mean == pytest.approx(math.log(0.99), abs=0.001)


def test_a_few_spoiled_slices_weigh_little(noise):
    logs = math.log(0.99) * ON + noise.normal(0, 0.01, ON.shape)
    clean = adjusted_estimate(logs, ON, NONE)
    logs[5, 1] -= 3.0
    spoiled = adjusted_estimate(logs, ON, NONE)
    assert abs(spoiled.mean - clean.mean) < 0.004
    assert abs(math.log(plain_estimate(np.exp(logs), ON).interval(0.95)[0]) - clean.mean) > 0.01


def test_units_that_resemble_each_other_widen_the_error(noise):
    slow = np.repeat(noise.normal(0, 0.02, 4), FEWEST // 4)[:, None]
    found = adjusted_estimate(slow * ON + noise.normal(0, 0.001, ON.shape), ON, NONE)
    assert found.inflation > 1


def test_a_cost_that_falls_on_few_slices_sets_the_estimates_apart(noise):
    on = np.tile(ON, (4, 1))
    logs = noise.normal(0, 0.01, on.shape)
    even = logs + math.log(0.95) * on
    none = np.zeros((*on.shape, 0))
    assert not disagree(plain_estimate(np.exp(even), on), adjusted_estimate(even, on, none))
    seldom = logs + math.log(0.5) * (on & (noise.random(on.shape) < 0.1))
    assert disagree(plain_estimate(np.exp(seldom), on), adjusted_estimate(seldom, on, none))


def test_with_too_few_quadruples_there_is_no_estimate():
    few = ON[: FEWEST - 1]
    assert plain_estimate(np.ones(few.shape), few) is None
    assert adjusted_estimate(np.zeros(few.shape), few, NONE[: FEWEST - 1]) is None


def test_where_nothing_was_done_there_is_no_plain_estimate():
    assert plain_estimate(np.zeros(ON.shape), ON) is None
