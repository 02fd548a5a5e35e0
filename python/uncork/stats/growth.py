"""Fit how a time grows with a size, and predict the time at a size far beyond those measured.

Three shapes are fitted to each round's times (a round is one life of the server, the independent unit)::

    logarithmic   t = a + b·log(n / n₁)     a look-up: one more index level now and then
    power         t = a·n^b                 anything in between
    linear        t = a + b·n               a full scan plus a fixed cost

Each fit minimizes squared relative errors. A shape that misses some size by more than noise is rejected. The
prediction is the union of the predictions of all remaining shapes. Measurable sizes often cannot distinguish
a fixed cost from slow growth, and at 180 times the size the two are far apart. Choosing only the best-fitting
shape would hide exactly that.

Each round gives one prediction per shape. Their mean and standard deviation give the interval for the time of
one more round at that size, by Student's t. ``tests/calibration/test_extrapolation.py`` measures how often
the truth lies inside when a shape holds. It also shows that the interval fails when growth changes beyond the
measured sizes (data that no longer fits memory, another plan). No interval can know that, so reports must say
it.

Alternatives not taken: one straight line through logarithms (a fixed cost bends it, and linear growth is
predicted too low), and a curve with a free bend (three sizes leave nothing to detect a misfit with).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncork.stats.student import student_reach

LEAST_SIZES: Final = 3
"""Every shape fits two sizes exactly, so nothing could be rejected."""
LEAST_ROUNDS: Final = 3
_MISFIT: Final = 0.01
"""How often a shape that holds may be rejected."""

_ALIKE: Final = 1e-9
"""Logarithms closer than this differ only by floating-point rounding."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Predicted:
    """The mean time of a round at a size that was not measured, in nanoseconds, and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Growth:
    """How a time grows between the smallest and the largest measured size.

    `exponent` is the slope of a straight line through logarithms, with its interval: 0 means no growth, 1
    means proportional growth. `shapes` lists the shapes that fit the times. `predicted` is their prediction
    for the size `to`; its `value` comes from the best fit. It is None if no known shape fits. `times` are
    geometric means over rounds, in nanoseconds.
    """

    sizes: tuple[float, ...]
    times: tuple[float, ...]
    rounds: int
    to: float
    exponent: float
    exponent_low: float
    exponent_high: float
    shapes: tuple[str, ...]
    predicted: Predicted | None
    confidence: float

    @property
    def stretch(self) -> float:
        """Return how many times larger the predicted size is than the largest measured size."""
        return self.to / self.sizes[-1]


def fit_growth(rounds: Sequence[Mapping[float, float]], to: float, confidence: float = 0.95) -> Growth | None:
    """Fit the times of several rounds. Each round maps sizes (above 0) to times in nanoseconds (above 0).

    Rounds that miss a size that other rounds have are left out. Return None if fewer than three sizes or
    rounds remain.

    Raises:
        ValueError: if a size or a time is not above zero.
    """
    kept, sizes = _common(rounds)
    if len(sizes) < LEAST_SIZES or len(kept) < LEAST_ROUNDS:
        return None
    n = np.array(sizes)
    t = np.array([[found[size] for size in sizes] for found in kept])
    if n.min() <= 0.0 or t.min() <= 0.0 or to <= 0.0:
        raise ValueError("sizes and times must be above zero")
    slopes = _lines(np.log(n), np.log(t))[1]
    spread = _error(slopes, confidence)
    fitted = {name: fit(n, t, to, confidence) for name, fit in _SHAPES.items()}
    left = {name: one for name, one in fitted.items() if one.holds}
    predicted = None
    if left:
        best = min(left.values(), key=lambda one: one.wrong)
        predicted = Predicted(
            best.predicted.value,
            min(fitted.predicted.low for fitted in left.values()),
            max(fitted.predicted.high for fitted in left.values()),
        )
    exponent = float(slopes.mean())
    return Growth(
        sizes=tuple(sizes),
        times=tuple(np.exp(np.log(t).mean(axis=0)).tolist()),
        rounds=len(kept),
        to=to,
        exponent=exponent,
        exponent_low=exponent - spread,
        exponent_high=exponent + spread,
        shapes=tuple(left),
        predicted=predicted,
        confidence=confidence,
    )


def _common(
    rounds: Sequence[Mapping[float, float]],
) -> tuple[list[Mapping[float, float]], list[float]]:
    """Return the rounds with the most sizes, and the sizes that all of them have, in rising order."""
    most = max((len(found) for found in rounds), default=0)
    kept = [found for found in rounds if len(found) == most]
    common = set(kept[0]).intersection(*kept) if kept else set()
    return kept, sorted(common)


# ---- shapes ----


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A shape fitted to each round: its squared error, whether that may be noise, and its prediction."""

    wrong: float
    holds: bool
    predicted: Predicted


_Fit = Callable[[FloatArray, FloatArray, float, float], _Fitted]
"""Called with sizes, times (one round per row), the size to predict and the confidence."""


def _power(n: FloatArray, t: FloatArray, to: float, confidence: float) -> _Fitted:
    start, slope = _lines(np.log(n), np.log(t))
    wrong, holds = _misfit(np.log(t) - start[:, None] - slope[:, None] * np.log(n))
    middle, half = _spread(start + slope * math.log(to), _noise(t), confidence)
    falls = float(slope.mean()) + _error(slope, confidence) < 0.0
    least = 0.0 if falls else _least(t)
    value, low, high = (max(math.exp(min(middle + shift, 700.0)), least) for shift in (0.0, -half, half))
    return _Fitted(wrong, holds, Predicted(value, low, high))


def _linear(n: FloatArray, t: FloatArray, to: float, confidence: float) -> _Fitted:
    return _two_parts(n, t, to, confidence)


def _logarithmic(n: FloatArray, t: FloatArray, to: float, confidence: float) -> _Fitted:
    return _two_parts(np.log(n / n[0]), t, math.log(to / n[0]), confidence)


_SHAPES: Final[Mapping[str, _Fit]] = {"logarithmic": _logarithmic, "power": _power, "linear": _linear}


def _two_parts(x: FloatArray, t: FloatArray, to: float, confidence: float) -> _Fitted:
    """Fit ``a + b·x``, with x rising from 0 or above, to each row of t by relative errors.

    To test whether the shape holds, use the best fit with neither a nor b below zero: both terms, only the
    first, or only the second. Predictions use the unconstrained fit, so that rounds without growth predict no
    growth on average. But no prediction is below the shortest times seen, because these shapes do not fall.
    (A power may fall, if the rounds show that it does.)
    """
    one, part = 1.0 / t, x / t
    square_one, square_part, mixed = (one**2).sum(1), (part**2).sum(1), (one * part).sum(1)
    first, second = one.sum(1), part.sum(1)
    determinant = square_one * square_part - mixed**2
    a = (first * square_part - second * mixed) / determinant
    b = (second * square_one - first * mixed) / determinant
    alone = np.where(b < 0.0, first / square_one, np.where(a < 0.0, 0.0, a))
    growing = np.where(b < 0.0, 0.0, np.where(a < 0.0, second / square_part, b))
    with np.errstate(divide="ignore"):
        wrong, holds = _misfit(np.log(t) - np.log(alone[:, None] + growing[:, None] * x))
    predictions = a + b * to
    middle, half = _spread(predictions, _noise(t) * abs(float(predictions.mean())), confidence)
    least = _least(t)
    value, low, high = (max(middle + shift, least) for shift in (0.0, -half, half))
    return _Fitted(wrong, holds, Predicted(value, low, high))


def _lines(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the start and the slope of a straight line through each row of y."""
    centred = x - x.mean()
    slope = np.asarray((y @ centred) / (centred @ centred), dtype=np.float64)
    return np.asarray(y.mean(axis=1) - slope * x.mean(), dtype=np.float64), slope


def _misfit(residuals: FloatArray) -> tuple[float, bool]:
    """Return the squared misfit of the means over rounds (rows), and whether it may be noise."""
    if not np.isfinite(residuals).all():
        return math.inf, False
    rounds, sizes = residuals.shape
    means = residuals.mean(axis=0)
    errors = residuals.std(axis=0, ddof=1) / math.sqrt(rounds)
    limit = student_reach(1.0 - _MISFIT / sizes, rounds - 1)
    return float((means**2).sum()), bool((np.abs(means) <= limit * errors + _ALIKE).all())


def _error(values: FloatArray, confidence: float) -> float:
    """Return the half-width of the interval for the mean of the rounds' values."""
    return student_reach(confidence, values.size - 1) * float(values.std(ddof=1)) / math.sqrt(values.size)


def _least(t: FloatArray) -> float:
    """Return the shortest time that another round might show if time does not fall with size."""
    return float(t.min()) * math.exp(-2.0 * _noise(t))


def _noise(t: FloatArray) -> float:
    """Return the relative standard deviation of a round's time at one size."""
    return math.sqrt(float(np.log(t).var(axis=0, ddof=1).mean()))


def _spread(predictions: FloatArray, noise: float, confidence: float) -> tuple[float, float]:
    """Return the mean of the rounds' predictions, and the half-width of the interval for another round.

    Predictions from many sizes may vary less than the time of one round at one size. Then `noise` is used.
    """
    rounds = predictions.size
    std_dev = max(float(predictions.std(ddof=1)), noise)
    reach = student_reach(confidence, rounds - 1)
    return float(predictions.mean()), reach * std_dev * math.sqrt(1.0 + 1.0 / rounds)
