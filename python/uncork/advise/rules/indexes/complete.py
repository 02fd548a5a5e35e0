"""Whether an index that exists finds exactly the rows that a statement needs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement

if TYPE_CHECKING:
    from uncork.model.database.index import IndexShape
    from uncork.model.database.statement import StatementShape
    from uncork.model.results.database import TableFacts

_INDEXED: Final = frozenset({"Index Scan", "Index Only Scan", "ModifyTable", "LockRows"})
"""Nodes of a plan that find a table's rows by an index only, or change and lock what is found."""


def served_completely(statement: Statement, table: TableFacts, evidence: Evidence) -> bool:
    """Return whether an index finds exactly the rows of a statement that uses this table only."""
    shape = statement.shape
    if shape is None or shape.kind not in ("select", "update", "delete"):
        return False
    if not shape.tables or any(use.name != table.name for use in shape.tables if use.kind == "table"):
        return False
    if any(use.kind not in ("table", "common") for use in shape.tables) or shape.offset or shape.distinct:
        return False
    if shape.aggregates or shape.grouping or shape.windows or shape.unions:
        return False
    scans = (
        []
        if statement.plan is None
        else [node for node in statement.plan.root.walk() if node.relation == table.name]
    )
    if any(node.kind not in _INDEXED or node.condition("Filter") for node in scans):
        return False
    return any(
        each.shape is not None and each.facts.warning != "invalid" and _fits(shape, each.shape)
        for each in evidence.indexes.get(table.name, ())
    )


def _fits(shape: StatementShape, index: IndexShape) -> bool:
    """Return whether an index's first columns are those compared for equality, then those of order."""
    own = [predicate for predicate in shape.predicates if predicate.value != "subquery"]
    if any(predicate.alternative or predicate.negated or not predicate.column for predicate in own):
        return False
    own = [predicate for predicate in own if not (index.predicate and predicate.column in index.predicate)]
    equal = {predicate.column for predicate in own if predicate.operator == "="}
    ranges = {predicate.column for predicate in own if predicate.operator != "="} - equal
    ordered = [key.column for key in shape.order if key.column not in equal]
    first = set(index.columns[: len(equal)])
    rest = list(index.columns[len(equal) :])
    return (
        first == equal
        and len(ranges) <= 1
        and (not ranges or rest[:1] == list(ranges))
        and rest[: len(ordered)] == ordered
        and bool(equal or ranges or (ordered and shape.limit))
    )
