"""Simulated guards whose truth is known: many gates, each measured until it is decided, then confirmed.

Vectorised over guards and gates; `test_gates.py` holds it to `uncork.stats.gates.decision.decide`, which
judges real ones.
"""

import math
from dataclasses import replace

import numpy as np
from simulation import REALISTIC, Looks, looks, series, units

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.gates.decision import CONFIRMATION
from uncork.stats.interval import log_e_value, radius

BLOCKS = 4
UNDECIDED, KEPT, BROKEN = 0, 1, 2
_OF_ONE = 0.0274  # the scatter of units of `REALISTIC` with 4 blocks


def noise(std_dev: float):
    """Return the realistic noise with units that scatter so much: drift, tails, spikes, slow lives."""
    factor = std_dev / _OF_ONE
    parts = ("drift", "arm_shift", "trial", "spike")
    return replace(REALISTIC, **{part: getattr(REALISTIC, part) * factor for part in parts})


def measured(generator, std_dev: float, truth, *, guards: int, gates: int, rounds: int) -> Looks:
    """Return the looks at gates, shape (guards, gates, rounds); `truth` is the log ratio of each gate.

    Beside each gate the machine changes its pace for good at some moment, by 8 % as a rule.
    """
    runs = guards * gates
    values = series(generator, noise(std_dev), runs=runs, rounds=rounds, arms=3, blocks=BLOCKS)
    steps = values[0].size
    change = np.arange(steps) >= generator.integers(0, steps, (runs, 1))
    values += (change * generator.normal(0.0, 0.08, (runs, 1))).reshape(values.shape)
    return looks(units(values)[:, 0].reshape(guards, gates, rounds) + np.asarray(truth)[..., None])


def kept_of_asked(log_e: np.ndarray, asked: np.ndarray, alpha: float) -> np.ndarray:
    """Apply e-BH along the last axis, over those that were asked."""
    log_e = np.where(asked, log_e, -np.inf)
    falling = -np.sort(-log_e, axis=-1)
    places = np.arange(1, log_e.shape[-1] + 1)
    total = np.maximum(asked.sum(axis=-1, keepdims=True), 1)
    enough = falling >= np.log(total / (places * alpha))
    last = log_e.shape[-1] - 1 - np.argmax(enough[..., ::-1], axis=-1)
    bar = np.take_along_axis(falling, last[..., None], axis=-1)[..., 0]
    return log_e >= np.where(enough.any(axis=-1), bar, np.inf)[..., None]


def decisions(state: Looks, counts: np.ndarray, bound: float, allowed: float, alpha: float, asked=None):
    """Decide all gates of each guard, each after so many rounds of its own; see `stats.gates.decision`."""
    mean, std_dev, inflation = (
        np.take_along_axis(of, counts[..., None] - 1, axis=-1)[..., 0]
        for of in (state.mean, state.std_dev, state.inflation)
    )
    asked = np.ones(counts.shape, dtype=bool) if asked is None else asked
    half = inflation * radius(counts, std_dev, 1.0 - alpha)
    against_none = np.where(mean > 0.0, log_e_value(counts, mean / inflation, std_dev), -np.inf)
    against_beyond = np.where(
        mean < allowed, log_e_value(counts, (allowed - mean) / inflation, std_dev), -np.inf
    )
    broken = kept_of_asked(against_none, asked, alpha) & (mean - half > 0.0) & (mean > bound)
    kept = kept_of_asked(against_beyond, asked, alpha) & (mean + half <= allowed)
    return np.where(asked & broken, BROKEN, np.where(asked & kept, KEPT, UNDECIDED))


def until_decided(state: Looks, bound: float, allowed: float, alpha: float = 0.05, asked=None):
    """Measure each gate until it is decided, or there are no rounds left; return outcomes and rounds."""
    rounds = state.mean.shape[-1]
    counts = np.full(state.mean.shape[:-1], MINIMUM_ROUNDS)
    for _ in range(rounds):
        outcome = decisions(state, counts, bound, allowed, alpha, asked)
        still = (outcome == UNDECIDED) & (counts < rounds)
        if not still.any():
            break
        counts = counts + still
    return decisions(state, counts, bound, allowed, alpha, asked), counts


def guarded(generator, std_dev, truth, bound, *, guards, gates, rounds, allowed=None, confirmation=None):
    """Carry out guards; return (found broken at first, confirmed, outcomes, rounds, first looks, second)."""
    allowed = bound if allowed is None else allowed
    facts = {"guards": guards, "gates": gates, "rounds": rounds}
    first, second = (measured(generator, std_dev, truth, **facts) for _ in range(2))
    outcome, counts = until_decided(first, bound, allowed)
    broken = outcome == BROKEN
    alpha = 1.0 - (CONFIRMATION if confirmation is None else confirmation)
    again, more = until_decided(second, bound, allowed, alpha, asked=broken)
    return Guarded(outcome, counts, broken & (again == BROKEN), first, second, more)


class Guarded:
    """What came of simulated guards."""

    def __init__(self, outcome, counts, confirmed, first, second, more) -> None:
        self.outcome, self.counts, self.confirmed = outcome, counts, confirmed
        self.first, self.second, self.more = first, second, more

    @property
    def looked_broken(self) -> float:
        """The share of guards in which some gate was found broken at first."""
        return float((self.outcome == BROKEN).any(axis=1).mean())

    @property
    def alarmed(self) -> float:
        """The share of guards with an alarm."""
        return float(self.confirmed.any(axis=1).mean())

    def estimates(self) -> tuple[float, float]:
        """Return the mean estimate of the gates that alarmed, at the first stop and at the second."""
        at = self.confirmed
        if not at.any():
            return math.nan, math.nan
        pairs = ((self.first, self.counts), (self.second, self.more))
        found = [np.take_along_axis(of.mean, n[..., None] - 1, axis=-1)[..., 0][at].mean() for of, n in pairs]
        return math.expm1(found[0]), math.expm1(found[1])
