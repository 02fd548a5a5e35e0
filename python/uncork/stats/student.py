"""Student's t distribution, exact for whole degrees of freedom, as few rounds need it."""

from __future__ import annotations

import math
from functools import cache

__all__ = ["inside", "reach"]


def inside(t: float, freedom: int) -> float:
    """Return the probability that a variable of so many degrees of freedom lies within ±t.

    The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term = sine * cosine if odd else sine
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    return 2.0 / math.pi * (angle + total) if odd else total


@cache
def reach(confidence: float, freedom: int) -> float:
    """Return the t within which a variable lies with this probability: 0.95 and 3 give 3.182.

    Raises:
        ValueError: if the probability is not between 0 and 1, or there is no degree of freedom.
    """
    if not 0.0 < confidence < 1.0 or freedom < 1:
        raise ValueError(f"no such quantile: {confidence} with {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while inside(high, freedom) < confidence:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        if inside(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high
