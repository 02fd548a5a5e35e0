"""What may explain a gate: its plan, costs, waits, system calls and frames of both sides. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.evidence import Levels
from uncork.model.results.guard import GateCheck, GuardResult, PlanDifference, SideDifference
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import format_duration
from uncork.report.experiment.explanation import UNTOLD_COSTS
from uncork.report.figures import number_text
from uncork.report.guard.words import value_text
from uncork.report.words import effect_text

__all__ = ["KINDS", "difference_rows", "differences_at", "plans_at", "settings_lines", "why_lines"]

_NOTABLE: Final = 0.1
"""A cost or wait that differs by less than this share explains nothing; nor do fewer calls an operation."""
_NOTABLE_SHARE: Final = 0.01
"""A frame whose share of the processor time differs by less than a point is not named."""
_TOLD: Final = 4
KINDS: Final = {
    "cost": "costs an operation",
    "wait": "sessions' time an operation",
    "call": "system calls an operation",
    "frame": "share of the server's CPU",
}
"""Kinds of differences, in the order in which they are told, and what they are of."""


def why_lines(result: GuardResult, check: GateCheck) -> tuple[str, ...]:
    """Return what differs between the sides where a gate was checked, a line each, without full stops.

    What differs explains only as far as it goes: nothing here is judged. No line for what was not looked at.
    """
    return tuple(_lines(result, check))


def plans_at(result: GuardResult, cell: Levels, workload: str) -> tuple[PlanDifference, ...]:
    """Return how plans differ in a cell, of one workload or of all if none is named."""
    return tuple(
        one for one in result.plans if (not cell or one.cell == cell) and workload in ("", one.workload)
    )


def differences_at(result: GuardResult, cell: Levels, workload: str, kind: str) -> tuple[SideDifference, ...]:
    """Return differences of a kind in a cell, of one workload or of all; those that say most come first."""
    found = [
        one
        for one in result.differences
        if one.kind == kind and (not cell or one.cell == cell) and workload in ("", one.workload)
    ]
    return tuple(sorted(found, key=_weight, reverse=True))


def settings_lines(result: GuardResult) -> tuple[str, ...]:
    """Say what differs between the sides besides what was asked for, a line each."""
    asked = {*result.baseline.what, *result.candidate.what}
    return tuple(
        f"{f'{one.section} {one.name}'.strip()}: {_told(one, one.before)} → {_told(one, one.after)}"
        for one in result.settings
        if not asked & {f"{one.name} = {one.before}", f"{one.name} = {one.after}"}
    )


def _told(one: EnvironmentDifference, value: str) -> str:
    if value:
        return value
    if one.section == "server" and one.name.startswith("setting "):  # only those that are not are stored
        return "default"
    return "not set" if one.section in ("setting", "value") else "not told"


def _lines(result: GuardResult, check: GateCheck) -> Iterator[str]:
    yield from _plan_lines(result, check)
    for kind, name in KINDS.items():
        known = differences_at(result, check.cell, check.workload, kind)
        told = [one for one in known if _notable(one)]
        if told:
            yield f"{name}: {'; '.join(_words(one) for one in told[:_TOLD])}"
        elif known and not any(map(_differs, known)):
            least = "a point" if kind == "frame" else f"{_NOTABLE * 100:.0f} %"
            yield f"{name}: nothing differs by {least} or more"


def _plan_lines(result: GuardResult, check: GateCheck) -> Iterator[str]:
    plans = plans_at(result, check.cell, check.workload)
    for one in plans:
        of = f" of {one.statement}" if one.statement != check.workload else ""
        if one.kind == "changed":
            yield f"plan{of}: changed, {_heads(one.text)}"
        else:
            yield f"plan{of}: unchanged, with other statistics: {one.text.partition(chr(10))[0]}"


def _heads(difference: str) -> str:
    """Say what a diff of plans takes away and adds, by the first line of each."""
    lines = [line for line in difference.splitlines() if not line.startswith(("---", "+++", "@@"))]
    gone = next((line[1:].strip() for line in lines if line.startswith("-")), "")
    come = next((line[1:].strip() for line in lines if line.startswith("+")), "")
    return " → ".join(filter(None, (gone, come))) or "as its text says"


def _words(one: SideDifference) -> str:
    if one.before is None or one.after is None:
        known = one.after if one.before is None else one.before
        side = "candidate" if one.before is None else "baseline"
        return f"{one.name} {_value(known or 0.0, one)} ({side} only)"
    shown = f"{one.name} {_value(one.before, one)} → {_value(one.after, one)}"
    if one.kind == "frame" or not one.before or not one.after:
        return shown
    return f"{shown} ({effect_text(one.after / one.before)})"


def _value(value: float, one: SideDifference) -> str:
    if not value:
        return "0"
    if one.unit == "share":
        return f"{value * 100:.1f} %"
    if one.unit == "ns":
        return format_duration(value)
    if one.unit:
        return value_text(value, one.unit)
    return number_text(value)


def _notable(one: SideDifference) -> bool:
    return one.name not in UNTOLD_COSTS and _differs(one)


def _differs(one: SideDifference) -> bool:
    before, after = one.before or 0.0, one.after or 0.0
    if one.kind == "frame":
        return abs(after - before) >= _NOTABLE_SHARE
    if one.kind == "call" and abs(after - before) < _NOTABLE:
        return False
    return abs(after - before) >= _NOTABLE * max(before, after) > 0


def _weight(one: SideDifference) -> float:
    """Weigh a difference: costs by their ratio, times and shares by how much came or went."""
    before, after = one.before or 0.0, one.after or 0.0
    if one.kind != "cost":
        return abs(after - before)
    least = max(before, after) * 1e-3
    return abs(math.log(max(after, least) / max(before, least))) if least else 0.0


def difference_rows(differences: Sequence[SideDifference]) -> tuple[tuple[str, str, str, str], ...]:
    """Return name, both values and the change as text, for tables."""
    return tuple(
        (
            one.name,
            "" if one.before is None else _value(one.before, one),
            "" if one.after is None else _value(one.after, one),
            _change(one),
        )
        for one in differences
    )


def _change(one: SideDifference) -> str:
    if one.before is None or one.after is None or one.before == one.after:
        return ""
    if one.unit == "share":
        change = (one.after - one.before) * 100
        return f"{'+' if change > 0 else '−'}{abs(change):.1f} points"
    return effect_text(one.after / one.before) if one.before and one.after else ""
