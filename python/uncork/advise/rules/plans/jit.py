"""Repeated statements that are compiled just in time, for longer than they gain. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.plans.costs import setting_for
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count, format_duration

_GAIN: Final = 0.25
"""How much longer the rest of a statement would take without compiled code, at most, as a fraction. "
"PostgreSQL's
developers measured 20 to 30 % on the queries of TPC-H that gain most."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    """The time of compiling is a part of each statement's execution time."""
    lost = {
        statement.number: part
        for statement in evidence.statements.values()
        if statement.jit_ns
        and statement.mean_ns
        and statement.calls
        and evidence.is_traffic(statement)
        and (part := _lost(statement)) > 0
    }
    if not lost:
        return
    numbers = sorted(lost, key=lambda number: -(evidence.statements[number].jit_ns or 0.0))
    top = evidence.statements[numbers[0]]
    yield Finding(
        RULE.name,
        f"Compiling (jit) takes {format_duration(top.a_call(top.jit_ns) or 0.0)} of the "
        f"{format_duration(top.mean_ns or 0.0)} of a repeated statement",
        objects=("jit",),
        bill=evidence.bill_of(lost),
        templates=tuple(numbers),
        statement=top.text,
        evidence=tuple(_evidence(top, evidence)),
        candidates=tuple(_candidates(top, numbers, evidence)),
        proof="Compare jit = on and off with uncork run.",
    )


def _lost(statement: Statement) -> float:
    """Return the fraction of a statement's time that compiling costs beyond what it can gain."""
    mean = statement.mean_ns or 1.0
    compiling = statement.a_call(statement.jit_ns) or 0.0
    return min(1.0, (compiling - _GAIN * max(0.0, mean - compiling)) / mean)


def _evidence(top: Statement, evidence: Evidence) -> Iterator[str]:
    above = evidence.catalogue.setting("jit_above_cost")
    plan = top.plan
    if plan is None:
        return
    # The server has this setting for new sessions; a role or a session may have a lower one.
    known = above.isdigit() and plan.root.cost > float(above)
    limit = f", above jit_above_cost ({above})" if known else ""
    yield f"The planner estimates a cost of {format_count(round(plan.root.cost))}{limit}."
    scans = sum(1 for node in plan.root.walk() if node.relation)
    if scans > 1:
        yield f"The plan has {scans} scans, whose expressions are compiled one by one."


def _candidates(top: Statement, numbers: list[int], evidence: Evidence) -> Iterator[Candidate]:
    sql, undo = setting_for(top, evidence, "jit", "off")
    yield Candidate(
        "setting",
        "Turn jit off for the role that sends these statements.",
        sql=sql,
        undo=undo,
        against=("Long reports of the same role may gain from jit: let them SET jit = on.",),
    )
    costs = [plan.root.cost for number in numbers if (plan := evidence.statements[number].plan) is not None]
    cost = _round_up(2 * max(costs)) if costs else 0
    sql, undo = setting_for(top, evidence, "jit_above_cost", str(cost)) if cost else ("", "")
    yield Candidate("setting", "Raise jit_above_cost above the cost of these statements.", sql=sql, undo=undo)


def _round_up(cost: float) -> int:
    """Return the next power of ten times one, two or five."""
    size = 1
    while True:
        for step in (1, 2, 5):
            if step * size >= cost:
                return step * size
        size *= 10


RULE: Final = Rule("jit", _find)
