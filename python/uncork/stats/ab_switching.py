"""What an observer costs that is switched on and off within one load, from quadruples of slices.

A slice is a tenth of a second of a steady load during which the observer was on, or off, all along. Four of
them make a quadruple: on off off on or off on on off, by lot. It is two pairs, and the contrast of a pair is
what was on against what was off. A drift that is even over half a second cancels between the two, and by the
lot what does not cancel falls on either side alike. Several observers are switched in the same quadruples,
each by a lot of its own, so that each is measured all the time.

What a shared machine does is told apart from what the observer does by speed: the noise of a load is
strongest where it is slow. On two processors of which others took one, slices of 1 s gave three times the
error in the same time, and slices of 0.05 s no less than those of 0.1 s. Pairs gave a tenth less error than
contrasts of quadruples: a burst spoils two slices instead of four.

Two estimates are made of the same slices:

- `plain_estimate`: all operations while it was on against all while it was off. Nothing is assumed, and every
  stall counts whole.
- `adjusted_estimate`: the contrasts of logarithms, less what the contrasts of the covariates explain (what
  others took of the processors, and what the host took), with contrasts far out weighing less (Huber, 1964,
  at 1.345 scales). By the lot covariates lean to neither side, so that the adjustment does not shift
  the estimate (Lin, "Agnostic notes on regression adjustments", 2013); it takes noise away. A covariate must
  not hold what the observer itself takes. An M-estimate of a location is that of a mean where the noise is
  alike on both sides, which the lot sees to; but a cost that falls on few slices only counts in part.
  `disagree` says where the two estimates differ by more than chance, so that such a cost is noticed.

The length is fixed before anything is seen, and the result is looked at once: intervals are Student's, over
units of four quadruples in their order, widened where units resemble their neighbours.

Not taken: the interval that is valid at every look (half as wide again, for looks that nobody takes); longer
slices (see above); medians of pairs (no covariates, and they waste a third where noise is normal).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from uncork.stats.effect import AUTOCORRELATION_UNITS, widening
from uncork.stats.interval import FloatArray, lag_one
from uncork.stats.student import student_reach

__all__ = ["LEAST_UNITS", "UNIT", "SwitchedEstimate", "adjusted_estimate", "disagree", "plain_estimate"]

UNIT: Final = 4
"""Quadruples that make a unit: their lots are independent, those of their pairs are not."""
LEAST_UNITS: Final = 8
"""With fewer there is no estimate: neither their scatter nor their dependence would be known."""
_HUBER: Final = 1.345
"""Where contrasts begin to weigh less, in scales: 95 % of the efficiency where noise is normal."""
_ROUNDS: Final = 50
_SURE: Final = 0.99


@dataclass(frozen=True, slots=True)
class SwitchedEstimate:
    """An estimate on the log scale: `mean`, its standard error `error` (widened), and the units it rests on.

    `values` are the units' own: their mean is the estimate.
    """

    mean: float
    error: float
    values: tuple[float, ...]
    widened: float

    @property
    def units(self) -> int:
        """Return how many units there are."""
        return len(self.values)

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the ratio of on to off, and its interval."""
        half = student_reach(confidence, self.units - 1) * self.error
        return math.exp(self.mean), math.exp(self.mean - half), math.exp(self.mean + half)


def plain_estimate(rates: ArrayLike, on: ArrayLike) -> SwitchedEstimate | None:
    """Compare all that was done while the observer was on with all while it was off.

    `rates` and `on` have a row for each quadruple and a column for each slice. None with too few quadruples,
    or if nothing was done.
    """
    sums = np.asarray(rates, dtype=np.float64)
    state = np.asarray(on, dtype=bool)
    busy, quiet = np.where(state, sums, 0.0).sum(axis=1), np.where(state, 0.0, sums).sum(axis=1)
    if not _enough(len(sums)) or busy.sum() <= 0.0 or quiet.sum() <= 0.0:
        return None
    mean = math.log(busy.mean() / quiet.mean())
    # To first order, the logarithm of a ratio of means is the mean of these.
    return _estimate(mean + busy / busy.mean() - quiet / quiet.mean(), UNIT, 0)


def adjusted_estimate(logs: ArrayLike, on: ArrayLike, covariates: ArrayLike) -> SwitchedEstimate | None:
    """Compare the logarithms, less what the covariates explain; None with too few quadruples.

    `logs` and `on` are as `plain_estimate` takes them; `covariates` have a third axis, which may be of length
    0. A covariate that never moves is left out.
    """
    state = np.asarray(on, dtype=bool)
    if not _enough(len(state)):
        return None
    found = _contrasts(np.asarray(logs, dtype=np.float64), state)
    given = np.asarray(covariates, dtype=np.float64)
    columns = [_contrasts(given[..., place], state) for place in range(given.shape[-1])]
    moving = [column / column.std() for column in columns if column.std() > 0.0]
    design = np.column_stack([np.ones(len(found)), *moving])
    return _estimate(_influences(found, design), 2 * UNIT, len(moving))


def disagree(plain: SwitchedEstimate, adjusted: SwitchedEstimate) -> bool:
    """Say whether two estimates of the same quadruples differ by more than chance (at 99 %)."""
    apart = _estimate(np.subtract(plain.values, adjusted.values), 1, 0)
    return abs(apart.mean) > student_reach(_SURE, apart.units - 1) * apart.error


def _enough(quadruples: int) -> bool:
    return quadruples >= UNIT * LEAST_UNITS


def _contrasts(values: FloatArray, on: np.ndarray) -> FloatArray:
    """Return what was on against what was off in each pair: two for each quadruple."""
    return np.asarray(np.where(on, values, -values).reshape(-1, 2).sum(axis=1), dtype=np.float64)


def _influences(found: FloatArray, design: FloatArray) -> FloatArray:
    """Return, for each contrast, what it says of the constant: their mean is Huber's estimate.

    Each is the estimate plus the contrast's influence on it (Hampel and others, "Robust Statistics", 1986).
    """
    weights = np.ones(len(found))
    answer: FloatArray = np.zeros(design.shape[1])
    left = found
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        before = answer
        answer = np.asarray(np.linalg.lstsq(design * root[:, None], found * root, rcond=None)[0])
        left = found - design @ answer
        scale = float(np.median(np.abs(left))) * 1.4826
        if scale <= 0.0 or np.allclose(answer, before, rtol=0.0, atol=1e-10):
            break
        weights = np.minimum(1.0, _HUBER * scale / np.maximum(np.abs(left), 1e-300))
    near = float(np.mean(weights >= 1.0))
    if near <= 0.0:
        return np.full(len(found), answer[0])
    inverse = np.linalg.pinv(design.T @ design / len(found))
    influence = (design @ inverse[0]) * (weights * left) / near
    return np.asarray(answer[0] + influence - influence.mean(), dtype=np.float64)


def _estimate(values: FloatArray, many: int, covariates: int) -> SwitchedEstimate:
    """Return the mean of values of which so many make a unit, with the error that the units give.

    What is left of the last unit counts in the mean, and not in the error.
    """
    whole = len(values) // many
    units = values[: whole * many].reshape(whole, many).mean(axis=1)
    r = float(lag_one(units)) if whole >= AUTOCORRELATION_UNITS else 0.0
    widened = float(widening(r, whole))
    spent = math.sqrt(len(values) / max(1, len(values) - covariates - 1))
    error = float(units.std(ddof=1)) / math.sqrt(whole) * widened * spent
    return SwitchedEstimate(float(values.mean()), error, tuple(units.tolist()), widened)
