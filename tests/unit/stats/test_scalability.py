"""The Universal Scalability Law: exact where there is no noise, honest where there is."""

import math

import numpy as np
import pytest

from uncork.stats.load.scalability import fit_scalability, scalable_throughput

LOADS = np.repeat([1.0, 2, 4, 8, 16, 32, 64], 2)


def fit(throughput, loads=LOADS):
    return fit_scalability(loads, [throughput(load) for load in loads], np.random.default_rng(1))


@pytest.mark.parametrize(("contention", "coherency"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.001), (0.03, 0.0002)])
def test_without_noise_the_law_is_found_exactly(contention, coherency):
    law = fit(lambda load: scalable_throughput(load, 500.0, contention, coherency))
    assert law.alone.value == pytest.approx(500)
    assert law.contention.value == pytest.approx(contention, abs=1e-6)
    assert law.coherency.value == pytest.approx(coherency, abs=1e-8)
    peak = math.sqrt((1 - contention) / coherency) if coherency else math.inf
    assert law.peak.value == pytest.approx(peak, rel=1e-3)
    assert law.misfit < 1e-6 and law.describes


def test_a_hard_limit_is_seen_as_a_misfit():
    law = fit(lambda load: 500.0 * min(load, 8))
    assert law.misfit > 0.1 and not law.describes


def test_better_than_linear_is_held_at_no_contention():
    law = fit(lambda load: 500.0 * load**1.1)
    assert law.contention.value == 0 and law.coherency.value == 0
    assert not law.describes


def test_too_few_levels_or_no_repetition_tell_nothing():
    assert fit(lambda load: 500.0 * load, np.repeat([1.0, 2, 4], 5)) is None
    assert fit(lambda load: 500.0 * load, np.array([1.0, 2, 4, 8])) is None


@pytest.mark.parametrize(("loads", "throughputs"), [([1.0, 2.0], [1.0]), ([0.5], [1.0]), ([1.0], [0.0])])
def test_what_is_out_of_range_is_refused(loads, throughputs):
    with pytest.raises(ValueError, match=r"loads|throughputs"):
        fit_scalability(loads, throughputs, np.random.default_rng(1))


@pytest.mark.parametrize("seed", range(20))
def test_one_noisy_level_that_was_visited_twice_is_fitted_all_the_same(seed):
    """Then a resample may leave one visit all the weight, for which there is no single answer."""
    generator = np.random.default_rng(seed)
    loads = [1.0, 2, 4, 8, 8]
    law = fit_scalability(loads, (1000 * np.exp(generator.normal(0, 1.5, 5))).tolist(), generator)
    assert law.alone.value > 0
    assert law.contention.low <= law.contention.high
