"""Statistics of loads: the knee, the scalability law, queues, and what a request causes."""

import math

import numpy as np
import pytest

from uncork.stats.load.knee import beaten, find_knee, judge_limit, judge_share, wilson
from uncork.stats.load.per_request import Rise, background_rate, per_request
from uncork.stats.load.queue import mean_waiting
from uncork.stats.load.scalability import fit_scalability, scalable_throughput

ROUNDS = range(1, 9)


def powers(**levels):
    """Powers by level: a height, wobbling a little with the round, together and apart."""
    return {
        float(name[1:]): {
            one: height + 0.1 * (one % 3) + 0.01 * ((one * int(name[1:])) % 5) for one in ROUNDS
        }
        for name, height in levels.items()
    }


def test_clear_levels_are_out_and_the_knee_lies_between_the_neighbours_of_the_best():
    knee = find_knee(powers(l1=0.0, l2=0.5, l4=1.0, l8=0.6), (1, 2, 4, 8, 16), 0.95)
    assert (knee.level, knee.low, knee.high, knee.left) == (4, 2, 8, (4,))


def test_drift_that_all_levels_of_a_round_share_does_not_hide_the_best():
    drifting = {
        level: {one: value + one for one, value in seen.items()}
        for level, seen in powers(l1=0.0, l2=0.2).items()
    }
    assert beaten(drifting, 0.95) == {1.0}


def test_a_best_level_at_either_end_leaves_that_side_open():
    assert find_knee(powers(l1=1.0, l2=0.0), (1, 2), 0.95).low is None
    assert find_knee(powers(l1=0.0, l2=1.0), (1, 2), 0.95).high is None


def test_few_rounds_exclude_nothing():
    few = {level: {1: value, 2: value} for level, value in ((1.0, 0.0), (2.0, 5.0), (4.0, 0.0))}
    assert find_knee(few, (1, 2, 4), 0.95).left == (1, 2, 4)
    assert find_knee({1.0: {1: 0.0}, 2.0: {2: 0.0}}, (1, 2), 0.95) is None


def test_a_limit_holds_fails_or_stays_open_and_a_share_needs_enough_operations():
    assert judge_limit([8.0, 8.2, 7.9, 8.1, 8.0, 8.1], 10.0, 0.95) == "yes"
    assert judge_limit([12.0, 12.2, 11.9, 12.1, 12.0, 12.1], 10.0, 0.95) == "no"
    assert judge_limit([9.0, 11.0, 10.0, 9.5, 10.5, 10.2], 10.0, 0.95) == "open"
    assert judge_limit([8.0, 8.1], 10.0, 0.95) == "open"
    assert judge_limit([], 10.0, 0.95) == "open"
    assert judge_share([0] * 5, [10_000] * 5, 0.001, 0.95) == "yes"
    assert judge_share([0] * 5, [100] * 5, 0.001, 0.95) == "open"
    assert judge_share([100] * 5, [10_000] * 5, 0.001, 0.95) == "no"
    assert judge_share([400, 0, 0, 0, 0], [10_000] * 5, 0.001, 0.95) == "open"
    assert judge_share([], [], 0.001, 0.95) == "open"


def test_wilsons_interval_is_that_of_the_books():
    # Newcombe (Statistics in Medicine 17, 1998), table I: 81 of 263 and 0 of 20.
    assert wilson(81, 263, 0.95) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))
    assert wilson(0, 20, 0.95) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.1611, abs=1e-4))


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


@pytest.mark.parametrize(
    ("servers", "use", "waiting"),
    [(1, 0.5, 0.5), (1, 0.9, 8.1), (2, 0.8, 2.844), (4, 0.9, 7.090), (10, 0.9, 6.019)],
)
def test_figures_of_the_tables(servers, use, waiting):
    assert mean_waiting(servers, use) == pytest.approx(waiting, rel=1e-3)


def test_nobody_waits_for_what_is_not_used_and_all_for_what_is_never_free():
    assert mean_waiting(8, 0.0) == 0.0
    assert mean_waiting(8, 1.0) == math.inf


def test_exact_counts_have_no_width():
    found = per_request([Rise(10, 1.0, 430), Rise(12, 1.0, 516), Rise(8, 1.0, 344)])
    assert (found.mean, found.low, found.high) == (43.0, 43.0, 43.0)


def test_other_work_is_subtracted_in_proportion_to_time():
    idle = [Rise(0, 2.0, 14), Rise(0, 1.0, 7)]
    assert background_rate(idle) == 7.0
    found = per_request([Rise(10, 1.0, 27), Rise(10, 3.0, 41)], background_rate(idle))
    assert found.mean == 2.0


def test_a_rise_below_the_background_is_no_negative_count():
    found = per_request([Rise(10, 1.0, 5), Rise(10, 1.0, 4)], 20.0)
    assert found.mean == 0.0
    assert found.low == 0.0


def test_one_slice_gives_no_interval_and_none_gives_nothing():
    assert per_request([Rise(10, 1.0, 5)]).low is None
    assert per_request([Rise(0, 1.0, 5)]) is None
    assert background_rate([]) == 0.0


def test_the_interval_is_students_t_over_slices():
    found = per_request([Rise(10, 1.0, 9), Rise(10, 1.0, 11)])
    # Two slices: a standard error of 0.1 a request, and t(0.95, 1) = 12.706.
    assert found.high - found.mean == pytest.approx(1.2706, rel=1e-3)
