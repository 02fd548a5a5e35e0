"""Units of observations: rounds, blocks and hosts."""

import math

import pytest

from uncork.stats.sample import Observation, Units, block_units, grouped_units, noise_units, round_units

ARMS = {"baseline": "base", "again": "base#2", "variant": "new"}


def block(number, place, base, again, new=None):
    values = {"base": base, "base#2": again, "new": new}
    return [Observation(number, place, arm, value) for arm, value in values.items() if value is not None]


def test_a_round_is_the_mean_of_its_blocks_log_ratios():
    seen = block(1, 1, 10, 10, 11) + block(1, 2, 20, 20, 26) + block(2, 1, 8, 8, 8)
    units = round_units(seen, **ARMS)
    assert units.values == pytest.approx(((math.log(1.1) + math.log(1.3)) / 2, 0.0))
    assert (units.kind, units.labels) == ("round", ((1, 0), (2, 0)))
    assert (units.complete_blocks, units.dropped_blocks) == (3, 0)


def test_the_baseline_is_the_geometric_mean_of_its_two_trials():
    assert round_units(block(1, 1, 4, 9, 6), **ARMS).values == pytest.approx((0.0,))


def test_a_block_is_a_unit_where_no_restart_is_possible():
    units = block_units(block(1, 2, 10, 10, 11) + block(1, 1, 10, 10, 12), **ARMS)
    assert units.values == pytest.approx((math.log(1.2), math.log(1.1)))
    assert (units.kind, units.labels) == ("block", ((1, 1), (1, 2)))


def test_noise_units_compare_the_baseline_with_itself():
    seen = block(1, 1, 10, 11) + block(1, 2, 10, 11, 99)
    assert noise_units(seen, baseline="base", again="base#2").values == pytest.approx((math.log(1.1),))
    assert len(noise_units(seen, baseline="base", again="base#2", kind="block")) == 2


def test_incomplete_blocks_are_dropped_and_counted():
    seen = block(1, 1, 10, 10, 11) + block(1, 2, 10, 10) + block(2, 1, 10, None, 11)
    units = round_units(seen, **ARMS)
    assert len(units) == 1
    assert (units.complete_blocks, units.dropped_blocks) == (1, 2)


def test_other_arms_are_passed_over():
    other = [Observation(3, 1, "other", math.nan)]
    assert len(round_units(block(1, 1, 10, 10, 11) + other, **ARMS)) == 1


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_metric_must_be_finite_and_above_zero(value):
    with pytest.raises(ValueError, match="round 1, block 2, arm new: a metric must be finite and above zero"):
        round_units(block(1, 2, 10, 10, value), **ARMS)


def test_an_arm_stands_once_in_a_block():
    with pytest.raises(ValueError, match="arm base occurs twice"):
        round_units(block(1, 1, 10, 10, 11) + block(1, 1, 10, 10, 11), **ARMS)


def test_a_comparison_needs_different_arms():
    with pytest.raises(ValueError, match="must differ"):
        round_units([], baseline="base", again="base", variant="new")


def test_a_host_is_the_mean_of_its_rounds():
    rounds = Units((0.1, 0.3, -0.2), labels=((1, 0), (2, 0), (3, 0)), complete_blocks=6, dropped_blocks=1)
    found = grouped_units(rounds, {1: 1, 2: 1, 3: 2}, "host")
    assert found.values == pytest.approx((0.2, -0.2))
    assert (found.kind, found.labels) == ("host", ((1, 0), (2, 0)))
    assert (found.complete_blocks, found.dropped_blocks) == (6, 1)
