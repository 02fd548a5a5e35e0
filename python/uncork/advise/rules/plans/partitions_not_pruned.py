"""A statement that reads all partitions, because its condition does not compare the partition key. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.plans.partitions import Partitioned, partitioned, scanned_parts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.statement import Predicate

_PARTS: Final = 4
"""Partitions that a statement must read in vain. With fewer, pruning saves little."""
_PRUNING: Final = frozenset({"=", "in", "<", "<=", ">", ">=", "between", "is null"})
_SELECTIVE: Final = 0.01
"""Fraction of the rows that a statement returns, up to which it looks something up and reports nothing."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    tables = {one.table: one for one in partitioned(evidence) if one.columns}
    if not tables:
        return
    for statement in evidence.costliest():
        if statement.shape is None:
            continue
        for use in statement.shape.tables:
            parts = tables.get(use.name)
            if parts is None or use.kind != "table":
                continue
            found = _finding(statement, parts, use.alias, evidence)
            if found is not None:
                yield found
                break


def _finding(statement: Statement, parts: Partitioned, alias: str, evidence: Evidence) -> Finding | None:
    predicates = () if statement.shape is None else statement.shape.predicates
    conditions = [
        predicate
        for predicate in predicates
        if predicate.table == parts.table and predicate.alias in {"", alias}
    ]
    if not conditions or any(_prunes(condition, parts) for condition in conditions):
        return None
    wrapped = next((condition for condition in conditions if _wraps(condition, parts)), None)
    number = len({node.relation for node in scanned_parts(statement, parts.table, evidence)}) or parts.parts
    if number < _PARTS or (wrapped is None and not _looks_up(statement, conditions, parts, evidence)):
        return None
    bill = evidence.bill_of({statement.number: 1 - 1 / number})
    if not worth(bill):
        return None
    key = ", ".join(parts.columns)
    why = (
        f"as their key {key} is in an expression"
        if wrapped is not None
        else f"as no condition compares their key {key}"
    )
    return Finding(
        RULE.name,
        f"All {format_count(number)} partitions of {parts.table} are read, {why}",
        objects=(parts.table, *parts.columns),
        bill=bill,
        templates=(statement.number,),
        statement=statement.text,
        evidence=(f"{parts.table} is partitioned by {parts.strategy} ({key}).",),
        candidates=tuple(_candidates(wrapped, parts)),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _prunes(predicate: Predicate, parts: Partitioned) -> bool:
    """Return whether the planner or the executor can select partitions by a condition.

    A cast to another type of the same family would still prune; such a condition is in doubt and counts.
    """
    if predicate.column not in parts.columns or predicate.alternative or predicate.negated:
        return False
    if predicate.cast and not _same_order(predicate.cast):
        return False
    if parts.strategy == "HASH" and predicate.operator not in {"=", "in"}:
        return False
    return predicate.operator in _PRUNING


def _same_order(cast: str) -> bool:
    """Return whether a column below a cast to this type is still compared as it is stored (text, varchar)."""
    return cast in {"text", "character varying"}


def _wraps(predicate: Predicate, parts: Partitioned) -> bool:
    if predicate.alternative:
        return False
    if predicate.column in parts.columns and predicate.cast:
        return True
    return not predicate.column and any(name in parts.columns for name in predicate.columns)


def _looks_up(
    statement: Statement, conditions: list[Predicate], parts: Partitioned, evidence: Evidence
) -> bool:
    """Return whether a statement looks up few rows by another column, which one partition would answer."""
    equal = any(
        condition.operator in {"=", "in"} and condition.value in {"parameter", "constant"}
        for condition in conditions
    )
    found = statement.a_call(statement.rows)
    whole = evidence.rows(parts.table)
    return equal and found is not None and found <= _SELECTIVE * max(whole, 100.0)


def _candidates(wrapped: Predicate | None, parts: Partitioned) -> Iterator[Candidate]:
    key = parts.columns[0]
    if wrapped is not None:
        side = wrapped.expression or f"{wrapped.column}::{wrapped.cast}"
        yield Candidate(
            "statement",
            f"Compare {key} itself in place of {side}: {key} >= the first value AND {key} < the value "
            "after the last one.",
            against=("Check the bounds: the upper one must be exclusive, in the time zone of the session.",),
        )
        return
    yield Candidate(
        "statement",
        f"Compare {key} too, if the client knows it: {key} = ..., or a range of it.",
        same_answers=False,
        against=("Rows of other partitions are no longer found.",),
    )
    yield Candidate(
        "ddl",
        f"Partition {parts.table} by a column that its statements compare, or by fewer, larger ranges.",
        against=("All rows must be copied to a new table.",),
    )


RULE: Final = Rule("partitions-not-pruned", _find, depth=2)
