"""Sorts and hashes that do not fit into work_mem and write temporary files. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.changes import role_setting
from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.subqueries import barrier, stored_in_vain
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index
from uncork.model.units import format_bytes, format_count

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode

_BYTES: Final = 1_000_000
_SHARE: Final = 0.2
"""Temporary files per call, and the statement's fraction of the busy time. A sort in memory is about twice as
fast, so from there on a tenth of all time can be saved."""
_TUPLE_BYTES: Final = 40
"""Overhead of a row in a sort or hash, by PostgreSQL's own estimate (a tuple's header, and a pointer)."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    written = statement.a_call(statement.temp_bytes)
    if written is None or written < _BYTES or not evidence.is_traffic(statement):
        return None
    if any(stored_in_vain(statement, evidence)) or (
        statement.plan and barrier(statement.plan.root, evidence)
    ):
        return None  # What is stored or sorted is not needed: those rules name it.
    node = _largest(statement)
    memory = f"{_work_mem(written)}MB"
    of_role = role_setting(statement, evidence, "work_mem", memory)
    setting = replace(of_role, whom=of_role.whom or "").candidate(
        f"Give this statement enough work_mem for {format_bytes(written)}, in its transaction (SET LOCAL "
        f"work_mem = '{memory}') or for its role.",
        "Each sort or hash of each session may use so much memory, several in one statement.",
    )
    index = _index(statement, node, evidence)
    return RULE.finding(
        f"{_what(node)} writes {format_bytes(written)} of temporary files in each call",
        objects=("work_mem", *(() if index is None else (index.table,))),
        bill=evidence.bill_of((statement.number,)),
        statements=[statement],
        evidence=_evidence(statement, node, evidence),
        candidates=(setting,) if index is None else _ordered(statement, setting, index),
        proof="Compare both with uncork run, under as many clients as the server has.",
    )


def _largest(statement: Statement) -> PlanNode | None:
    """Return the sort or hash of a plan that needs the most memory, by the planner's estimate."""
    if statement.plan is None:
        return None
    found = [
        node
        for node in statement.plan.root.walk()
        if node.kind in {"Sort", "Hash", "Materialize"}
        or (node.kind == "Aggregate" and node.strategy == "Hashed")
    ]
    disk = [node for node in found if node.disk_kib]
    if disk:
        return max(disk, key=lambda node: node.disk_kib or 0.0)
    return max(found, key=_size, default=None)


def _size(node: PlanNode) -> float:
    rows = max([node.rows, *(child.rows for child in node.children)]) if node.kind == "Sort" else node.rows
    return rows * (node.width + _TUPLE_BYTES)


def _what(node: PlanNode | None) -> str:
    if node is None:
        return "A sort or hash"
    table = next((each.relation for each in node.walk() if each.relation), "")
    of_table = f" of {table}" if table else ""
    if node.kind == "Sort":
        keys = [key.rpartition(".")[2].split(" ")[0] for key in node.key("Sort Key")]
        return f"The sort{of_table} by {keys[0]}" if len(keys) == 1 else f"A sort{of_table}"
    if node.kind == "Aggregate":
        return f"GROUP BY{of_table} in a hash table"
    return f"The hash table{of_table}" if node.kind == "Hash" else f"A stored result{of_table}"


def _evidence(statement: Statement, node: PlanNode | None, evidence: Evidence) -> Iterator[str]:
    if statement.calls:
        yield f"This happened in {format_count(statement.calls)} calls."
    if node is not None:
        keys = node.key("Sort Key") or node.key("Group Key")
        by = f" by {', '.join(keys)}" if keys else ""
        yield (
            f"The planner expects {format_count(round(node.rows))} rows of {node.width} bytes in the "
            f"{node.kind.lower()}{by}."
        )
    memory = evidence.catalogue.setting("work_mem")
    if memory:
        yield f"work_mem is {memory}."


def _index(statement: Statement, node: PlanNode | None, evidence: Evidence) -> IndexShape | None:
    """Return an index that would return the rows of a sort in their order, None if no index can.

    Its first keys are the columns that the statement compares for equality.
    """
    shape = statement.shape
    if node is None or node.kind != "Sort" or shape is None or not shape.order:
        return None
    order = [key for key in shape.order if key.level == 0]
    tables = {key.table for key in order}
    if len(tables) != 1 or not all(key.column for key in order) or "" in tables:
        return None
    table = tables.pop()
    if sum(use.kind == "table" for use in shape.tables) != 1 or shape.grouping or shape.aggregates:
        return None
    equal = dict.fromkeys(
        predicate.column
        for predicate in shape.predicates
        if predicate.table == table
        and predicate.column
        and predicate.operator == "="
        and not predicate.alternative
    )
    keys = tuple(
        IndexKey(key.column, descending=key.descending, nulls_first=key.nulls_first)
        for key in order
        if key.column not in equal
    )
    wanted = (*(IndexKey(name) for name in equal), *keys)
    exists = any(
        each.shape is not None and each.shape.columns[: len(wanted)] == tuple(key.column for key in wanted)
        for each in evidence.indexes.get(table, ())
    )
    return None if exists or not keys else IndexShape(table, wanted)


def _ordered(statement: Statement, setting: Candidate, index: IndexShape) -> tuple[Candidate, ...]:
    """Return both candidates, the better first: an index wins if the statement needs the first rows only."""
    candidate = Candidate(
        "index",
        f"Create an index on {index.table} that returns the rows in this order, without a sort.",
        sql=create_index(index),
        undo=drop_index(index),
        against=(
            "Reading many rows by an index reads the table's blocks in random order, unless the rows are "
            "stored in that order.",
        ),
    )
    first = statement.shape is not None and statement.shape.limit
    return (candidate, setting) if first else (setting, candidate)


def _work_mem(written: float) -> int:
    """Return a work_mem in MB for a sort that wrote so many bytes: memory needs about twice the space."""
    needed = 2 * written / (1 << 20)
    size = 8
    while size < needed:
        size *= 2
    return size


RULE: Final = Rule("temporary-files", each_statement(_find), least_share=_SHARE)
