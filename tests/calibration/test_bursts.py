"""Bursts of other programs within a block: what setting cycles aside does to errors and scatter.

A second program runs now and then (both times exponential) and takes half of the processor while it does. Its
slices are of fixed work, so that what it takes lengthens them; the measured processes wait as long.
"""

import math

import numpy as np
import pytest
from simulation import at_most, looks

from uncork.stats.bursts import cycle_weights
from uncork.stats.compare import MINIMUM_ROUNDS

CYCLES, ARMS, SLICE_MS, ROUNDS, BLOCKS, ALPHA = 20, 3, 4.0, 10, 2, 0.05
BURSTS = {  # mean of a burst and of the pause between two, in ms
    "short and frequent": (20.0, 200.0),
    "long and rare": (60.0, 600.0),
    "none": (0.0, math.inf),
}
SLOWER = math.log(1.05)


def block_times(generator, work, burst, pause):
    """Return (elapsed, delay) of every slice, in ms; `work` (blocks, cycles, arms) is its processor time."""
    blocks = len(work)
    elapsed, delay = np.zeros_like(work), np.zeros_like(work)
    busy = generator.random(blocks) < (burst / (burst + pause) if burst else 0.0)

    def lasts(busy):
        drawn = generator.standard_exponential(blocks)
        return np.where(busy, drawn * burst, drawn * pause if burst else np.inf)

    left, order, each = lasts(busy), np.argsort(generator.random(work.shape), axis=-1), np.arange(blocks)
    for cycle in range(work.shape[1]):
        for place in range(work.shape[2]):
            slot = each, cycle, order[:, cycle, place]
            need = work[slot].copy()
            while (need > 1e-9).any():
                speed = np.where(busy, 0.5, 1.0)
                step = np.where(need > 1e-9, np.minimum(need / speed, left), 0.0)
                elapsed[slot] += step
                delay[slot] += step * (1.0 - speed)
                need, left = need - step * speed, left - step
                ends = left <= 1e-9
                busy = busy ^ ends
                left = np.where(ends, lasts(busy), left)
    return elapsed, delay


def blocks_of(generator, count, kind, *, effect=0.0, heavy=0.0, stalls=0.0):
    """Return the units of blocks (kept, all) and the share of cycles that were set aside.

    `heavy` is the share of the variant's slices that need five times the processor time, `stalls` that of its
    slices that sleep for 50 ms.
    """
    work = SLICE_MS * np.exp(0.1 * generator.standard_normal((count, CYCLES, ARMS)))
    work[..., 2] *= math.exp(effect)
    work[..., 2] *= np.where(generator.random((count, CYCLES)) < heavy, 5.0, 1.0)
    elapsed, delay = block_times(generator, work, *BURSTS[kind])
    elapsed[..., 2] += 50.0 * (generator.random((count, CYCLES)) < stalls)
    delay += generator.exponential(0.02, delay.shape)
    weights = np.array(
        [cycle_weights(one, other) for one, other in zip(delay.sum(axis=2), elapsed.sum(axis=2), strict=True)]
    )
    return _unit(elapsed, weights), _unit(elapsed, np.ones_like(weights)), 1.0 - weights.mean()


def _unit(elapsed, weights):
    totals = np.log((elapsed * weights[..., None]).sum(axis=1))
    return totals[:, 2] - (totals[:, 0] + totals[:, 1]) / 2.0


@pytest.mark.parametrize("kind", BURSTS)
def test_scatter_falls_and_nothing_is_feigned(kind, runs, generator, figure):
    runs //= 8
    kept, everything, aside = blocks_of(generator, runs * ROUNDS * BLOCKS, kind)
    state = looks(kept.reshape(runs, ROUNDS, BLOCKS).mean(axis=2))
    share = state.excludes(0.0)[:, MINIMUM_ROUNDS - 1 :].any(axis=1).mean()
    before = looks(everything.reshape(runs, ROUNDS, BLOCKS).mean(axis=2))
    share_before = before.excludes(0.0)[:, MINIMUM_ROUNDS - 1 :].any(axis=1).mean()
    figure(f"bursts: A/A ever called different, {kind}", share)
    figure(f"bursts: ... with every cycle, {kind}", share_before)
    figure(f"bursts: cycles set aside, {kind}", aside)
    figure(f"bursts: scatter of blocks, {kind}", kept.std())
    figure(f"bursts: ... with every cycle, {kind}", everything.std())
    assert share <= at_most(ALPHA, runs)
    if kind == "none":
        assert aside < 1e-4
    else:
        assert kept.std() < 0.95 * everything.std()


@pytest.mark.parametrize("kind", ["short and frequent", "long and rare"])
def test_a_planted_5_percent_is_unbiased(kind, runs, generator, figure):
    kept, everything, _ = blocks_of(generator, 5 * runs, kind, effect=SLOWER)
    figure(f"bursts: slower by 5 %, error of the estimate, {kind}", kept.mean() - SLOWER)
    figure(f"bursts: ... with every cycle, {kind}", everything.mean() - SLOWER)
    assert abs(kept.mean() - SLOWER) < 4.0 * kept.std() / math.sqrt(len(kept)) + 0.0005


def test_a_variants_own_slow_operations_are_not_flattered(runs, generator, figure):
    # One slice in ten needs five times the processor time: such cycles meet more bursts than others.
    kept, everything, aside = blocks_of(generator, 5 * runs, "short and frequent", heavy=0.1)
    figure("bursts: own slow operations, estimate less that with every cycle", (kept - everything).mean())
    figure("bursts: own slow operations, cycles set aside", aside)
    assert abs((kept - everything).mean()) < 0.005


def test_a_variants_own_stalls_are_never_set_aside(runs, generator, figure):
    kept, everything, aside = blocks_of(generator, runs, "none", stalls=0.1)
    figure("bursts: own stalls of 50 ms, cycles set aside", aside)
    assert aside < 1e-4
    assert (kept == everything).mean() > 0.999
