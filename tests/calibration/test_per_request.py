"""Statements of a request, from slices: the interval covers the truth as often as stated."""

import numpy as np
import pytest

from uncork.stats.load.per_request import Rise, background_rate, per_request


def slices(generator, mean, background, requests=150, seconds=0.6, rounds=3, drift=0.0):
    """Simulate slices of one kind of request; a fraction of the requests finds its answer in a cache."""
    found = []
    for place in range(rounds):
        sent = int(generator.poisson(requests))
        hit = 0.3 + drift * place
        executed = generator.binomial(sent, 1.0 - hit) * mean
        found.append(Rise(sent, seconds, float(executed + generator.poisson(background * seconds))))
    return found


@pytest.mark.parametrize(("background", "rounds"), [(0.0, 3), (200.0, 3), (200.0, 2)])
def test_the_interval_covers_the_truth(background, rounds):
    generator, runs, covered = np.random.default_rng(7), 2_000, 0
    for _ in range(runs):
        idle = [Rise(0, 0.6, float(generator.poisson(background * 0.6))) for _ in range(rounds)]
        found = per_request(slices(generator, 2.0, background, rounds=rounds), background_rate(idle))
        covered += found.low <= 2.0 * 0.7 <= found.high
    # The background's own error is not in the interval: it is small beside the requests' counts.
    assert covered / runs >= 0.90, covered / runs
    assert covered / runs <= 0.985, covered / runs
