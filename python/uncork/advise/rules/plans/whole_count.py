"""Rows of a large table that each request counts, often to show the number of pages. Pure.

PostgreSQL keeps no count of rows: ``count(*)`` visits each one that matches, since another transaction may
see other rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.indexes.uses import nodes_of
from uncork.advise.rules.plans.costs import LARGE_ROWS, rows_returned
from uncork.advise.rules.plans.rewrite import capped_count
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import literal, sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.statement import StatementShape

_PART: Final = 0.2
"""Fraction of the rows that a call counts, from which on no other index makes it cheap."""
_SHOWN: Final = 1_000
_OF_ROWS: Final = re.compile(r"\bcount\s*\(\s*(?:\*|\?|\$\d+|\d+)\s*\)", re.IGNORECASE)
"""A count of rows. Who counts the values of a column wants that number itself."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape = statement.shape
    table = None if shape is None or not _OF_ROWS.search(statement.text) else _table(shape)
    if (
        shape is None
        or table is None
        or not evidence.is_traffic(statement)
        or evidence.rows(table) < LARGE_ROWS
    ):
        return None
    counted = _counted(statement, shape, table, evidence)
    if counted is None or counted < _PART * evidence.rows(table):
        return None
    return Finding(
        RULE.name,
        f"Each call counts {format_count(float(f'{counted:.2g}'))} rows of {table} one by one",
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"It is called {(statement.calls or 0) / evidence.seconds:.2g} times a second.",
            *([f"A call takes {format_duration(statement.mean_ns)}."] if statement.mean_ns else []),
            "PostgreSQL keeps no count of rows, so each call visits every row that matches, in the table or "
            "in an index.",
        ),
        candidates=tuple(_candidates(statement, shape, table)),
        proof="Compare both statements with uncork run.",
    )


def _table(shape: StatementShape) -> str | None:
    """Return the only table of a query that does nothing but count rows."""
    if shape.kind != "select" or shape.aggregates != ("count",) or shape.grouping or shape.windows:
        return None
    if shape.unions or shape.subqueries or shape.common_tables or shape.outputs or len(shape.tables) != 1:
        return None
    return shape.tables[0].name if shape.tables[0].kind == "table" else None


def _counted(statement: Statement, shape: StatementShape, table: str, evidence: Evidence) -> float | None:
    """Return how many rows a call counts: all, or as many as a plan expects; None if unknown."""
    if not shape.predicates:
        return evidence.rows(table)
    if statement.plan is None or statement.plan.source == "generic":
        return None
    found = [rows_returned(node) for node in nodes_of(statement, table, evidence)]
    return sum(found) if found else None


def _candidates(statement: Statement, shape: StatementShape, table: str) -> Iterator[Candidate]:
    sql = capped_count(statement.sql, _SHOWN + 1)
    yield Candidate(
        "statement",
        f'Stop counting after {format_count(_SHOWN + 1)} rows (LIMIT within the count), and show "more than '
        f'{format_count(_SHOWN)}" for a larger count.',
        sql=sql,
        undo=statement.sql if sql else "",
        same_answers=False,
        against=("The exact number of a larger count is unknown.",),
    )
    if not shape.predicates:
        yield Candidate(
            "statement",
            "Show the number of rows that ANALYZE and autovacuum estimate.",
            sql=f"SELECT reltuples::bigint FROM pg_class WHERE oid = {literal(sql_name(table))}::regclass;",  # noqa: S608
            same_answers=False,
            against=("It is an estimate, and -1 before the first ANALYZE.",),
        )
    yield Candidate(
        "client",
        "Count once and keep the number for a while, or count only for the first page; a page needs no count "
        "to know whether another one follows: ask for one row more than it shows.",
        same_answers=False,
        against=("The number that people see can be out of date.",),
    )


RULE: Final = Rule("whole-count", each_statement(_find), of_tables=True)
