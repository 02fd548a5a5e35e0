"""One comparison, looked at after every round up to 40: false alarms, coverage, equivalence, power."""

import math
from dataclasses import replace

import numpy as np
import pytest
from simulation import NOISES, REALISTIC, at_most, looks, series, units

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.noise import noise_floor
from uncork.stats.sample import Units

ALPHA, ROUNDS, PRACTICAL = 0.05, 40, 0.03
JUDGED = slice(MINIMUM_ROUNDS - 1, None)


@pytest.mark.parametrize("noise", NOISES)
def test_a_thing_against_itself_is_ever_called_different_at_most_as_often_as_stated(
    noise, runs, generator, figure
):
    state = looks(units(series(generator, NOISES[noise], runs=runs, rounds=ROUNDS, arms=3))[:, 0])
    share = state.excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure(f"one: ever faster or slower, A/A, {noise}", share)
    assert share <= at_most(ALPHA, runs)


def test_the_baselines_two_arms_differ_at_most_as_often_as_stated(runs, generator, figure):
    values = series(generator, REALISTIC, runs=runs, rounds=ROUNDS, arms=2)
    state = looks((values[..., 1] - values[..., 0]).mean(axis=2))
    share = state.excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure("one: baseline again ever differs from baseline", share)
    assert share <= at_most(ALPHA, runs)


@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_the_interval_holds_the_truth_at_every_look(effect, runs, generator, figure):
    truth = math.log1p(effect)
    state = looks(units(series(generator, REALISTIC, runs=runs, rounds=ROUNDS, arms=3))[:, 0] + truth)
    share = state.excludes(truth).any(axis=1).mean()
    figure(f"one: interval ever excludes the true effect of {effect:.0%}, any look", share)
    assert share <= at_most(ALPHA, runs)


def test_an_effect_at_the_threshold_is_called_none_at_most_as_often_as_stated(runs, generator, figure):
    truth = math.log1p(PRACTICAL)
    state = looks(units(series(generator, REALISTIC, runs=runs, rounds=ROUNDS, arms=3))[:, 0] + truth)
    share = state.inside(PRACTICAL)[:, JUDGED].any(axis=1).mean()
    figure("one: true effect exactly 3 %, ever 'no practical difference'", share)
    assert share <= at_most(ALPHA, runs)


def test_stopping_when_precise_keeps_coverage(runs, generator, figure):
    truth = math.log1p(0.05)
    state = looks(units(series(generator, REALISTIC, runs=runs, rounds=ROUNDS, arms=3))[:, 0] + truth)
    done = state.half <= math.log1p(0.03)
    done[:, : MINIMUM_ROUNDS - 1] = False
    stop = np.where(done.any(axis=1), done.argmax(axis=1), ROUNDS - 1)
    at_stop = np.arange(runs), stop
    share = state.excludes(truth)[at_stop].mean()
    figure("one: interval excludes the truth when stopped at a precision of 3 %", share)
    figure("one: estimate's bias when stopped at a precision of 3 %", (state.mean[at_stop] - truth).mean())
    assert share <= at_most(ALPHA, runs)
    assert abs((state.mean[at_stop] - truth).mean()) < 0.001


def test_evidence_has_mean_one_when_stopped_by_the_width(runs, generator, figure):
    # Theory promises a mean of at most 1 for stopping times that see only ratios of units. The width of the
    # interval depends on their scale, so this stop is measured instead.
    state = looks(generator.normal(0.0, 0.025, (20 * runs, 25)))
    done = state.half <= math.log1p(0.03)
    done[:, : MINIMUM_ROUNDS - 1] = False
    stop = np.where(done.any(axis=1), done.argmax(axis=1), 24)
    evidence = np.exp(state.log_e()[np.arange(len(stop)), stop])
    error = evidence.std() / math.sqrt(len(evidence))
    figure("one: mean e-value of no effect, stopped at a precision of 3 % (at most 100 %)", evidence.mean())
    figure("one: ... standard error of that mean", error)
    assert evidence.mean() <= 1.0 + 4.0 * error


@pytest.mark.parametrize(("rounds", "at_least"), [(8, 0.55), (10, 0.85), (12, 0.95)])
def test_a_slowdown_of_5_percent_is_found(rounds, at_least, runs, generator, figure):
    state = looks(generator.normal(math.log(1.05), 0.025, (runs, rounds)))
    found = ((state.mean > 0) & state.excludes(0.0))[:, JUDGED].any(axis=1).mean()
    figure(f"one: slowdown of 5 %, scatter 2.5 %, 'slower' by round {rounds:>2}", found)
    assert found >= at_least


def test_sameness_is_found(runs, generator, figure):
    state = looks(generator.normal(0.0, 0.025, (runs, 20)))
    found = state.inside(PRACTICAL)[:, JUDGED].any(axis=1).mean()
    figure("one: no effect, scatter 2.5 %, 'no practical difference' by round 20", found)
    assert found >= 0.8


def test_the_check_can_fail_fixed_n_t_interval_under_looks(runs, generator, figure):
    samples = units(series(generator, REALISTIC, runs=runs, rounds=ROUNDS, arms=3))[:, 0]
    state = looks(samples)
    counts = np.arange(1, ROUNDS + 1)
    naive = np.array([_t_quantile(max(n - 1, 1)) for n in counts]) / np.sqrt(counts)
    share = (np.abs(state.mean) > naive * state.std_dev)[:, JUDGED].any(axis=1).mean()
    figure("check: A/A ever called different by the fixed-n t interval", share)
    assert share > at_most(ALPHA, runs)


def test_the_check_can_fail_all_of_one_arm_first(runs, generator, figure):
    # Drift that interleaving cancels: each round runs one arm's blocks, then the other's, on a machine
    # whose memory is longer than a round.
    values = series(generator, REALISTIC, runs=runs, rounds=2 * ROUNDS, arms=2)[..., 0].mean(axis=2)
    slow = np.cumsum(generator.normal(0.0, 0.01, values.shape), axis=1)
    apart = (values + slow)[:, ROUNDS:] - (values + slow)[:, :ROUNDS]
    share = looks(apart).excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure("check: A/A ever called different when the arms run one after the other", share)
    assert share > at_most(ALPHA, runs)


def test_without_restarts_a_slow_process_looks_like_an_effect(runs, generator, figure):
    # One life of the server and 40 blocks as units: each arm's shift stays for good. This is why units of
    # the kind "block" carry a doubt.
    values = series(generator, REALISTIC, runs=runs, rounds=1, blocks=ROUNDS, arms=3)
    samples = (values[..., 2] - values[..., :2].mean(axis=-1))[:, 0]
    share = looks(samples).excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure("limit: A/A ever called different with 40 blocks in one life of the server", share)
    still = replace(REALISTIC, arm_shift=0.0)
    values = series(generator, still, runs=runs, rounds=1, blocks=ROUNDS, arms=3)
    samples = (values[..., 2] - values[..., :2].mean(axis=-1))[:, 0]
    same = looks(samples).excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure("limit: A/A ever called different with 40 blocks in one life, processes alike", same)
    assert share > at_most(ALPHA, runs) >= same


SPIKY = replace(REALISTIC, drift=0.0, arm_shift=0.0, spike=0.8, spike_share=0.1)
"""What shared virtual machines do: a tenth of all trials about twice as slow, for no fault of the arm."""


def test_many_short_blocks_are_as_honest_and_scatter_less(runs, generator, figure):
    values = series(generator, SPIKY, runs=runs, rounds=ROUNDS, arms=3, blocks=8)
    samples = units(values)[:, 0]
    share = looks(samples).excludes(0.0)[:, JUDGED].any(axis=1).mean()
    figure("blocks: A/A ever called different with 8 blocks and spikes in 10 % of trials", share)
    means = (values[..., 2] - values[..., :2].mean(axis=-1)).mean(axis=2)
    figure("blocks: scatter of units by the median over that by the mean", float(samples.std() / means.std()))
    figure("blocks: mean A/A unit, which should be 0", float(samples.mean()))
    assert share <= at_most(ALPHA, runs)
    assert abs(samples.mean()) < 4.0 * samples.std() / math.sqrt(samples.size)
    assert samples.std() < 0.8 * means.std()


def test_the_noise_floor_holds_what_noise_can_do(runs, generator, figure):
    experiments, cells, rounds = runs // 20, 6, 10
    values = series(generator, REALISTIC, runs=experiments * cells, rounds=rounds, arms=3)
    again = (values[..., 1] - values[..., 0]).mean(axis=2).reshape(experiments, cells, rounds)
    variant = units(values)[:, 0].mean(axis=1).reshape(experiments, cells)
    floors = [noise_floor([Units(tuple(cell)) for cell in run], 0.95).floor for run in again]
    share = (np.abs(variant) > np.log1p(floors)[:, None]).mean()
    figure("one: effect of a variant like the baseline is above the noise floor, 10 rounds", share)
    figure("one: the noise floor itself, mean", float(np.mean(floors)))
    assert share <= at_most(ALPHA, experiments * cells)


def _t_quantile(dof: int) -> float:
    """Return the 0.975 quantile of Student's t, from its density."""
    grid = np.linspace(0.0, 400.0, 400_001)
    scale = math.exp(math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)) / math.sqrt(dof * math.pi)
    density = scale * (1.0 + grid**2 / dof) ** (-(dof + 1) / 2)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2) * (grid[1] - grid[0])])
    return float(np.interp(0.475, area, grid))
