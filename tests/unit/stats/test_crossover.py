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


CROSSED = {
    "a variant overtakes the baseline":
        ([level(10_000, new=0.5), level(100, new=2.0)], ("base", "new", True, 100, 10_000), 1_000),
    "two variants cross": ([level(1, a=0.2, b=0.4), level(16, a=0.4, b=0.2)], ("a", "b", True, 1, 16), 4),
    "a change within noise is not supported":
        ([level(1, new=0.5), level(2, new=1.001)], ("new", "base", False, 1, 2), None),
    "clear levels farther out support it":
        ([level(1, new=0.5), level(10, new=0.999), level(100, new=1.001), level(1_000, new=2.0)],
         ("new", "base", True, 1, 1_000), math.sqrt(1_000)),
    "variants close to each other are not told apart":
        ([level(1, a=0.200, b=0.201), level(2, a=0.201, b=0.200)], ("a", "b", False, 1, 2), None),
    "a level of zero is interpolated straight":
        ([level(0, new=2.0), level(4, new=0.5)], ("base", "new", True, 0, 4), 2),
}  # fmt: skip


@pytest.mark.parametrize(("levels", "crossover", "estimate"), CROSSED.values(), ids=CROSSED)
def test_where_variants_cross(levels, crossover, estimate):
    (found,) = find(*levels)
    assert (found.from_variant, found.to_variant, found.supported) == crossover[:3]
    assert (found.low_level, found.high_level) == crossover[3:]
    assert estimate is None or found.estimate == pytest.approx(estimate, rel=0.01)


def test_higher_is_better():
    (found,) = find(level(1, "higher", new=2.0), level(4, "higher", new=0.5), better="higher")
    assert (found.from_variant, found.to_variant, found.supported) == ("new", "base", True)
    assert found.estimate == pytest.approx(2)


def test_no_change_no_crossover():
    assert find(level(1, new=0.5), level(2, new=0.4)) == []
    assert find(level(1, new=0.5)) == []
    assert find() == []


def test_a_refused_variant_is_no_candidate():
    low, high = level(1, new=0.5), level(2, new=0.5)
    refused = Level(2, high.effects, {"new": Judgement(Verdict.REFUSED, "wrong answer")})
    assert find(low, refused) == []
    assert find(low, Level(2, {}, {})) == []


def test_levels_must_differ():
    with pytest.raises(ValueError, match="must differ"):
        find(level(1, new=0.5), level(1, new=0.5))
