"""A trend in the rounds of an experiment: one warning for the whole run."""

from __future__ import annotations

from uncork.analysis.experiment.result import rounds_warning


def arm(values, first=1):
    return list(enumerate(values, first))


def test_steady_and_few_rounds_have_no_warning():
    assert rounds_warning([(arm([10.0] * 14), False)]) is None
    assert rounds_warning([(arm([20.0, 10.0, 10.0, 10.0, 10.0]), False)]) is None
    assert rounds_warning([]) is None


def test_a_slow_beginning_is_reported_with_its_size():
    words = rounds_warning([(arm([12.0] * 3 + [10.0] * 12), False), (arm([24.0] * 3 + [20.0] * 12), False)])
    assert words is not None
    assert words.startswith("in the first 3 rounds of 15, the baseline's metric was 20 % worse than later")


def test_less_throughput_is_worse_too():
    words = rounds_warning([(arm([80.0] * 3 + [100.0] * 12), True)])
    assert words is not None
    assert "25 % worse" in words


def test_a_drift_is_reported_without_an_end():
    words = rounds_warning([(arm([10.0 * 1.05**n for n in range(20)]), False)])
    assert words is not None
    assert words.startswith("the baseline kept changing over the 20 rounds")


def test_an_arm_that_left_early_does_not_count():
    assert rounds_warning([(arm([10.0] * 15), False), (arm([20.0, 20.0, 10.0, 10.0]), False)]) is None
