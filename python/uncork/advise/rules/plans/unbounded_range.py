"""A range with one bound only, so that each call reads a growing part of a large table. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import WORK, Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.statement import Predicate

_ROWS: Final = 5_000.0
"""Rows that a call returns. No person reads so many, and a client that reads only what is new gets fewer."""
_PART: Final = 0.05
"""Fraction of the table that a call returns: it grows with the table."""
_SLOW_NS: Final = 20_000_000
"""Time of a call, from which on users notice it."""
_CLASSES: Final = WORK | {"Client"}
"""Sending the rows takes time too: the session waits until the client has read them."""
_LOWER: Final = frozenset({">", ">="})
_UPPER: Final = frozenset({"<", "<="})


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape, rows = statement.shape, statement.a_call(statement.rows)
    if shape is None or shape.limit or shape.kind != "select" or not evidence.is_traffic(statement):
        return None
    if rows is None or rows < _ROWS or (statement.mean_ns or 0.0) < _SLOW_NS:
        return None
    open_end = _open(statement, evidence)
    if open_end is None or rows < _PART * evidence.rows(open_end.table):
        return None
    return _finding(statement, open_end, rows, evidence)


def _open(statement: Statement, evidence: Evidence) -> Predicate | None:
    """Return the only range on a large table that has one bound, if nothing else restricts the table."""
    if statement.shape is None:
        return None
    for predicate in statement.shape.predicates:
        if (
            predicate.operator not in _LOWER | _UPPER
            or not predicate.column
            or predicate.value not in {"parameter", "constant"}
        ):
            continue
        others = [
            other
            for other in statement.shape.predicates
            if other.table == predicate.table and other is not predicate
        ]
        if evidence.rows(predicate.table) >= LARGE_ROWS and not predicate.alternative and not others:
            return predicate
    return None


def _finding(statement: Statement, found: Predicate, rows: float, evidence: Evidence) -> Finding:
    lower = found.operator in _LOWER
    end, missing = ("upper", "<") if lower else ("lower", ">=")
    name = quoted(found.column)
    return Finding(
        RULE.name,
        f"Each call reads {found.table} to its end, as {found.column} has no {end} bound",
        objects=(found.table, found.column),
        bill=evidence.bill_of((statement.number,), _CLASSES),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"A call returns {format_count(round(rows))} of "
            f"{format_count(round(evidence.rows(found.table)))} "
            f"rows, and takes {format_duration(statement.mean_ns or 0.0)}.",
        ),
        candidates=(
            Candidate(
                "statement",
                f"Add the other bound ({name} {missing} ...), or ORDER BY {name} LIMIT, and read on from "
                "the last row.",
                same_answers=False,
                against=("A client that needs all rows must send several statements.",),
            ),
        ),
        proof="Compare both statements with uncork run.",
    )


RULE: Final = Rule("unbounded-range", each_statement(_find), of_tables=True)
