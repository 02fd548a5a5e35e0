"""What a change saves over a workload: the interval of the sum covers, and useless changes are not cured.

A simulated statement has a ratio, measured in some rounds with lognormal noise, and a t interval of the logs.
Real runs have wider intervals, because they are valid at every look; so these figures are the worst case.
"""

import numpy as np
import pytest

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import account_of, judge
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import StatementEffect
from uncork.stats.student import student_reach

CONFIDENCE = 0.95
ARM = Arm("change", "setting", "Change it.", "", "", settings={"jit": "off"})


def workload(generator, count):
    """Statements whose parts of the time differ as those of real servers do: a few have most of it."""
    means = generator.lognormal(np.log(1e6), 1.5, count)
    rates = generator.lognormal(np.log(1000), 1.0, count)
    return CapturedWorkload(
        tuple(
            CapturedStatement(n, "SELECT", ((),), "none", rates[n], means[n], 0, ("t",), changes=False)
            for n in range(count)
        ),
        (),
        60.0,
        1.0,
    )


def measured(generator, captured, ratios, *, rounds, noise):
    """Return the effects of one run, each with noise of its own."""
    reach = student_reach(CONFIDENCE, rounds - 1)
    found = []
    for one, ratio in zip(captured.statements, ratios, strict=True):
        logs = np.log(ratio) + generator.normal(0.0, noise, rounds)
        middle, half = logs.mean(), reach * logs.std(ddof=1) / np.sqrt(rounds)
        low, centre, high = (float(value) for value in np.exp([middle - half, middle, middle + half]))
        found.append(
            StatementEffect(
                *(one.template, one.sql, False, one.calls_per_hour, "none", one.mean_ns),
                *(one.mean_ns * ratio, centre, low, high),
            )
        )
    return found


def verdict(generator, captured, ratios, **how):
    effects = measured(generator, captured, ratios, **how)
    net = account_of(ARM, effects, captured).net
    return judge(ARM, effects, net)[0], net


@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize(("rounds", "noise"), [(5, 0.05), (5, 0.3), (12, 0.15)])
def test_the_interval_of_a_sum_covers_what_a_change_saves(generator, runs, figure, count, rounds, noise):
    many, covered = runs // 8, 0
    for _ in range(many):
        captured = workload(generator, count)
        ratios = generator.uniform(0.2, 1.3, count)
        _, net = verdict(generator, captured, ratios, rounds=rounds, noise=noise)
        truth = sum(
            one.calls_per_hour * one.mean_ns * (1 - ratio) / 1e9
            for one, ratio in zip(captured.statements, ratios, strict=True)
        )
        covered += net.low <= truth <= net.high
    figure(f"time saved covered, {count} statements, {rounds} rounds, noise {noise:.0%}", covered / many)
    assert covered / many >= 0.925


@pytest.mark.parametrize("count", [2, 5, 12])
def test_a_useless_change_is_rarely_cured(generator, runs, figure, count):
    many, cured = runs // 8, 0
    for _ in range(many):
        state, _ = verdict(generator, workload(generator, count), np.ones(count), rounds=5, noise=0.1)
        cured += state == "cured"
    figure(f"useless change cured, {count} statements", cured / many)
    assert cured / many <= 0.025 + 2.6 * np.sqrt(0.025 * 0.975 / many)


def test_the_best_of_many_useless_changes_is_cured_no_more_often_once_it_is_measured_again(
    generator, runs, figure
):
    many, at_once, confirmed = runs // 20, 0, 0
    for _ in range(many):
        captured = workload(generator, 3)
        ones = np.ones(3)
        tried = [verdict(generator, captured, ones, rounds=5, noise=0.1) for _ in range(10)]
        if any(state == "cured" for state, _ in tried):
            at_once += 1
            confirmed += verdict(generator, captured, ones, rounds=5, noise=0.1)[0] == "cured"
    figure("some of ten useless changes cured, before measuring again", at_once / many)
    figure("some of ten useless changes cured, measured again", confirmed / many)
    assert confirmed / many <= 0.025
    assert at_once > 4 * confirmed


def test_a_change_that_halves_the_time_is_found(generator, runs, figure):
    many, cured = runs // 20, 0
    for _ in range(many):
        state, _ = verdict(generator, workload(generator, 5), np.full(5, 0.5), rounds=5, noise=0.1)
        cured += state == "cured"
    figure("change that halves the time cured", cured / many)
    assert cured / many > 0.98
