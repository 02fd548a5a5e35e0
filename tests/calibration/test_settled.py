"""Comparisons that leave when they are settled, one by one: what that costs in errors and in bias.

`settled_at` is `stats.compare.settled` over many experiments at once; the last test holds one to the other.
"""

import math

import numpy as np
import pytest
from simulation import REALISTIC, at_most, kept_by_e_bh, looks, series, units

from uncork.stats.compare import MINIMUM_ROUNDS, SIZE_SHARE, settled
from uncork.stats.effect import estimate
from uncork.stats.sample import Units

ALPHA, ROUNDS, PRACTICAL, PRECISION, CELLS, VARIANTS = 0.05, 40, 0.03, 0.03, 6, 5
TRUTHS = {
    "nothing differs": (0.0, 0.0, 0.0, 0.0, 0.0),
    "one in five slower by 5 %": (0.0, math.log(1.05), 0.0, 0.0, 0.0),
    "large effects beside none": (0.0, math.log(0.59), 0.0, math.log(2.0), math.log(0.25)),
}


def settled_at(state, precision=PRECISION, practical=PRACTICAL):
    """Return the look of each comparison (runs, comparisons) when it leaves; the last look if never."""
    edge, distance = math.log1p(practical), np.abs(state.mean)
    precise = state.half <= math.log1p(precision)
    beyond, inside = distance - state.half > edge, state.inside(practical)
    claims = beyond & (precise | (state.half <= SIZE_SHARE * distance))
    log_e, log_same = state.log_e(), state.log_e_equivalence(practical)
    shape, length = state.mean.shape[:2], state.mean.shape[2]
    stop = np.full(shape, length - 1)
    gone = np.zeros(shape, dtype=bool)
    for look in range(MINIMUM_ROUNDS - 1, length):
        now = np.where(gone, stop, look)[..., None]

        def at(values, now=now):
            return np.take_along_axis(values, now, axis=2)[..., 0]

        differs = kept_by_e_bh(np.where(at(claims), at(log_e), -np.inf), ALPHA)
        alike = kept_by_e_bh(np.where(at(inside), at(log_same), -np.inf), ALPHA)
        leaves = differs | alike | (at(precise) & ~at(beyond) & ~at(inside))
        assert (leaves | ~gone).all(), "what has left is open again"
        stop[leaves & ~gone] = look
        gone |= leaves
    return stop, gone


def _at(values, stop):
    return np.take_along_axis(values, stop[..., None], axis=2)[..., 0]


@pytest.mark.parametrize("case", TRUTHS)
def test_false_discoveries_where_comparisons_leave_one_by_one(case, runs, generator, figure):
    runs = max(runs // 4, 2_000 if case == "nothing differs" else 0)
    truth = np.tile(TRUTHS[case], CELLS)
    values = series(generator, REALISTIC, runs=runs * CELLS, rounds=ROUNDS, arms=2 + VARIANTS)
    samples = units(values).reshape(runs, CELLS * VARIANTS, ROUNDS) + truth[:, None]
    state = looks(samples)
    stop, gone = settled_at(state)
    kept = kept_by_e_bh(_at(state.log_e(), stop), ALPHA)
    wrong = kept & ((truth == 0.0) | (np.sign(_at(state.mean, stop)) != np.sign(truth)))
    false = (wrong.sum(axis=1) / np.maximum(kept.sum(axis=1), 1)).mean()
    figure(f"settled: false discovery rate, {case}", false)
    figure(f"settled: experiments with any false claim, {case}", wrong.any(axis=1).mean())
    figure(f"settled: interval excludes the truth, {case}", _misses(state, stop, truth))
    figure(f"settled: comparisons settled by round {ROUNDS}, {case}", gone.mean())
    figure(f"settled: trials measured, of those when all go on to ±3 %, {case}", _cost(state, stop))
    if truth.any():
        figure(f"settled: true effects found, {case}", kept[:, truth != 0.0].mean())
    assert false <= at_most(ALPHA, runs)
    assert wrong.any(axis=1).mean() <= at_most(ALPHA, runs) or truth.any()
    assert _misses(state, stop, truth) <= at_most(ALPHA, runs)


def _misses(state, stop, truth):
    return (np.abs(_at(state.mean, stop) - truth) > _at(state.half, stop)).mean()


def _cost(state, stop):
    """Return the trials measured, over those of cells that go on until all is precise."""
    precise = state.half <= math.log1p(PRECISION)
    precise[..., : MINIMUM_ROUNDS - 1] = False
    last = np.where(precise.any(axis=2), precise.argmax(axis=2), ROUNDS - 1)
    cells = last.reshape(len(last), CELLS, VARIANTS).max(axis=2) + 1
    own = stop.reshape(len(stop), CELLS, VARIANTS) + 1
    return (own.sum(axis=2) + 2 * own.max(axis=2)).sum() / (cells * (VARIANTS + 2)).sum()


@pytest.mark.parametrize("std_dev", [0.025, 0.1, 0.3])
@pytest.mark.parametrize("effect", [0.05, 0.15, -0.41, 1.0, -0.75])
def test_estimates_are_hardly_overstated_by_leaving_early(effect, std_dev, runs, generator, figure):
    truth = math.log1p(effect)
    state = looks(generator.normal(truth, std_dev, (runs, 1, ROUNDS)))
    stop, _ = settled_at(state)
    bias = (_at(state.mean, stop) - truth).mean() / truth
    name = f"effect {effect:+.0%}, scatter {std_dev:.1%}"
    figure(f"leaving: bias of the estimate, of the effect; {name}", bias)
    figure(f"leaving: interval excludes the truth; {name}", _misses(state, stop, truth))
    figure(f"leaving: rounds, of 100; {name}", (stop.mean() + 1) / 100)
    error = 4.0 * std_dev / math.sqrt(MINIMUM_ROUNDS * runs) / abs(truth)
    assert abs(bias) < 0.025 + error
    assert _misses(state, stop, truth) <= at_most(ALPHA, runs)


@pytest.mark.parametrize(("rounds", "at_least"), [(10, 0.85), (12, 0.93)])
def test_a_planted_5_percent_is_found_among_settled_comparisons(rounds, at_least, runs, generator, figure):
    state = looks(generator.normal(math.log(1.05), 0.025, (runs, 1, rounds)))
    stop, _ = settled_at(state)
    found = ((_at(state.mean, stop) > 0) & (np.abs(_at(state.mean, stop)) > _at(state.half, stop))).mean()
    figure(f"settled: slowdown of 5 %, scatter 2.5 %, found by round {rounds} at the latest", found)
    assert found >= at_least


def test_the_simulation_leaves_when_the_judge_does(generator):
    samples = generator.normal(0.0, 0.03, (20, 12, 15)) + np.tile((0.0, 0.05, 0.5), 4)[:, None]
    stop, gone = settled_at(looks(samples))
    for run in range(len(samples)):
        series_of = [list(one[: MINIMUM_ROUNDS - 1]) for one in samples[run]]
        left = {}
        for look in range(MINIMUM_ROUNDS - 1, samples.shape[2]):
            for place, one in enumerate(series_of):
                if place not in left:
                    one.append(samples[run, place, look])
            done = settled(
                [estimate(Units(tuple(one)), 0.95) for one in series_of],
                precision=[PRECISION] * 12,
                practical=[PRACTICAL] * 12,
                confidence=0.95,
            )
            for place in np.flatnonzero(done):
                left.setdefault(int(place), look)
        assert left == {int(place): int(stop[run, place]) for place in np.flatnonzero(gone[run])}
