"""Simulated experiments whose truth is known, and the judge's own functions run over many of them at once.

Everything is on the log scale and vectorised over experiments. `looks` uses the functions of `uncork.stats`
that judge real runs; `test_oracle.py` holds it, and `series`, to `round_units` and `estimate`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import PRIOR_PRECISION, lag_one, log_e_value, radius


@dataclass(frozen=True)
class Noise:
    """What disturbs a trial; standard deviations of the log of its value.

    The defaults are a shared machine as it was measured (CV 5 %, lag-1 autocorrelation 0.63 from trial to
    trial), with the worse habits of servers added.
    """

    drift: float = 0.05
    drift_memory: float = 0.63
    common_shift: float = 0.05  # one a round: the process, felt by every arm
    slow_life: float = math.log(1.18)  # a process that is stably 18 % slower ...
    slow_life_share: float = 0.2  # ... in one life of five
    arm_shift: float = 0.01  # one an arm and round: the process, felt by this arm alone
    trial: float = 0.015  # Student t with 3 degrees of freedom
    spike: float = 0.15  # mean of an exponential: checkpoint, steal
    spike_share: float = 0.02


REALISTIC = Noise()
QUIET = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NOISES = {
    "all of it": REALISTIC,
    "drift alone": replace(QUIET, drift=0.05, drift_memory=0.63),
    "arm shift alone": replace(QUIET, arm_shift=0.02),
    "heavy tails alone": replace(QUIET, trial=0.02),
    "frequent spikes alone": replace(QUIET, trial=0.002, spike=0.15, spike_share=0.1),
}


def series(
    generator: np.random.Generator, noise: Noise, *, runs: int, rounds: int, arms: int, blocks: int = 2
) -> np.ndarray:
    """Return log values of shape (runs, rounds, blocks, arms); arms 0 and 1 are the baseline and its A/A."""
    shape = (runs, rounds, blocks, arms)
    steps = rounds * blocks * arms
    drift = np.empty((runs, steps))
    drift[:, 0] = generator.standard_normal(runs) * noise.drift
    fresh = noise.drift * math.sqrt(1.0 - noise.drift_memory**2)
    for step in range(1, steps):
        drift[:, step] = noise.drift_memory * drift[:, step - 1] + fresh * generator.standard_normal(runs)
    order = np.argsort(generator.random(shape), axis=-1)  # each block's arms in random order
    values = np.take_along_axis(drift.reshape(shape), order, axis=-1)
    life = noise.common_shift * generator.standard_normal((runs, rounds, 1, 1))
    life += noise.slow_life * (generator.random((runs, rounds, 1, 1)) < noise.slow_life_share)
    values += life + noise.arm_shift * generator.standard_normal((runs, rounds, 1, arms))
    values += noise.trial / math.sqrt(3.0) * generator.standard_t(3, shape)
    values += generator.exponential(noise.spike, shape) * (generator.random(shape) < noise.spike_share)
    return values


def units(values: np.ndarray) -> np.ndarray:
    """Return the units of every variant: shape (runs, variants, rounds)."""
    turn = np.arange(values.shape[2])
    medians = [
        np.median(values[..., 2:] - values[:, :, turn, (turn + first) % 2, None], axis=2) for first in (0, 1)
    ]
    return np.moveaxis((medians[0] + medians[1]) / 2.0, 1, 2)


@dataclass(frozen=True)
class Looks:
    """The state of comparisons after every unit; the last axis is the look, from 1 unit on."""

    mean: np.ndarray
    half: np.ndarray
    std_dev: np.ndarray
    inflation: np.ndarray

    def excludes(self, truth: float | np.ndarray) -> np.ndarray:
        return np.abs(self.mean - truth) > self.half

    def inside(self, practical: float) -> np.ndarray:
        return np.abs(self.mean) + self.half <= math.log1p(practical)

    def log_e(self) -> np.ndarray:
        counts = np.arange(1, self.mean.shape[-1] + 1)
        return log_e_value(counts, self.mean / self.inflation, self.std_dev)

    def log_e_equivalence(self, practical: float) -> np.ndarray:
        counts = np.arange(1, self.mean.shape[-1] + 1)
        nearest = np.maximum(math.log1p(practical) - np.abs(self.mean), 0.0)
        return log_e_value(counts, nearest / self.inflation, self.std_dev)


def looks(
    samples: np.ndarray,
    confidence: float = 0.95,
    *,
    widen: bool = True,
    prior_precision: float = PRIOR_PRECISION,
) -> Looks:
    """Look at each series (last axis) after every unit, as `estimate` would."""
    length = samples.shape[-1]
    mean, std_dev = np.empty_like(samples), np.empty_like(samples)
    inflation = np.ones_like(samples)
    for count in range(1, length + 1):
        seen = samples[..., :count]
        mean[..., count - 1] = seen.mean(axis=-1)
        std_dev[..., count - 1] = seen.std(axis=-1, ddof=1) if count > 1 else np.nan
        if widen and count >= AUTOCORRELATION_UNITS:
            inflation[..., count - 1] = inflation_of(lag_one(seen), count)
    counts = np.arange(1, length + 1)
    half = inflation * radius(counts, std_dev, confidence, prior_precision=prior_precision)
    return Looks(mean, half, std_dev, inflation)


def kept_by_e_bh(log_e: np.ndarray, alpha: float) -> np.ndarray:
    """Apply e-BH along the last axis."""
    total = log_e.shape[-1]
    falling = -np.sort(-log_e, axis=-1)
    needed = np.log(total / (np.arange(1, total + 1) * alpha))
    enough = falling >= needed
    last = total - 1 - np.argmax(enough[..., ::-1], axis=-1)
    bar = np.where(enough.any(axis=-1), np.take_along_axis(falling, last[..., None], axis=-1)[..., 0], np.inf)
    return log_e >= bar[..., None]


def at_most(rate: float, runs: int) -> float:
    """Return the largest observed share that is compatible with `rate`: four standard errors above it."""
    return rate + 4.0 * math.sqrt(rate * (1.0 - rate) / runs)
