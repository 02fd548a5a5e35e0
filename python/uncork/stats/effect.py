"""Estimate the ratio of a variant's metric to the baseline's, with an interval valid at every look.

Intervals are symmetric on the log scale, so a ratio and its inverse are reported with the same width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from uncork.stats.interval import FloatArray, bounded_exp, lag_one, log_e_value, radius, summary
from uncork.stats.sample import UnitKind, Units

AUTOCORRELATION_UNITS = 8  # with fewer units, a lag-1 autocorrelation is only noise

_ROUNDING = 1e-12  # logarithms of equal values, such as counts, may differ by this much
_ALIKE = 1e-9  # log ratios closer than this differ only by floating-point rounding


@dataclass(frozen=True, slots=True)
class Effect:
    """The ratio of a variant's metric to the baseline's, with an interval that is valid at every look.

    `ratio` is the exponential of the units' mean; `low` may be 0 and `high` infinite. `rounds` is the number
    of units and `kind` says what a unit is. `std_dev` is the standard deviation of the log units (NaN with
    one unit). `agreeing` units lie on the estimate's side of 1. `e_value` is the evidence against a ratio of
    1. `autocorrelation` is None with too few units.
    `inflation` is the factor, 1 or more, by which dependence between units inflated the interval. Each of
    `warnings` is one sentence.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    rounds: int
    std_dev: float
    e_value: float
    autocorrelation: float | None = None
    warnings: tuple[str, ...] = ()
    inflation: float = 1.0
    kind: UnitKind = "round"
    agreeing: int = 0

    @property
    def is_bounded(self) -> bool:
        """Return whether the interval has two limits."""
        return self.low > 0.0 and not math.isinf(self.high)

    @property
    def excludes_none(self) -> bool:
        """Return whether the interval excludes "no effect"."""
        return self.low > 1.0 or self.high < 1.0

    @property
    def rises(self) -> bool:
        """Return whether the variant's metric is higher than the baseline's."""
        return self.ratio > 1.0

    def inside(self, practical: float) -> bool:
        """Return whether the interval lies inside [1/(1 + practical), 1 + practical]."""
        return self.low >= 1.0 / (1.0 + practical) and self.high <= 1.0 + practical

    def beyond(self, practical: float) -> bool:
        """Return whether the whole interval lies outside [1/(1 + practical), 1 + practical], on one side."""
        return self.low > 1.0 + practical or self.high < 1.0 / (1.0 + practical)

    @property
    def relative_width(self) -> float:
        """Return the half-width divided by the estimate's distance from no effect, both as log ratios."""
        distance = abs(math.log(self.ratio))
        if math.isinf(self.half_width) or distance == 0.0:
            return math.inf
        return math.log1p(self.half_width) / distance

    @property
    def span(self) -> str:
        """Return the interval as text, with enough decimals to show on which side of 1 each end lies."""
        low, high = self.low, self.high
        if not self.is_bounded:
            return "unbounded"
        for decimals in range(2, 7):
            texts = [f"{end:.{decimals}f}" for end in (low, high)]
            if all(_side(float(text)) == _side(end) for text, end in zip(texts, (low, high), strict=True)):
                break
        return " to ".join(texts)

    @property
    def half_width(self) -> float:
        """Return the interval's half-width as a ratio: 0.03 is ±3 %; infinite if the interval is."""
        if self.low <= 0.0 or math.isinf(self.high):
            return math.inf
        return math.expm1(math.log(self.high / self.low) / 2.0)

    def evidence_against(self, ratio: float) -> float:
        """Return the e-value against the true ratio being `ratio`."""
        distance = (math.log(self.ratio) - math.log(ratio)) / self.inflation
        return bounded_exp(log_e_value(self.rounds, distance, self.std_dev))

    def evidence_of_equivalence(self, practical: float) -> float:
        """Return the e-value against a ratio outside (1/(1 + practical), 1 + practical).

        This is the smallest of the e-values against each ratio outside, and therefore an e-value against all
        of them. e(m) grows with the distance of m from the estimate, so the smallest is at the nearer
        threshold. It is at most 1 if the estimate is itself outside.
        """
        threshold = math.log1p(practical)
        nearest = max(threshold - abs(math.log(self.ratio)), 0.0)
        return bounded_exp(log_e_value(self.rounds, nearest / self.inflation, self.std_dev))


def estimate(units: Units, confidence: float) -> Effect:
    """Estimate the effect from the units of one comparison.

    If consecutive units are correlated, the interval is inflated (see `widening`) and a warning says so.

    Raises:
        ValueError: There are no units, or `confidence` is not between 0 and 1.
    """
    count, mean, std_dev = summary(units.values)
    mean = 0.0 if abs(mean) < _ROUNDING else mean
    checked = count >= AUTOCORRELATION_UNITS and std_dev > _ALIKE
    autocorrelation = float(lag_one(units.values)) if checked else None
    inflation = 1.0 if autocorrelation is None else float(inflation_of(autocorrelation, count))
    half = inflation * float(radius(count, std_dev, confidence))
    return Effect(
        ratio=_ratio(mean),
        low=_ratio(mean - half),
        high=_ratio(mean + half),
        confidence=confidence,
        rounds=count,
        std_dev=std_dev,
        e_value=bounded_exp(log_e_value(count, mean / inflation, std_dev)),
        autocorrelation=autocorrelation,
        warnings=tuple(_warnings(units, count, std_dev, autocorrelation, inflation)),
        inflation=inflation,
        kind=units.kind,
        agreeing=sum(value * mean > 0.0 for value in units.values),
    )


def inflation_of(autocorrelation: ArrayLike, count: ArrayLike) -> FloatArray:
    """Return the factor (1 or more) by which to inflate an interval for correlation between units.

    The factor is ``sqrt((1 + r) / (1 - r))``, the inflation of the standard error of a first-order
    autoregression, if r exceeds its own standard error ``1/sqrt(n)``; otherwise it is 1. About one in ten
    series of independent units exceeds that mark. The factor never narrows an interval, so it costs width but
    no validity.
    """
    n = np.asarray(count, dtype=np.float64)
    r = np.minimum(np.asarray(autocorrelation, dtype=np.float64), 0.95)
    shown = r > 1.0 / np.sqrt(n)
    return np.asarray(np.sqrt(np.where(shown, (1.0 + r) / (1.0 - r), 1.0)), dtype=np.float64)


def _warnings(
    units: Units, count: int, std_dev: float, autocorrelation: float | None, inflation: float
) -> list[str]:
    warnings = []
    if units.kind == "block":
        warnings.append("the server was not restarted, so the interval leaves out variation between restarts")
    if count > 1 and std_dev <= _ALIKE:
        warnings.append(
            f"all {count} {units.kind}s gave the same ratio; that is normal for counts, but for a rounded "
            "metric the interval is too narrow"
        )
    if autocorrelation is not None and inflation > 1.0:
        warnings.append(
            f"consecutive {units.kind}s are correlated (lag-1 autocorrelation {autocorrelation:.2f}); "
            f"the interval was inflated by a factor of {inflation:.2f}, which may not be enough"
        )
    if units.dropped_blocks:
        total = units.dropped_blocks + units.complete_blocks
        warnings.append(f"{units.dropped_blocks} of {total} blocks missed a trial and were left out")
    return warnings


def _ratio(log_ratio: float) -> float:
    """Return exp of a log ratio: 0 or infinity if unbounded, otherwise limited to what floats can hold."""
    if math.isinf(log_ratio):
        return math.inf if log_ratio > 0.0 else 0.0
    return math.exp(min(max(log_ratio, -700.0), 700.0))


def _side(ratio: float) -> int:
    return (ratio > 1.0) - (ratio < 1.0)
