"""Change points: pure noise shows none more often than stated, and known steps are found."""

import numpy as np
import pytest

from uncork.stats.steps import FALSE_ALARMS, change_points, hunter


def normal(generator, count):
    return generator.normal(100, 5, count)


def heavy(generator, count):
    return 100 + 5 * generator.standard_t(3, count)


def skewed(generator, count):
    return 100 * np.exp(generator.normal(0, 0.25, count))


def spoiled(generator, count):
    """One run in ten is far too slow."""
    far = (generator.random(count) < 0.1) * generator.exponential(5, count)
    return 100 * np.exp(0.05 * (generator.normal(size=count) + far))


def dependent(generator, count, kept=0.5):
    values = generator.normal(size=count)
    for n in range(1, count):
        values[n] = kept * values[n - 1] + np.sqrt(1 - kept**2) * values[n]
    return 100 + 5 * values


def alarms(generator, many, noise, count, find):
    return sum(bool(find(noise(generator, count))) for _ in range(many)) / many


def told(values):
    return change_points(values).points


@pytest.mark.parametrize("count", [6, 10, 20, 40, 100, 200])
@pytest.mark.parametrize("noise", [normal, heavy, skewed, spoiled], ids=lambda noise: noise.__name__)
def test_noise_shows_a_change_point_as_seldom_as_stated(generator, runs, figure, noise, count):
    many = max(100, runs * 6 // max(count, 20))
    found = alarms(generator, many, noise, count, told)
    figure(f"change points, {count:3} runs of {noise.__name__} noise: any shown", found)
    assert found <= FALSE_ALARMS + 3 * np.sqrt(FALSE_ALARMS / many)


@pytest.mark.parametrize("count", [10, 20, 40, 100])
def test_dependence_between_runs_exceeds_it_and_is_measured(generator, runs, figure, count):
    many = max(100, runs * 6 // max(count, 20))
    found = alarms(generator, many, dependent, count, told)
    figure(f"change points, {count:3} runs that resemble the one before (0.5): any shown", found)
    assert found <= 0.25


@pytest.mark.parametrize(("count", "p_value"), [(40, 0.01), (100, 0.01), (200, 0.001)])
def test_the_reference_at_its_own_p_value_alarms_more_often(generator, runs, figure, count, p_value):
    """The check can fail: Otava's points in pure noise, at the p-value asked for."""
    many = max(100, runs * 3 // count)
    found = alarms(generator, many, normal, count, lambda values: hunter(values, max_p_value=p_value))
    figure(f"change points as Otava's at p {p_value}, {count} runs of normal noise: any shown", found)
    assert found > 0.02


@pytest.mark.parametrize(
    ("step", "count"), [(0.10, 10), (0.10, 20), (0.10, 40), (0.05, 40), (0.05, 100), (0.20, 10)]
)
def test_a_step_in_the_middle_is_found(generator, runs, figure, step, count):
    many, hits, near = max(100, runs * 4 // max(count, 20)), 0, 0
    for _ in range(many):
        values = normal(generator, count)
        values[count // 2 :] *= 1 + step
        places = [point.index for point in told(values)]
        hits += bool(places)
        near += any(abs(place - count // 2) <= 2 for place in places)
    figure(f"change points, step of {step:.0%} at 5 % noise in {count:3} runs: found", hits / many)
    figure(f"change points, step of {step:.0%} at 5 % noise in {count:3} runs: within 2 runs", near / many)
    if step >= 0.10 and count >= 40:
        assert near / many > 0.8


def test_a_new_step_is_found_after_some_runs(generator, runs, figure):
    many = max(100, runs // 4)
    for since in (3, 5, 8):
        hits = 0
        for _ in range(many):
            values = normal(generator, 30 + since)
            values[30:] *= 1.2
            hits += any(abs(point.index - 30) <= 2 for point in told(values))
        figure(f"change points, step of 20% at 5 % noise, 30 runs before, {since} since: found", hits / many)
        assert hits / many > 0.8
