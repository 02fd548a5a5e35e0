"""Decide whether a series is steady, and from when: warm-up found instead of assumed.

**The test** is Geweke's ("Evaluating the Accuracy of Sampling-Based Approaches to the Calculation of
Posterior Moments", 1992): the mean of the first values is compared with the mean of the last half, and their
difference is divided by its standard error, which allows for autocorrelation. Here

- the beginning is the first tenth and the first fifth, and the larger of the two statistics counts;
- noise and autocorrelation are estimated without the first fifth, and around a straight line, so that neither
  a warm-up nor a drift passes for noise; values are taken as an autoregression of order 1, whose coefficient
  is corrected for the short series;
- before that, values are limited to `LIMIT` scaled median absolute deviations around the median: one stalled
  second is no warm-up.

Geweke compares with the normal distribution. In series of 15 values that would call up to 29 % of the steady
series unsteady, because the autocorrelation is estimated from few values. The limit used here is the 95 %
quantile at the worst that is allowed for: an autocorrelation of 0.7, with normal and with heavy-tailed values
(`tests/calibration/test_steady.py`).

**The start of the steady part** is the one of MSER (White, "An Effective Truncation Heuristic for Bias
Reduction in Simulation Output", 1997): the number of first values without which the standard error of the
mean is least. As usual, the search is limited to the first half, and its end means that there is none. The
rest is then tested like the whole.

**Alternatives not taken.** The change points of `steps` assume independent values; with an autocorrelation of
0.5 they show a change in up to 20 % of steady series. Changepoints of processor instructions (Barrett et al.,
"Virtual Machine Warmup Blows Hot and Cold", 2017) need hundreds of iterations. A test by self-normalised sums
(Shao and Zhang, 2010) keeps the stated rate equally well, but found a quarter of the warm-ups of 12 standard
deviations in 30 values that this test finds always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

FALSE_ALARMS: Final = 0.05
"""At most this share of steady series is not called steady from the start, at autocorrelations up to 0.7."""
LEAST_VALUES: Final = 10
"""Fewer values cannot be judged."""
MOST_VALUES: Final = 60
"""A longer series is judged by this many means of consecutive values, or fewer."""
LIMIT: Final = 8.0
"""How many scaled median absolute deviations from the median a value counts at most."""
LEAST_CHANGE: Final = 0.01
"""A beginning that differs by less, as a fraction, is not reported: nobody would act on it."""
_HEADS: Final = (0.1, 0.2)
_WARM: Final = 5
"""Noise is estimated without the first of so many parts of a series."""
_MOST_CORRELATION: Final = 0.8
_MAD_TO_SD: Final = 1.4826
_LIMITS: Final = (
    *((10, 5.4), (12, 4.8), (15, 4.65), (20, 4.45)),
    *((25, 4.2), (30, 3.85), (40, 3.5), (60, 3.1)),
)
"""Numbers of values, and the statistic's limit for them; between them it is interpolated. Each is the 95 %
quantile of 20 000 simulated series with an autocorrelation of 0.7, rounded up; heavy tails (Student t with 3
degrees of freedom) have the largest."""

FloatArray = NDArray[np.float64]
Verdict = Literal["steady", "warm-up", "not steady", "unknown"]
"""``steady``: from the start. ``warm-up``: from a later value on. ``unknown``: too few values."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Whether a series is steady.

    `start` is the first value of the steady part: 0 if all of it is steady. It is also known if the series is
    *not steady* only because too few values follow the warm-up; otherwise it is None.
    """

    verdict: Verdict
    start: int | None


def find_steady_part(values: Sequence[float]) -> Steadiness:
    """Return whether a series is steady and from which value on; *unknown* for fewer than `LEAST_VALUES`.

    `values` are logarithms of rates or times. A steady part has `LEAST_VALUES` values or more (in a series
    that is judged by means, as many means).

    Raises:
        ValueError: a value is not finite.
    """
    series = np.asarray(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise ValueError("every value of a series must be finite")
    if len(series) < LEAST_VALUES:
        return Steadiness("unknown", None)
    size = math.ceil(len(series) / MOST_VALUES)
    means = series[: len(series) // size * size].reshape(-1, size).mean(axis=1)
    if not _moves(means):
        return Steadiness("steady", 0)
    start = _least_error(_limited(means[None, :])[0])
    if start is None:
        return Steadiness("not steady", None)
    rest = means[start:]
    if len(rest) < LEAST_VALUES:
        return Steadiness("not steady", start * size)
    return Steadiness("not steady", None) if _moves(rest) else Steadiness("warm-up", start * size)


def geweke(series: FloatArray) -> FloatArray:
    """Return how many standard errors the beginning of each series (last axis) is from its last half.

    Infinity if the rest of a series does not vary and its beginning differs; 0 if it differs by less than
    `LEAST_CHANGE`.
    """
    limited = _limited(series)
    count = series.shape[-1]
    rest = _around_line(limited[..., count // _WARM :])
    squares = (rest**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(squares > 0, (rest[..., 1:] * rest[..., :-1]).sum(axis=-1) / squares, 0.0)
    # Around a line, the estimate is too low by about (2 + 5r)/n (around a mean, (1 + 3r)/n: Kendall, 1954).
    correlation += (2.0 + 5.0 * correlation) / rest.shape[-1]
    correlation = np.clip(correlation, 0.0, _MOST_CORRELATION)
    variance = squares / (rest.shape[-1] - 2)
    last = count - count // 2
    last_mean = limited[..., count // 2 :].mean(axis=-1)
    greatest = np.zeros(series.shape[:-1])
    for share in _HEADS:
        first = max(1, round(count * share))
        difference = np.abs(limited[..., :first].mean(axis=-1) - last_mean)
        difference = np.where(difference < LEAST_CHANGE, 0.0, difference)
        error = np.sqrt(variance * (_mean_variance(correlation, first) + _mean_variance(correlation, last)))
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(error > 0, difference / error, np.where(difference > 0, math.inf, 0.0))
        greatest = np.maximum(greatest, statistic)
    return greatest


def limit_of(count: int) -> float:
    """Return what `geweke` exceeds in at most `FALSE_ALARMS` of steady series of `count` values."""
    counts, limits = zip(*_LIMITS, strict=True)
    return float(np.interp(count, counts, limits))


def _moves(series: FloatArray) -> bool:
    return bool(geweke(series[None, :])[0] > limit_of(len(series)))


def _limited(series: FloatArray) -> FloatArray:
    """Limit values to `LIMIT` scaled median absolute deviations; both without the first fifth."""
    rest = series[..., series.shape[-1] // _WARM :]
    middle = np.median(rest, axis=-1, keepdims=True)
    reach = LIMIT * _MAD_TO_SD * np.median(np.abs(rest - middle), axis=-1, keepdims=True)
    limited = np.clip(series, middle - reach, middle + reach)
    # Without any spread there is nothing to limit by.
    return np.where(reach > 0, limited, series)


def _around_line(values: FloatArray) -> FloatArray:
    """Return how far each value is from the straight line that fits best."""
    count = values.shape[-1]
    places = np.arange(count) - (count - 1) / 2.0
    slope = (values * places).sum(axis=-1, keepdims=True) / (places**2).sum()
    return np.asarray(values - values.mean(axis=-1, keepdims=True) - slope * places)


def _mean_variance(correlation: FloatArray, count: int) -> FloatArray:
    """Return the variance of the mean of `count` values of an autoregression, as a share of a value's."""
    lags = np.arange(1, count)
    powers = correlation[..., None] ** lags
    return np.asarray((1.0 + 2.0 * ((1.0 - lags / count) * powers).sum(axis=-1)) / count)


def _least_error(series: FloatArray) -> int | None:
    """Return MSER's start of the steady part, at least 1; None if it is not before the middle."""
    count = len(series)
    errors = [float(series[start:].var()) / (count - start) for start in range(1, count // 2 + 1)]
    best = int(np.argmin(errors)) + 1
    return best if best < count // 2 else None
