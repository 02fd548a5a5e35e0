"""How often what is said of an observer's processor time is wrong, looked at after every round."""

import math

import numpy as np
import pytest
from simulation import at_most

from uncork.model.results.observer_cost import Ratio, processor_verdict
from uncork.stats.interval import radius

PRACTICAL, CONFIDENCE, FEWEST, ROUNDS = 0.01, 0.95, 5, 60
OWN = 0.004
"""What the observer takes itself, as a part of what the server takes: it is counted, not estimated."""


def ever(runs, generator, total, std_dev):
    """Return how often each verdict was given at some look, of observers that take `total` in truth."""
    units = generator.normal(math.log(total / (1 + OWN)), std_dev, (runs, ROUNDS))
    given = {"costs less": np.zeros(runs, bool), "costs more": np.zeros(runs, bool)}
    for count in range(FEWEST, ROUNDS + 1):
        seen = units[:, :count]
        means, scatters = seen.mean(axis=1), seen.std(axis=1, ddof=1)
        halves = radius(np.full(runs, count), scatters, CONFIDENCE)
        for run, (mean, half) in enumerate(zip(means, halves, strict=True)):
            low, high = (math.exp(mean + side * half) * (1 + OWN) for side in (-1, 1))
            verdict = processor_verdict(Ratio(1.0, low, high, count), PRACTICAL, enough=True)
            if verdict in given:
                given[verdict][run] = True
    return {verdict: float(share.mean()) for verdict, share in given.items()}


@pytest.mark.parametrize("std_dev", [0.005, 0.03])
def test_the_share_that_matters_itself_is_seldom_said_to_be_less_or_more(std_dev, runs, generator, figure):
    found = ever(runs, generator, 1 + PRACTICAL, std_dev)
    for verdict, share in found.items():
        figure(f"an observer that takes just {PRACTICAL:.0%}, scatter {std_dev:.1%}: {verdict}", share)
    assert sum(found.values()) <= at_most(1 - CONFIDENCE, runs)


@pytest.mark.parametrize(("total", "verdict"), [(1 + OWN, "costs less"), (1.02, "costs more")])
def test_what_is_clear_is_found(total, verdict, runs, generator, figure):
    found = ever(runs, generator, total, 0.01)
    figure(f"an observer that takes {total - 1:.1%}, scatter 1.0%, 60 rounds: {verdict}", found[verdict])
    assert found[verdict] > 0.85
