"""Where the model is wrong: skewed units, dependent units, rare events. The limits that the docs state."""

import numpy as np
import pytest
from simulation import looks

from uncork.stats.compare import MINIMUM_ROUNDS, estimate
from uncork.stats.ranks import contradiction, rank_effect
from uncork.stats.sample import Units

ROUNDS = 40


def _moving_average(g, shape):
    noise = g.standard_normal((shape[0], shape[1] + 1))
    return noise[:, 1:] + 0.5 * noise[:, :-1]


def _autoregressive(g, shape):
    values = g.standard_normal(shape)
    values[:, 0] /= np.sqrt(1 - 0.3**2)
    for i in range(1, shape[1]):
        values[:, i] += 0.3 * values[:, i - 1]
    return values


UNITS = {
    "normal": (lambda g, s: g.standard_normal(s), 0.05),
    "Student t, 3 degrees": (lambda g, s: g.standard_t(3, s), 0.05),
    "log-normal, sd 0.25": (lambda g, s: np.exp(0.25 * g.standard_normal(s)) - np.exp(0.25**2 / 2), 0.05),
    "log-normal, sd 0.5": (lambda g, s: np.exp(0.5 * g.standard_normal(s)) - np.exp(0.5**2 / 2), 0.08),
    "moving average, 0.5": (_moving_average, 0.10),
    "autoregressive, 0.3": (_autoregressive, 0.11),
    "one round in five off by 10 sd": (
        lambda g, s: 10.0 * (g.random(s) < 0.2) - 2.0 + g.standard_normal(s),
        0.30,
    ),
}


@pytest.mark.parametrize("shape", UNITS)
def test_share_that_ever_excludes_the_truth(shape, runs, generator, figure):
    draw, limit = UNITS[shape]
    samples = draw(generator, (runs, ROUNDS))
    shares = {}
    for prior_precision, widen in ((0.5, False), (0.25, False), (0.1, False), (0.25, True)):
        state = looks(samples, widen=widen, prior_precision=prior_precision)
        share = state.excludes(0.0)[:, MINIMUM_ROUNDS - 1 :].any(axis=1).mean()
        shares[prior_precision, widen] = share
        figure(f"shape: {shape}, c² = {prior_precision}{', widened' * widen}", share)
    assert shares[0.25, True] <= limit + 4 * np.sqrt(limit * (1 - limit) / runs)
    assert shares[0.25, True] <= shares[0.25, False]


@pytest.mark.parametrize("count", [8, 15, 30])
@pytest.mark.parametrize("shape", UNITS)
def test_share_that_excludes_the_truth_by_ranks_at_a_fixed_number_of_rounds(
    shape, count, runs, generator, figure
):
    samples = UNITS[shape][0](generator, (runs // 4, count))
    ranked = [rank_effect(one, 0.95) for one in samples]
    share = np.mean([not one.low <= 1.0 <= one.high for one in ranked])
    figure(f"ranks: {shape}, {count} rounds", share)
    if shape in ("normal", "Student t, 3 degrees"):
        assert share <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / len(samples))


@pytest.mark.parametrize("count", [8, 15, 30])
@pytest.mark.parametrize(("shape", "effect", "least", "most"), [
    ("normal", 0.0, 0.0, 0.005),
    ("normal", 1.0, 0.0, 0.02),
    ("Student t, 3 degrees", 0.0, 0.0, 0.02),
])  # fmt: skip
def test_ranks_contradict_an_effect_seldom_without_a_reason(
    shape, effect, least, most, count, runs, generator, figure
):
    samples = effect + UNITS[shape][0](generator, (runs // 4, count))
    share = np.mean([_contradicted(one) for one in samples])
    figure(f"ranks contradict: {shape}, effect {effect:g} sd, {count} rounds", share)
    assert least <= share <= most + 4 * np.sqrt(most * (1 - most) / len(samples))


def test_ranks_contradict_an_effect_that_few_rounds_make(runs, generator, figure):
    samples = generator.standard_normal((runs // 4, 30))
    samples[:, :2] += 30.0
    share = np.mean([_contradicted(one) for one in samples])
    figure("ranks contradict: 2 of 30 rounds off by 30 sd", share)
    assert share > 0.9


def _contradicted(sample):
    effect = estimate(Units(tuple(sample / 100)), 0.95)
    return contradiction(effect.ratio, effect.low, effect.high, rank_effect(sample / 100, 0.95))


def test_widening_costs_independent_units_little(runs, generator, figure):
    samples = generator.standard_normal((runs, 15))
    cost = (looks(samples).half[:, -1] / looks(samples, widen=False).half[:, -1]).mean() - 1.0
    figure("shape: mean extra width by widening, 15 independent units", cost)
    assert cost < 0.06
