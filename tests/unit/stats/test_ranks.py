"""An effect by ranks: the interval that all flips of signs give, and what contradicts it."""

import itertools
import math
import random
import statistics

import pytest

from uncork.model.results.experiment import RankEffect
from uncork.stats.ranks import contradiction, rank_effect


def rejected(values, centre, confidence):
    """Return whether Wilcoxon's signed-rank test rejects a centre, by all flips of signs."""
    distances = sorted((value - centre for value in values), key=abs)
    plus = sum(rank for rank, one in enumerate(distances, 1) if one > 0)
    sums = [
        sum(rank for rank, sign in enumerate(signs, 1) if sign)
        for signs in itertools.product((0, 1), repeat=len(values))
    ]
    below = sum(one <= plus for one in sums) / len(sums)
    above = sum(one >= plus for one in sums) / len(sums)
    return min(below, above) <= (1 - confidence) / 2


@pytest.mark.parametrize("count", [6, 7, 8])
def test_the_interval_holds_what_no_flip_of_signs_rejects(count):
    draw = random.Random(count)
    values = [draw.gauss(0.1, 0.2) for _ in range(count)]
    found = rank_effect(values, 0.95)
    low, high = math.log(found.low), math.log(found.high)
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))
    for left, right in itertools.pairwise(means):
        centre = (left + right) / 2
        assert rejected(values, centre, 0.95) == (not low <= centre <= high), (centre, low, high)
    assert math.log(found.ratio) == pytest.approx(statistics.median(means))


def test_too_few_units_have_no_interval():
    assert rank_effect([0.1] * 5, 0.95) is None
    assert rank_effect([], 0.95) is None
    assert rank_effect([0.1] * 5, 0.9) is not None
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, not 95"):
        rank_effect([0.1] * 8, 95)


def test_many_units_take_a_normal_distribution_and_a_sample():
    draw = random.Random(1)
    exact, normal, sampled = (
        rank_effect([draw.gauss(0, 1) for _ in range(count)], 0.95) for count in (60, 61, 5_000)
    )
    widths = [
        math.log(one.high / one.low) * math.sqrt(n)
        for one, n in ((exact, 60), (normal, 61), (sampled, 2_000))
    ]
    assert widths == pytest.approx([2 * 1.96] * 3, rel=0.25)


def test_one_extreme_unit_moves_the_mean_and_not_the_ranks():
    draw = random.Random(2)
    values = [draw.gauss(0, 0.01) for _ in range(20)]
    before, after = rank_effect(values, 0.95), rank_effect([*values[:-1], 3.0], 0.95)
    assert after.ratio == pytest.approx(before.ratio, abs=0.005)
    assert contradiction(math.exp(statistics.fmean([*values[:-1], 3.0])), None, None, after)


@pytest.mark.parametrize(("effect", "ranks", "contradicts"), [
    ((0.9, 0.8, 0.95), (0.9, 0.85, 0.94), False),
    ((0.9, 0.8, 0.95), (0.97, 0.89, 1.02), True),
    ((0.9, 0.8, 1.05), (0.9, 0.85, 0.94), False),
    ((0.9, 0.8, 1.05), (1.0, 0.95, 1.1), True),
    ((0.9, None, None), (0.9, 0.8, 1.1), False),
    ((1.0, 0.99, 1.01), (1.0, 1.0, 1.0), False),
])  # fmt: skip
def test_what_contradicts(effect, ranks, contradicts):
    assert contradiction(*effect, RankEffect(*ranks)) == contradicts
