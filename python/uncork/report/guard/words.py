"""Gates, their effects and outcomes in words and figures for people. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from uncork.model.evidence import Levels
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import GateCheck, GateOutcome, GuardSide
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.words import effect_text, interval_text, level_text, points_text, series_words, share_text

__all__ = [
    "OUTCOME_SIGNS",
    "beside_words",
    "by_urgency",
    "check_place",
    "check_sentence",
    "effect_figures",
    "is_share",
    "metric_name",
    "outcome_text",
    "side_words",
    "undecided_words",
    "value_text",
    "values_text",
]

OUTCOME_SIGNS: Final = {
    GateOutcome.BROKEN: "✗",
    GateOutcome.UNDECIDED: "?",
    GateOutcome.ACKNOWLEDGED: "~",
    GateOutcome.KEPT: "✓",
}
"""A sign an outcome, so that none rests on colour alone; the most urgent first."""

_SPAN: Final = re.compile(r": [+−±×÷]?\d[^()]*\((?:[^()]* to [^()]*|unbounded)\)")
"""An estimate with its interval, as the judge's reasons have it."""
_PREPOSITIONS: Final = {"commit": "at", "server": "on"}
_PLURAL: Final = re.compile(r"\b(?:queries|buffers|records|files|bytes|tables)\b")


def outcome_text(outcome: GateOutcome) -> str:
    """Show an outcome with its sign: ``✗ broken``."""
    return f"{OUTCOME_SIGNS[outcome]} {outcome.value}"


def by_urgency(checks: Sequence[GateCheck]) -> list[GateCheck]:
    """Order checks: broken, not decided, acknowledged, kept; within these as they came."""
    order = list(OUTCOME_SIGNS)
    return sorted(checks, key=lambda check: order.index(check.outcome))


def is_share(check: GateCheck) -> bool:
    """Say whether sides are compared by the difference of shares, in percentage points."""
    return check.unit == "share"


def metric_name(metric: str) -> str:
    """Name a metric in a sentence: ``p99``, ``mean latency``, ``WAL an operation``, ``plan``."""
    facts = GATE_METRICS.get(metric)
    title = facts.title if facts else metric.replace("_", " ")
    return title.removesuffix(" latency") if title.startswith("p9") else title


def check_place(check: GateCheck) -> str:
    """Say where a gate was checked: ``list, rows 100 000``; empty for a whole without cells."""
    return ", ".join(filter(None, (check.workload, _cell(check.cell))))


def check_sentence(check: GateCheck, baseline: GuardSide, against: str) -> str:
    """Say what was found of a gate, without full stop: what differs, the gate, and if it was seen twice."""
    parts = [_found(check, baseline, against), f"gate: {check.gate.text}"]
    if check.outcome in (GateOutcome.BROKEN, GateOutcome.ACKNOWLEDGED):
        parts += [{True: "seen twice", False: "seen once", None: ""}[check.confirmed]]
    return "; ".join(filter(None, parts))


def undecided_words(check: GateCheck) -> str:
    """Say in brackets why a gate is not decided, without the figures that stand beside it."""
    reason = _SPAN.sub("", check.reason.rstrip("."))
    return f" ({reason})" if reason else ""


def effect_figures(check: GateCheck) -> str:
    """Show an effect with its interval: ``+12 % [+9.0, +16]``, ``−1.2 points [−1.9, −0.6]``.

    Of a gate on the candidate alone it is its value; nothing where there is no figure.
    """
    low, high = _bounds(check)
    if check.ratio is None or check.gate.bound == "value":
        if check.candidate is None or low == high:
            return ""
        ends = ("…" if one is None else value_text(one, check.unit) for one in (low, high))
        return f"{value_text(check.candidate, check.unit)} [{', '.join(ends)}]"
    if is_share(check):
        bounds = [points_text(one) for one in (low, high) if one is not None]
        shown = f" [{', '.join(bounds)}]" if len(bounds) == 2 else ""
        return f"{points_text(check.ratio)} points{shown}"
    if low == high and (low is not None or check.outcome is not GateOutcome.UNDECIDED):
        return effect_text(check.ratio)
    if low is not None and high is not None and effect_text(low) == effect_text(high):
        return effect_text(check.ratio)  # counted with next to no noise
    return f"{effect_text(check.ratio)} {interval_text(low, high)}"


def values_text(check: GateCheck) -> str:
    """Show what both sides measured: ``20.1 ms → 22.4 ms``; one alone if the other is not known."""
    known = [value_text(one, check.unit) for one in (check.baseline, check.candidate) if one is not None]
    return " → ".join(known)


def value_text(value: float, unit: str) -> str:
    """Show a value of a metric in people's units."""
    match unit:
        case "ns":
            return format_duration(value)
        case "B":
            return format_bytes(value)
        case "/s":
            return f"{format_count(round(value) if value >= 10 else value)}/s"
        case "share":
            return share_text(value)
        case _:
            return format_count(value)


def side_words(side: GuardSide, against: str = "side by side") -> str:
    """Name a side by what makes it: ``commit 1a2b3c4, work_mem = 4MB``, else by its title.

    Against history the title says what it is, and the rest when and where that was.
    """
    what = ", ".join(side.what)
    if against == "history" and side.title:
        return f"{side.title} ({what})" if what else side.title
    return what or side.title or side.role


def beside_words(side: GuardSide, against: str, *, of: bool = False) -> str:
    """Say beside what something is measured, behind *than*: ``at commit 1a2b3c4``, ``with work_mem = 4MB``.

    A side that nothing was asked of is named by its title; with `of` so that it fits behind *that*.
    """
    if against == "history" or not side.what:
        title = f" ({side.title})" if side.title else ""
        name = side.title if against == "history" else f"the {side.role}{title}"
        return f"of {name}" if of else name
    first = side.what[0].split(" ")[0]
    return f"{_PREPOSITIONS.get(first, 'with')} {series_words(side.what)}"


# ---- what was found ----


def _found(check: GateCheck, baseline: GuardSide, against: str) -> str:
    name = metric_name(check.gate.metric)
    subject = " of ".join(filter(None, (name, check.workload)))
    cell = _cell(check.cell)
    subject += f" at {cell}" if cell else ""
    if check.gate.bound == "unchanged":
        if check.outcome is GateOutcome.UNDECIDED:
            return f"the {subject} is not compared"
        reason = check.reason.rstrip(".").removesuffix(", twice measured")
        why = f" ({reason})" if check.gate.metric == "answer" and reason else ""
        return f"the {subject} is another than {_that(baseline, against)}{why}"
    verb = "are" if _PLURAL.search(name) else "is"
    early = " so far" if check.outcome is GateOutcome.UNDECIDED and check.ratio is not None else ""
    if check.ratio is not None and check.gate.bound != "value":
        change = _change(check)
        of = not change.endswith((" than", " as"))
        return f"{subject} {verb}{early} {change} {beside_words(baseline, against, of=of)}"
    if check.candidate is not None:
        return f"{subject} {verb} {effect_figures(check) or value_text(check.candidate, check.unit)}"
    return f"{subject} {verb} not known"


def _that(side: GuardSide, against: str) -> str:
    words = beside_words(side, against, of=True)
    return f"that {words}" if words.startswith("of ") else words


def _change(check: GateCheck) -> str:
    """Say an effect with its interval: ``12 % slower [9, 16] than``, ``3.2 times [2.9, 3.6] that``."""
    ratio, bounds = check.ratio or 0.0, _bare_interval(check)
    if is_share(check):
        amount = points_text(ratio).lstrip("+−")
        if amount.startswith("±"):
            return f"the same{bounds} as"
        return f"{amount} points {'higher' if ratio > 0 else 'lower'}{bounds} than"
    text = effect_text(ratio)
    if text.startswith(("×", "÷")):
        return f"{text[1:]} times{bounds} that" if text.startswith("×") else f"1/{text[1:]}{bounds} of that"
    amount = text.removesuffix(" %").lstrip("+−")
    if amount.startswith("±"):
        return f"the same to within 0.1 %{bounds} as"
    words = ("slower", "faster") if check.unit == "ns" and _is_time(check) else ("higher", "lower")
    return f"{amount} % {words[0] if ratio > 1 else words[1]}{bounds} than"


def _is_time(check: GateCheck) -> bool:
    return check.gate.metric.startswith("latency_")


def _bare_interval(check: GateCheck) -> str:
    """Show an interval beside the words of its effect: without signs where both ends point its way."""
    (low, high), ratio = _bounds(check), check.ratio
    if low == high:
        return ""
    if low is None or high is None or ratio is None:
        return f" {interval_text(low, high)}" if not is_share(check) else ""
    ends = [_end(one, check) for one in (low, high)]
    if ends[0] == ends[1]:
        return ""
    same = 0.0 if is_share(check) else 1.0
    if low > same or high < same:
        bare = [end.lstrip("+−×÷") for end in ends]
        if all(end[0] == ends[0][0] for end in ends):
            return f" [{', '.join(bare if low > same else bare[::-1])}]"
    return f" [{', '.join(ends)}]"


def _bounds(check: GateCheck) -> tuple[float | None, float | None]:
    """Return the ends of the interval; None where it has none."""
    low, high = check.low, check.high
    return (
        low if low is not None and math.isfinite(low) else None,
        high if high is not None and math.isfinite(high) else None,
    )


def _end(bound: float, check: GateCheck) -> str:
    return points_text(bound) if is_share(check) else effect_text(bound).removesuffix(" %")


def _cell(cell: Levels) -> str:
    return ", ".join(f"{name} {level_text(level, numeric=True)}" for name, level in cell)
