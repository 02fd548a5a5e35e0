"""Estimate the difference of two success rates, with an interval that is valid at every look.

It is unknown whether requests fail one by one, or in bursts that affect a whole round. So two intervals are
computed, and the result uses the wider one at each end.

*By requests.* This assumes that requests fail one by one. If s of n requests of the variant and t of m of the
baseline succeed, the evidence against the variant's rate being δ above the baseline's is::

    e(δ) = M(s, n) · M(t, m) / max over p of (p + δ)^s (1 - p - δ)^(n-s) p^t (1 - p)^(m-t)

M is the likelihood averaged over a prior: half Beta(1/2, 1/2), half Beta(1, 1/10). The second half is
concentrated near 1, where services are. The numerator over the true likelihood is a martingale with mean 1,
in whatever order requests arrive, and the maximum is at least the true likelihood. So if δ is true, e(δ) ever
reaches 1/α with probability at most α (Robbins 1970; for the maximum in the denominator: Wasserman, Ramdas
and Balakrishnan, "Universal inference", 2020). This works even if no request failed at all, when there is no
variance to use: with 3 000 and 6 000 successes the rates differ by less than 0.3 points.

*By rounds.* Each round gives one difference of rates: the variant minus both trials of the baseline. Their
mean has the t-mixture interval of `stats.interval`. This works if requests of a round fail together, because
then rounds vary. On its own, it would be a single point as long as nothing fails.

The combined interval is valid if either assumption holds. So is the evidence, which is the smaller of the
two.

Alternatives not taken: the interval by requests alone (if failures come in bursts, it finds a difference
between a thing and itself in most experiments, see `tests/calibration/test_success.py`); an interval for
ratios or odds (undefined at a rate of 1); the plug-in e-value of Turner and Grünwald (more precise for few
requests, but its answer depends on the order of blocks).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from uncork.stats.effect import AUTOCORRELATION_UNITS, inflation_of
from uncork.stats.interval import FloatArray, bounded_exp, lag_one, log_e_value, radius, summary
from uncork.stats.sample import UnitKind

_HALVINGS = 46
"""Halvings that locate an end of the interval to 10⁻¹³."""
_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Counted:
    """One trial's requests: `succeeded` of `started`."""

    round: int
    block: int
    arm: str
    succeeded: int
    started: int


@dataclass(frozen=True, slots=True)
class ShareUnits:
    """The counts of one comparison over its complete blocks, and each unit's difference of success rates.

    `own` and `base` are (succeeded, started) of the variant and of the baseline, both baseline trials
    together.
    """

    values: tuple[float, ...]
    own: tuple[int, int]
    base: tuple[int, int]
    kind: UnitKind = "round"
    complete_blocks: int = 0
    dropped_blocks: int = 0

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class ShareEffect:
    """The variant's success rate minus the baseline's, with an interval valid at every look.

    `difference`, `low` and `high` lie in [-1, 1]: 0.011 is 1.1 percentage points more. `rounds` is the number
    of units and `kind` says what a unit is. `std_dev` is the standard deviation of their differences (NaN
    with one unit). `e_value` is the evidence against a difference of 0. `inflation` is the factor, 1 or more,
    by which dependence between units inflated the interval by rounds.
    """

    difference: float
    low: float
    high: float
    confidence: float
    rounds: int
    std_dev: float
    e_value: float
    own: tuple[int, int]
    base: tuple[int, int]
    warnings: tuple[str, ...] = ()
    inflation: float = 1.0
    kind: UnitKind = "round"

    @property
    def excludes_none(self) -> bool:
        """Return whether the interval excludes "no difference"."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def rises(self) -> bool:
        """Return whether the variant's rate is higher than the baseline's."""
        return self.difference > 0.0

    @property
    def half_width(self) -> float:
        """Return the interval's half-width: 0.03 is ±3 percentage points; infinite if unbounded."""
        return math.inf if self.low <= -1.0 and self.high >= 1.0 else (self.high - self.low) / 2.0

    def inside(self, practical: float) -> bool:
        """Return whether the interval contains no difference of more than `practical`."""
        return self.low >= -practical and self.high <= practical

    def beyond(self, practical: float) -> bool:
        """Return whether the interval contains only differences above `practical`, all in one direction."""
        return self.low > practical or self.high < -practical

    @property
    def relative_width(self) -> float:
        """Return the half-width divided by the estimate's distance from no difference."""
        return self.half_width / abs(self.difference) if self.difference else math.inf

    def evidence_of_equivalence(self, practical: float) -> float:
        """Return the e-value against a difference of `practical` or more; at most 1 if outside."""
        if abs(self.difference) >= practical:
            return min(1.0, self.evidence_against(math.copysign(practical, self.difference)))
        return min(self.evidence_against(practical), self.evidence_against(-practical))

    @property
    def span(self) -> str:
        """Return the interval as text."""
        if math.isinf(self.half_width):
            return "unbounded"
        return f"{self.low * 100:+.2f} to {self.high * 100:+.2f} percentage points"

    def evidence_against(self, difference: float) -> float:
        """Return the e-value against the true difference being `difference`."""
        requests = float(log_e_of_requests(*self.own, *self.base, difference))
        distance = (self.difference - difference) / self.inflation
        rounds = float(log_e_value(self.rounds, distance, self.std_dev))
        return bounded_exp(min(requests, rounds))


def share_units(
    counts: Iterable[Counted], *, baseline: str, again: str | None, variant: str, kind: UnitKind = "round"
) -> ShareUnits:
    """Return one difference of success rates per round (or block): the variant minus the baseline's trials.

    A block is complete if it holds all these arms. Incomplete blocks are dropped and counted. Other arms are
    ignored. If `again` is None, the variant is compared with the baseline's only trial.

    Raises:
        ValueError: An arm occurs twice in a block, or more requests succeeded than were started.
    """
    arms_below = [baseline] if again is None else [baseline, again]
    blocks: dict[tuple[int, int], dict[str, tuple[int, int]]] = defaultdict(dict)
    for seen in counts:
        if seen.arm not in arms_below and seen.arm != variant:
            continue
        block = blocks[seen.round, seen.block]
        if seen.arm in block:
            raise ValueError(f"round {seen.round}, block {seen.block}: arm {seen.arm} occurs twice")
        if not 0 <= seen.succeeded <= seen.started or seen.started == 0:
            raise ValueError(
                f"round {seen.round}, block {seen.block}, arm {seen.arm}: "
                f"{seen.succeeded} of {seen.started} requests succeeded, which is impossible"
            )
        block[seen.arm] = (seen.succeeded, seen.started)
    complete = {place: arms for place, arms in sorted(blocks.items()) if len(arms) == 1 + len(arms_below)}
    sums: dict[tuple[int, int], np.ndarray] = {}
    for (number, within), arms in complete.items():
        own, base = np.array(arms[variant]), np.sum([arms[arm] for arm in arms_below], axis=0)
        place = (number, within if kind == "block" else 0)
        sums[place] = sums.get(place, np.zeros(4, dtype=np.int64)) + np.concatenate([own, base])
    whole = sum(sums.values(), np.zeros(4, dtype=np.int64))
    return ShareUnits(
        values=tuple(float(s / n - t / m) for s, n, t, m in sums.values()),
        own=(int(whole[0]), int(whole[1])),
        base=(int(whole[2]), int(whole[3])),
        kind=kind,
        complete_blocks=len(complete),
        dropped_blocks=len(blocks) - len(complete),
    )


@lru_cache(maxsize=1024)
def estimate_share(units: ShareUnits, confidence: float) -> ShareEffect:
    """Estimate the difference of success rates from the units of one comparison.

    Raises:
        ValueError: There are no units, or `confidence` is not between 0 and 1.
    """
    count, mean, std_dev = summary(units.values)
    checked = count >= AUTOCORRELATION_UNITS and std_dev > 0.0
    autocorrelation = float(lag_one(units.values)) if checked else None
    inflation = 1.0 if autocorrelation is None else float(inflation_of(autocorrelation, count))
    half = inflation * float(radius(count, std_dev, confidence))
    low, high = requests_interval(*units.own, *units.base, confidence)
    by_rounds = float(log_e_value(count, mean / inflation, std_dev))
    by_requests = float(log_e_of_requests(*units.own, *units.base, 0.0))
    return ShareEffect(
        difference=mean,
        low=max(-1.0, min(float(low), mean - half)),
        high=min(1.0, max(float(high), mean + half)),
        confidence=confidence,
        rounds=count,
        std_dev=std_dev,
        e_value=bounded_exp(min(by_rounds, by_requests)),
        own=units.own,
        base=units.base,
        warnings=tuple(_warnings(units, autocorrelation, inflation)),
        inflation=inflation,
        kind=units.kind,
    )


def share_interval(succeeded: int, started: int, confidence: float) -> tuple[float, float]:
    """Return an interval for one success rate, valid at every look if requests fail one by one.

    Raises:
        ValueError: Nothing was started, or `confidence` is not between 0 and 1.
    """
    if started <= 0 or not 0.0 < confidence < 1.0:
        raise ValueError("an interval needs at least one request, and a confidence between 0 and 1")
    s, n = np.asarray(float(succeeded)), np.asarray(float(started))
    bar = float(_log_average(s, n)) + math.log(1.0 - confidence)

    def end(outside: float) -> float:
        inner, outer = succeeded / started, outside
        for _ in range(_HALVINGS):
            half = (inner + outer) / 2.0
            held = float(_log_likelihood(s, n, np.asarray(half))) > bar
            inner, outer = (half, outer) if held else (inner, half)
        return outer

    return end(0.0), end(1.0)


def log_e_of_share(succeeded: int, started: int, share: float) -> float:
    """Return log e(p): the evidence against a rate being `share`, if requests fail one by one."""
    s, n = np.asarray(float(succeeded)), np.asarray(float(started))
    return float(_log_average(s, n) - _log_likelihood(s, n, np.asarray(share)))


def log_e_of_requests(
    succeeded: ArrayLike, started: ArrayLike, base: ArrayLike, base_started: ArrayLike, difference: ArrayLike
) -> FloatArray:
    """Return log e(δ) by requests: the evidence against the variant's rate being `difference` higher."""
    s, n, t, m, delta = (
        np.asarray(value, dtype=np.float64) for value in (succeeded, started, base, base_started, difference)
    )
    return np.asarray(_log_average(s, n) + _log_average(t, m) - _log_best(s, n, t, m, delta))


def requests_interval(
    succeeded: ArrayLike, started: ArrayLike, base: ArrayLike, base_started: ArrayLike, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval by requests for the difference of success rates.

    e(δ) decreases up to this interval and increases beyond it, so each end is found by bisection.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    s, n, t, m = (np.asarray(value, dtype=np.float64) for value in (succeeded, started, base, base_started))
    bar = _log_average(s, n) + _log_average(t, m) + math.log(1.0 - confidence)
    middle = s / n - t / m

    def end(outside: float) -> FloatArray:
        inner, outer = middle, np.full_like(middle, outside)
        for _ in range(_HALVINGS):
            half = (inner + outer) / 2.0
            held = _log_best(s, n, t, m, half) > bar
            inner, outer = np.where(held, half, inner), np.where(held, outer, half)
        return outer

    return end(-1.0), end(1.0)


def _log_best(s: FloatArray, n: FloatArray, t: FloatArray, m: FloatArray, delta: FloatArray) -> FloatArray:
    """Return the log of the greatest likelihood given that the variant's rate is `delta` higher."""
    share = _common_share(s, n, t, m, delta)
    return np.asarray(_log_likelihood(s, n, share + delta) + _log_likelihood(t, m, share))


def _common_share(
    s: FloatArray, n: FloatArray, t: FloatArray, m: FloatArray, delta: FloatArray
) -> FloatArray:
    """Return the baseline's rate that fits best given that the variant's is `delta` higher.

    It is the root of a cubic, in the form of Farrington and Manning (Statistics in Medicine 9, 1990).
    """
    low, high = np.maximum(0.0, -delta), np.minimum(1.0, 1.0 - delta)
    whole = n + m
    b = ((n + 2.0 * m) * delta - whole - s - t) / (3.0 * whole)
    c = ((m * delta - whole - 2.0 * t) * delta + s + t) / whole
    d = t * delta * (1.0 - delta) / whole
    q = b**3 - b * c / 2.0 + d / 2.0
    p = np.where(q >= 0.0, 1.0, -1.0) * np.sqrt(np.maximum(b**2 - c / 3.0, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.clip(np.where(p != 0.0, q / np.where(p != 0.0, p, 1.0) ** 3, 0.0), -1.0, 1.0)
    root = 2.0 * p * np.cos((math.pi + np.arccos(cosine)) / 3.0) - b
    return np.asarray(np.clip(root, low, high), dtype=np.float64)


def _log_likelihood(succeeded: FloatArray, started: FloatArray, share: FloatArray) -> FloatArray:
    failed = started - succeeded
    good = np.where(succeeded > 0.0, succeeded * np.log(np.clip(share, _LEAST, 1.0)), 0.0)
    bad = np.where(failed > 0.0, failed * np.log(np.clip(1.0 - share, _LEAST, 1.0)), 0.0)
    return np.asarray(good + bad, dtype=np.float64)


def _log_average(succeeded: FloatArray, started: FloatArray) -> FloatArray:
    """Return the log of the likelihood, averaged over the prior."""
    failed = started - succeeded
    parts = [
        _log_beta(succeeded + a, failed + b) - _log_beta(np.asarray(a), np.asarray(b)) - math.log(2.0)
        for a, b in ((0.5, 0.5), (1.0, 0.1))
    ]
    return np.asarray(np.logaddexp(*parts), dtype=np.float64)


_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def _log_beta(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(_log_gamma(a) + _log_gamma(b) - _log_gamma(a + b), dtype=np.float64)


def _warnings(units: ShareUnits, autocorrelation: float | None, inflation: float) -> Iterable[str]:
    if units.kind == "block":
        yield "the server was not restarted, so the interval leaves out variation between restarts"
    if autocorrelation is not None and inflation > 1.0:
        yield (
            f"consecutive {units.kind}s are correlated (lag-1 autocorrelation {autocorrelation:.2f}); "
            f"the interval was inflated by a factor of {inflation:.2f}, which may not be enough"
        )
    if units.dropped_blocks:
        total = units.dropped_blocks + units.complete_blocks
        yield f"{units.dropped_blocks} of {total} blocks missed a trial and were left out"
