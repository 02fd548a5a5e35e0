import math

import pytest

from uncork.stats.growth import fit_growth

SIZES = (100_000.0, 300_000.0, 1_000_000.0)
WOBBLE = (0.02, -0.03, 0.01, 0.0, -0.01, 0.025)


def rounds_of(truth, sizes=SIZES, wobble=WOBBLE):
    """Return a round a wobble; the sizes are off by it in turn, so that no two rounds are alike."""
    return [
        {size: truth(size) * (1.0 + off * (1.0 if place % 2 else -0.5)) for place, size in enumerate(sizes)}
        for off in wobble
    ]


def test_what_reads_everything_is_predicted_in_proportion_beside_its_fixed_cost():
    growth = fit_growth(rounds_of(lambda n: 5e6 + 200 * n), to=180e6)
    assert growth.shapes == ("power", "linear")
    assert growth.predicted.low < 5e6 + 200 * 180e6 < growth.predicted.high
    assert growth.predicted.high < 3 * growth.predicted.low
    assert 0.8 < growth.exponent_low < growth.exponent < growth.exponent_high < 1.0
    assert growth.stretch == 180


def test_what_does_not_grow_may_yet_grow_slowly_and_the_interval_says_so():
    growth = fit_growth(rounds_of(lambda n: 5e6), to=180e6)
    assert growth.shapes == ("logarithmic", "power", "linear")
    assert growth.exponent_low < 0 < growth.exponent_high
    assert 4.5e6 < growth.predicted.low < 5e6
    assert 3 < growth.predicted.high / 5e6 < 100


def test_a_power_is_told_from_a_line():
    growth = fit_growth(rounds_of(lambda n: 5e6 * (n / 1e5) ** 0.5), to=180e6)
    assert growth.shapes == ("power",)
    assert growth.exponent == pytest.approx(0.5, abs=0.01)
    assert growth.predicted.value == pytest.approx(5e6 * math.sqrt(1800), rel=0.1)


def test_times_that_jump_between_sizes_give_no_prediction():
    jump = {100_000.0: 5e6, 300_000.0: 5e6, 1_000_000.0: 500e6}
    growth = fit_growth(rounds_of(jump.__getitem__), to=180e6)
    assert (growth.shapes, growth.predicted) == ((), None)


def test_times_that_fall_are_no_shape_but_a_power():
    growth = fit_growth(rounds_of(lambda n: 5e6 * (n / 1e5) ** -0.5), to=180e6)
    assert growth.shapes == ("power",)


def test_rounds_that_agree_exactly_are_fitted_exactly():
    growth = fit_growth([{size: 200 * size for size in SIZES}] * 4, to=180e6)
    assert growth.predicted.value == pytest.approx(growth.predicted.low) == pytest.approx(200 * 180e6)
    assert growth.times == pytest.approx([200 * size for size in SIZES])


def test_a_round_that_lacks_a_size_is_left_out():
    found = rounds_of(lambda n: 200 * n)
    del found[0][SIZES[1]]
    assert fit_growth(found, to=180e6).rounds == len(WOBBLE) - 1


@pytest.mark.parametrize("found", [
    pytest.param([], id="nothing"),
    pytest.param(rounds_of(lambda n: n, wobble=(0.01, 0.02)), id="two rounds"),
    pytest.param(rounds_of(lambda n: n, sizes=SIZES[:2]), id="two sizes"),
])  # fmt: skip
def test_too_little_to_fit(found):
    assert fit_growth(found, to=180e6) is None


def test_sizes_and_times_are_above_zero():
    with pytest.raises(ValueError, match="above zero"):
        fit_growth([{1.0: 1.0, 2.0: 0.0, 3.0: 1.0}] * 3, to=10.0)
