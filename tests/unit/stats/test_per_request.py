"""How often a request causes something that a server counts."""

import pytest

from uncork.stats.load.per_request import Rise, background_rate, per_request


def test_exact_counts_have_no_width():
    found = per_request([Rise(10, 1.0, 430), Rise(12, 1.0, 516), Rise(8, 1.0, 344)])
    assert (found.mean, found.low, found.high) == (43.0, 43.0, 43.0)


def test_other_work_is_subtracted_in_proportion_to_time():
    idle = [Rise(0, 2.0, 14), Rise(0, 1.0, 7)]
    assert background_rate(idle) == 7.0
    found = per_request([Rise(10, 1.0, 27), Rise(10, 3.0, 41)], background_rate(idle))
    assert found.mean == 2.0


def test_a_rise_below_the_background_is_no_negative_count():
    found = per_request([Rise(10, 1.0, 5), Rise(10, 1.0, 4)], 20.0)
    assert found.mean == 0.0
    assert found.low == 0.0


def test_one_slice_gives_no_interval_and_none_gives_nothing():
    assert per_request([Rise(10, 1.0, 5)]).low is None
    assert per_request([Rise(0, 1.0, 5)]) is None
    assert background_rate([]) == 0.0


def test_the_interval_is_students_t_over_slices():
    found = per_request([Rise(10, 1.0, 9), Rise(10, 1.0, 11)])
    # Two slices: a standard error of 0.1 a request, and t(0.95, 1) = 12.706.
    assert found.high - found.mean == pytest.approx(1.2706, rel=1e-3)
