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


@pytest.mark.parametrize(("values", "sentence"), [
    (SPREAD[:2], "the noise floor is unknown after 2 rounds"),
    ((0.01, -0.02, 3.4), "the noise floor is unknown after 3 rounds"),  # too wild for so few
    ((0.01, -0.02, 0.04), "the baseline against itself stays within ±8.6 % (95 of 100 comparisons)"),
    (tuple(40 * value for value in SPREAD),
     "the baseline against itself stays within ±59 % (95 of 100 comparisons)"),
    (tuple(100 * value for value in SPREAD),
     "the baseline against itself stays within a factor of 3.2 (95 of 100 comparisons)"),
])  # fmt: skip
def test_a_floor_in_words(values, sentence):
    floor = noise_floor([Units(values)], 0.95)
    assert math.isinf(floor.floor) == ("unknown" in sentence)
    assert floor.sentence == sentence


def test_too_few_rounds():
    assert noise_floor([Units(SPREAD[:2])], 0.95).worst == math.inf
    assert math.isnan(noise_floor([Units((0.1,))], 0.95).std_dev)


def test_no_comparison_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([], 0.95)
