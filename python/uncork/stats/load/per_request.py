"""How often one request causes something that a server counts, from slices of one kind of request each.

A *slice* is a short time in which only one kind of request is sent, or none. In the slices of kind ``u``, a
counter rises by ``n_u`` for each request, and by ``g`` for each second from other work, so that::

    rise = n_u * requests + g * seconds

The slices without requests give ``g``; then each slice gives an estimate of ``n_u``. The estimate is the
ratio of the sums over all slices of the kind (the ratio estimator; Cochran, Sampling Techniques, 3rd ed.,
chapter 6), and its interval is Student's t over the slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.stats.student import student_reach

_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise of a counter in one slice of `seconds`, in which `requests` were sent."""

    requests: int
    seconds: float
    rise: float


@dataclass(frozen=True, slots=True)
class PerRequest:
    """The rise for each request; `low` and `high` are its 95 % interval, None with fewer than two slices."""

    mean: float
    low: float | None
    high: float | None


def background_rate(idle: Sequence[Rise]) -> float:
    """Return the rise per second without requests, which other work causes; 0 if it was not measured."""
    seconds = sum(rise.seconds for rise in idle)
    return sum(rise.rise for rise in idle) / seconds if seconds > 0 else 0.0


def per_request(slices: Sequence[Rise], background: float = 0.0) -> PerRequest | None:
    """Return the rise for each request in slices of one kind; None if no request was sent.

    `background` is the rise per second from other work.
    """
    sent = sum(rise.requests for rise in slices)
    if not sent:
        return None
    mean = max(0.0, sum(_net(rise, background) for rise in slices) / sent)
    used = [rise for rise in slices if rise.requests]
    if len(used) < 2:
        return PerRequest(mean, None, None)
    count = len(used)
    residuals = (_net(rise, background) - mean * rise.requests for rise in used)
    variance = sum(residual * residual for residual in residuals) / (count - 1)
    reach = student_reach(_CONFIDENCE, count - 1) * math.sqrt(count * variance) / sent
    return PerRequest(mean, max(0.0, mean - reach), mean + reach)


def _net(rise: Rise, background: float) -> float:
    return rise.rise - background * rise.seconds
