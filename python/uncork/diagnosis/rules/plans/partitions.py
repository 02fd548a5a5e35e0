"""Partitioned tables: partitions that are read in vain, and planned in vain. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from uncork.diagnosis.changes import client_change, ddl_change, statement_change
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rule import finding, rule, worth
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate
from uncork.model.database.wait_classes import CPU
from uncork.model.units import format_count, format_duration

# ---- what is known of partitioned tables: their key columns and their partitions ----


_KEY: Final = re.compile(r"^(?P<strategy>RANGE|LIST|HASH)\s*\((?P<columns>.*)\)$", re.IGNORECASE | re.DOTALL)
_COLUMN: Final = re.compile(r'^\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[\w$]+))(?:\s+[\w$.]+)*\s*$')


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A partitioned table. `columns` are those of its key; an expression of the key is left out.

    `parts` counts the known partitions, of all levels.
    """

    table: str
    strategy: str
    columns: tuple[str, ...]
    parts: int


def partitioned(evidence: Evidence) -> Iterator[Partitioned]:
    """Yield the partitioned tables that are no partitions themselves."""
    parents: dict[str, str] = {
        name: options.parent for name, options in evidence.catalogue.options.items() if options.parent
    }
    for name, options in evidence.catalogue.options.items():
        key = _KEY.match(options.partition_key)
        if key is None or options.parent:
            continue
        columns = []
        for part in key["columns"].split(","):
            found = _COLUMN.match(part)
            if found is not None:
                columns.append((found["quoted"] or "").replace('""', '"') or found["plain"])
        known = sum(_root(parent, parents) == name for parent in parents if parent not in parents.values())
        yield Partitioned(name, key["strategy"].upper(), tuple(columns), known)


def _root(name: str, parents: dict[str, str]) -> str:
    while name in parents:
        name = parents[name]
    return name


def scanned_parts(statement: Statement, table: str, evidence: Evidence) -> tuple[PlanNode, ...]:
    """Return the scans of a table's partitions in the best plan of a statement."""
    parents = {name: option.parent for name, option in evidence.catalogue.options.items() if option.parent}
    return tuple(
        node
        for node in statement.nodes
        if node.relation and node.relation != table and _root(node.relation, parents) == table
    )


_READ_IN_VAIN: Final = 4
"""Partitions that a statement must read in vain. With fewer, pruning saves little."""
_PRUNING: Final = frozenset({"=", "in", "<", "<=", ">", ">=", "between", "is null"})
_SELECTIVE: Final = 0.01
"""Fraction of the rows that a statement returns, up to which it looks something up and reports nothing."""


@rule("partitions-not-pruned", depth=2)
def find_not_pruned(evidence: Evidence) -> Iterator[Finding]:
    """Find a statement that reads all partitions, because its condition does not compare their key."""
    tables = {parts.table: parts for parts in partitioned(evidence) if parts.columns}
    for statement in evidence.costliest() if tables else ():
        found = (
            _not_pruned(statement, tables[use.name], use.alias, evidence)
            for use in statement.shape.tables
            if use.kind == "table" and use.name in tables
        )
        yield from itertools.islice((pruned for pruned in found if pruned is not None), 1)


def _not_pruned(statement: Statement, parts: Partitioned, alias: str, evidence: Evidence) -> Finding | None:
    conditions = [
        predicate
        for predicate in statement.predicates
        if predicate.table == parts.table and predicate.alias in {"", alias}
    ]
    if not conditions or any(_prunes(condition, parts) for condition in conditions):
        return None
    wrapped = next((condition for condition in conditions if _wraps(condition, parts)), None)
    number = len({node.relation for node in scanned_parts(statement, parts.table, evidence)}) or parts.parts
    if number < _READ_IN_VAIN or (wrapped is None and not _looks_up(statement, conditions, parts, evidence)):
        return None
    bill = evidence.bill_of({statement.number: 1 - 1 / number})
    if not worth(bill):
        return None
    key = ", ".join(parts.columns)
    why = f"as no condition compares their key {key}"
    if wrapped is not None:
        why = f"as their key {key} is in an expression"
    return finding(
        f"All {format_count(number)} partitions of {parts.table} are read, {why}",
        *_candidates(wrapped, parts),
        objects=(parts.table, *parts.columns),
        bill=bill,
        statements=[statement],
        evidence=f"{parts.table} is partitioned by {parts.strategy} ({key}).",
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _prunes(predicate: Predicate, parts: Partitioned) -> bool:
    """Return whether the planner or the executor can select partitions by a condition.

    A cast to another type of the same family would still prune; such a condition is in doubt and counts.
    """
    if predicate.column not in parts.columns or predicate.alternative or predicate.negated:
        return False
    if predicate.cast and predicate.cast not in {"text", "character varying"}:
        return False  # below these, a column is still compared as it is stored
    if parts.strategy == "HASH" and predicate.operator not in {"=", "in"}:
        return False
    return predicate.operator in _PRUNING


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
        yield statement_change(
            f"Compare {key} itself in place of {side}: {key} >= the first value AND {key} < the "
            "value after the last one.",
            "Check the bounds: the upper one must be exclusive, in the time zone of the session.",
        )
        return
    yield statement_change(
        f"Compare {key} too, if the client knows it: {key} = ..., or a range of it.",
        "Rows of other partitions are no longer found.",
        same_answers=False,
    )
    yield ddl_change(
        f"Partition {parts.table} by a column that its statements compare, or by fewer, larger ranges.",
        "All rows must be copied to a new table.",
    )


_MANY: Final = 50
"""Partitions, from which on planning takes a millisecond or more if none is pruned."""
_SHARE: Final = 0.5
"""Fraction of a call that planning takes, from which on it is longer than executing."""


@rule("too-many-partitions")
def find_too_many(evidence: Evidence) -> Iterator[Finding]:
    """Find a table with so many partitions that planning takes longer than executing."""
    for parts in partitioned(evidence):
        shares = {
            statement.number: share
            for statement in evidence.costliest()
            if statement.uses(parts.table)
            and _planned(statement, parts) >= _MANY
            and (share := _planning(statement, evidence)) is not None
            and share >= _SHARE
        }
        if shares:
            top = evidence.statements[next(iter(shares))]
            many = format_count(_planned(top, parts))
            mean = top.mean_ns or 0.0
            of_top = shares[top.number]
            planning = mean * of_top / max(0.01, 1 - of_top)
            yield finding(
                f"Planning over {many} partitions of {parts.table} takes longer than executing",
                client_change(
                    "Prepare the statement: a generic plan is made once, and selects partitions "
                    "when it is executed.",
                    "Each session keeps the plan of all partitions in memory.",
                ),
                ddl_change(
                    f"Merge partitions of {parts.table} into larger ranges, and keep a few dozen of them.",
                    "Rows must be copied; deleting old rows by DROP TABLE becomes coarser.",
                ),
                statement_change(
                    f"Compare the partition key ({', '.join(parts.columns)}) with constants or "
                    "parameters, so that the planner skips partitions before it looks at them."
                ),
                objects=(parts.table,),
                bill=evidence.bill_of(shares),
                statements=evidence.chosen(shares),
                evidence=f"Planning takes about {format_duration(planning)} per call, executing "
                f"{format_duration(mean)}.",
                proof="Compare both layouts with uncork run, with as many partitions as the server has.",
            )


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

    Without pg_stat_statements.track_planning, it is the time in which sessions worked on the
    statement beyond the time that its executions were counted.
    """
    if not statement.calls or statement.mean_ns is None:
        return None
    if statement.planning_ns:
        return statement.planning_ns / (statement.planning_ns + statement.mean_ns * statement.calls)
    worked = evidence.busy(statement.number, {CPU}) * evidence.seconds
    executed = statement.mean_ns * statement.calls / 1e9
    return max(0.0, 1 - executed / worked) if worked else None
