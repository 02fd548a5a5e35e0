"""Estimate the level of one side: a metric's mean over rounds, with an interval valid at every look.

For a metric above zero, the mean is taken over the logs of the rounds, so the level is a geometric mean. For
a success rate, it is the mean of the rounds' rates, with the wider of two intervals (see `stats.proportion`).
A level does not use a baseline, so whatever affects all arms of a machine is part of its variation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import bounded_exp, lag_one, log_e_value, radius, summary
from uncork.stats.proportion import log_e_of_share, share_interval
from uncork.stats.sample import UnitKind


@dataclass(frozen=True, slots=True)
class Level:
    """One side's value in its base unit, or its success rate, with its interval.

    `std_dev` is the standard deviation of the rounds' logs, or of their rates (NaN with one round). `counts`
    are (succeeded, started) for a success rate, and None for any other metric.
    """

    value: float
    low: float
    high: float
    confidence: float
    rounds: int
    std_dev: float
    counts: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()
    inflation: float = 1.0
    kind: UnitKind = "round"

    def evidence_against(self, value: float) -> float:
        """Return the e-value against the true level being `value`."""
        if self.counts is None:
            if value <= 0.0:
                return bounded_exp(math.inf)
            distance = math.log(self.value) - math.log(value)
            return bounded_exp(log_e_value(self.rounds, distance / self.inflation, self.std_dev))
        by_rounds = float(
            log_e_value(self.rounds, (self.value - value) / self.inflation, self.std_dev),
        )
        return bounded_exp(min(by_rounds, log_e_of_share(*self.counts, value)))


def value_level(values: Sequence[float], confidence: float, kind: UnitKind = "round") -> Level:
    """Estimate a level from one value above zero per round.

    Raises:
        ValueError: There is no value, one is not above zero, or `confidence` is not between 0 and 1.
    """
    logs = [math.log(value) for value in values]
    count, mean, std_dev = summary(logs)
    inflation = _inflation(logs, std_dev)
    half = inflation * float(radius(count, std_dev, confidence))
    return Level(
        value=math.exp(mean),
        low=0.0 if math.isinf(half) else math.exp(max(mean - half, -700.0)),
        high=math.inf if math.isinf(half) else math.exp(min(mean + half, 700.0)),
        confidence=confidence,
        rounds=count,
        std_dev=std_dev,
        warnings=_warnings(kind, inflation),
        inflation=inflation,
        kind=kind,
    )


def share_level(counts: Sequence[tuple[int, int]], confidence: float, kind: UnitKind = "round") -> Level:
    """Estimate a success rate from (succeeded, started) of each round.

    Raises:
        ValueError: There is no round, nothing was started in one, or `confidence` is not between 0 and 1.
    """
    if any(started <= 0 for _, started in counts):
        raise ValueError("a success rate needs at least one request in every round")
    shares = [succeeded / started for succeeded, started in counts]
    count, mean, std_dev = summary(shares)
    inflation = _inflation(shares, std_dev)
    half = inflation * float(radius(count, std_dev, confidence))
    succeeded, started = sum(s for s, _ in counts), sum(n for _, n in counts)
    low, high = share_interval(succeeded, started, confidence)
    return Level(
        value=mean,
        low=max(0.0, min(low, mean - half)),
        high=min(1.0, max(high, mean + half)),
        confidence=confidence,
        rounds=count,
        std_dev=std_dev,
        counts=(succeeded, started),
        warnings=_warnings(kind, inflation),
        inflation=inflation,
        kind=kind,
    )


def _inflation(units: Sequence[float], std_dev: float) -> float:
    if len(units) < AUTOCORRELATION_UNITS or not std_dev > 0.0:
        return 1.0
    return float(inflation_of(lag_one(units), len(units)))


def _warnings(kind: UnitKind, inflation: float) -> tuple[str, ...]:
    warnings = []
    if kind == "block":
        warnings.append("the server was not restarted, so the interval leaves out variation between restarts")
    if inflation > 1.0:
        warnings.append(
            f"consecutive {kind}s are correlated; the interval was inflated by a factor of {inflation:.2f}"
        )
    return tuple(warnings)
