"""Thirty comparisons at once (6 cells, 5 variants each against the cell's own baseline): e-BH's promises."""

import math
from dataclasses import replace

import numpy as np
import pytest
from simulation import REALISTIC, at_most, kept_by_e_bh, looks, series, units

from uncork.stats.compare import MINIMUM_ROUNDS

ALPHA, ROUNDS, PRACTICAL, CELLS, VARIANTS = 0.05, 20, 0.03, 6, 5
SHARED = {  # true log effect of each variant, alike in every cell
    "no effect anywhere": (0.0, 0.0, 0.0, 0.0, 0.0),
    "one in five slower by 5 %": (0.0, math.log(1.05), 0.0, 0.0, 0.0),
    "two in five differ by 8 %": (0.0, math.log(1.08), 0.0, -math.log(1.08), 0.0),
}
AT_THRESHOLD = (0.0, 0.0, 0.0, math.log1p(PRACTICAL), -math.log1p(PRACTICAL))


# Quiet enough for most comparisons to be settled, or nothing would be claimed and nothing tested.
QUIETER = replace(REALISTIC, drift=0.02, arm_shift=0.005, trial=0.008, spike_share=0.005)


def _matrix(generator, runs, truth, noise=REALISTIC):
    """Return (looks, truth) with shapes (runs, comparisons, rounds) and (comparisons,)."""
    values = series(generator, noise, runs=runs * CELLS, rounds=ROUNDS, arms=2 + VARIANTS)
    samples = (units(values) + np.array(truth)[:, None]).reshape(runs, CELLS * VARIANTS, ROUNDS)
    return looks(samples), np.tile(truth, CELLS)


def _stop(state):
    """Return for each run the look at which all comparisons are as precise as 3 %, or the last."""
    done = (state.half <= math.log1p(0.03)).all(axis=1)
    done[:, : MINIMUM_ROUNDS - 1] = False
    return np.where(done.any(axis=1), done.argmax(axis=1), ROUNDS - 1)


def _share_false(claimed, wrong):
    """Return each run's and look's share of false claims among its claims; none counts as zero."""
    return (claimed & wrong).sum(axis=-1) / np.maximum(claimed.sum(axis=-1), 1)


@pytest.mark.parametrize("case", SHARED)
def test_false_discoveries_among_faster_and_slower(case, runs, generator, figure):
    runs //= 4
    state, truth = _matrix(generator, runs, SHARED[case])
    kept = kept_by_e_bh(np.moveaxis(state.log_e(), 1, 2), ALPHA)
    kept[:, : MINIMUM_ROUNDS - 1] = False
    wrong = (truth == 0.0) | (np.sign(np.moveaxis(state.mean, 1, 2)) != np.sign(truth))
    false = _share_false(kept, wrong)
    at_stop = false[np.arange(runs), _stop(state)].mean()
    figure(f"matrix: false discovery rate when stopped, {case}", at_stop)
    figure(f"matrix: false discovery rate at the worst look, {case}", false.mean(axis=0).max())
    figure(f"matrix: share of runs with any false claim ever, {case}", (kept & wrong).any(axis=(1, 2)).mean())
    alone = state.excludes(0.0)[..., MINIMUM_ROUNDS - 1 :].any(axis=2)[:, truth == 0.0].any(axis=1).mean()
    figure(f"matrix: the same without e-BH, {case}", alone)
    if not truth.any():
        assert alone > at_most(ALPHA, runs), "nothing to correct: the check could not fail"
    else:
        figure(f"matrix: true effects found when stopped, {case}", _found(kept, state, truth))
    assert at_stop <= at_most(ALPHA, runs)
    assert false.mean(axis=0).max() <= at_most(ALPHA, runs)


def test_false_claims_of_no_practical_difference(runs, generator, figure):
    runs //= 4
    state, truth = _matrix(generator, runs, AT_THRESHOLD, QUIETER)
    kept = kept_by_e_bh(np.moveaxis(state.log_e_equivalence(PRACTICAL), 1, 2), ALPHA)
    kept[:, : MINIMUM_ROUNDS - 1] = False
    false = _share_false(kept, truth != 0.0)
    at_stop = false[np.arange(runs), _stop(state)].mean()
    figure("matrix: false share of 'no practical difference' when stopped, two in five at 3 %", at_stop)
    figure("matrix: false share of 'no practical difference', worst look", false.mean(axis=0).max())
    found = kept[np.arange(runs), _stop(state)][:, truth == 0.0].mean()
    figure("matrix: true sameness found when stopped", found)
    alone = state.inside(PRACTICAL)[..., MINIMUM_ROUNDS - 1 :].any(axis=2)[:, truth != 0.0].any(axis=1).mean()
    figure("matrix: any false 'no practical difference' ever, without e-BH", alone)
    assert found > 0.5
    assert at_stop <= at_most(ALPHA, runs)
    assert false.mean(axis=0).max() <= at_most(ALPHA, runs)


def test_the_check_can_fail_without_correction(runs, generator, figure):
    runs //= 4
    state, _ = _matrix(generator, runs, SHARED["no effect anywhere"])
    counts = np.sqrt(np.arange(1, ROUNDS + 1))
    share = (np.abs(state.mean) > 2.0 * state.std_dev / counts)[..., -1].any(axis=1).mean()
    figure("check: any of 30 A/A comparisons called different by one look at 2 standard errors", share)
    assert share > at_most(ALPHA, runs)


def _found(kept, state, truth):
    stop = _stop(state)
    return kept[np.arange(len(stop)), stop][:, truth != 0.0].mean()
