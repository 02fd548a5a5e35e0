"""The knee and objectives: what is excluded, what stays open."""

import pytest

from uncork.stats.load.knee import beaten, find_knee, judge_limit, judge_share, wilson

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


def test_a_limit_holds_fails_or_stays_open():
    assert judge_limit([8.0, 8.2, 7.9, 8.1, 8.0, 8.1], 10.0, 0.95) == "yes"
    assert judge_limit([12.0, 12.2, 11.9, 12.1, 12.0, 12.1], 10.0, 0.95) == "no"
    assert judge_limit([9.0, 11.0, 10.0, 9.5, 10.5, 10.2], 10.0, 0.95) == "open"
    assert judge_limit([8.0, 8.1], 10.0, 0.95) == "open"
    assert judge_limit([], 10.0, 0.95) == "open"


def test_a_share_needs_enough_operations_and_rounds_that_agree():
    assert judge_share([0] * 5, [10_000] * 5, 0.001, 0.95) == "yes"
    assert judge_share([0] * 5, [100] * 5, 0.001, 0.95) == "open"
    assert judge_share([100] * 5, [10_000] * 5, 0.001, 0.95) == "no"
    assert judge_share([400, 0, 0, 0, 0], [10_000] * 5, 0.001, 0.95) == "open"
    assert judge_share([], [], 0.001, 0.95) == "open"


def test_wilsons_interval_is_that_of_the_books():
    # Newcombe (Statistics in Medicine 17, 1998), table I: 81 of 263 and 0 of 20.
    assert wilson(81, 263, 0.95) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))
    assert wilson(0, 20, 0.95) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.1611, abs=1e-4))
