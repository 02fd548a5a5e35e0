"""The level of one side by itself: a metric's mean over rounds, with an interval valid at every look.

Of a metric above zero it is the mean of the rounds' logs, so the level is a geometric mean; of a share of
success the mean of the rounds' shares, with the wider of two intervals (see `stats.proportion`). A level
knows nothing of a baseline: what the machine does to all arms alike is in its scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uncork.stats.effect import AUTOCORRELATION_UNITS, widening
from uncork.stats.interval import bounded_exp, lag_one, log_e_value, radius, summary
from uncork.stats.proportion import log_e_of_share, share_interval
from uncork.stats.sample import UnitKind

__all__ = ["Level", "share_level", "value_level"]


@dataclass(frozen=True, slots=True)
class Level:
    """A side's value in its base unit, or its share of success, with its interval.

    `scatter` is the standard deviation of the rounds' logs, or shares (not a number with one round). `counts`
    are (succeeded, started) of a share, None of any other metric.
    """

    value: float
    low: float
    high: float
    confidence: float
    rounds: int
    scatter: float
    counts: tuple[int, int] | None = None
    doubts: tuple[str, ...] = ()
    widened: float = 1.0
    kind: UnitKind = "round"

    def evidence_against(self, value: float) -> float:
        """Return the e-value against the true level being `value`."""
        if self.counts is None:
            if value <= 0.0:
                return bounded_exp(math.inf)
            distance = math.log(self.value) - math.log(value)
            return bounded_exp(log_e_value(self.rounds, distance / self.widened, self.scatter))
        by_rounds = float(
            log_e_value(self.rounds, (self.value - value) / self.widened, self.scatter),
        )
        return bounded_exp(min(by_rounds, log_e_of_share(*self.counts, value)))


def value_level(values: Sequence[float], confidence: float, kind: UnitKind = "round") -> Level:
    """Estimate a level from one value above zero a round.

    Raises:
        ValueError: There is no value, one is not above zero, or `confidence` is not between 0 and 1.
    """
    logs = [math.log(value) for value in values]
    count, mean, scatter = summary(logs)
    widened = _widening(logs, scatter)
    half = widened * float(radius(count, scatter, confidence))
    return Level(
        value=math.exp(mean),
        low=0.0 if math.isinf(half) else math.exp(max(mean - half, -700.0)),
        high=math.inf if math.isinf(half) else math.exp(min(mean + half, 700.0)),
        confidence=confidence,
        rounds=count,
        scatter=scatter,
        doubts=_doubts(kind, widened),
        widened=widened,
        kind=kind,
    )


def share_level(counts: Sequence[tuple[int, int]], confidence: float, kind: UnitKind = "round") -> Level:
    """Estimate a share of success from (succeeded, started) of each round.

    Raises:
        ValueError: There is no round, nothing was started in one, or `confidence` is not between 0 and 1.
    """
    if any(started <= 0 for _, started in counts):
        raise ValueError("a share needs requests")
    shares = [succeeded / started for succeeded, started in counts]
    count, mean, scatter = summary(shares)
    widened = _widening(shares, scatter)
    half = widened * float(radius(count, scatter, confidence))
    succeeded, started = sum(s for s, _ in counts), sum(n for _, n in counts)
    low, high = share_interval(succeeded, started, confidence)
    return Level(
        value=mean,
        low=max(0.0, min(low, mean - half)),
        high=min(1.0, max(high, mean + half)),
        confidence=confidence,
        rounds=count,
        scatter=scatter,
        counts=(succeeded, started),
        doubts=_doubts(kind, widened),
        widened=widened,
        kind=kind,
    )


def _widening(units: Sequence[float], scatter: float) -> float:
    if len(units) < AUTOCORRELATION_UNITS or not scatter > 0.0:
        return 1.0
    return float(widening(lag_one(units), len(units)))


def _doubts(kind: UnitKind, widened: float) -> tuple[str, ...]:
    doubts = []
    if kind == "block":
        doubts.append("the server was not restarted, so variation between its lives is not in the interval")
    if widened > 1.0:
        doubts.append(
            f"consecutive {kind}s resemble each other; the interval was widened {widened:.2f} times"
        )
    return tuple(doubts)
