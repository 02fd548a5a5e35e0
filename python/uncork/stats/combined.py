"""Combine intervals of independent estimates into one for their sum or difference: MOVER.

MOVER (method of variance estimates recovery) takes from each interval the variance of its estimate near each
of its limits, so asymmetric intervals stay asymmetric. For estimates ``ŝ_i`` with intervals ``[l_i, u_i]``::

    L = Σŝ_i - sqrt(Σ(ŝ_i - l_i)²)        U = Σŝ_i + sqrt(Σ(u_i - ŝ_i)²)

Zou and Donner, "Construction of confidence limits about effect measures: a general approach" (Statistics in
Medicine 27, 2008); for sums Zou, Huang and Zhang, "A note on confidence interval estimation for a linear
function of binomial proportions" (Computational Statistics and Data Analysis 53, 2009).

The estimates must be independent. Adding the limits themselves would also be valid, but about as many times
too wide as the square root of their number. ``tests/calibration/test_combined.py`` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate with its interval: ``low <= estimate <= high``, in any unit."""

    estimate: float
    low: float
    high: float


def total(parts: Sequence[Bounded]) -> Bounded:
    """Return the sum of independent estimates, with an interval at their common confidence."""
    estimate = math.fsum(part.estimate for part in parts)
    below = math.hypot(*(part.estimate - part.low for part in parts))
    above = math.hypot(*(part.high - part.estimate for part in parts))
    return Bounded(estimate, estimate - below, estimate + above)


def difference(first: Bounded, second: Bounded) -> Bounded:
    """Return ``first - second`` of independent estimates, with an interval at their common confidence.

    If both contain a common part, such as the same baseline, the interval is too wide, not too narrow.
    """
    return total([first, Bounded(-second.estimate, -second.high, -second.low)])
