import math

import pytest

from uncork.stats.noise import noise_floor
from uncork.stats.sample import Units

SPREAD = (-0.01, 0.02, 0.0, -0.02, 0.01, 0.015, -0.005, -0.01)


def test_the_floor_is_what_an_estimate_of_a_thing_against_itself_stays_below():
    floor = noise_floor([Units(SPREAD), Units(tuple(-value for value in SPREAD))], 0.95)
    assert floor.ratio == pytest.approx(1.0)
    assert (floor.rounds, floor.false_alarms, len(floor.effects)) == (8, 0, 2)
    expected = 2.1448 * floor.std_dev / math.sqrt(8)  # Student's t, 14 degrees of freedom
    assert math.log1p(floor.floor) == pytest.approx(expected, rel=1e-3)
    assert floor.worst >= floor.floor
    assert floor.sentence == "the baseline against itself stays within ±1.1 % (95 of 100 comparisons)"


def test_a_bias_of_the_second_run_raises_the_floor_and_the_alarm():
    biased = Units(tuple(0.1 + value for value in SPREAD))
    floor = noise_floor([biased], 0.95)
    assert floor.false_alarms == 1
    assert floor.floor > 0.1


def test_too_few_rounds():
    floor = noise_floor([Units(SPREAD[:2])], 0.95)
    assert (floor.floor, floor.worst) == (math.inf, math.inf)
    assert floor.sentence == "the noise floor is unknown after 2 rounds"
    assert math.isnan(noise_floor([Units((0.1,))], 0.95).std_dev)


def test_no_comparison_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([], 0.95)


def test_a_wild_floor_is_told_in_plain_figures():
    wild = noise_floor([Units(tuple(40 * value for value in SPREAD))], 0.95)
    assert (
        wild.sentence
        == f"the baseline against itself stays within ±{wild.floor * 100:.0f} % (95 of 100 comparisons)"
    )
    assert wild.floor > 0.5


def test_a_wild_floor_of_few_rounds_is_not_known():
    astray = noise_floor([Units((0.01, -0.02, 3.4))], 0.95)
    assert math.isinf(astray.floor)
    assert astray.sentence == "the noise floor is unknown after 3 rounds"
    tame = noise_floor([Units((0.01, -0.02, 0.04))], 0.95)
    assert 0 < tame.floor < 0.2


def test_a_wild_floor_of_many_rounds_is_a_factor():
    wild = noise_floor([Units(tuple(100 * value for value in SPREAD))], 0.95)
    assert wild.floor > 1
    assert f"stays within a factor of {1 + wild.floor:.2g} (95" in wild.sentence
