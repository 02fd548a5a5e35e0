import math

import pytest

from uncork.model.verdict import Judgement, Verdict
from uncork.stats.compare import estimate, judge
from uncork.stats.crossover import Level, crossovers
from uncork.stats.sample import Units

SPREAD = (-0.01, 0.02, 0.0, -0.02, 0.01, 0.015, -0.005, -0.01)


def level(value, better="lower", **ratios):
    effects = {
        name: estimate(Units(tuple(math.log(ratio) + noise for noise in SPREAD)), 0.95)
        for name, ratio in ratios.items()
    }
    judged = judge(list(effects.values()), better=[better] * len(effects), practical=0.03, confidence=0.95)
    return Level(value, effects, dict(zip(effects, judged, strict=True)))


def find(*levels, better="lower"):
    return crossovers(levels, baseline="base", better=better)


def test_a_variant_overtakes_the_baseline():
    (found,) = find(level(10_000, new=0.5), level(100, new=2.0))
    assert (found.from_variant, found.to_variant, found.supported) == ("base", "new", True)
    assert (found.low_level, found.high_level) == (100, 10_000)
    assert found.estimate == pytest.approx(1_000)


def test_higher_is_better():
    (found,) = find(level(1, "higher", new=2.0), level(4, "higher", new=0.5), better="higher")
    assert (found.from_variant, found.to_variant, found.supported) == ("new", "base", True)
    assert found.estimate == pytest.approx(2)


def test_two_variants_cross():
    (found,) = find(level(1, a=0.2, b=0.4), level(16, a=0.4, b=0.2))
    assert (found.from_variant, found.to_variant, found.supported) == ("a", "b", True)
    assert found.estimate == pytest.approx(4)


def test_a_change_within_noise_is_not_supported():
    (found,) = find(level(1, new=0.5), level(2, new=1.001))
    assert (found.from_variant, found.to_variant, found.supported) == ("new", "base", False)
    assert (found.low_level, found.high_level) == (1, 2)


def test_clear_levels_farther_out_support_it():
    (found,) = find(level(1, new=0.5), level(10, new=0.999), level(100, new=1.001), level(1_000, new=2.0))
    assert found.supported
    assert (found.low_level, found.high_level) == (1, 1_000)
    assert found.estimate == pytest.approx(math.sqrt(1_000), rel=0.01)


def test_variants_close_to_each_other_are_not_told_apart():
    (found,) = find(level(1, a=0.200, b=0.201), level(2, a=0.201, b=0.200))
    assert not found.supported


def test_no_change_no_crossover():
    assert find(level(1, new=0.5), level(2, new=0.4)) == []
    assert find(level(1, new=0.5)) == []
    assert find() == []


def test_a_refused_variant_is_no_candidate():
    low, high = level(1, new=0.5), level(2, new=0.5)
    refused = Level(2, high.effects, {"new": Judgement(Verdict.REFUSED, "wrong answer")})
    assert find(low, refused) == []
    assert find(low, Level(2, {}, {})) == []


def test_a_level_of_zero_is_interpolated_straight():
    (found,) = find(level(0, new=2.0), level(4, new=0.5))
    assert found.estimate == pytest.approx(2)


def test_levels_must_differ():
    with pytest.raises(ValueError, match="must differ"):
        find(level(1, new=0.5), level(1, new=0.5))
