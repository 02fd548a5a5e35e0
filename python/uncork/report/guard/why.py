"""What may explain a gate: the plans, costs, waits, system calls and frames of both sides. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.results.guard import GateCheck, GuardResult, PlanDifference, SideDifference
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import format_duration
from uncork.model.variant_evidence import Levels
from uncork.report.experiment.explanation import UNTOLD_COSTS
from uncork.report.figures import number_text
from uncork.report.guard.words import value_text
from uncork.report.words import effect_text

_NOTABLE: Final = 0.1
"""A cost or wait that differs by less than this share, or by fewer calls per operation, is not listed."""
_NOTABLE_SHARE: Final = 0.01
"""A frame whose share of the processor time differs by less than this is not listed."""
_LISTED: Final = 4
KINDS: Final = {
    "cost": "costs per operation",
    "wait": "session time per operation",
    "call": "system calls per operation",
    "frame": "share of the server's CPU",
}
"""Kinds of differences, in the order of the report, with their titles."""


def why_lines(result: GuardResult, check: GateCheck) -> tuple[str, ...]:
    """Return the differences between the sides where a gate was checked, one per line, without full stops.

    The differences may explain the gate; they are not judged. Kinds that were not recorded have no line.
    """
    return tuple(_lines(result, check))


def plans_at(result: GuardResult, cell: Levels, workload: str) -> tuple[PlanDifference, ...]:
    """Return the differences between plans in a cell, for one workload, or for all if it is empty."""
    return tuple(
        plan for plan in result.plans if (not cell or plan.cell == cell) and workload in ("", plan.workload)
    )


def differences_at(result: GuardResult, cell: Levels, workload: str, kind: str) -> tuple[SideDifference, ...]:
    """Return the differences of a kind in a cell, for one workload or for all, the largest first."""
    found = [
        difference
        for difference in result.differences
        if difference.kind == kind
        and (not cell or difference.cell == cell)
        and workload in ("", difference.workload)
    ]
    return tuple(sorted(found, key=_weight, reverse=True))


def settings_lines(result: GuardResult) -> tuple[str, ...]:
    """Return the other differences between the sides, besides the requested ones, one per line."""
    requested = {*result.baseline.what, *result.candidate.what}
    return tuple(
        f"{f'{setting.section} {setting.name}'.strip()}: {' → '.join(_setting_texts(setting))}"
        for setting in result.settings
        if not requested & {f"{setting.name} = {setting.before}", f"{setting.name} = {setting.after}"}
    )


def _setting_texts(difference: EnvironmentDifference) -> tuple[str, str]:
    """Return both values of a difference, with a word for a value that is empty."""
    if difference.section == "server" and difference.name.startswith(
        "setting "
    ):  # only non-default settings are stored
        absent = "default"
    else:
        absent = "not set" if difference.section in ("setting", "value") else "unknown"
    return difference.before or absent, difference.after or absent


def _lines(result: GuardResult, check: GateCheck) -> Iterator[str]:
    yield from _plan_lines(result, check)
    for kind, name in KINDS.items():
        known = differences_at(result, check.cell, check.workload, kind)
        notable = [
            difference
            for difference in known
            if (difference.name not in UNTOLD_COSTS and _differs(difference))
        ]
        if notable:
            yield f"{name}: {'; '.join(_words(difference) for difference in notable[:_LISTED])}"
        elif known and not any(map(_differs, known)):
            least = "a point" if kind == "frame" else f"{_NOTABLE * 100:.0f} %"
            yield f"{name}: nothing differs by {least} or more"


def _plan_lines(result: GuardResult, check: GateCheck) -> Iterator[str]:
    plans = plans_at(result, check.cell, check.workload)
    for plan in plans:
        of = f" of {plan.statement}" if plan.statement != check.workload else ""
        if plan.kind == "changed":
            yield f"plan{of}: changed, {_heads(plan.text)}"
        else:
            yield f"plan{of}: unchanged, but its statistics differ: {plan.text.partition(chr(10))[0]}"


def _heads(difference: str) -> str:
    """Return the first removed and the first added line of a diff of plans."""
    lines = [line for line in difference.splitlines() if not line.startswith(("---", "+++", "@@"))]
    gone = next((line[1:].strip() for line in lines if line.startswith("-")), "")
    come = next((line[1:].strip() for line in lines if line.startswith("+")), "")
    return " → ".join(filter(None, (gone, come))) or "see the diff"


def _words(difference: SideDifference) -> str:
    if difference.before is None or difference.after is None:
        known = difference.after if difference.before is None else difference.before
        side = "candidate" if difference.before is None else "baseline"
        return f"{difference.name} {_value(known or 0.0, difference)} ({side} only)"
    shown = (
        f"{difference.name} {_value(difference.before, difference)} → {_value(difference.after, difference)}"
    )
    if difference.kind == "frame" or not difference.before or not difference.after:
        return shown
    return f"{shown} ({effect_text(difference.after / difference.before)})"


def _value(value: float, difference: SideDifference) -> str:
    if not value:
        return "0"
    if difference.unit == "share":
        return f"{value * 100:.1f} %"
    if difference.unit == "ns":
        return format_duration(value)
    if difference.unit:
        return value_text(value, difference.unit)
    return number_text(value)


def _differs(difference: SideDifference) -> bool:
    before, after = difference.before or 0.0, difference.after or 0.0
    if difference.kind == "frame":
        return abs(after - before) >= _NOTABLE_SHARE
    if difference.kind == "call" and abs(after - before) < _NOTABLE:
        return False
    return abs(after - before) >= _NOTABLE * max(before, after) > 0


def _weight(difference: SideDifference) -> float:
    """Return the size of a difference: costs by their ratio, times and shares by their difference."""
    before, after = difference.before or 0.0, difference.after or 0.0
    if difference.kind != "cost":
        return abs(after - before)
    least = max(before, after) * 1e-3
    return abs(math.log(max(after, least) / max(before, least))) if least else 0.0


def difference_rows(differences: Sequence[SideDifference]) -> tuple[tuple[str, str, str, str], ...]:
    """Return the name, both values and the change of each difference, as texts for a table."""
    return tuple(
        (
            difference.name,
            "" if difference.before is None else _value(difference.before, difference),
            "" if difference.after is None else _value(difference.after, difference),
            _change(difference),
        )
        for difference in differences
    )


def _change(difference: SideDifference) -> str:
    if difference.before is None or difference.after is None or difference.before == difference.after:
        return ""
    if difference.unit == "share":
        change = (difference.after - difference.before) * 100
        return f"{'+' if change > 0 else '−'}{abs(change):.1f} points"
    return effect_text(difference.after / difference.before) if difference.before and difference.after else ""
