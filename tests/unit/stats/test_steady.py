"""Whether a series is steady: by hand-made series whose answer is plain."""

import math

import numpy as np
import pytest

from uncork.stats.steady import LEAST_VALUES, MOST_VALUES, Steadiness, find_steady_part, limit_of


def noise(count, scale=0.02):
    return scale * np.random.default_rng(7).standard_normal(count)


def test_a_short_series_is_unknown():
    assert find_steady_part([0.0] * (LEAST_VALUES - 1)) == Steadiness("unknown", None)


@pytest.mark.parametrize("values", [[7.0] * 12, list(noise(30)), list(noise(600))])
def test_a_series_without_trend_is_steady(values):
    assert find_steady_part(values) == Steadiness("steady", 0)


def test_a_slow_beginning_ends_where_it_ends():
    values = noise(30)
    values[:4] -= 0.5
    assert find_steady_part(values) == Steadiness("warm-up", 4)


def test_a_beginning_that_differs_by_less_than_a_hundredth_is_steady():
    assert find_steady_part([0.008, 0.008] + [0.0] * 18).verdict == "steady"
    assert find_steady_part([0.02, 0.02] + [0.0] * 18) == Steadiness("warm-up", 2)


def test_one_stalled_value_is_no_warm_up():
    values = noise(40)
    values[1] -= 3.0
    assert find_steady_part(values).verdict == "steady"


def test_a_warm_up_that_leaves_too_few_values_has_an_end_but_no_steady_part():
    values = noise(11)
    values[:2] -= 0.5
    assert find_steady_part(values) == Steadiness("not steady", 2)


def test_a_drift_does_not_become_steady():
    assert find_steady_part(noise(30) + np.linspace(0, 1, 30)) == Steadiness("not steady", None)


def test_a_long_series_is_judged_by_means_and_answers_in_values():
    values = noise(10 * MOST_VALUES)
    values[:60] -= 0.5
    assert find_steady_part(values) == Steadiness("warm-up", 60)


def test_every_value_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        find_steady_part([math.nan] * 20)


def test_the_limit_falls_with_the_number_of_values():
    limits = [limit_of(count) for count in range(LEAST_VALUES, MOST_VALUES + 1)]
    assert limits == sorted(limits, reverse=True)
