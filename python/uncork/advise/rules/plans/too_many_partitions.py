"""A table with so many partitions that planning takes longer than executing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.plans.partitions import Partitioned, partitioned
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import CPU
from uncork.model.units import format_count, format_duration

_PARTS: Final = 50
"""Partitions, from which on planning takes a millisecond or more if none is pruned."""
_SHARE: Final = 0.5
"""Fraction of a call that planning takes, from which on it is longer than executing."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for parts in partitioned(evidence):
        shares = {
            statement.number: share
            for statement in evidence.costliest()
            if statement.uses(parts.table)
            and _planned(statement, parts) >= _PARTS
            and (share := _planning(statement, evidence)) is not None
            and share >= _SHARE
        }
        if shares:
            yield _finding(shares, parts, evidence)


def _planned(statement: Statement, parts: Partitioned) -> int:
    """Return how many partitions the planner considers: the catalogue has only the used ones."""
    found = [parts.parts]
    for plan in statement.plans:
        for node in plan.root.walk():
            if node.kind in {"Append", "Merge Append"}:
                found.append(node.removed_parts + len(node.children))
    return max(found)


def _planning(statement: Statement, evidence: Evidence) -> float | None:
    """Return which fraction of a statement's time is planning; None if nothing tells.

    Without pg_stat_statements.track_planning, it is the time in which sessions worked on the statement beyond
    the time that its executions were counted.
    """
    if not statement.calls or statement.mean_ns is None:
        return None
    if statement.planning_ns:
        return statement.planning_ns / (statement.planning_ns + statement.mean_ns * statement.calls)
    worked = evidence.busy(statement.number, {CPU}) * evidence.seconds
    executed = statement.mean_ns * statement.calls / 1e9
    return max(0.0, 1 - executed / worked) if worked else None


def _finding(shares: dict[int, float], parts: Partitioned, evidence: Evidence) -> Finding:
    top = evidence.statements[next(iter(shares))]
    many = format_count(_planned(top, parts))
    mean = top.mean_ns or 0.0
    share = shares[top.number]
    planning = mean * share / max(0.01, 1 - share)
    return Finding(
        RULE.name,
        f"Planning over {many} partitions of {parts.table} takes longer than executing",
        objects=(parts.table,),
        bill=evidence.bill_of(shares),
        templates=tuple(shares),
        statement=top.text,
        evidence=(
            f"Planning takes about {format_duration(planning)} per call, executing {format_duration(mean)}.",
        ),
        candidates=(
            Candidate(
                "client",
                "Prepare the statement: a generic plan is made once, and selects partitions when it is "
                "executed.",
                against=("Each session keeps the plan of all partitions in memory.",),
            ),
            Candidate(
                "ddl",
                f"Merge partitions of {parts.table} into larger ranges, and keep a few dozen of them.",
                against=("Rows must be copied; deleting old rows by DROP TABLE becomes coarser.",),
            ),
            Candidate(
                "statement",
                f"Compare the partition key ({', '.join(parts.columns)}) with constants or parameters, so "
                "that the planner skips partitions before it looks at them.",
            ),
        ),
        proof="Compare both layouts with uncork run, with as many partitions as the server has.",
    )


RULE: Final = Rule("too-many-partitions", _find)
