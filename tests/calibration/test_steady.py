"""Steady parts of series: steady series are rarely called unsteady, and warm-ups are found where they end."""

import math

import numpy as np
import pytest
from simulation import at_most

from uncork.stats.steady import FALSE_ALARMS, find_steady_part, geweke, limit_of


def normal(generator, shape):
    return generator.standard_normal(shape)


def heavy(generator, shape):
    return generator.standard_t(3, shape) / math.sqrt(3)


def autoregression(generator, noise, many, count, memory):
    fresh = noise(generator, (many, count + 50))
    values = np.empty_like(fresh)
    values[:, 0] = fresh[:, 0]
    for step in range(1, count + 50):
        values[:, step] = memory * values[:, step - 1] + math.sqrt(1 - memory**2) * fresh[:, step]
    return values[:, 50:]


def stalled(generator, noise, many, count, memory):
    """Three values in a hundred are far too low: a checkpoint, steal."""
    values = autoregression(generator, noise, many, count, memory)
    return values - generator.exponential(10, values.shape) * (generator.random(values.shape) < 0.03)


def warming(count, size, lasts):
    return -size * np.exp(-np.arange(count) / lasts)


def moves(values):
    return geweke(values) > limit_of(values.shape[-1])


@pytest.mark.parametrize("count", [10, 13, 20, 30, 60])
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.7])
def test_a_steady_series_is_called_unsteady_as_seldom_as_stated(generator, runs, figure, count, memory):
    for name, make, noise in (
        ("normal", autoregression, normal),
        ("heavy", autoregression, heavy),
        ("stalls", stalled, normal),
    ):
        found = moves(make(generator, noise, runs, count, memory)).mean()
        figure(f"steady, {count} values, autocorrelation {memory}, {name}: not called steady", found)
        assert found <= at_most(FALSE_ALARMS, runs)


def test_the_normal_distribution_as_limit_alarms_far_more_often(generator, runs, figure):
    """The check can fail: the limit that is usual for Geweke's test."""
    found = (geweke(autoregression(generator, normal, runs, 15, 0.7)) > 1.96).mean()
    figure("steady, 15 values, autocorrelation 0.7: beyond 1.96, the usual limit", found)
    assert found > 0.2


@pytest.mark.parametrize("count", [90, 600])
def test_a_long_series_is_judged_by_means(generator, figure, count):
    many = 400
    series = autoregression(generator, heavy, many, count, 0.7)
    found = sum(find_steady_part(values).verdict != "steady" for values in series) / many
    figure(f"steady, {count} values, autocorrelation 0.7, heavy: not called steady", found)
    assert found <= at_most(FALSE_ALARMS, many)


@pytest.mark.parametrize("memory", [0.0, 0.5])
@pytest.mark.parametrize(("count", "size", "lasts"), [
    *((count, size, lasts) for count in (20, 30, 60) for size in (6, 12) for lasts in (1, 3, 8)),
    (10, 12, 1),
    (60, 3, 3),
    (60, 3, 8),
])  # fmt: skip
def test_a_warm_up_is_found(generator, runs, figure, count, size, lasts, memory):
    many = max(200, runs // 10)
    series = autoregression(generator, normal, many, count, memory) + warming(count, size, lasts)
    found = [find_steady_part(values) for values in series]
    shown = sum(one.verdict != "steady" for one in found) / many
    starts = [one.start for one in found if one.verdict == "warm-up"]
    what = f"warm-up of {size:2} SD e^(-t/{lasts}), {count} values, autocorrelation {memory}"
    figure(f"{what}: noticed", shown)
    figure(f"{what}: and its end known", len(starts) / many)
    if starts:
        left = np.array([size * math.exp(-start / lasts) for start in starts])
        figure(f"{what}: median end (values) / 100", float(np.median(starts)) / 100)
        # What is left of the warm-up where the steady part begins, in standard deviations of a value.
        figure(f"{what}: left of it there, median, SD / 100", float(np.median(left)) / 100)
        if size >= 12 and count >= 30 and lasts <= 3:
            assert np.median(left) < 1.5
    if size >= 12 and lasts <= 3 and count >= 20:
        assert shown > 0.55


def test_a_series_that_keeps_drifting_has_no_steady_part(generator, figure):
    many = 400
    series = autoregression(generator, normal, many, 30, 0.3) + np.linspace(0, 12, 30)
    found = [find_steady_part(values) for values in series]
    never = sum(one.verdict == "not steady" for one in found) / many
    figure("drift of 12 SD over 30 values: not steady", never)
    figure(
        "drift of 12 SD over 30 values: called steady after a warm-up",
        sum(one.verdict == "warm-up" for one in found) / many,
    )
    assert never > 0.75
