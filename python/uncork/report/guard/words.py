"""Words and numbers for gates, their effects and their outcomes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import GateCheck, GateOutcome, GuardSide
from uncork.model.units import format_bytes, format_count, format_duration, series_words
from uncork.model.variant_evidence import Levels
from uncork.report.words import (
    effect_text,
    effect_with_interval,
    exact_share_text,
    interval_bounds,
    level_text,
    points_text,
    ratio_span,
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
        change = _change(check)
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


def _change(check: GateCheck) -> str:
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
