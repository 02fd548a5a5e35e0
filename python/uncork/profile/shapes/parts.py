"""Collect the parts of a statement's shape. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from uncork.model.database.statement import (
    ColumnName,
    CommonTable,
    OrderKey,
    Predicate,
    StatementShape,
    Subquery,
    TableUse,
)
from uncork.profile.shapes.scopes import CommonName


@dataclass(slots=True)
class Parts:
    """The parts of one statement so far. The keys of the dictionaries are sets in order."""

    uses: list[TableUse] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    order: list[OrderKey] = field(default_factory=list)
    grouping: list[OrderKey] = field(default_factory=list)
    distinct_on: list[OrderKey] = field(default_factory=list)
    outputs: list[ColumnName] = field(default_factory=list)
    aggregates: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    windows: dict[str, None] = field(default_factory=dict)
    set_columns: dict[str, None] = field(default_factory=dict)
    insert_columns: dict[str, None] = field(default_factory=dict)
    subqueries: list[Subquery | None] = field(default_factory=list)
    commons: list[tuple[CommonName, CommonTable]] = field(default_factory=list)
    facts: StatementShape = field(default_factory=lambda: StatementShape(""))
    """Everything but lists: LIMIT, locking, the rows of an INSERT, and so on."""

    def shape(self, kind: str) -> StatementShape:
        """Return what was collected."""
        return replace(
            self.facts,
            kind=kind,
            tables=tuple(self.uses),
            predicates=tuple(self.predicates),
            order=tuple(self.order),
            grouping=tuple(self.grouping),
            distinct_on=tuple(self.distinct_on),
            outputs=tuple(self.outputs),
            aggregates=tuple(self.aggregates),
            functions=tuple(self.functions),
            windows=tuple(self.windows),
            subqueries=tuple(subquery for subquery in self.subqueries if subquery is not None),
            common_tables=tuple(replace(table, references=name.references) for name, table in self.commons),
            set_columns=tuple(self.set_columns),
            insert_columns=tuple(self.insert_columns),
        )

    def remember(self, **facts: Any) -> None:
        """Set fields of the shape that are not lists."""
        self.facts = replace(self.facts, **facts)

    def tables_since(self, place: int) -> tuple[str, ...]:
        """Return the names of the tables used from a place in `uses` on, each once."""
        return tuple(dict.fromkeys(use.name for use in self.uses[place:] if use.kind == "table"))
