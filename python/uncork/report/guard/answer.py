"""The answer of a guard: what is broken, by how much beside what, and what to do about it. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Final

from uncork.model.results.guard import (
    Acknowledgement,
    GateCheck,
    GateOutcome,
    GuardResult,
    GuardSide,
    PlanDifference,
)
from uncork.model.units import format_count
from uncork.report.blocks import Step
from uncork.report.guard.words import (
    by_urgency,
    check_sentence,
    effect_figures,
    metric_name,
    side_words,
    undecided_words,
)
from uncork.report.words import count_words, series_words

__all__ = ["acknowledgement_words", "answer_guard", "guard_steps"]

_TOLD: Final = 5
"""Gates of one outcome that are told a sentence each; the table has them all."""


def answer_guard(guard: GuardResult) -> GuardResult:
    """Return the guard's result with its answer and the reasons for it, the gravest first."""
    found = by_urgency(guard.checks)
    # A title is shown once: from then on the side is called the baseline.
    known = replace(guard.baseline, title="") if guard.against == "side by side" else guard.baseline
    how = "Measured side by side" if guard.against == "side by side" else "Measured, and held against history"
    names = [side_words(side, guard.against) for side in (guard.candidate, guard.baseline)]
    sides = f"{how}. Candidate: {names[0]}; baseline: {names[1]}."
    reasons = (*_reasons(found, guard.plans, known, guard.against), sides)
    return replace(guard, answer=_answer(found, guard.baseline, guard.against), reasons=reasons)


def guard_steps(result: GuardResult, *, within: bool = False) -> Iterator[Step]:
    """Yield what to do next, most pressing first: what shows more, measuring again, acknowledging.

    The report itself (`within`) does not name the command that shows it.
    """
    broken = [check for check in result.checks if check.outcome is GateOutcome.BROKEN]
    undecided = [check for check in result.checks if check.outcome is GateOutcome.UNDECIDED]
    beside = result.against == "side by side"
    kept = result.runs[0] if beside and result.runs else result.id
    if not result.checks:
        yield Step("Name a gate, such as:", f"{result.reproduce} --gate 'p99 < +5%'")
        return
    if (broken or undecided) and not within:
        yield Step("See all that was measured:", f"uncork report {shlex.quote(kept)}")
    changes = [check for check in broken if check.gate.metric != "answer"]  # a wrong answer is none
    gathers = beside and _of_a_file(result)
    if changes and gathers and not any(one.kind in ("wait", "frame") for one in result.differences):
        yield Step("See what it waits for and computes:", _with(result, "--evidence waits,stacks"))
    if undecided:
        many = f"what is not decided in {count_words(len(undecided), 'gate')}"
        if beside:
            yield Step(f"Measure longer, for {many}:", _with(result, "--budget 30min"))
        else:
            again = replace(result, reproduce=result.reproduce.replace(" --stored", ""))
            yield Step(f"Make more comparable runs, for {many}:", _with(again, "--times 5"))
    elif broken:
        yield Step("Measure it again:", result.reproduce)
    if changes:
        words = ["uncork", "acknowledge", kept, changes[0].gate.text, "--reason", "..."]
        yield Step(
            "If that is as it should be, write down why, and it passes from then on:", shlex.join(words)
        )


def _of_a_file(result: GuardResult) -> bool:
    """Say whether an experiment file was guarded, and no stored run: of that evidence can be gathered."""
    return any(word.endswith(".toml") for word in shlex.split(result.reproduce))


def _with(result: GuardResult, option: str) -> str:
    """Return the command that guards again, with an option in place of what it says of that now."""
    name = option.partition(" ")[0]
    return f"{re.sub(rf' {name}[ =][^ ]+', '', result.reproduce)} {option}"


def acknowledgement_words(one: Acknowledgement) -> str:
    """Say an acknowledgement without full stop: ``acknowledged on 2026-05-31 by Ada until ...: reason``."""
    by = f" by {one.by}" if one.by else ""
    until = f", until {one.until}" if one.until else ""
    return f"acknowledged on {one.date}{by}{until}: {one.reason.rstrip('.')}"


# ---- the answer ----


def _answer(found: Sequence[GateCheck], baseline: GuardSide, against: str) -> str:
    if not found:
        return "No gate was checked, so there is nothing to say."
    of = {outcome: [one for one in found if one.outcome is outcome] for outcome in GateOutcome}
    broken, undecided = of[GateOutcome.BROKEN], of[GateOutcome.UNDECIDED]
    if broken:
        many = (
            f"{format_count(len(broken))} of {count_words(len(found), 'gate')}, the worst: "
            if len(broken) > 1
            else ""
        )
        return f"Broken: {many}{check_sentence(_worst(broken), baseline, against)}."
    if undecided:
        many = f"{format_count(len(undecided))} of {count_words(len(found), 'gate')}, the first: "
        first = check_sentence(undecided[0], baseline, against)
        return f"Not decided: {many if len(found) > 1 else ''}{first}{undecided_words(undecided[0])}."
    known = of[GateOutcome.ACKNOWLEDGED]
    if known:
        kept = f"Kept: {len(of[GateOutcome.KEPT])} of {count_words(len(found), 'gate')}"
        return f"{kept}; the other {len(known)} broken, as acknowledged."
    if len(found) == 1:
        return (
            f"Kept: {check_sentence(found[0], baseline, against)}."
            if _has_number(found[0])
            else (f"Kept: {found[0].gate.text}.")
        )
    return f"Kept: all {count_words(len(found), 'gate')}{_closest(found)}."


def _has_number(check: GateCheck) -> bool:
    return check.gate.bound != "unchanged" and (check.ratio is not None or check.candidate is not None)


def _worst(broken: Sequence[GateCheck]) -> GateCheck:
    """Return the one that is furthest beyond its bound; a changed plan is told by what it costs, if known."""
    return max(broken, key=_excess)


def _excess(check: GateCheck) -> float:
    """Say by which share, or by how many times a tenth of a point, an estimate lies beyond its bound."""
    if check.gate.metric == "answer":  # a wrong answer is never fast
        return math.inf
    value = check.candidate if check.gate.bound == "value" else check.ratio
    if value is None or check.gate.bound == "unchanged":
        return -1.0
    limit = check.gate.limit
    if check.unit == "share":
        return abs(value - limit)
    return abs(value / limit - 1) if limit else abs(value)


def _closest(found: Sequence[GateCheck]) -> str:
    """Name the gate whose interval comes closest to its bound; what is counted, and equal, is not close."""
    known = [one for one in found if one.gate.bound == "ratio" and _bad_end(one) is not None and _varies(one)]
    if not known:
        return ""
    close = min(known, key=lambda one: abs((_bad_end(one) or 0.0) - one.gate.limit))
    name = " of ".join(filter(None, (metric_name(close.gate.metric), close.workload)))
    return f"; {name} comes closest: {effect_figures(close)} where the gate is {close.gate.text}"


def _varies(check: GateCheck) -> bool:
    return check.low != check.high or check.low != (0.0 if check.unit == "share" else 1.0)


def _bad_end(check: GateCheck) -> float | None:
    return check.low if check.gate.relation.startswith(">") else check.high


# ---- what supports it ----


def _reasons(
    found: Sequence[GateCheck],
    plans: Sequence[PlanDifference],
    baseline: GuardSide,
    against: str,
) -> Iterator[str]:
    if len(found) > 1:
        tally = [
            f"{sum(one.outcome is outcome for one in found)} {outcome.value}"
            for outcome in dict.fromkeys(one.outcome for one in found)
        ]
        yield f"{count_words(len(found), 'gate')}: {', '.join(tally)}."
    broken = [one for one in found if one.outcome is GateOutcome.BROKEN]
    undecided = [one for one in found if one.outcome is GateOutcome.UNDECIDED]
    worst = _worst(broken) if broken else None
    told = [one for one in broken if one is not worst]
    yield from _each("Broken", told, baseline, against)
    yield from _each("Not decided", undecided if broken else undecided[1:], baseline, against)
    for one in found:
        if one.outcome is GateOutcome.ACKNOWLEDGED and one.acknowledgement is not None:
            words = acknowledgement_words(one.acknowledgement).removeprefix("acknowledged ")
            yield f"Acknowledged: {check_sentence(one, baseline, against)}; {words}."
    yield from _plan_words(plans, {one.workload for one in broken if one.gate.metric == "plan"})
    if any(one.confirmed is False for one in undecided):
        yield "What one measurement finds broken is measured again; what is not found again is no alarm."


def _each(word: str, checks: Sequence[GateCheck], baseline: GuardSide, against: str) -> Iterator[str]:
    for one in checks[:_TOLD]:
        why = undecided_words(one) if one.outcome is GateOutcome.UNDECIDED else ""
        yield f"{word}: {check_sentence(one, baseline, against)}{why}."
    if len(checks) > _TOLD:
        yield f"{word}: {len(checks) - _TOLD} more, in the table."


def _plan_words(plans: Sequence[PlanDifference], told: Set[str]) -> Iterator[str]:
    """Say which plans changed, but for workloads of which that is told already, or have other statistics."""
    changed = list(
        dict.fromkeys(_statement(one) for one in plans if one.kind == "changed" and one.workload not in told)
    )
    if changed:
        verb = "is" if len(changed) == 1 else "are"
        yield f"{series_words(changed[:_TOLD])} {verb} executed by another plan."
    other = {
        _statement(one): one.text.splitlines()[0] for one in plans if one.kind == "statistics" and one.text
    }
    for name, line in list(other.items())[:_TOLD]:
        yield f"The plan of {name} is unchanged, with other statistics: {line}."


def _statement(one: PlanDifference) -> str:
    return f"{one.statement} of {one.workload}" if one.statement != one.workload else one.workload
