"""The few values of a column, for which each call reads all rows of a large table. Pure.

PostgreSQL finds the distinct values of a column by reading all rows, or all entries of an index. With an
index, a recursive query finds each value by one descent: the smallest, then the smallest above it, and so on
(the PostgreSQL wiki calls this a loose index scan).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.advise.rules.plans.rewrite import values_order
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import count_words, format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts
    from uncork.model.database.statement import StatementShape

_DESCENT_NS: Final = 30_000.0
"""Time to find one value by a descent of the index, within a recursive query."""
_MOST: Final = 0.2
"""Part of a call's time that the descents may take at most."""
_TYPES: Final = frozenset(
    {"bigint", "boolean", "character varying", "date", "integer", "smallint", "text", "uuid"}
)
"""Types of which equal values are the same, so that it does not matter which row gives a value."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    named = None if statement.shape is None else _column(statement.shape)
    order = values_order(statement.sql)
    values = statement.a_call(statement.rows)
    if named is None or order is None or values is None or not statement.mean_ns:
        return None
    table, name = named
    column = evidence.column(table, name)
    if column is None or column.type not in _TYPES or column.collation:
        return None
    descents_ns = (values + 2) * _DESCENT_NS
    if (
        evidence.rows(table) < LARGE_ROWS
        or not evidence.is_traffic(statement)
        or descents_ns > _MOST * statement.mean_ns
    ):
        return None
    rows = format_count(float(f"{evidence.rows(table):.2g}"))
    descents, few = round(values) + 2, count_words(round(values), "value")
    return Finding(
        RULE.name,
        f"Each call reads all {rows} rows of {table} for {few} of {name}",
        objects=(table, name),
        bill=evidence.bill_of({statement.number: 1 - descents_ns / statement.mean_ns}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"It is called {(statement.calls or 0) / evidence.seconds:.2g} times a second.",
            f"A call takes {format_duration(statement.mean_ns)}.",
            f"{count_words(descents, 'descent')} of an index take about {format_duration(descents_ns)}.",
        ),
        candidates=tuple(_candidates(statement, column, order, evidence)),
        proof="Compare both statements with uncork run.",
    )


def _column(shape: StatementShape) -> tuple[str, str] | None:
    """Return table and column of a query for nothing but the values of a column; None for other queries."""
    if shape.kind != "select" or len(shape.tables) != 1 or len(shape.outputs) != 1 or shape.star:
        return None
    if shape.predicates or shape.aggregates or shape.windows or shape.subqueries or shape.common_tables:
        return None
    if shape.unions or shape.limit or shape.locking or shape.functions:
        return None
    grouped = [key.column for key in shape.grouping]
    name = shape.outputs[0].column
    if shape.tables[0].kind != "table" or (shape.distinct != "all" and grouped != [name]):
        return None
    return (shape.tables[0].name, name) if not grouped or grouped == [name] else None


def _candidates(
    statement: Statement, column: ColumnFacts, order: str, evidence: Evidence
) -> Iterator[Candidate]:
    table, name = column.table, column.name
    served = evidence.indexed(table, name, completely=True)
    index = quoted(f"{table.rpartition('.')[2]}_{name}_idx")
    rewritten = Candidate(
        "statement",
        f"Find each value of {name} with one descent of the index: the least, then the least above it.",
        sql=_loose(column, order),
        undo=statement.sql,
        against=(f"It is slower once {name} has many values.",),
        unprovable="" if served else f"Without an index on {name} it reads the table for each value.",
    )
    if not served:
        yield Candidate(
            "index",
            f"Create an index on {name} of {table}.",
            sql=f"CREATE INDEX CONCURRENTLY {index} ON {sql_name(table)} ({quoted(name)});",
            undo=f"DROP INDEX CONCURRENTLY {index};",
            against=(
                "Alone, it lets each call read the index instead of the table, which is still all entries.",
            ),
        )
    yield rewritten
    yield Candidate(
        "client",
        f"Keep the values of {name} in a table of their own, which a foreign key refers to.",
        same_answers=False,
        against=("A value stays there when its last row is gone.",),
    )


def _loose(column: ColumnFacts, order: str) -> str:
    """Return the recursive query for the values of a column, in the order of the query that it replaces."""
    table, name = sql_name(column.table), quoted(column.name)
    parts = [
        f"WITH RECURSIVE each_value AS ((SELECT {name} FROM {table} ORDER BY {name} LIMIT 1) UNION ALL "  # noqa: S608
        f"SELECT (SELECT above.{name} FROM {table} AS above WHERE above.{name} > each_value.{name} "
        f"ORDER BY above.{name} LIMIT 1) FROM each_value WHERE each_value.{name} IS NOT NULL) "
        f"SELECT {name} FROM each_value WHERE {name} IS NOT NULL"
    ]
    if not column.not_null:
        parts.append(f"UNION ALL SELECT NULL WHERE EXISTS (SELECT FROM {table} WHERE {name} IS NULL)")  # noqa: S608
    return " ".join(parts) + order


RULE: Final = Rule("distinct-values", each_statement(_find), of_tables=True)
