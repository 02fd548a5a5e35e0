"""Decide for each gate of a guard whether it is kept, broken or undecided, judging all gates together.

A gate is turned so that larger is worse. With the bound B and the interval from `good` to `bad`:

- *broken*: the candidate is shown to be worse than the baseline (`good` lies beyond "no difference", and e-BH
  keeps the evidence) **and** the estimate lies beyond B. If B requires an improvement, the candidate must be
  shown to miss B.
- *kept*: `bad` lies within B, and e-BH keeps the evidence against everything beyond B.
- *not decided*: neither.

The evidence is one-sided. Against "no worse than the baseline" it is the smallest e(m) over every m that is
no worse. e grows with the distance from the estimate. So it is e at "no difference" if the estimate is worse,
and there is no evidence otherwise. The smallest of several e-values is an e-value against all of them. The
two families, *broken* and *kept*, are each corrected over all gates of the guard, at one minus the
confidence.

*No worse than the baseline* cannot be shown for something noisy and equal: the interval always reaches
beyond. So such a gate is kept when the interval lies within the practical threshold, and broken as soon as
any worsening is shown. Counts that are equal in all trials, sizes and plans have no noise, so they are
compared exactly.

Measuring may stop as soon as all gates are decided, because e-values and intervals are valid at every look
(`tests/calibration/test_gates.py`). A gate that stopped when it looked broken is overstated a little, and a
warning says so. *Broken* raises an alarm only after a second measurement, made for that purpose, finds it
again. The second is judged on its own and at `CONFIRMATION`, a lower confidence, because both must be wrong
for a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.model.results.guard import Gate, GateOutcome, metric_of
from uncork.model.units import count_words
from uncork.stats.compare import MINIMUM_ROUNDS, e_benjamini_hochberg
from uncork.stats.effect import Effect
from uncork.stats.gates.words import (
    asks_for_better,
    at_baseline,
    bound_words,
    change_words,
    number_words,
    range_words,
)
from uncork.stats.interval import units_needed
from uncork.stats.level import Level
from uncork.stats.proportion import ShareEffect

CONFIRMATION: Final = 0.8
"""The confidence of the second measurement; see the table in `docs/concepts/error-rates.md`."""

_GRAIN: Final = 0.005
"""Counts that vary a little between trials are worse only beyond this fraction of the baseline's count."""
_MOST_ROUNDS: Final = 400
_OVERSTATED: Final = "measuring may stop once a gate is broken, which slightly overstates the difference"


@dataclass(frozen=True, slots=True)
class Exact:
    """Values without noise: a size, or a count that is equal in all trials of a side."""

    baseline: float | None
    candidate: float
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Same:
    """Whether a plan is the same; `reason` is a clause that says so, or says what differs."""

    holds: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No evidence was found; `reason` is a clause that says why, and how to get it."""

    reason: str


Evidence = Effect | ShareEffect | Level | Exact | Same | Unknown
"""The evidence by which a gate is judged. Shares, and differences of shares, are of *success*, even for
errors."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """A gate in one place, with the evidence found there.

    `practical` is the largest difference that does not matter there: a ratio, or for success rates a
    difference (0.01 is one point).
    """

    gate: Gate
    evidence: Evidence
    practical: float = 0.03


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a gate.

    `ratio`, `low` and `high` are as in `GateCheck`: for shares they are differences. For a bound on a value
    there is no ratio, and the interval is that of the candidate's value. `span` is the estimate with its
    interval as text; empty if nothing was estimated.
    """

    outcome: GateOutcome
    reason: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    warnings: tuple[str, ...] = ()
    span: str = ""


def decide(
    asked: Sequence[GateQuestion], *, confidence: float, minimum_rounds: int = MINIMUM_ROUNDS
) -> list[Decision]:
    """Decide all gates of a guard together, in every place to which they apply.

    Args:
        asked: Every gate, each effect and level estimated at `confidence`.
        confidence: One minus the rate at which gates may wrongly be called broken, or kept.
        minimum_rounds: A noisy gate needs at least this many rounds to be decided.

    Raises:
        ValueError: Something was estimated at another confidence.
    """
    views = [_view(question) for question in asked]
    if any(view is not None and view.found.confidence != confidence for view in views):
        raise ValueError(f"everything must be estimated at the confidence of the guard, {confidence}")
    noisy = [view for view in views if view is not None]
    enough = [view.rounds >= minimum_rounds for view in noisy]
    alpha = 1.0 - confidence
    worse = _kept([view.worse if known else 0.0 for view, known in zip(noisy, enough, strict=True)], alpha)
    within = _kept([view.within if known else 0.0 for view, known in zip(noisy, enough, strict=True)], alpha)
    claims = iter(zip(worse, within, strict=True))
    return [
        _exactly(question)
        if view is None
        else _decision(question, view, *next(claims), len(noisy), minimum_rounds)
        for question, view in zip(asked, views, strict=True)
    ]


def confirm(first: Decision, second: Decision) -> tuple[Decision, bool]:
    """Combine a gate that was found broken with its second measurement; also return whether that confirms it.

    The result uses the numbers of the second measurement, because the first was selected for looking bad. A
    gate that is not found broken again is undecided.
    """
    if second.outcome is GateOutcome.BROKEN:
        again = (
            f" in a second measurement, after {first.span} in the first"
            if first.span
            else ", in both measurements"
        )
        return replace(second, reason=f"{second.reason}{again}"), True
    verb = "confirm" if second.outcome is GateOutcome.KEPT else "decide"
    reason = f"it looked broken ({first.span or first.reason}), but a second measurement did not {verb} it"
    return replace(second, outcome=GateOutcome.UNDECIDED, reason=f"{reason}: {second.reason}"), False


# ---- noisy ones ----


@dataclass(frozen=True, slots=True)
class _View:
    """A gate turned so that larger is worse, on a scale where 0 is the baseline, or on the value's own scale.

    `null` is the best value that counts as worse: no difference, or the bound if that is stricter. To be
    broken, the estimate must exceed `bound`. To be kept, the bad end must not exceed `allowed`.
    """

    estimate: float
    good: float
    bad: float
    null: float
    bound: float
    allowed: float
    evidence: Callable[[float], float]
    found: Effect | ShareEffect | Level

    @property
    def rounds(self) -> int:
        return self.found.rounds

    @property
    def worse(self) -> float:
        """Return the evidence that the candidate is worse than `null`."""
        return self.evidence(self.null) if self.estimate > self.null else 0.0

    @property
    def within(self) -> float:
        """Return the evidence that the candidate is within what is allowed."""
        return self.evidence(self.allowed) if self.estimate < self.allowed else 0.0


def _view(question: GateQuestion) -> _View | None:
    found = question.evidence
    if isinstance(found, Effect):
        return _effect_view(question, found)
    if isinstance(found, ShareEffect):
        return _share_view(question, found)
    if isinstance(found, Level):
        return _level_view(question.gate, found)
    return None


def _effect_view(question: GateQuestion, found: Effect) -> _View:
    gate, metric, sign = question.gate, metric_of(question.gate), _sign(question.gate)
    bound = sign * math.log(gate.limit)
    varies = at_baseline(gate) and metric.source == "cost" and metric.unit != "ns"
    good, bad = sorted((sign * _log(found.low), sign * _log(found.high)))
    return _View(
        estimate=sign * math.log(found.ratio),
        good=good,
        bad=bad,
        null=min(0.0, bound),
        bound=math.log1p(_GRAIN) if varies else bound,
        allowed=math.log1p(question.practical) if at_baseline(gate) else bound,
        evidence=lambda worse: found.evidence_against(math.exp(sign * worse)),
        found=found,
    )


def _share_view(question: GateQuestion, found: ShareEffect) -> _View:
    bound = _sign(question.gate) * question.gate.limit
    return _View(
        estimate=-found.difference,
        good=-found.high,
        bad=-found.low,
        null=min(0.0, bound),
        bound=bound,
        allowed=question.practical if at_baseline(question.gate) else bound,
        evidence=lambda worse: found.evidence_against(-worse),
        found=found,
    )


def _level_view(gate: Gate, found: Level) -> _View:
    """Turn a level so that larger is worse; the level of errors is one minus the success rate."""
    sign = _sign(gate)
    if found.counts is None:
        bound = sign * _log(gate.limit)
        good, bad = sorted((sign * _log(found.low), sign * _log(found.high)))
        estimate = sign * math.log(found.value)
    else:
        bound = gate.limit if sign > 0 else 1.0 - gate.limit
        good, bad, estimate = 1.0 - found.high, 1.0 - found.low, 1.0 - found.value

    def evidence(worse: float) -> float:
        if found.counts is not None:
            return found.evidence_against(1.0 - worse)
        return found.evidence_against(0.0 if math.isinf(worse) else math.exp(sign * worse))

    return _View(estimate, good, bad, null=bound, bound=bound, allowed=bound, evidence=evidence, found=found)


def _sign(gate: Gate) -> float:
    return 1.0 if metric_of(gate).better == "lower" else -1.0


def _kept(e_values: Sequence[float], alpha: float) -> list[bool]:
    return e_benjamini_hochberg(e_values, alpha) if e_values else []


def _decision(
    question: GateQuestion, view: _View, worse: bool, within: bool, gates: int, minimum_rounds: int
) -> Decision:
    found, gate = view.found, question.gate
    shown = _shown(gate, found)
    span, bound = range_words(gate, *shown), bound_words(gate)
    beyond = view.estimate > view.bound
    if worse and view.good > view.null and beyond:
        outcome, reason = GateOutcome.BROKEN, _broken_words(question, bound, span)
    elif within and view.bad <= view.allowed:
        outcome, reason = GateOutcome.KEPT, _kept_words(question, view, bound, span)
    else:
        outcome = GateOutcome.UNDECIDED
        reason = _undecided_words(question, view, bound, span, gates, minimum_rounds)
    ratio = None if isinstance(found, Level) else shown[0]
    warnings = (*found.warnings, _OVERSTATED) if outcome is GateOutcome.BROKEN else found.warnings
    return Decision(outcome, reason, ratio, *shown[1:], view.rounds, warnings, span)


def _broken_words(question: GateQuestion, bound: str, span: str) -> str:
    if isinstance(question.evidence, Level):
        return f"shown to be beyond {bound}: {span}"
    if at_baseline(question.gate):
        return f"shown worse than the baseline: {span}"
    if asks_for_better(question.gate):
        return f"shown to miss {bound}: {span}"
    return f"shown worse than the baseline, and by more than {bound}: {span}"


def _kept_words(question: GateQuestion, view: _View, bound: str, span: str) -> str:
    if not isinstance(question.evidence, Level) and at_baseline(question.gate) and view.allowed > view.bound:
        matters = change_words(question.gate, question.practical)
        return f"no worse than the baseline by what matters in practice ({matters}): {span}"
    return f"the interval lies within {bound}: {span}"


def _undecided_words(
    question: GateQuestion, view: _View, bound: str, span: str, gates: int, minimum_rounds: int
) -> str:
    kind = view.found.kind
    if view.rounds < minimum_rounds:
        return f"only {count_words(view.rounds, kind)}; a decision needs {minimum_rounds}"
    shown_worse = view.good > view.null
    if (shown_worse and view.estimate > view.bound) or view.bad <= view.allowed:
        return f"{span} would decide a single gate, but is too weak after correcting for {gates} gates"
    if shown_worse:
        return f"worse than the baseline, but perhaps within {bound}: {span}{_more(view, kind)}"
    if at_baseline(question.gate) and not isinstance(question.evidence, Level):
        matters = change_words(question.gate, question.practical)
        return f"the interval still includes a difference that matters ({matters}): {span}{_more(view, kind)}"
    return f"the interval reaches beyond {bound}: {span}{_more(view, kind)}"


def _more(view: _View, kind: str) -> str:
    """Return a clause saying how many rounds would decide the gate if the estimate stayed the same."""
    beyond = view.estimate > view.bound
    distance = view.estimate - view.null if beyond else view.allowed - view.estimate
    if not (distance > 0.0 and view.found.std_dev > 0.0 and math.isfinite(distance)):
        return ""
    spread = view.found.std_dev * view.found.inflation
    needed = units_needed(spread, math.expm1(distance), view.found.confidence, at_most=_MOST_ROUNDS)
    if needed is None:
        return f"; more than {_MOST_ROUNDS} {kind}s would be needed"
    return f"; about {needed} {kind}s would decide it" if needed > view.rounds else ""


# ---- exact ones ----


def _exactly(question: GateQuestion) -> Decision:
    found, gate = question.evidence, question.gate
    if isinstance(found, Unknown):
        return Decision(GateOutcome.UNDECIDED, found.reason)
    if isinstance(found, Same):
        return Decision(GateOutcome.KEPT if found.holds else GateOutcome.BROKEN, found.reason)
    assert isinstance(found, Exact)  # noqa: S101 -- the only kind left
    base, own = found.baseline, found.candidate
    if gate.bound != "value" and base is None:
        return Decision(GateOutcome.UNDECIDED, "the baseline has no value", rounds=found.rounds)
    limit = gate.limit if gate.bound == "value" else gate.limit * (base or 0.0)
    slack = 1e-9 * max(abs(limit), abs(own))
    if gate.relation in ("<", "<="):
        within = own < limit - slack if gate.relation == "<" else own <= limit + slack
    else:
        within = own > limit + slack if gate.relation == ">" else own >= limit - slack
    # A ratio gate such as "< +10%" is kept if both sides are zero.
    within = within or (gate.bound == "ratio" and base == own == 0.0 and gate.limit >= 1.0)
    ratio = own / base if base else None
    value = number_words(gate, own)
    if gate.bound == "value":
        reason = f"{value}, {'within' if within else 'beyond'} {bound_words(gate)}"
    elif own == base:
        reason = f"{value}, the same as the baseline"
        reason += "" if within else f", which misses {bound_words(gate)}"
    else:
        reason = f"{value} instead of {number_words(gate, base or 0.0)}"
        reason += "" if at_baseline(gate) else f", {'within' if within else 'beyond'} {bound_words(gate)}"
    outcome = GateOutcome.KEPT if within else GateOutcome.BROKEN
    return Decision(outcome, reason, ratio, ratio, ratio, found.rounds)


def _shown(gate: Gate, found: Effect | ShareEffect | Level) -> tuple[float, float, float]:
    """Return estimate and interval in the gate's own terms: for errors, those of errors."""
    if isinstance(found, Effect):
        return found.ratio, found.low, found.high
    errors = gate.metric == "errors"
    if isinstance(found, ShareEffect):
        low, high = (-found.high, -found.low) if errors else (found.low, found.high)
        return -found.difference if errors else found.difference, low, high
    if found.counts is not None and errors:
        return 1.0 - found.value, 1.0 - found.high, 1.0 - found.low
    return found.value, found.low, found.high


def _log(value: float) -> float:
    if value <= 0.0:
        return -math.inf
    return math.inf if math.isinf(value) else math.log(value)
