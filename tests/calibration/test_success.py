"""Shares of success: false alarms where requests fail together, at a share of 1; coverage; power."""

import math

import numpy as np
import pytest
from simulation import at_most, looks

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.proportion import Counted, estimate_share, log_e_of_requests, share_units

ALPHA, ROUNDS, REQUESTS = 0.05, 20, 300
JUDGED = slice(MINIMUM_ROUNDS - 1, None)
ARMS = 3  # the baseline, the baseline again, the variant


def shares(generator, kind, runs, share):
    """Return each arm's share of success in each round: shape (runs, ROUNDS, ARMS)."""
    shape = (runs, ROUNDS, ARMS)
    if kind == "one by one":
        return np.full(shape, share)
    if (
        kind == "rounds differ"
    ):  # each arm's round has a share of its own, with a standard deviation of 1 point
        spread = share * (1.0 - share) / 0.01**2 - 1.0
        return generator.beta(share * spread, (1.0 - share) * spread, shape)
    if kind == "bursts":  # in one round of ten an arm refuses a third of its requests
        return np.where(generator.random(shape) < 0.1, share - 0.33, share)
    if kind == "common bursts":  # the machine stands still, and all arms feel it, each as it is hit
        common = generator.random((runs, ROUNDS, 1)) < 0.2
        return np.where(common, share - generator.uniform(0.0, 0.5, shape), share)
    if kind == "slow lives":  # one life of five fails four points more, in each arm by itself
        return np.where(generator.random(shape) < 0.2, share - 0.04, share)
    raise AssertionError(kind)


KINDS = ("one by one", "rounds differ", "bursts", "common bursts", "slow lives")
# Rounds that differ by a point do not fit beside a share of 1.
ALIKE = [
    (kind, share)
    for kind in KINDS
    for share in (1.0, 0.999, 0.989, 0.9)
    if kind != "rounds differ" or share < 0.99
]


class Seen:
    """What is known after each round of many experiments."""

    def __init__(self, counts, truth=0.0):
        """`counts` are successes of shape (runs, ROUNDS, ARMS); `truth` is the true difference."""
        succeeded = counts.cumsum(axis=1)
        started = REQUESTS * np.arange(1, counts.shape[1] + 1)
        own, base = succeeded[..., 2], succeeded[..., 0] + succeeded[..., 1]
        differences = counts[..., 2] / REQUESTS - (counts[..., 0] + counts[..., 1]) / (2 * REQUESTS)
        self.rounds = looks(differences)
        self.log_e = log_e_of_requests(own, started, base, 2 * started, truth)
        above = own / started - base / (2 * started) > truth
        self.by_requests = self.log_e >= -math.log(ALPHA)
        self.by_rounds = self.rounds.excludes(truth)
        # The wider interval excludes the truth when both do, on the same side.
        self.excludes = self.by_requests & self.by_rounds & (above == (self.rounds.mean > truth))


def ever(excluded):
    return excluded[:, JUDGED].any(axis=1).mean()


@pytest.mark.parametrize(("kind", "share"), ALIKE)
def test_a_service_against_itself_is_ever_called_different_at_most_as_often_as_stated(
    kind, share, runs, generator, figure
):
    counts = generator.binomial(REQUESTS, shares(generator, kind, runs, share))
    seen = Seen(counts)
    name = f"success: ever more or fewer, A/A at {share:.1%}, {kind}"
    figure(name, ever(seen.excludes))
    figure(f"{name}; by requests alone", ever(seen.by_requests))
    figure(f"{name}; by rounds alone", ever(seen.by_rounds))
    assert ever(seen.excludes) <= at_most(ALPHA, runs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_holds_the_truth_at_every_look(kind, runs, generator, figure):
    truth = -0.02
    each = shares(generator, kind, runs, 0.98)
    each[..., 2] += truth
    seen = Seen(generator.binomial(REQUESTS, each), truth)
    figure(f"success: interval ever excludes the true −2 points, {kind}", seen.excludes.any(axis=1).mean())
    assert seen.excludes.any(axis=1).mean() <= at_most(ALPHA, runs)


def test_failures_that_nobody_has_seen_yet_are_not_excluded(runs, generator, figure):
    """One of a thousand fails with the variant: rounds without a failure must not prove there is none."""
    each = np.full((runs, ROUNDS, ARMS), 1.0)
    each[..., 2] = 0.999
    seen = Seen(generator.binomial(REQUESTS, each), -0.001)
    figure("success: 99.9 % against 100 %, interval ever excludes −0.1 points", ever(seen.excludes))
    figure("success: 99.9 % against 100 %, the same by rounds alone", ever(seen.by_rounds))
    assert ever(seen.excludes) <= at_most(ALPHA, runs)


@pytest.mark.parametrize("rounds", [5, 7, 10, 15, 20])
@pytest.mark.parametrize("kind", ["one by one", "slow lives"])
def test_power_to_tell_98_9_from_100_per_cent(kind, rounds, runs, generator, figure):
    each = shares(generator, kind, runs, 0.989)
    each[..., 2] = 1.0
    seen = Seen(generator.binomial(REQUESTS, each))
    share = seen.excludes[:, rounds - 1].mean()
    figure(f"success: 98.9 % against 100 %, {REQUESTS} requests a trial, {rounds:2} rounds, {kind}", share)
    if rounds >= 10:
        assert share >= {"one by one": 0.95, "slow lives": 0.5}[kind]


def test_the_simulation_judges_as_runs_are_judged(generator):
    """`Seen` must say what `share_units` and `estimate_share` say."""
    counts = generator.binomial(REQUESTS, shares(generator, "slow lives", 20, 0.95))
    seen = Seen(counts)
    for run in range(20):
        for rounds in (4, 9, ROUNDS):
            trials = [
                Counted(number, 1, arm, int(counts[run, number, place]), REQUESTS)
                for number in range(rounds)
                for place, arm in enumerate(("base", "base#2", "new"))
            ]
            effect = estimate_share(share_units(trials, baseline="base", again="base#2", variant="new"), 0.95)
            assert effect.excludes_none == bool(seen.excludes[run, rounds - 1])
            assert effect.difference == pytest.approx(seen.rounds.mean[run, rounds - 1])
