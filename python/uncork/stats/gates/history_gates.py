"""Decide gates against earlier comparable runs: kept, broken, or not decided. Pure.

The outcomes mean the same as in `stats.gates.decision`, with p-values instead of e-values, because runs that
were made earlier are looked at once. A gate is turned so that larger is worse. With the bound B:

- *broken*: shown to be worse than the past (the interval excludes "no difference", and Benjamini and
  Hochberg's procedure keeps the p-value among all gates of the guard), and the estimate lies beyond B.
- *kept*: the interval's bad end lies within B, and the p-value against B is kept in the same way. For a gate
  at the baseline itself, the bound is what matters in practice.

A gate on a value tests whether one more such run would lie beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uncork.model.results.guard import Gate, GateOutcome, metric_of
from uncork.stats.gates.decision import Decision, GateQuestion, decide
from uncork.stats.gates.words import at_baseline, bound_words, change_words, range_words
from uncork.stats.run_comparison import RunDifference, benjamini_hochberg


@dataclass(frozen=True, slots=True)
class Beside:
    """A gate's metric in a new run, compared with the past.

    `estimate`, `low` and `high` are in the gate's own terms: a ratio; for shares a difference; for a gate on
    a value, that value. `null` is the best value that counts as worse. To be broken, the estimate must exceed
    `bound`; to be kept, it must not exceed `allowed`. `worse` and `within` are p-values. `unknown` is the
    reason if there is no claim.
    """

    gate: Gate
    estimate: float
    low: float
    high: float
    null: float
    bound: float
    allowed: float
    worse: float
    within: float
    practical: float
    unknown: str = ""
    warnings: tuple[str, ...] = ()


def ratio_beside(
    gate: Gate,
    found: RunDifference,
    *,
    practical: float,
    p_at: Callable[[float], float] | None = None,
) -> Beside:
    """Compare a ratio with a gate on a ratio; `p_at` gives the p-value of a ratio if `found` does not."""
    slack = 1.0 + practical if _lower(gate) else 1.0 / (1.0 + practical)
    best = min if _lower(gate) else max
    return _beside(
        gate, found, practical, best(1.0, gate.limit), slack, p_at or found.p_value, lambda one: one
    )


def share_beside(gate: Gate, found: RunDifference, before: float, *, practical: float) -> Beside:
    """Compare a ratio of odds of *failures* with a gate on a difference of shares, of failures or of success.

    `before` is the share of failures that represents the past, above 0 and below 1.
    """
    sign = 1.0 if gate.metric == "errors" else -1.0
    odds = math.log(before / (1.0 - before))

    def difference(ratio: float) -> float:
        return sign * (1.0 / (1.0 + math.exp(-odds - math.log(ratio))) - before)

    def p_at(limit: float) -> float:
        share = before + sign * limit
        if not 0.0 < share < 1.0:
            return found.p_value(math.exp(math.copysign(50.0, share)))
        return found.p_value(math.exp(math.log(share / (1.0 - share)) - odds))

    slack = practical if _lower(gate) else -practical
    best = min if _lower(gate) else max
    return _beside(gate, found, practical, best(0.0, gate.limit), slack, p_at, difference)


def value_beside(gate: Gate, found: RunDifference, *, failures: bool = False) -> Beside:
    """Compare a value with a gate on a value; `found` is its ratio to the gate's limit.

    For failures it is a ratio of odds. `failures` says that `found` describes the odds of failures, even if
    the gate is about success.
    """
    own = gate.limit

    def value(ratio: float) -> float:
        if not failures:
            return ratio * own
        limit = own if gate.metric == "errors" else 1.0 - own
        share = 1.0 / (1.0 + (1.0 - limit) / limit / ratio)
        return share if gate.metric == "errors" else 1.0 - share

    def p_at(_limit: float) -> float:
        return found.p_value(1.0)

    return _beside(gate, found, 0.0, own, own, p_at, value)


def judge_past(asked: Sequence[Beside | GateQuestion], *, confidence: float) -> list[Decision]:
    """Judge all gates of a guard together; `stats.gates.decision` decides those that need no comparable runs.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    noisy = [one for one in asked if isinstance(one, Beside)]
    alpha = 1.0 - confidence
    worse = benjamini_hochberg([beside.worse for beside in noisy], alpha)
    within = benjamini_hochberg([beside.within for beside in noisy], alpha)
    claims = iter(zip(worse, within, strict=True))
    plain = iter(decide([one for one in asked if isinstance(one, GateQuestion)], confidence=confidence))
    return [
        _decision(one, *next(claims), len(noisy)) if isinstance(one, Beside) else next(plain) for one in asked
    ]


def _beside(
    gate: Gate,
    found: RunDifference,
    practical: float,
    null: float,
    slack: float,
    p_at: Callable[[float], float],
    scale: Callable[[float], float],
) -> Beside:
    ends = (found.low or 0.0, math.inf if found.high is None else found.high)
    known = found.low is not None and found.high is not None
    estimate = scale(found.ratio)
    low, high = sorted(map(scale, ends)) if known else (-math.inf, math.inf)
    allowed = slack if at_baseline(gate) and gate.bound != "value" else gate.limit
    lower = _lower(gate)
    beyond_null = estimate > null if lower else estimate < null
    inside = estimate < allowed if lower else estimate > allowed
    return Beside(
        gate=gate,
        estimate=estimate,
        low=low,
        high=high,
        null=null,
        bound=gate.limit,
        allowed=allowed,
        worse=p_at(null) if beyond_null and not found.unknown else 1.0,
        within=p_at(allowed) if inside and not found.unknown else 1.0,
        practical=practical,
        unknown=found.unknown,
        warnings=found.warnings,
    )


def _decision(beside: Beside, worse: bool, within: bool, gates: int) -> Decision:
    gate, lower = beside.gate, _lower(beside.gate)
    sign = 1.0 if lower else -1.0
    good, bad = (beside.low, beside.high) if lower else (beside.high, beside.low)
    beyond = sign * beside.estimate > sign * beside.bound
    clear = sign * good > sign * beside.null
    shown = worse and clear
    span, bound = range_words(gate, beside.estimate, beside.low, beside.high), bound_words(gate)
    if beside.unknown:
        outcome, reason = GateOutcome.UNDECIDED, beside.unknown
    elif shown and beyond:
        what = "beyond" if gate.bound == "value" else "worse than before, and by more than"
        what = "worse than before" if at_baseline(gate) else f"{what} {bound}"
        outcome, reason = GateOutcome.BROKEN, f"shown {what}: {span}"
    elif within and sign * bad <= sign * beside.allowed:
        outcome = GateOutcome.KEPT
        reason = f"the interval lies within {_allowed_words(beside, bound)}: {span}"
    else:
        outcome = GateOutcome.UNDECIDED
        alone = (clear and beyond) or sign * bad <= sign * beside.allowed
        reason = _undecided(beside, bound, span, gates, shown=shown, alone=alone)
    shown_range = (None, None, None) if gate.bound == "value" else (beside.estimate, beside.low, beside.high)
    known = math.isfinite(beside.low) and math.isfinite(beside.high)
    ratio, low, high = shown_range if known else (shown_range[0], None, None)
    return Decision(outcome, reason, ratio, low, high, 0, beside.warnings, span)


def _undecided(beside: Beside, bound: str, span: str, gates: int, *, shown: bool, alone: bool) -> str:
    if alone:
        return f"{span} would decide a single gate, but is too weak after correcting for {gates} gates"
    if shown:
        return f"worse than before, but perhaps within {bound}: {span}"
    return f"the interval reaches beyond {_allowed_words(beside, bound)}: {span}"


def _allowed_words(beside: Beside, bound: str) -> str:
    """Return the allowed range as text; for a gate at the baseline, what matters in practice."""
    if beside.gate.bound == "value" or not at_baseline(beside.gate):
        return bound
    return f"what matters in practice ({change_words(beside.gate, beside.practical)})"


def _lower(gate: Gate) -> bool:
    return metric_of(gate).better == "lower"
