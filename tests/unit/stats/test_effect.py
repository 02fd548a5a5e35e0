import math

import pytest

from uncork.stats.effect import estimate, inflation_of
from uncork.stats.sample import Units

SPREAD = (-0.01, 0.02, 0.0, -0.02, 0.01, 0.015, -0.005, -0.01)


def units(shift=0.0, count=8, **facts):
    return Units(tuple(shift + value for value in SPREAD[:count]), **facts)


def test_an_effect_is_a_ratio_with_an_interval_and_evidence():
    effect = estimate(units(math.log(1.2)), 0.95)
    assert effect.low < effect.ratio < effect.high
    assert effect.ratio == pytest.approx(1.2)
    assert (effect.rounds, effect.confidence, effect.kind, effect.warnings) == (8, 0.95, "round", ())
    assert effect.excludes_none
    assert effect.e_value > 20
    assert effect.e_value == pytest.approx(effect.evidence_against(1.0))
    assert effect.evidence_against(effect.high) == pytest.approx(20.0)
    assert effect.half_width == pytest.approx(effect.high / effect.ratio - 1)


def test_one_unit_gives_an_unbounded_interval():
    effect = estimate(units(count=1), 0.95)
    assert (effect.low, effect.high, effect.half_width) == (0.0, math.inf, math.inf)
    assert math.isnan(effect.std_dev)
    assert effect.e_value == pytest.approx(1.0)
    assert not effect.excludes_none


def test_evidence_of_equivalence_is_that_against_the_nearer_threshold():
    effect = estimate(units(0.01), 0.95)
    nearer = min(effect.evidence_against(1.03), effect.evidence_against(1 / 1.03))
    assert effect.evidence_of_equivalence(0.03) == pytest.approx(nearer)
    assert estimate(units(0.5), 0.95).evidence_of_equivalence(0.03) < 1.0


def test_dependent_units_widen_the_interval_and_raise_a_doubt():
    rising = Units(tuple(i * 0.001 for i in range(12)))
    effect = estimate(rising, 0.95)
    shuffled = estimate(Units(tuple(sorted(rising.values, key=lambda v: math.sin(v * 1e6)))), 0.95)
    assert effect.autocorrelation == pytest.approx(0.75, abs=0.01)
    assert effect.inflation == pytest.approx(math.sqrt(1.75 / 0.25), abs=0.05)
    assert shuffled.inflation == 1.0
    assert effect.half_width > 2 * shuffled.half_width
    assert effect.e_value < shuffled.e_value
    assert "are correlated (lag-1 autocorrelation 0.75)" in effect.warnings[0]


def test_dependence_is_not_judged_from_few_units():
    assert estimate(Units((0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06)), 0.95).autocorrelation is None


def test_widening_never_narrows():
    assert float(inflation_of(-0.9, 20)) == 1.0
    assert float(inflation_of(0.1, 20)) == 1.0
    assert float(inflation_of(0.5, 20)) == pytest.approx(math.sqrt(3))
    assert math.isfinite(float(inflation_of(1.0, 20)))


def test_doubts():
    same = estimate(Units((0.1,) * 9), 0.95)
    assert same.autocorrelation is None
    assert "all 9 rounds gave the same ratio" in same.warnings[0]
    assert "not restarted" in estimate(units(kind="block"), 0.95).warnings[0]
    dropped = estimate(units(complete_blocks=16, dropped_blocks=2), 0.95)
    assert dropped.warnings == ("2 of 18 blocks missed a trial and were left out",)


def test_extreme_ratios_stay_within_floats():
    effect = estimate(Units((1400.0, -1400.0) * 4), 0.95)
    assert effect.low <= effect.ratio <= effect.high
    assert estimate(Units((-1400.0, -1401.0) * 4), 0.95).ratio > 0.0


def test_rounding_of_logarithms_is_no_effect():
    effect = estimate(Units((3e-16,) * 6), 0.95)
    assert (effect.ratio, effect.low, effect.high) == (1.0, 1.0, 1.0)
    assert effect.e_value < 1.0
