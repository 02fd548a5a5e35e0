"""How often what is said of an observer that was switched within one load is wrong.

Noise is simulated, and recorded: `tests/fixtures/switched/noise.npz` holds two minutes of look-ups by two
clients on a virtual machine with two processors, of which others took one: operations, and processor time of
others in units of 10 µs, for each 10 ms. Lots are drawn anew in each run, and the observer is planted.
"""

import math
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from simulation import at_most

from uncork.experiment.plan.switching import PATTERNS, done_between
from uncork.model.results.observer_cost import Ratio, cost_verdict
from uncork.stats.ab_switching import adjusted_estimate, disagree, plain_estimate

FIXTURE = Path(__file__).parents[1] / "fixtures" / "switched" / "noise.npz"
SEED = 20261122
CONFIDENCE, SURE, PRACTICAL = 0.95, 0.9875, 0.01
QUADRUPLES = 160  # 80 seconds
STEP_S, SLICE_S, GUARD_S = 0.01, 0.1, 0.02
LOTS = np.array(PATTERNS)


def waves(generator, runs, memories):
    """Return slow and quick noise together: a first-order autoregression of unit variance for each memory."""
    total = np.zeros((runs, 4 * QUADRUPLES))
    for memory in memories:
        wave = generator.standard_normal(runs)
        fresh = math.sqrt(1 - memory**2)
        for step in range(4 * QUADRUPLES):
            wave = memory * wave + fresh * generator.standard_normal(runs)
            total[:, step] += wave
    return total / math.sqrt(len(memories))


def steps(generator, runs):
    """Return levels that last some seconds, as when a neighbour begins or ends."""
    changes = generator.random((runs, 4 * QUADRUPLES)) < 0.03
    return np.cumsum(changes * generator.standard_normal((runs, 4 * QUADRUPLES)), axis=1)


def bursts(generator, runs):
    """Return what takes a processor away for a slice or two, now and then."""
    begun = (generator.random((runs, 4 * QUADRUPLES)) < 0.04) * generator.exponential(
        0.4, (runs, 4 * QUADRUPLES)
    )
    return begun + 0.5 * np.roll(begun, 1, axis=1)


NOISES = {
    "quiet": (0.02, 0.01, 0.0, 0.0),
    "drift and steps": (0.02, 0.05, 0.05, 0.0),
    "bursts": (0.02, 0.02, 0.0, 1.0),
    "all of it, heavy": (0.06, 0.15, 0.1, 1.0),
}
"""What slices differ by: their own noise, what others take slowly, in steps, and in bursts."""


def slices(generator, runs, noise):
    """Yield for each run the logs of throughput while nothing observes, and what others took."""
    own, slow, stepped, burst = NOISES[noise]
    others = 0.2 * np.exp(
        slow / 0.2 * waves(generator, runs, (0.5, 0.95, 0.995)) + stepped / 0.2 * steps(generator, runs)
    )
    others = np.minimum(1.8, others + burst * bursts(generator, runs))
    # What others do is felt more than they take, and not evenly; a part of it is not seen.
    felt = np.log1p(-0.45 * others) * 1.3 + slow * 0.3 * waves(generator, runs, (0.8, 0.99))
    logs = felt + own * generator.standard_t(4, others.shape)
    shape = (runs, QUADRUPLES, 4)
    yield from zip(logs.reshape(shape), others.reshape(shape), strict=True)


def recorded(generator, runs):
    """Yield the same of the recorded noise, begun anywhere: what was done in slices with guards between."""
    stored = np.load(FIXTURE)
    counts, others = stored["operations"].astype(float), stored["others_10us"].astype(float) * 1e-5
    whole = int(len(counts) * STEP_S / (SLICE_S + GUARD_S) / 4) - 1
    for _ in range(runs):
        first = generator.uniform(0, SLICE_S + GUARD_S) + np.arange(4 * whole) * (SLICE_S + GUARD_S)
        done = done_between(first, first + SLICE_S, counts, STEP_S)
        taken = done_between(first, first + SLICE_S, others, STEP_S) / SLICE_S
        yield np.log(np.maximum(done, 0.5)).reshape(-1, 4), taken.reshape(-1, 4)


@cache
def undisturbed(noise, runs):
    generator = np.random.default_rng([SEED, *noise.encode()])
    return list(recorded(generator, runs) if noise == "recorded" else slices(generator, runs, noise))


def found(noise, runs, cost, *, rare=None):
    """Yield both estimates, run by run, of an observer that takes `cost` of the throughput while it is on.

    With `rare` it does so in that share of slices only.
    """
    generator = np.random.default_rng([SEED, round(cost * 1e6), *noise.encode()])
    for logs, others in undisturbed(noise, runs):
        on = LOTS[generator.integers(0, 2, len(logs))]
        hit = on if rare is None else on & (generator.random(on.shape) < rare)
        slowed = logs + math.log1p(-cost) * hit
        plain = plain_estimate(np.exp(slowed), on)
        adjusted = adjusted_estimate(slowed, on, np.stack([others, others**2, 0 * others], axis=-1))
        yield plain, adjusted


ALL = [*NOISES, "recorded"]


@pytest.mark.parametrize("noise", ALL)
def test_intervals_hold_the_truth_as_often_as_they_say(noise, runs, figure):
    runs //= 5
    for cost in (0.0, 0.03):
        missed = {"as counted": 0, "freed of noise": 0}
        apart, halves = 0, []
        for plain, adjusted in found(noise, runs, cost):
            for name, one in zip(missed, (plain, adjusted), strict=True):
                _, low, high = one.interval(CONFIDENCE)
                missed[name] += not low <= 1 - cost <= high
            halves.append((high - low) / 2)
            apart += disagree(plain, adjusted)
        what = f"switched, {noise}, cost {cost:.0%}"
        for name, count in missed.items():
            figure(f"{what}: {name}, the interval misses it", count / runs)
            assert count / runs <= at_most(1 - CONFIDENCE, runs)
        figure(f"{what}: half of the width, freed of noise", float(np.median(halves)))
        figure(f"{what}: the estimates are said to disagree", apart / runs)
        assert apart / runs <= at_most(0.015, runs)


def verdicts(noise, runs, cost, *, rare=None):
    """Return how often each verdict was given."""
    given = Counter()
    for plain, adjusted in found(noise, runs, cost, rare=rare):
        sure = Ratio(*adjusted.interval(SURE), adjusted.units)
        given[cost_verdict(sure, PRACTICAL, enough=not disagree(plain, adjusted))] += 1
    return {verdict: count / runs for verdict, count in given.items()}


@pytest.mark.parametrize("noise", ALL)
def test_a_cost_of_just_one_percent_is_seldom_said_to_be_less_or_more(noise, runs, figure):
    runs //= 5
    given = verdicts(noise, runs, PRACTICAL)
    wrong = given.get("costs less", 0.0) + given.get("costs more", 0.0)
    figure(f"switched, {noise}, cost 1%: said to be less or more", wrong)
    assert wrong <= at_most(1 - SURE, runs)


@pytest.mark.parametrize("noise", ALL)
def test_a_cost_of_three_percent_is_found(noise, runs, figure):
    runs //= 10
    given = verdicts(noise, runs, 0.03)
    figure(f"switched, {noise}, cost 3%: said to be more than 1%", given.get("costs more", 0.0))
    figure(f"switched, {noise}, cost 3%: said to cost something", given.get("costs something", 0.0))
    assert given.get("costs more", 0.0) + given.get("costs something", 0.0) > 0.9
    assert not given.get("costs less")


@pytest.mark.parametrize("noise", ["quiet", "drift and steps", "bursts"])
def test_a_cost_of_a_third_of_a_percent_is_shown_to_be_less_than_one(noise, runs, figure):
    runs //= 10
    given = verdicts(noise, runs, 0.0033)
    figure(f"switched, {noise}, cost 0.33%: said to be less than 1%", given.get("costs less", 0.0))
    assert given.get("costs less", 0.0) > 0.4


def test_a_cost_that_comes_seldom_is_not_said_to_be_small(runs, figure):
    """Half of the throughput is lost in one slice of ten while it is on: 5 % in all."""
    runs //= 10
    given = verdicts("quiet", runs, 0.5, rare=0.1)
    less = given.get("costs less", 0.0)
    figure("switched, quiet, cost 5% in one slice of ten: said to be less than 1%", less)
    assert less <= at_most(1 - SURE, runs)


def test_what_another_observer_costs_at_the_same_time_is_not_taken_for_it(runs, figure):
    """One that costs nothing, while another that is switched by a lot of its own costs 10 %."""
    runs //= 5
    generator = np.random.default_rng([SEED, 2])
    missed = 0
    for logs, others in undisturbed("quiet", runs):
        on, beside = (LOTS[generator.integers(0, 2, len(logs))] for _ in range(2))
        slowed = logs + math.log(0.9) * beside
        covariates = np.stack([others, others**2, beside], axis=-1)
        _, low, high = adjusted_estimate(slowed, on, covariates).interval(CONFIDENCE)
        missed += not low <= 1 <= high
        assert high - low < 0.02
    figure("switched, quiet, cost 0% beside one of 10%: the interval misses it", missed / runs)
    assert missed / runs <= at_most(1 - CONFIDENCE, runs)
