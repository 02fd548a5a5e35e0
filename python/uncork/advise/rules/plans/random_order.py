"""Random rows chosen by ``ORDER BY random()``: each call reads and sorts all rows for a few. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.statement import StatementShape

_RANDOM: Final = re.compile(r"\b(?:random|gen_random_uuid|uuid_generate_v4)\s*\(\s*\)", re.IGNORECASE)
_FEW: Final = 0.1
"""Fraction of the table's rows that a call returns, up to which a sample is cheaper than sorting all."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape, returned = statement.shape, statement.a_call(statement.rows)
    table = None if shape is None else _table(shape)
    if shape is None or table is None or returned is None or not evidence.is_traffic(statement):
        return None
    rows = evidence.rows(table)
    if rows < LARGE_ROWS or returned > _FEW * rows:
        return None
    return Finding(
        RULE.name,
        f"ORDER BY random() reads and sorts all rows of {table} for {format_count(round(returned))}",
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"Table {table} has {format_count(round(rows))} rows.",
            *([f"A call takes {format_duration(statement.mean_ns)}."] if statement.mean_ns else []),
        ),
        candidates=tuple(_candidates(shape, table, returned, evidence)),
        proof="Compare both statements with uncork run.",
    )


def _table(shape: StatementShape) -> str | None:
    """Return the only table of a query that orders its rows by chance and returns the first ones."""
    first = next((key for key in shape.order if key.level == 0), None)
    tables = [use.name for use in shape.tables if use.kind == "table"]
    if shape.kind != "select" or not shape.limit or first is None or len(tables) != len(shape.tables):
        return None
    return tables[0] if len(tables) == 1 and _RANDOM.search(first.expression) else None


def _candidates(
    shape: StatementShape, table: str, returned: float, evidence: Evidence
) -> Iterator[Candidate]:
    key = _key(table, evidence)
    alone = not any(predicate.clause == "where" for predicate in shape.predicates)
    if key and alone:
        name, number = quoted(key), f"{max(1, round(returned))}"
        yield Candidate(
            "statement",
            f"Draw values of {key} between its least and its greatest, and look these rows up by its index.",
            sql=f"SELECT * FROM {sql_name(table)} WHERE {name} = ANY (ARRAY(SELECT least + floor(random() * "  # noqa: S608
            f"(most - least + 1))::bigint FROM (SELECT min({name}) AS least, max({name}) AS most "
            f"FROM {sql_name(table)}) AS ends, generate_series(1, {number} * 2))) "
            f"ORDER BY random() LIMIT {number};",
            same_answers=False,
            against=(
                f"Rows behind gaps of {key} are missing: draw more values, and again if too few rows come.",
            ),
        )
    if alone:
        share = min(100.0, max(0.01, 500.0 * (returned + 20) / max(1.0, evidence.rows(table))))
        yield Candidate(
            "statement",
            f"Read random blocks instead of all: FROM {table} TABLESAMPLE SYSTEM ({share:.2g}), and order "
            "only these rows by random().",
            same_answers=False,
            against=("Rows of the same block come together, and a sample can be empty.",),
        )
    yield Candidate(
        "ddl",
        f"Store a random number in each row of {table}, with an index, and read on from a random place in "
        "its order.",
        same_answers=False,
        against=("Rows keep their neighbours until their numbers are drawn anew.",),
    )


def _key(table: str, evidence: Evidence) -> str:
    """Return the column of a primary key that is one whole number; empty if there is none."""
    for constraint in evidence.catalogue.constraints:
        if constraint.table == table and constraint.kind == "primary key" and len(constraint.columns) == 1:
            column = evidence.column(table, constraint.columns[0])
            return (
                constraint.columns[0] if column is not None and column.type in ("integer", "bigint") else ""
            )
    return ""


RULE: Final = Rule("random-order", each_statement(_find), depth=2, of_tables=True)
