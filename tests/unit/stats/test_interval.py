import math

import numpy as np
import pytest

from uncork.stats.interval import confidence_sequence, e_value, lag_one, log_e_value, radius, units_needed

# Units of one standard deviation; 95 %. Columns: c² = 0.5, 1, 2. Computed independently of this code.
RADII = {
    5: (2.61, 3.78, math.inf),
    8: (1.46, 1.50, 1.70),
    10: (1.22, 1.22, 1.29),
    15: (0.93, 0.91, 0.92),
    20: (0.79, 0.77, 0.76),
    30: (0.63, 0.61, 0.60),
}


@pytest.mark.parametrize("count", RADII)
def test_radius_agrees_with_the_table(count):
    ours = [float(radius(count, 1.0, 0.95, prior_precision=c2)) for c2 in (0.5, 1.0, 2.0)]
    assert ours == pytest.approx(RADII[count], abs=0.005)


def test_radius_of_our_own_precision():
    ours = [float(r) for r in radius([3, 4, 5, 8, 10, 20], 1.0, 0.95)]
    assert ours == pytest.approx([math.inf, 3.61, 2.40, 1.49, 1.26, 0.81], abs=0.005)


def test_the_interval_is_where_the_e_value_is_below_one_over_alpha():
    units = [0.01, 0.03, -0.02, 0.05, 0.02, 0.04]
    low, high = confidence_sequence(units, 0.95)
    for end in (low, high):
        assert e_value(units, end) == pytest.approx(20.0)
    assert e_value(units, (low + high) / 2) < 1.0
    assert e_value(units, low - 0.001) > 20.0 > e_value(units, low + 0.001)


def test_the_e_value_is_the_mixture_it_is_said_to_be():
    # Plain re-computation: the likelihood of t under effects spread as a normal of variance 1/c², against
    # zero. Scale is integrated out with density 1/σ on both sides.
    units, c2 = np.array([0.4, 1.1, -0.3, 0.9, 0.7]), 0.25
    sigma = np.exp(np.linspace(-6, 8, 2_001))
    n = len(units)

    def evidence(effect):
        squares = ((units[:, None] / sigma - effect) ** 2).sum(axis=0)
        return np.trapezoid(np.exp(-squares / 2) / sigma**n, np.log(sigma))

    effects = np.linspace(-30, 30, 4_001)
    prior = np.exp(-(effects**2) * c2 / 2) * math.sqrt(c2 / (2 * math.pi))
    mixed = np.trapezoid([evidence(effect) for effect in effects] * prior, effects)
    assert e_value(units.tolist(), prior_precision=c2) == pytest.approx(mixed / evidence(0.0), rel=1e-4)


def test_few_units_exclude_nothing():
    for units in ([1.0], [1.0, 2.0], [1.0, 1.1, 1.2]):
        assert confidence_sequence(units, 0.95) == (-math.inf, math.inf)
    assert e_value([5.0]) == pytest.approx(1.0)


def test_identical_units_collapse_the_interval_once_there_are_enough():
    assert confidence_sequence([0.2] * 3, 0.95) == (-math.inf, math.inf)
    low, high = confidence_sequence([0.25] * 5, 0.95)
    assert low == high == 0.25
    assert 20.0 < e_value([0.25] * 5) == pytest.approx(21.0**2)  # (1 + n/c²)^((n-1)/2): bounded
    assert e_value([0.0] * 5) < 1.0


def test_evidence_of_many_clear_units_does_not_overflow():
    assert math.isfinite(e_value([1.0, 1.0001] * 2_000))


def test_no_units_and_no_confidence_are_errors():
    with pytest.raises(ValueError, match="at least one unit"):
        e_value([])
    with pytest.raises(ValueError, match="between 0 and 1"):
        confidence_sequence([1.0, 2.0], 1.0)


def test_lag_one():
    assert float(lag_one([1.0, -1.0] * 10)) == pytest.approx(-0.95)
    assert float(lag_one([3.0] * 5)) == 0.0
    assert lag_one(np.arange(12.0).reshape(2, 6)).shape == (2,)


def test_units_needed():
    assert units_needed(0.025, 0.03, 0.95) == 11
    assert units_needed(0.0, 0.03, 0.95) == 4
    assert units_needed(5.0, 0.001, 0.95) is None


def test_functions_work_elementwise():
    assert radius([5, 10], [1.0, 2.0], 0.95).shape == (2,)
    assert log_e_value([5, 10], [1.0, 2.0], [1.0, 2.0]).shape == (2,)
