"""A search for the intervals that contain a value: an index on their bounds searches by one bound only. Pure.

See "Range Types" in PostgreSQL's manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.indexes.reads import blocks_a_call
from uncork.advise.rules.indexes.uses import Use, uses_of
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import count_words, format_count

if TYPE_CHECKING:
    from uncork.model.database.statement import Predicate

_RANGES: Final = {
    "integer": "int4range",
    "bigint": "int8range",
    "numeric": "numrange",
    "date": "daterange",
    "timestamp without time zone": "tsrange",
    "timestamp with time zone": "tstzrange",
}
"""Functions that make a range, by the type of its bounds."""
_BLOCKS: Final = 20.0
"""Fewest blocks a call, and blocks for each block that a search of the range needs."""
_NEEDED: Final = 6.0
"""Blocks of a search in a GiST index: its levels, and a few leaves whose ranges overlap."""
_FEW: Final = 0.01
"""Fraction of the table up to which the intervals that contain a value are few."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape, blocks, returned = statement.shape, blocks_a_call(statement), statement.a_call(statement.rows)
    if shape is None or shape.kind != "select" or shape.limit or shape.aggregates:
        return None
    if blocks is None or returned is None or blocks < _BLOCKS * (_NEEDED + returned):
        return None
    for use in uses_of(statement, evidence):
        bounds = _bounds(use, evidence)
        if bounds is not None and use.alone and returned <= _FEW * evidence.rows(use.table.name):
            table, first, last = use.table.name, bounds[0].column, bounds[1].column
            return Finding(
                RULE.name,
                f"An index on {first} and {last} of {table} finds intervals by one bound only",
                objects=(table, first, last),
                bill=evidence.bill_of({statement.number: 1 - (_NEEDED + returned) / blocks}),
                templates=(statement.number,),
                statement=statement.text,
                evidence=tuple(_evidence(statement, use, blocks, returned, evidence)),
                candidates=tuple(_candidates(use, *bounds, evidence)),
                proof="Compare both statements, with the index on the range, in uncork run.",
            )
    return None


def _bounds(use: Use, evidence: Evidence) -> tuple[Predicate, Predicate] | None:
    """Return the conditions on the lower and the upper bound, if a statement searches by nothing else."""
    plain = [
        predicate
        for predicate in use.predicates
        if predicate.column and not predicate.cast and not predicate.negated
    ]
    lower = [each for each in plain if each.operator in ("<", "<=")]
    upper = [each for each in plain if each.operator in (">", ">=")]
    if len(use.predicates) != 2 or len(lower) != 1 or len(upper) != 1 or use.alternatives:
        return None
    first, last = lower[0], upper[0]
    columns = [evidence.column(use.table.name, each.column) for each in (first, last)]
    types = {None if found is None else found.type for found in columns}
    compared = {first.value, last.value} <= {"parameter", "constant", "expression"}
    if first.column == last.column or not compared or len(types) != 1 or not types <= set(_RANGES):
        return None
    return first, last


def _evidence(
    statement: Statement, use: Use, blocks: float, returned: float, evidence: Evidence
) -> Iterator[str]:
    rows = format_count(round(evidence.rows(use.table.name)))
    yield f"Table {use.table.name} has {rows} rows."
    yield (
        f"Each of {count_words(statement.calls or 0, 'call')} reads "
        f"{count_words(round(blocks), 'block')} and "
        f"returns {count_words(round(returned), 'row')}: it reads all intervals that begin before the value, "
        "or all that end after it."
    )


def _candidates(use: Use, first: Predicate, last: Predicate, evidence: Evidence) -> Iterator[Candidate]:
    table = use.table.name
    known = [evidence.column(table, each.column) for each in (first, last)]
    kind = next(_RANGES[found.type] for found in known if found is not None)
    inclusive = f"{'[' if first.operator == '<=' else '('}{']' if last.operator == '>=' else ')'}"
    span = f"{kind}({quoted(first.column)}, {quoted(last.column)}, '{inclusive}')"
    optional = [found.name for found in known if found is not None and not found.not_null]
    name = f"{table.rpartition('.')[2]}_range_idx"
    yield Candidate(
        "index",
        f"Create a GiST index on the range, and search with {span} @> value.",
        sql=f"CREATE INDEX CONCURRENTLY {quoted(name)} ON {sql_name(table)} USING gist ({span});",
        undo=f"DROP INDEX CONCURRENTLY {quoted(name)};",
        same_answers=not optional,
        unprovable="The statement has to change with the index. Compare both ways with uncork run",
        against=(
            *(
                f"A range with NULL in {column} has no bound there, so it contains more values."
                for column in optional
            ),
            "The index cannot be created if an interval ends before it begins.",
        ),
    )
    yield Candidate(
        "statement",
        "If intervals never overlap, read the last one that begins before the value "
        f"(ORDER BY {first.column} DESC LIMIT 1), and compare {last.column} afterwards.",
        same_answers=False,
    )


RULE: Final = Rule("interval-lookup", each_statement(_find), of_tables=True)
