"""Estimate what an observer costs by switching it on and off within one load.

**Design.** The load is steady and cut into slices of 0.1 s. An observer is on or off for a whole slice. Four
slices form a *quadruple*: either on-off-off-on or off-on-on-off, chosen at random. A quadruple holds two
pairs, and each pair gives one contrast: the on slice against the off slice. Drift that is even over half a
second cancels between the two pairs, and the random choice spreads the rest over both sides. Several
observers can be switched in the same quadruples, each with its own random choice, so all of them are measured
all the time.

**Why 0.1 s.** Other programs on the machine disturb slowly; their noise is strongest at low frequencies. Fast
switching separates that noise from the observer's cost. We tried other lengths on two processors of which
other programs took one. In the same time, slices of 1 s gave three times the error, and slices of 0.05 s were
no better than 0.1 s. Contrasts of pairs had 10 % less error than contrasts of quadruples: a burst spoils two
slices instead of four.

**Two estimates** are made from the same slices:

- `plain_estimate` compares all operations while the observer was on with all operations while it was off. It
  assumes nothing, and every stall counts fully.
- `adjusted_estimate` takes the contrasts of logarithms and subtracts what the covariates explain (processor
  time taken by other programs and by the host). Outlying contrasts get less weight (Huber, 1964, at 1.345
  scales). The random choice makes covariates balanced between on and off, so the adjustment reduces noise
  without shifting the estimate (Lin, "Agnostic notes on regression adjustments", 2013). A covariate must not
  include what the observer itself consumes. An M-estimate of location equals the mean if the noise is the
  same on both sides, which the random choice ensures. But a cost that falls on few slices is counted only in
  part. `disagree` reports when the two estimates differ by more than chance, so such a cost is noticed.

**Interval.** The length is fixed in advance and the result is looked at once, so intervals are Student's t.
The units are groups of four consecutive quadruples. The standard error is inflated if neighbouring units are
correlated.

**Alternatives not taken:** an interval that is valid at every look (50 % wider, for looks that nobody takes);
longer slices (see above); medians of pairs (no covariates, and a third less efficient under normal noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import FloatArray, lag_one
from uncork.stats.student import student_reach

UNIT: Final = 4
"""Quadruples per unit. Quadruples are chosen at random independently; the pairs within one are not
independent."""
LEAST_UNITS: Final = 8
"""Minimum number of units for an estimate. With fewer, neither their variance nor their correlation is
known."""
_HUBER: Final = 1.345
"""Contrasts farther out than this many scales get less weight: 95 % efficient under normal noise."""
_ROUNDS: Final = 50
_SURE: Final = 0.99


@dataclass(frozen=True, slots=True)
class SwitchedEstimate:
    """An estimate on the log scale, its standard error (inflated for correlation), and its units.

    `values` holds one value per unit; their mean is the estimate. `inflation` is the factor, 1 or more, by
    which correlation between units inflated `error`.
    """

    mean: float
    error: float
    values: tuple[float, ...]
    inflation: float

    @property
    def units(self) -> int:
        """Return the number of units."""
        return len(self.values)

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the ratio of on to off, and the ends of its interval."""
        half = student_reach(confidence, self.units - 1) * self.error
        return math.exp(self.mean), math.exp(self.mean - half), math.exp(self.mean + half)


def plain_estimate(rates: ArrayLike, on: ArrayLike) -> SwitchedEstimate | None:
    """Compare all operations while the observer was on with all operations while it was off.

    `rates` and `on` have one row per quadruple and one column per slice. Return None if there are too few
    quadruples, or if either side did nothing.
    """
    sums = np.asarray(rates, dtype=np.float64)
    state = np.asarray(on, dtype=bool)
    busy, quiet = np.where(state, sums, 0.0).sum(axis=1), np.where(state, 0.0, sums).sum(axis=1)
    if not _enough(len(sums)) or busy.sum() <= 0.0 or quiet.sum() <= 0.0:
        return None
    mean = math.log(busy.mean() / quiet.mean())
    # To first order, the mean of these values is the logarithm of the ratio of means.
    return _estimate(mean + busy / busy.mean() - quiet / quiet.mean(), UNIT, 0)


def adjusted_estimate(logs: ArrayLike, on: ArrayLike, covariates: ArrayLike) -> SwitchedEstimate | None:
    """Compare logarithms after subtracting what the covariates explain; None if there are too few quadruples.

    `logs` and `on` have the same shape as in `plain_estimate`. `covariates` has a third axis, which may be of
    length 0. Covariates that never vary are ignored.
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
    """Return whether two estimates from the same quadruples differ by more than chance (at 99 %)."""
    apart = _estimate(np.subtract(plain.values, adjusted.values), 1, 0)
    return abs(apart.mean) > student_reach(_SURE, apart.units - 1) * apart.error


def _enough(quadruples: int) -> bool:
    return quadruples >= UNIT * LEAST_UNITS


def _contrasts(values: FloatArray, on: np.ndarray) -> FloatArray:
    """Return on minus off for each pair: two contrasts per quadruple."""
    return np.asarray(np.where(on, values, -values).reshape(-1, 2).sum(axis=1), dtype=np.float64)


def _influences(found: FloatArray, design: FloatArray) -> FloatArray:
    """Return one value per contrast such that their mean is Huber's estimate of the constant.

    Each value is the estimate plus the contrast's influence on it (Hampel and others, "Robust Statistics",
    1986).
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
    """Return the mean of the values, with the standard error from units of `many` values each.

    Values left over after the last complete unit count in the mean but not in the error.
    """
    whole = len(values) // many
    units = values[: whole * many].reshape(whole, many).mean(axis=1)
    r = float(lag_one(units)) if whole >= AUTOCORRELATION_UNITS else 0.0
    inflation = float(inflation_of(r, whole))
    spent = math.sqrt(len(values) / max(1, len(values) - covariates - 1))
    error = float(units.std(ddof=1)) / math.sqrt(whole) * inflation * spent
    return SwitchedEstimate(float(values.mean()), error, tuple(units.tolist()), inflation)
