"""How often the newest run of a series is judged wrongly, and how often a real change is found."""

import numpy as np
import pytest

from uncork.model.results.figure import Figure
from uncork.model.results.guard import GateOutcome
from uncork.stats.newest_run import judge_newest

TRIES = 2_000


def outcomes(window, change, noise):
    draw = np.random.default_rng(window)
    found = []
    for _ in range(TRIES):
        logs = noise(draw, window + 1)
        logs[-1] += np.log(change)
        timed = [
            (86_400.0 * day, Figure("", "mean", float(np.exp(log)), "ns", "lower"))
            for day, log in enumerate(logs)
        ]
        found.append(judge_newest(timed[-1], timed[:-1], confidence=0.95, practical=0.03).outcome)
    return {one: found.count(one) / TRIES for one in GateOutcome}


def normal(draw, count):
    return draw.normal(0.0, 0.02, count)


def heavy(draw, count):
    return 0.02 * draw.standard_t(3, count)


@pytest.mark.parametrize("noise", [normal, heavy])
@pytest.mark.parametrize("window", [5, 10, 30])
def test_noise_alone_is_rarely_worse(window, noise):
    # One-sided: a run that is better never breaks, so half of the 5 % at most, plus the simulation's error.
    assert outcomes(window, 1.0, noise)[GateOutcome.BROKEN] < 0.035


@pytest.mark.parametrize("window", [5, 10, 30])
def test_a_run_that_is_worse_by_what_matters_is_rarely_kept(window):
    assert outcomes(window, 1.0301, normal)[GateOutcome.KEPT] < 0.035


def test_a_clear_change_is_found():
    assert outcomes(10, 1.12, normal)[GateOutcome.BROKEN] > 0.9
    assert outcomes(30, 1.10, normal)[GateOutcome.BROKEN] > 0.9
