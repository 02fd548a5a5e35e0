"""Short slices against long ones: how often the check falls back without a reason, and what it finds.

Slices of one cycle share the drift of the machine; what is left is 2 % from round to round, heavy tails and
spikes. Long slices are few, so a round of them is noisier: one block here, where short slices have two.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from simulation import QUIET, at_most, looks, series, units

from uncork.experiment.plan.slicing import has_long_slices
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import estimate
from uncork.stats.lengths import is_disturbed, short_to_long
from uncork.stats.sample import Units

ALPHA, ROUNDS, PRACTICAL, COMPARISONS, ARMS = 0.05, 40, 0.03, 12, 5
LONG = np.array([has_long_slices(number, ROUNDS) for number in range(1, ROUNDS + 1)])
NOISE = replace(QUIET, arm_shift=0.02, trial=0.02, spike=0.15, spike_share=0.02)
NEEDED = math.log(COMPARISONS / ALPHA)


def by_rounds(generator, runs):
    """Return effects of shape (experiments, comparisons, rounds), where nothing differs."""
    pairs = runs * COMPARISONS // (ARMS - 2)
    short = units(series(generator, NOISE, runs=pairs, rounds=ROUNDS, arms=ARMS))
    long = units(series(generator, NOISE, runs=pairs, rounds=ROUNDS, arms=ARMS, blocks=1))
    return np.where(LONG, long, short).reshape(-1, COMPARISONS, ROUNDS)


def groups(values):
    """Return the units of the check: the mean of each two rounds of short slices, less the long one's."""
    ends = np.flatnonzero(LONG)
    return np.stack(
        [(values[..., end - 2] + values[..., end - 1]) / 2 - values[..., end] for end in ends], -1
    )


def found(state):
    """Return whether a comparison is found disturbed, at each look."""
    counts = np.arange(1, state.mean.shape[-1] + 1)
    matters = np.abs(state.mean) > math.log1p(PRACTICAL)
    return (counts >= MINIMUM_ROUNDS) & matters & (state.log_e() >= NEEDED)


@pytest.mark.parametrize("bias", [0.0, PRACTICAL, 0.06, 0.1, 0.2])
def test_how_often_a_run_falls_back(bias, runs, generator, figure):
    values = by_rounds(generator, runs)
    values[:, 0, ~LONG] += math.log1p(bias)  # one of the twelve is disturbed in short slices
    fell = found(looks(groups(values))).any(axis=2)
    figure(f"slices: runs that fall back, disturbed by {bias:.1%} (threshold 3 %)", fell.any(axis=1).mean())
    figure(f"slices: other comparisons found disturbed, at {bias:.1%}", fell[:, 1:].any(axis=1).mean())
    assert fell[:, 1:].any(axis=1).mean() <= at_most(ALPHA, len(values))
    if bias == 0.0:
        assert fell.any(axis=1).mean() <= at_most(ALPHA, len(values))
    if bias >= 0.1:
        assert fell[:, 0].mean() >= (0.8 if bias == 0.1 else 0.95)


def test_the_simulation_is_what_is_used(generator):
    values = by_rounds(generator, 3)
    values[0, 0, ~LONG] += math.log1p(0.2)
    state = looks(groups(values))
    for experiment, comparison in np.ndindex(values.shape[:2]):
        own = values[experiment, comparison]
        labels = tuple((number, 0) for number in range(1, ROUNDS + 1))
        checked = short_to_long(Units(tuple(own), "round", labels), set(np.flatnonzero(LONG) + 1))
        ratio = estimate(checked, 1 - ALPHA)
        assert math.log(ratio.ratio) == pytest.approx(state.mean[experiment, comparison, -1])
        disturbed = found(state)[experiment, comparison, -1]
        assert is_disturbed(ratio, PRACTICAL, COMPARISONS / ALPHA) == disturbed
    assert found(state)[0, 0, -1]
