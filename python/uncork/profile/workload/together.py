"""Find the parameters of a statement whose values one row of a table should give together. Pure.

Columns depend on each other: a customer belongs to one region. Values that are drawn for each column alone
seldom occur in one row, so a statement would find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.database.catalogue import ConstraintFacts
from uncork.model.database.names import quoted
from uncork.model.database.workload import Reference, SampledExpression, SampledRows
from uncork.model.records import Record
from uncork.profile.workload.known import Known
from uncork.profile.workload.roles import Parameter, TakenApart

_MOST_REFERENCES: Final = 3
"""Tables that each sampled row is followed to, by a unique key each."""


class Together(Record):
    """Rows to sample, and which of their values each parameter has, by its number."""

    sampled: SampledRows
    places: Mapping[int, int]


def drawn_together(statement: TakenApart, known: Known) -> tuple[Together, ...]:
    """Return the groups of parameters to draw from one row each; one parameter alone is no group.

    A group has parameters that are compared for equality with different columns of one table, or of a table
    and of the tables to which it refers by foreign keys. The columns of a foreign key that an INSERT stores
    are a group too: the row that they refer to has to exist.
    """
    found = [*_compared(statement, known), *_stored(statement, known)]
    return tuple(together for together in found if len(together.sampled.values) > 1)


def _compared(statement: TakenApart, known: Known) -> Iterator[Together]:
    by_table: dict[str, list[tuple[Parameter, SampledExpression]]] = {}
    for parameter in statement.parameters:
        expression = known.wanted(parameter) if parameter.role == "equal" else None
        if expression is not None and expression.shape == "value":
            by_table.setdefault(expression.table, []).append((parameter, expression))
    left = dict.fromkeys(by_table)
    # A table that refers to others comes first, because each of its rows leads to one row of them.
    for table in sorted(by_table, key=lambda name: -len(_references(name, by_table, known))):
        if table not in left:
            continue
        del left[table]
        references = [
            reference for reference in _references(table, by_table, known) if reference.table in left
        ]
        for reference in references:
            del left[reference.table]
        names = (table, *(reference.table for reference in references))
        members = [member for name in names for member in by_table[name]]
        expressions = tuple(dict.fromkeys(expression for _, expression in members))
        places = {parameter.number: expressions.index(expression) for parameter, expression in members}
        yield Together(SampledRows(table, expressions, tuple(references)), places)


def _references(table: str, others: Mapping[str, object], known: Known) -> list[Reference]:
    """Return the foreign keys that lead from a table to others; none to a table with several."""
    keys = [
        foreign_key
        for foreign_key in _foreign_keys(table, known)
        if foreign_key.referred in others and foreign_key.referred != table
    ]
    lone = [key for key in keys if sum(key.referred == constraint.referred for constraint in keys) == 1]
    return [
        Reference(constraint.referred, constraint.referred_columns, constraint.columns)
        for constraint in lone[:_MOST_REFERENCES]
    ]


def _foreign_keys(table: str, known: Known) -> list[ConstraintFacts]:
    return [
        constraint
        for constraint in known.catalogue.constraints
        if constraint.kind == "foreign key" and constraint.table == table
    ]


def _stored(statement: TakenApart, known: Known) -> Iterator[Together]:
    """Yield the columns of each foreign key that an INSERT stores, in each row of its text."""
    keys = _foreign_keys(known.table(statement.target), known) if statement.target else []
    for row in statement.inserted:
        for key in keys:
            numbers = [row.get(column, 0) for column in key.columns]
            if not all(number > 0 for number in numbers):
                continue
            expressions = tuple(
                SampledExpression(key.referred, quoted(column), "value") for column in key.referred_columns
            )
            places = {number: place for place, number in enumerate(numbers)}
            yield Together(SampledRows(key.referred, expressions), places)
