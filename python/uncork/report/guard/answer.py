"""The answer of a guard: which gate is broken and by how much, and what to do next. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from uncork.model.results.guard import (
    Acknowledgement,
    GateCheck,
    GateOutcome,
    GuardResult,
    GuardSide,
    PlanDifference,
)
from uncork.model.units import count_words, format_count, series_words
from uncork.report.blocks import Step
from uncork.report.guard.words import (
    by_urgency,
    check_claim,
    check_sentence,
    check_support,
    interval_clause,
    metric_name,
    side_words,
    undecided_words,
)
from uncork.report.headline import capital, fitting
from uncork.report.words import effect_text, points_text
from uncork.stats.compare import MINIMUM_ROUNDS

_LISTED: Final = 5
"""Gates of one outcome that get a sentence each; the table lists all of them."""


def answer_guard(guard: GuardResult) -> GuardResult:
    """Return the guard's result with its answer and the sentences that support it, most serious first."""
    found, against = by_urgency(guard.checks), guard.against
    # The answer names the baseline in full; the reasons call it the baseline.
    known = replace(guard.baseline, title="") if against == "side by side" else guard.baseline
    how = "Measured side by side" if against == "side by side" else "Compared with history"
    if guard.hosts:
        how += f" on {count_words(guard.hosts, 'host')} in {count_words(guard.waves, 'wave')}"
    names = [side_words(side, against) for side in (guard.candidate, guard.baseline)]
    sides = f"{how}. Candidate: {names[0]}; baseline: {names[1]}."
    reasons = _reasons(found, guard.plans, _Reference(known, against, guard.confidence))
    answer = _answer(found, _Reference(guard.baseline, against, guard.confidence))
    return replace(guard, answer=answer, reasons=(*reasons, sides, *_about_hosts(guard)))


def _about_hosts(guard: GuardResult) -> Iterator[str]:
    if not guard.hosts:
        return
    enough = f"at least {MINIMUM_ROUNDS}"
    if guard.hosts < MINIMUM_ROUNDS:
        these = "this host" if guard.hosts == 1 else "these hosts"
        yield f"The gates are about {these} only: a claim about others needs {enough}."
    else:
        yield (
            "The gates are about hosts like these: of the intervals from rounds and from the means of hosts, "
            "the wider decides."
        )
    if guard.waves < MINIMUM_ROUNDS:
        yield f"They say nothing about other times: that needs {enough} waves."


@dataclass(frozen=True, slots=True)
class _Reference:
    baseline: GuardSide
    against: str
    confidence: float

    def sentence(self, check: GateCheck) -> str:
        return check_sentence(check, self.baseline, self.against, self.confidence)

    def answer(self, before: str, check: GateCheck, after: str = "") -> Iterator[tuple[str, str]]:
        """Yield answers with what a check found: with its interval in the headline, or after it."""
        for confidence in (self.confidence, None):
            claim = check_claim(check, self.baseline, self.against, confidence)
            support = check_support(check, self.confidence, stated=confidence is not None)
            yield f"{before}{claim}", capital(f"{support}{after}")


def guard_steps(result: GuardResult, *, within: bool = False) -> Iterator[Step]:
    """Yield the next steps, most urgent first; `within` the report, without the command that opens it."""
    broken = [check for check in result.checks if check.outcome is GateOutcome.BROKEN]
    undecided = [check for check in result.checks if check.outcome is GateOutcome.UNDECIDED]
    beside = result.against == "side by side"
    kept = result.runs[0] if beside and result.runs else result.id
    if not result.checks:
        yield Step("Add a gate, for example:", f"{result.reproduce} --gate 'p99 < +5%'")
        return
    if (broken or undecided) and not within:
        yield Step("See all measurements:", f"uncork report {shlex.quote(kept)}")
    changes = [
        check for check in broken if check.gate.metric != "answer"
    ]  # wrong answers cannot be acknowledged
    gathers = beside and any(word.endswith(".toml") for word in shlex.split(result.reproduce))
    if (
        changes
        and gathers
        and not any(difference.kind in ("wait", "frame") for difference in result.differences)
    ):
        yield Step("See what the server waits for and computes:", _with(result, "--evidence waits,stacks"))
    if undecided:
        many = count_words(len(undecided), "gate")
        if beside:
            yield Step(f"Measure longer to decide {many}:", _with(result, "--budget 30min"))
        else:
            again = replace(result, reproduce=result.reproduce.replace(" --stored", ""))
            yield Step(f"Make more comparable runs to decide {many}:", _with(again, "--times 5"))
    elif broken:
        yield Step("Measure again:", result.reproduce)
    if changes:
        words = ["uncork", "acknowledge", kept, changes[0].gate.text, "--reason", "..."]
        yield Step(
            "If the change is intended, acknowledge it with a reason; it then passes:", shlex.join(words)
        )


def _with(result: GuardResult, option: str) -> str:
    name = option.partition(" ")[0]
    return f"{re.sub(rf' {name}[ =][^ ]+', '', result.reproduce)} {option}"


def acknowledgement_words(acknowledgement: Acknowledgement) -> str:
    """Return an acknowledgement in words: ``acknowledged on 2026-05-31 by Ada, until 2026-12-31: reason``."""
    by = f" by {acknowledgement.by}" if acknowledgement.by else ""
    until = f", until {acknowledgement.until}" if acknowledgement.until else ""
    return f"acknowledged on {acknowledgement.date}{by}{until}: {acknowledgement.reason.rstrip('.')}"


def _answer(found: Sequence[GateCheck], reference: _Reference) -> str:
    if not found:
        return "No gate was checked, so there is no verdict."
    of = {outcome: [check for check in found if check.outcome is outcome] for outcome in GateOutcome}
    broken, undecided = of[GateOutcome.BROKEN], of[GateOutcome.UNDECIDED]
    if broken:
        return _broken(_worst(broken), len(broken), len(found), reference)
    if undecided:
        many = f"{format_count(len(undecided))} of {count_words(len(found), 'gate')}; first "
        before = f"Not decided: {many if len(found) > 1 else ''}"
        return fitting(reference.answer(before, undecided[0], undecided_words(undecided[0])))
    known = of[GateOutcome.ACKNOWLEDGED]
    if known:
        kept = f"Kept: {len(of[GateOutcome.KEPT])} of {count_words(len(found), 'gate')}"
        others = "the other one is" if len(known) == 1 else f"the other {len(known)} are"
        return f"{kept}; {others} broken, as acknowledged."
    return _kept(found, reference)


def _kept(found: Sequence[GateCheck], reference: _Reference) -> str:
    if len(found) > 1:
        return f"Kept: all {count_words(len(found), 'gate')}{_closest(found, reference.confidence)}."
    if _has_number(found[0]):
        return fitting(reference.answer("Kept: ", found[0]))
    return f"Kept: {found[0].gate.text}."


def _broken(worst: GateCheck, broken: int, checked: int, reference: _Reference) -> str:
    if broken == 1:
        return fitting(reference.answer("Broken: ", worst))
    many = f"Broken: {format_count(broken)} of {count_words(checked, 'gate')}"
    return fitting((*reference.answer(f"{many}; ", worst), (many, f"Worst: {reference.sentence(worst)}")))


def _has_number(check: GateCheck) -> bool:
    return check.gate.bound != "unchanged" and (check.ratio is not None or check.candidate is not None)


def _worst(broken: Sequence[GateCheck]) -> GateCheck:
    """Return the check furthest beyond its bound; a changed plan ranks behind any gate on what it costs."""
    return max(broken, key=_excess)


def _excess(check: GateCheck) -> float:
    if check.gate.metric == "answer":  # a wrong answer is never fast
        return math.inf
    value = check.candidate if check.gate.bound == "value" else check.ratio
    if value is None or check.gate.bound == "unchanged":
        return -1.0
    limit = check.gate.limit
    if check.unit == "share":
        return abs(value - limit)
    return abs(value / limit - 1) if limit else abs(value)


def _closest(found: Sequence[GateCheck], confidence: float) -> str:
    """Return the gate whose interval comes closest to its bound; equal counts are not close."""
    known = [
        check
        for check in found
        if check.gate.bound == "ratio"
        and _bad_end(check) is not None
        and (check.low != check.high or check.low != (0.0 if check.unit == "share" else 1.0))
    ]
    if not known:
        return ""
    close = min(known, key=lambda one: abs((_bad_end(one) or 0.0) - one.gate.limit))
    name = " of ".join(filter(None, (metric_name(close.gate.metric), close.workload)))
    ratio = close.ratio or 0.0
    effect = f"{points_text(ratio)} points" if close.unit == "share" else effect_text(ratio)
    interval = interval_clause(close, confidence, signed=True)
    return f". Closest to its gate, {close.gate.text}: {name}, {effect}{interval}"


def _bad_end(check: GateCheck) -> float | None:
    return check.low if check.gate.relation.startswith(">") else check.high


def _reasons(
    found: Sequence[GateCheck], plans: Sequence[PlanDifference], reference: _Reference
) -> Iterator[str]:
    if len(found) > 1:
        tally = [
            f"{sum(check.outcome is outcome for check in found)} {outcome.value}"
            for outcome in dict.fromkeys(check.outcome for check in found)
        ]
        yield f"{count_words(len(found), 'gate')}: {', '.join(tally)}."
    broken = [check for check in found if check.outcome is GateOutcome.BROKEN]
    undecided = [check for check in found if check.outcome is GateOutcome.UNDECIDED]
    worst = _worst(broken) if broken else None
    yield from _each("Broken", [check for check in broken if check is not worst], reference)
    yield from _each("Not decided", undecided if broken else undecided[1:], reference)
    for check in found:
        if check.outcome is GateOutcome.ACKNOWLEDGED and check.acknowledgement is not None:
            words = acknowledgement_words(check.acknowledgement).removeprefix("acknowledged ")
            yield f"Acknowledged: {reference.sentence(check)}; {words}."
    yield from _plan_words(plans, {check.workload for check in broken if check.gate.metric == "plan"})
    if any(check.confirmed is False for check in undecided):
        yield "A gate found broken is measured again; the guard fails only if it is broken again."


def _each(word: str, checks: Sequence[GateCheck], reference: _Reference) -> Iterator[str]:
    for check in checks[:_LISTED]:
        why = undecided_words(check) if check.outcome is GateOutcome.UNDECIDED else ""
        yield f"{word}: {reference.sentence(check)}{why}."
    if len(checks) > _LISTED:
        yield f"{word}: {len(checks) - _LISTED} more; see the table."


def _plan_words(plans: Sequence[PlanDifference], reported: Set[str]) -> Iterator[str]:
    """Yield which plans changed, or have other statistics, except for workloads already `reported`."""
    changed = list(
        dict.fromkeys(
            _statement(plan) for plan in plans if plan.kind == "changed" and plan.workload not in reported
        )
    )
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        yield f"{series_words(changed[:_LISTED])} {verb} a different plan."
    other = {
        _statement(plan): plan.text.splitlines()[0]
        for plan in plans
        if plan.kind == "statistics" and plan.text
    }
    for name, line in list(other.items())[:_LISTED]:
        yield f"The plan of {name} is unchanged, but its statistics differ: {line}."


def _statement(difference: PlanDifference) -> str:
    return (
        f"{difference.statement} of {difference.workload}"
        if difference.statement != difference.workload
        else difference.workload
    )
