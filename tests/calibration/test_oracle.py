"""The vectorised simulation says what the judge itself says, run for run."""

import math

import numpy as np
import pytest
from simulation import REALISTIC, kept_by_e_bh, looks, series, units

from uncork.stats.compare import e_benjamini_hochberg, estimate
from uncork.stats.sample import Observation, Units, round_units

ARMS = ("base", "base#2", "one", "two")


def test_simulated_units_are_round_units(generator):
    values = series(generator, REALISTIC, runs=3, rounds=6, arms=4)
    ours = units(values)
    for run in range(3):
        seen = [
            Observation(r, b, ARMS[arm], math.exp(values[run, r, b, arm]))
            for r, b, arm in np.ndindex(6, 2, 4)
        ]
        for variant in (0, 1):
            theirs = round_units(seen, baseline="base", again="base#2", variant=ARMS[2 + variant])
            assert theirs.values == pytest.approx(ours[run, variant], abs=1e-12)


def test_simulated_looks_are_estimates(generator):
    samples = generator.standard_normal((20, 15)).cumsum(axis=1) * 0.2 + generator.standard_normal((20, 15))
    state = looks(samples * 0.02)
    for run, count in np.ndindex(20, 15):
        effect = estimate(Units(tuple(samples[run, : count + 1] * 0.02)), 0.95)
        assert effect.ratio == pytest.approx(math.exp(state.mean[run, count]))
        assert effect.high == pytest.approx(math.exp(state.mean[run, count] + state.half[run, count]))
        assert effect.e_value == pytest.approx(math.exp(state.log_e()[run, count]))
        assert effect.evidence_of_equivalence(0.03) == pytest.approx(
            math.exp(state.log_e_equivalence(0.03)[run, count])
        )


def test_simulated_e_bh_is_e_bh(generator):
    log_e = generator.standard_normal((50, 30)) * 3 + 1
    ours = kept_by_e_bh(log_e, 0.05)
    for run in range(50):
        assert ours[run].tolist() == e_benjamini_hochberg(np.exp(log_e[run]).tolist(), 0.05)
