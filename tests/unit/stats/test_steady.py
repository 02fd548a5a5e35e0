"""Whether a series is steady: by hand-made series whose answer is plain."""

import math

import numpy as np
import pytest

from uncork.stats.steady import LEAST_VALUES, MOST_VALUES, Steadiness, find_steady_part, limit_of


def noise(count, scale=0.02):
    return scale * np.random.default_rng(7).standard_normal(count)


def test_a_short_series_is_unknown():
    assert find_steady_part([0.0] * (LEAST_VALUES - 1)) == Steadiness("unknown", None)


def slow(count, many, by=0.5, first=0):
    """Return noise in which `many` values, from the first one on, are lower."""
    values = noise(count)
    values[first : first + many] -= by
    return values


SERIES = {
    "all alike": ([7.0] * 12, "steady", 0),
    "noise": (noise(30), "steady", 0),
    "much noise": (noise(600), "steady", 0),
    "a slow beginning ends where it ends": (slow(30, 4), "warm-up", 4),
    "a beginning that differs by less than a hundredth": ([0.008, 0.008] + [0.0] * 18, "steady", 0),
    "a beginning that differs by more": ([0.02, 0.02] + [0.0] * 18, "warm-up", 2),
    "one stalled value is no warm-up": (slow(40, 1, 3.0, first=1), "steady", 0),
    "a warm-up that leaves too few values": (slow(11, 2), "not steady", 2),
    "a drift does not become steady": (noise(30) + np.linspace(0, 1, 30), "not steady", None),
    "a long series is judged by means and answers in values": (slow(10 * MOST_VALUES, 60), "warm-up", 60),
}


@pytest.mark.parametrize(("values", "verdict", "end"), SERIES.values(), ids=SERIES)
def test_where_a_series_becomes_steady(values, verdict, end):
    assert find_steady_part(list(values)) == Steadiness(verdict, end)


def test_every_value_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        find_steady_part([math.nan] * 20)


def test_the_limit_falls_with_the_number_of_values():
    limits = [limit_of(count) for count in range(LEAST_VALUES, MOST_VALUES + 1)]
    assert limits == sorted(limits, reverse=True)
