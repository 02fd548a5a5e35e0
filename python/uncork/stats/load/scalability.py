"""Fit the Universal Scalability Law: three numbers that describe throughput as the load grows.

With N requests at work at once, throughput is ``X(N) = λN / (1 + σ(N - 1) + κN(N - 1))``. λ is the throughput
of one alone. σ is the fraction of the work that only one can do at a time (contention, Amdahl). κ is the cost
of keeping all consistent with each other (coherency), which makes throughput fall again (Gunther, "Guerrilla
Capacity Planning", 2007).

The law is linear in ``1/λ, σ/λ, κ/λ`` for N/X, so it is fitted without a starting point: least squares of
relative errors, with all three coefficients at zero or above. Intervals come from a parametric bootstrap:
noise as large as the variation between repeated steps of one level is added to the fitted curve, and the
curve is fitted again. Alternatives not taken: Gunther's quadratic in N - 1, which weights levels arbitrarily;
non-linear least squares, whose answer depends on the starting point.

The law is smooth. A hard limit (a pool, a number of processors) makes a corner that the law rounds off.
`Scalability.misfit` reports by how much, and the knee (`uncork.stats.load.knee`) does not depend on the law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MISFIT = 0.1
"""If a level's mean throughput is farther from the curve than this, the law does not describe the system."""
_RESAMPLES = 1_000
_WILDEST = 30.0
"""Limit for the noise of a resample, in logarithms. Larger values would overflow; no interval reaches this
far."""
_LEVELS = 4
"""With fewer levels, nothing remains to detect a misfit."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate and its interval; `high` may be infinite."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scalability:
    """The law fitted to levels.

    `alone` is λ in operations per second, `contention` is σ and `coherency` is κ, both 0 or above. `peak` is
    the load with the highest throughput, ``sqrt((1 - σ) / κ)``; it is infinite if κ is 0. `misfit` is the
    greatest relative difference between a level's mean throughput and the curve.
    """

    alone: Bounded
    contention: Bounded
    coherency: Bounded
    peak: Bounded
    misfit: float
    confidence: float

    @property
    def describes(self) -> bool:
        """Return whether the curve is close enough to all levels to be trusted."""
        return self.misfit <= MISFIT

    def throughput(self, load: float) -> float:
        """Return the fitted throughput at a load, in operations per second."""
        return scalable_throughput(load, self.alone.value, self.contention.value, self.coherency.value)


def scalable_throughput(load: float, alone: float, contention: float, coherency: float) -> float:
    """Return X(N) of the law."""
    return alone * load / (1.0 + contention * (load - 1.0) + coherency * load * (load - 1.0))


def fit_scalability(
    loads: Sequence[float],
    throughputs: Sequence[float],
    generator: np.random.Generator,
    confidence: float = 0.95,
) -> Scalability | None:
    """Fit the law to load steps: loads (1 or above) and their throughputs (above 0), in any order.

    Return None if there are fewer than four levels, or if no level was measured twice, because then the noise
    is unknown.

    Raises:
        ValueError: if the two differ in length, or a value is out of range.
    """
    n, x = np.asarray(loads, dtype=np.float64), np.asarray(throughputs, dtype=np.float64)
    if n.shape != x.shape:
        raise ValueError(f"every load needs a throughput; found {n.size} loads and {x.size} throughputs")
    if n.size and (n.min() < 1.0 or x.min() <= 0.0):
        raise ValueError("loads must be at least 1, and throughputs above 0")
    levels, place = np.unique(n, return_inverse=True)
    spare = n.size - levels.size
    if levels.size < _LEVELS or spare < 1:
        return None
    logs = np.log(x)
    means = np.bincount(place, logs) / np.bincount(place)
    std_dev = math.sqrt(float(((logs - means[place]) ** 2).sum()) / spare)
    fitted = _solve(n, x[None, :])[0]
    curve = np.log(_curve(n, fitted[None, :])[0])
    # The standard deviation is itself an estimate, so it is drawn from its distribution. Few steps then give
    # wider intervals.
    sizes = std_dev * np.sqrt(spare / generator.chisquare(spare, _RESAMPLES))
    noise = generator.normal(0.0, 1.0, (_RESAMPLES, n.size)) * sizes[:, None]
    noise = np.clip(noise, -_WILDEST, _WILDEST)
    again = _solve(n, np.exp(curve[None, :] + noise))
    misfit = float(np.abs(np.expm1(means - np.log(_curve(levels, fitted[None, :])[0]))).max())
    values, drawn = _named(fitted[None, :])[0], _named(again)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    alone, contention, coherency, peak = (
        Bounded(float(values[at]), float(low[at]), float(high[at])) for at in range(4)
    )
    return Scalability(alone, contention, coherency, peak, misfit, confidence)


def _named(coefficients: FloatArray) -> FloatArray:
    """Return λ, σ, κ and the peak, one row per set of coefficients."""
    first = coefficients[:, 0]
    contention, coherency = coefficients[:, 1] / first, coefficients[:, 2] / first
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.sqrt(np.maximum(1.0 - contention, 0.0) / coherency)
    return np.column_stack([1.0 / first, contention, coherency, np.where(coherency > 0.0, peak, np.inf)])


def _curve(loads: FloatArray, coefficients: FloatArray) -> FloatArray:
    return np.asarray(loads[None, :] / (coefficients @ _basis(loads).T), dtype=np.float64)


def _basis(loads: FloatArray) -> FloatArray:
    return np.column_stack([np.ones_like(loads), loads - 1.0, loads * (loads - 1.0)])


def _solve(loads: FloatArray, throughputs: FloatArray) -> FloatArray:
    """Return the best non-negative coefficients of N/X for each row of throughputs.

    The first coefficient is always above zero, so there are only four sets that may be above zero. All are
    tried.
    """
    times = loads[None, :] / throughputs
    design = _basis(loads)[None, :, :] / times[:, :, None]
    best = np.zeros((throughputs.shape[0], 3))
    least = np.full(throughputs.shape[0], np.inf)
    for size in (2, 1, 0):
        for more in combinations((1, 2), size):
            chosen = [0, *more]
            part = design[:, :, chosen]
            square = np.einsum("rni,rnj->rij", part, part)
            scale = np.sqrt(np.einsum("rii->ri", square))
            right = np.einsum("rni->ri", part) / scale
            # A resample may give one step all the weight. Then many solutions exist; take the smallest.
            inverse = np.linalg.pinv(square / (scale[:, :, None] * scale[:, None, :]), hermitian=True)
            found = (inverse @ right[:, :, None])[:, :, 0] / scale
            wrong = ((np.einsum("rni,ri->rn", part, found) - 1.0) ** 2).sum(axis=1)
            better = (found[:, 0] > 0.0) & (found >= 0.0).all(axis=1) & (wrong < least)
            least = np.where(better, wrong, least)
            filled = np.zeros_like(best)
            filled[:, chosen] = found
            best = np.where(better[:, None], filled, best)
    return best
