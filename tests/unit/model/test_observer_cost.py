"""What is known of a cost: only a whole interval within the share is under it."""

import pytest

from uncork.model.results.observer_cost import Ratio, cost_verdict


@pytest.mark.parametrize(("low", "high", "verdict"), [
    (0.991, 0.999, "costs less"),
    (0.995, 1.05, "costs less"),
    (0.97, 0.98, "costs more"),
    (0.98, 0.999, "costs something"),
    (0.98, 1.02, "not enough evidence"),
    (None, None, "not enough evidence"),
])  # fmt: skip
def test_the_interval_decides(low, high, verdict):
    assert cost_verdict(Ratio(0.99, low, high, 9), 0.01, enough=True) == verdict


def test_without_enough_rounds_nothing_is_claimed():
    assert cost_verdict(Ratio(1.0, 0.999, 1.001, 3), 0.01, enough=False) == "not enough evidence"
    assert cost_verdict(None, 0.01, enough=True) == "not enough evidence"
