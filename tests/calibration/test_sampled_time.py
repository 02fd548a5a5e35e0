"""The mean of sampled sessions: its interval covers the truth as often as stated."""

import numpy as np
import pytest

from uncork.stats.sampled_time import BATCHES, batch_places, mean_over_time


def busy_sessions(generator, seconds, sessions, mean_s, busy, rate_hz=10):
    """Sample sessions that are busy for exponential times, with exponential pauses, in a steady state."""
    moments = (np.arange(seconds * rate_hz) + 0.5) / rate_hz
    found = np.zeros(len(moments))
    cycle = mean_s / busy
    many = int(2 * (seconds + 10 * cycle) / cycle) + 20
    for _ in range(sessions):
        times = np.stack(
            [generator.exponential(cycle - mean_s, many), generator.exponential(mean_s, many)], axis=1
        )
        found += np.searchsorted(np.cumsum(times.ravel()) - 5 * cycle, moments) % 2
    return found


def coverage(seed, *traffic, runs=250):
    generator, covered = np.random.default_rng(seed), 0
    _, sessions, _, busy = traffic
    for _ in range(runs):
        samples = busy_sessions(generator, *traffic)
        found = mean_over_time([float(part.mean()) for part in np.array_split(samples, BATCHES)])
        covered += found.low <= sessions * busy <= found.high
    return covered / runs


@pytest.mark.parametrize(
    "traffic",
    [  # seconds, sessions, mean time of a statement in s, busy part of a session's time
        (60, 1, 0.001, 0.05),
        (60, 8, 0.05, 0.3),
        (60, 1, 1.0, 0.3),
        (60, 8, 1.0, 0.3),
        (20, 8, 0.001, 0.05),
        (20, 8, 1.0, 0.3),
    ],
)
def test_the_interval_covers_the_truth(traffic):
    assert 0.925 <= coverage(11, *traffic) <= 0.985


@pytest.mark.parametrize(
    ("traffic", "least"),
    [
        ((60, 8, 5.0, 0.3), 0.88),  # about 29 statements in the watch
        ((60, 1, 5.0, 0.3), 0.82),  # about 4 statements: too narrow, as the docstring says
    ],
)
def test_few_long_statements_are_covered_less_often(traffic, least):
    assert least <= coverage(12, *traffic) <= 0.97


@pytest.mark.parametrize("traffic", [(60, 8, 0.05, 0.3), (60, 8, 1.0, 0.3), (20, 8, 0.05, 0.3)])
def test_the_interval_holds_if_a_busy_machine_samples_rarely_for_a_while(traffic):
    """For a third of the watch, only every fifth sample is taken, and stands for five times as long."""
    generator, covered = np.random.default_rng(13), 0
    _, sessions, _, busy = traffic
    for _ in range(250):
        samples = busy_sessions(generator, *traffic)
        some = len(samples) // 3
        kept = [number for number in range(len(samples)) if not some <= number < 2 * some or number % 5 == 0]
        times = np.diff([*kept, len(samples)])
        places, sums = np.array(batch_places(list(times))), np.zeros(BATCHES)
        np.add.at(sums, places, samples[kept] * times)
        found = mean_over_time(list(sums / (times.sum() / BATCHES)))
        covered += found.low <= sessions * busy <= found.high
    assert 0.92 <= covered / 250 <= 0.985
