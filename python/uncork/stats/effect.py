"""An effect: the ratio of a variant's metric to the baseline's, with an interval that is valid at every look.

Intervals are symmetric on the log scale, so that a ratio and its inverse are told with the same width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from uncork.stats.interval import FloatArray, bounded_exp, lag_one, log_e_value, radius, summary
from uncork.stats.sample import UnitKind, Units

__all__ = ["AUTOCORRELATION_UNITS", "Effect", "estimate", "widening"]

AUTOCORRELATION_UNITS = 8  # with fewer, a lag-1 autocorrelation is noise

_ROUNDING = 1e-12  # equal values, such as counts, may differ by this after logarithms; it is no effect
_ALIKE = 1e-9  # log ratios closer than this differ by rounding of floats only


@dataclass(frozen=True, slots=True)
class Effect:
    """The ratio of a variant's metric to the baseline's, with an interval that is valid at every look.

    `ratio` is the exponential of the units' mean; `low` may be 0 and `high` infinite. `rounds` counts the
    units and `kind` says what they are; `scatter` is the standard deviation of the log units (not a number
    with one unit). `e_value` is the evidence against a ratio of 1. `autocorrelation` is None with too few
    units. `widened` is the factor by which dependence between units widened the interval: 1 or more.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    rounds: int
    scatter: float
    e_value: float
    autocorrelation: float | None = None
    doubts: tuple[str, ...] = ()
    widened: float = 1.0
    kind: UnitKind = "round"

    @property
    def excludes_none(self) -> bool:
        """Say whether the interval excludes "no effect"."""
        return self.low > 1.0 or self.high < 1.0

    @property
    def rises(self) -> bool:
        """Say whether the variant's metric is the higher one."""
        return self.ratio > 1.0

    def inside(self, practical: float) -> bool:
        """Say whether the interval lies inside [1/(1 + practical), 1 + practical]."""
        return self.low >= 1.0 / (1.0 + practical) and self.high <= 1.0 + practical

    def beyond(self, practical: float) -> bool:
        """Say whether the whole interval lies outside [1/(1 + practical), 1 + practical], on one side."""
        return self.low > 1.0 + practical or self.high < 1.0 / (1.0 + practical)

    @property
    def relative_width(self) -> float:
        """Return the half-width over the estimate's distance from no effect, both of log ratios."""
        distance = abs(math.log(self.ratio))
        if math.isinf(self.half_width) or distance == 0.0:
            return math.inf
        return math.log1p(self.half_width) / distance

    @property
    def span(self) -> str:
        """The interval in words, with as many decimals as show on which side of 1 its ends lie."""
        low, high = self.low, self.high
        if low <= 0.0 or math.isinf(high):
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
        distance = (math.log(self.ratio) - math.log(ratio)) / self.widened
        return bounded_exp(log_e_value(self.rounds, distance, self.scatter))

    def evidence_of_equivalence(self, practical: float) -> float:
        """Return the e-value against a ratio outside (1/(1 + practical), 1 + practical).

        The smallest of the e-values against every ratio outside, hence an e-value against them all; e(m)
        grows with the distance of m, so it is that of the nearer threshold. At most 1 when the estimate is
        itself outside.
        """
        threshold = math.log1p(practical)
        nearest = max(threshold - abs(math.log(self.ratio)), 0.0)
        return bounded_exp(log_e_value(self.rounds, nearest / self.widened, self.scatter))


def estimate(units: Units, confidence: float) -> Effect:
    """Estimate the effect from the units of one comparison.

    Where consecutive units resemble each other, the interval is widened (see `widening`) and a doubt says so.

    Raises:
        ValueError: There are no units, or `confidence` is not between 0 and 1.
    """
    count, mean, scatter = summary(units.values)
    mean = 0.0 if abs(mean) < _ROUNDING else mean
    checked = count >= AUTOCORRELATION_UNITS and scatter > _ALIKE
    autocorrelation = float(lag_one(units.values)) if checked else None
    widened = 1.0 if autocorrelation is None else float(widening(autocorrelation, count))
    half = widened * float(radius(count, scatter, confidence))
    return Effect(
        ratio=_ratio(mean),
        low=_ratio(mean - half),
        high=_ratio(mean + half),
        confidence=confidence,
        rounds=count,
        scatter=scatter,
        e_value=bounded_exp(log_e_value(count, mean / widened, scatter)),
        autocorrelation=autocorrelation,
        doubts=tuple(_doubts(units, count, scatter, autocorrelation, widened)),
        widened=widened,
        kind=units.kind,
    )


def widening(autocorrelation: ArrayLike, count: ArrayLike) -> FloatArray:
    """Return the factor (1 or more) by which to widen an interval for dependence between units.

    ``sqrt((1 + r) / (1 - r))``, the inflation of the standard error of a first-order autoregression, where r
    exceeds its own standard error ``1/sqrt(n)``; else 1. Independent units pass that mark about one time in
    ten. It only ever widens, so it costs width but no validity.
    """
    n = np.asarray(count, dtype=np.float64)
    r = np.minimum(np.asarray(autocorrelation, dtype=np.float64), 0.95)
    shown = r > 1.0 / np.sqrt(n)
    return np.asarray(np.sqrt(np.where(shown, (1.0 + r) / (1.0 - r), 1.0)), dtype=np.float64)


def _doubts(
    units: Units, count: int, scatter: float, autocorrelation: float | None, widened: float
) -> list[str]:
    doubts = []
    if units.kind == "block":
        doubts.append("the server was not restarted, so variation between its lives is not in the interval")
    if count > 1 and scatter <= _ALIKE:
        doubts.append(
            f"all {count} {units.kind}s gave the same ratio: right for counts, but a rounded metric "
            "would make the interval too narrow"
        )
    if autocorrelation is not None and widened > 1.0:
        doubts.append(
            f"consecutive {units.kind}s resemble each other (lag-1 autocorrelation {autocorrelation:.2f}); "
            f"the interval was widened {widened:.2f} times, which may not be enough"
        )
    if units.dropped_blocks:
        total = units.dropped_blocks + units.complete_blocks
        doubts.append(f"{units.dropped_blocks} of {total} blocks lacked a trial and were left out")
    return doubts


def _ratio(log_ratio: float) -> float:
    """Return exp of a log ratio: 0 or infinity where unbounded, else within what floats can hold."""
    if math.isinf(log_ratio):
        return math.inf if log_ratio > 0.0 else 0.0
    return math.exp(min(max(log_ratio, -700.0), 700.0))


def _side(ratio: float) -> int:
    return (ratio > 1.0) - (ratio < 1.0)
