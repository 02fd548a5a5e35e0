"""The answer of a guard: which gate is broken and by how much, what to do next, and words for gates. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import (
    Acknowledgement,
    GateCheck,
    GateOutcome,
    GuardResult,
    GuardSide,
    PlanDifference,
)
from uncork.model.units import count_words, format_bytes, format_count, format_duration, series_words
from uncork.model.variant_evidence import Levels
from uncork.report.blocks import Step
from uncork.report.headline import capital, fitting
from uncork.report.words import (
    effect_text,
    effect_with_interval,
    exact_share_text,
    interval_bounds,
    level_text,
    points_text,
    ratio_span,
    with_option,
)
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
    # Wrong answers cannot be acknowledged.
    changes = [check for check in broken if check.gate.metric != "answer"]
    # Evidence can be gathered for an experiment file.
    gathers = beside and any(word.endswith(".toml") for word in shlex.split(result.reproduce))
    gathered = any(difference.kind in ("wait", "frame") for difference in result.differences)
    if changes and gathers and not gathered:
        again = with_option(result.reproduce, "--evidence waits,stacks")
        yield Step("See what the server waits for and computes:", again)
    if undecided:
        many = count_words(len(undecided), "gate")
        if beside:
            yield Step(f"Measure longer to decide {many}:", with_option(result.reproduce, "--budget 30min"))
        else:
            again = with_option(result.reproduce.replace(" --stored", ""), "--times 5")
            yield Step(f"Make more comparable runs to decide {many}:", again)
    elif broken:
        yield Step("Measure again:", result.reproduce)
    if changes:
        words = ["uncork", "acknowledge", kept, changes[0].gate.text, "--reason", "..."]
        yield Step(
            "If the change is intended, acknowledge it with a reason; it then passes:", shlex.join(words)
        )


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


OUTCOME_SIGNS: Final = {
    GateOutcome.BROKEN: "✗",
    GateOutcome.UNDECIDED: "?",
    GateOutcome.ACKNOWLEDGED: "~",
    GateOutcome.KEPT: "✓",
}
"""A sign for each outcome, so that none depends on colour alone; the most urgent first."""

_SPAN: Final = re.compile(r": [+−±×÷]?\d[^()]*\((?:[^()]* to [^()]*|unbounded)\)")
"""An estimate with its interval, as it appears in the reasons of `uncork.stats.gates`."""
_PREPOSITIONS: Final = {"commit": "at", "server": "on"}
_PLURAL: Final = re.compile(r"\b(?:queries|buffers|records|files|bytes|tables)\b")


def outcome_text(outcome: GateOutcome) -> str:
    """Format an outcome with its sign: ``✗ broken``."""
    return f"{OUTCOME_SIGNS[outcome]} {outcome.value}"


def by_urgency(checks: Sequence[GateCheck]) -> list[GateCheck]:
    """Return the checks sorted by outcome: broken, not decided, acknowledged, kept. The sort is stable."""
    order = list(OUTCOME_SIGNS)
    return sorted(checks, key=lambda check: order.index(check.outcome))


def _is_share(check: GateCheck) -> bool:
    return check.unit == "share"


def metric_name(metric: str) -> str:
    """Return the name of a metric in a sentence: ``p99``, ``mean latency``, ``plan``."""
    facts = GATE_METRICS.get(metric)
    title = facts.title if facts else metric.replace("_", " ")
    return title.removesuffix(" latency") if title.startswith("p9") else title


def check_place(check: GateCheck) -> str:
    """Return the workload and cell of a check: ``list, rows 100 000``; empty if it covers the whole run."""
    return ", ".join(filter(None, (check.workload, _cell(check.cell))))


def check_sentence(check: GateCheck, baseline: GuardSide, against: str, confidence: float = 0.95) -> str:
    """Return what a check found, without full stop: the effect, the gate, whether it was confirmed."""
    return f"{_found(check, baseline, against, confidence)}; {_gate_words(check)}"


def check_claim(check: GateCheck, baseline: GuardSide, against: str, confidence: float | None) -> str:
    """Return what a check found: the effect, with its interval unless `confidence` is None."""
    return _found(check, baseline, against, confidence)


def check_support(check: GateCheck, confidence: float, *, stated: bool) -> str:
    """Return what supports a check: its interval unless `stated`, its gate, and whether it was confirmed."""
    interval = "" if stated else interval_clause(check, confidence).strip(" ()")
    return "; ".join(filter(None, (interval, _gate_words(check))))


def _gate_words(check: GateCheck) -> str:
    parts = [f"gate: {check.gate.text}"]
    if check.outcome in (GateOutcome.BROKEN, GateOutcome.ACKNOWLEDGED):
        second = " by a second measurement" if check.confirmed else ""
        parts.append(f"{confirmation_text(check)}{second}")
    return "; ".join(filter(None, parts))


def confirmation_text(check: GateCheck) -> str:
    """Return ``confirmed`` if a second measurement found the gate broken too; empty if none was needed."""
    return {True: "confirmed", False: "not confirmed", None: ""}[check.confirmed]


def undecided_words(check: GateCheck) -> str:
    """Return why a gate is not decided, to append to a sentence that has its estimate and interval."""
    reason = _SPAN.sub("", check.reason.rstrip("."))
    return f"; {reason}" if reason else ""


def effect_figures(check: GateCheck) -> str:
    """Format an effect: ``+12 % [+9.0, +16]``, or the candidate's value; empty without either."""
    low, high = _bounds(check)
    if check.ratio is None or check.gate.bound == "value":
        if check.candidate is None or low == high:
            return ""
        ends = ("…" if one is None else value_text(one, check.unit) for one in (low, high))
        return f"{value_text(check.candidate, check.unit)} [{', '.join(ends)}]"
    if _is_share(check):
        bounds = [points_text(value) for value in (low, high) if value is not None]
        shown = f" [{', '.join(bounds)}]" if len(bounds) == 2 else ""
        return f"{points_text(check.ratio)} points{shown}"
    if low == high and (low is not None or check.outcome is not GateOutcome.UNDECIDED):
        return effect_text(check.ratio)
    if low is not None and high is not None and effect_text(low) == effect_text(high):
        return effect_text(check.ratio)  # a count with hardly any noise
    return effect_with_interval(check.ratio, low, high)


def values_text(check: GateCheck) -> str:
    """Format the values of both sides: ``20.1 ms → 22.4 ms``; a single value if the other is unknown."""
    known = [
        value_text(value, check.unit) for value in (check.baseline, check.candidate) if value is not None
    ]
    return " → ".join(known)


def value_text(value: float, unit: str) -> str:
    """Format a value of a metric in readable units."""
    match unit:
        case "ns":
            return format_duration(value)
        case "B":
            return format_bytes(value)
        case "/s":
            return f"{format_count(round(value) if value >= 10 else value)}/s"
        case "share":
            return exact_share_text(value)
        case _:
            return format_count(value)


def side_words(side: GuardSide, against: str = "side by side") -> str:
    """Return what defines a side (``work_mem = 4MB``) or its title; against history, the title first."""
    what = ", ".join(side.what)
    if against == "history" and side.title:
        return f"{side.title} ({what})" if what else side.title
    return what or side.title or side.role


def _beside_words(side: GuardSide, against: str, *, of: bool = False) -> str:
    """Return a side as it follows *than*: ``with work_mem = 4MB``; with `of`, as it follows *that*."""
    if against == "history" or not side.what:
        title = f" ({side.title})" if side.title else ""
        name = side.title if against == "history" else f"the {side.role}{title}"
        return f"of {name}" if of else name
    first = side.what[0].split(" ")[0]
    return f"{_PREPOSITIONS.get(first, 'with')} {series_words(side.what)}"


def _found(check: GateCheck, baseline: GuardSide, against: str, confidence: float | None) -> str:
    name = metric_name(check.gate.metric)
    subject = " of ".join(filter(None, (name, check.workload)))
    cell = _cell(check.cell)
    subject += f" at {cell}" if cell else ""
    if check.gate.bound == "unchanged":
        if check.outcome is GateOutcome.UNDECIDED:
            return f"the {subject} was not compared"
        reason = check.reason.rstrip(".").removesuffix(", twice measured")
        why = f" ({reason})" if check.gate.metric == "answer" and reason else ""
        return f"the {subject} differs from that {_beside_words(baseline, against, of=True)}{why}"
    verb = "are" if _PLURAL.search(name) else "is"
    early = " so far" if check.outcome is GateOutcome.UNDECIDED and check.ratio is not None else ""
    if check.ratio is not None and check.gate.bound != "value":
        change = _change_words(check)
        of = not change.endswith((" than", " as"))
        side = _beside_words(baseline, against, of=of)
        interval = "" if confidence is None else interval_clause(check, confidence)
        if interval and side.endswith(")"):
            side, interval = side.removesuffix(")"), interval.replace(" (", "; ", 1)
        return f"{subject} {verb}{early} {change} {side}{interval}"
    if check.candidate is not None:
        value = value_text(check.candidate, check.unit)
        interval = "" if confidence is None else interval_clause(check, confidence)
        return f"{subject} {verb} {value}{interval}"
    return f"{subject} {verb} unknown"


def _change_words(check: GateCheck) -> str:
    """Return an effect in words: ``12 % slower than``, ``3.2 times that``."""
    ratio = check.ratio or 0.0
    if _is_share(check):
        amount = points_text(ratio).lstrip("+−")
        if amount.startswith("±"):
            return "the same as"
        return f"{amount} percentage points {'higher' if ratio > 0 else 'lower'} than"
    text = effect_text(ratio)
    if text.startswith(("×", "÷")):
        return f"{text[1:]} times that" if text.startswith("×") else f"1/{text[1:]} of that"
    amount = text.lstrip("+−")
    if amount.startswith("±"):
        return "the same to within 0.1 % as"
    return f"{amount} {_direction(check, ratio)} than"


def _direction(check: GateCheck, ratio: float) -> str:
    is_time = check.unit == "ns" and check.gate.metric.startswith("latency_")
    words = ("slower", "faster") if is_time else ("higher", "lower")
    return words[0] if ratio > 1 else words[1]


def interval_clause(check: GateCheck, confidence: float, *, signed: bool = False) -> str:
    """Return the interval in parentheses, its ends with directions, or `signed`; empty for an exact value."""
    low, high = _bounds(check)
    text = ""
    if low != high:
        if check.ratio is None or check.gate.bound == "value":
            text = _value_ends(low, high, check.unit)
        elif _is_share(check):
            text = _share_ends(low, high, signed)
        else:
            text = _ratio_ends(check, low, high, signed)
    return f" ({confidence * 100:g} % interval: {text})" if text else ""


def _value_ends(low: float | None, high: float | None, unit: str) -> str:
    if low is None or high is None:
        known = low if high is None else high
        return f"{'at least' if high is None else 'at most'} {value_text(known or 0.0, unit)}"
    return f"{value_text(low, unit)} to {value_text(high, unit)}"


def _share_ends(low: float | None, high: float | None, signed: bool) -> str:
    if low is None or high is None:
        return ""
    ends = [points_text(value) for value in (low, high)]
    if not signed and (low > 0 or high < 0):
        ends = [end.lstrip("+−") for end in (ends if low > 0 else ends[::-1])]
    return "" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} points"


def _ratio_ends(check: GateCheck, low: float | None, high: float | None, signed: bool) -> str:
    ends = interval_bounds(low, high)
    if ends[0] == ends[1]:
        return ""
    if signed or low is None or high is None:
        return " to ".join(ends)
    return ratio_span(low, high, partial(_direction, check), fractions=True)


def _bounds(check: GateCheck) -> tuple[float | None, float | None]:
    low, high = check.low, check.high
    return (
        low if low is not None and math.isfinite(low) else None,
        high if high is not None and math.isfinite(high) else None,
    )


def _cell(cell: Levels) -> str:
    return ", ".join(f"{name} {level_text(level, numeric=True)}" for name, level in cell)
