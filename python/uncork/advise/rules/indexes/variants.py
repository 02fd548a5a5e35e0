"""Other forms of an index that may be better: partial, covering, for patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.indexes.conditions import as_containment
from uncork.advise.rules.indexes.keys import pattern_kind
from uncork.advise.rules.indexes.merging import Merged
from uncork.advise.rules.indexes.problems import Problem
from uncork.advise.rules.indexes.proposals import columns_text, index_candidate
from uncork.advise.rules.indexes.uses import Use
from uncork.model.database.finding import Candidate
from uncork.model.database.index import IndexKey
from uncork.model.database.names import literal, quoted

_RARE: Final = 0.2
"""Fraction of the rows up to which a constant condition makes a partial index much smaller."""
_FETCHED: Final = 50.0
"""Rows per call from which on fetching them from the table costs more than the search in the index."""
_NARROW: Final = 32.0
"""Bytes of included columns per entry. An entry of one number takes 16 bytes, so this triples it."""
_VALUE: Final = re.compile(r"\(*\"?(\w+)\"?(?:\)?::[\w ]+)?\)? = '((?:[^']|'')*)'::")


def variants(merged: Merged, mine: Sequence[Problem], evidence: Evidence) -> Iterator[Candidate]:
    """Yield candidates beside the index itself."""
    index, first = merged.index, mine[0]
    for one in {
        each.predicate: problem for problem in mine for each in problem.want.served if each.rewrite
    }.values():
        yield replace(
            contained(one, evidence), against=("It needs the index: without, it scans the table as before.",)
        )
    if index.method == "btree":
        covering = covered_columns(first.use, first.statement, evidence, {key.column for key in index.keys})
        if covering and first.want.fetched >= _FETCHED:
            yield index_candidate(
                replace(index, included=covering),
                f"Include {' and '.join(covering)} in the index, so that calls need not read the table "
                "where VACUUM has marked blocks as visible to all.",
                evidence,
            )
        yield from _partial(merged, mine, evidence)
    unknown = [
        served
        for served in first.want.served
        if served.predicate.operator == "like" and not pattern_kind(served.predicate) and served.key.column
    ]
    if merged.extension and unknown:
        key = IndexKey(unknown[0].key.column, opclass="text_pattern_ops")
        yield index_candidate(
            replace(index, keys=(key,), method="btree"),
            f"If no pattern begins with a wildcard, create a B-tree on {columns_text((key,))} instead: it is "
            "smaller and faster.",
            evidence,
        )


def covered_columns(use: Use, statement: Statement, evidence: Evidence, keys: set[str]) -> tuple[str, ...]:
    """Return the columns besides the keys that a statement reads, if they are few and narrow."""
    shape = statement.shape
    if shape is None or shape.kind != "select" or shape.star or shape.locking:
        return ()
    text = (statement.sql or statement.text).lower()
    found = [
        column
        for column in evidence.catalogue.columns.get(use.table.name, ())
        if column.name not in keys and re.search(rf"\b{re.escape(column.name.lower())}\b", text)
    ]
    width = sum(column.width or _NARROW for column in found)
    return tuple(column.name for column in found) if found and len(found) <= 3 and width <= _NARROW else ()


def contained(problem: Problem, evidence: Evidence) -> Candidate:
    """Return the candidate that writes an array's column with an operator that a GIN index has."""
    served = next(each for each in problem.want.served if each.rewrite)
    column = evidence.column(problem.use.table.name, served.key.column)
    kind = "" if column is None else column.type
    sql = as_containment(problem.statement.sql, served.key.column, kind)
    return Candidate(
        "statement",
        f"Write {served.rewrite} in the statement instead of = ANY: a GIN index serves this operator only.",
        sql=sql,
        undo=problem.statement.sql if sql else "",
    )


def _partial(merged: Merged, mine: Sequence[Problem], evidence: Evidence) -> Iterator[Candidate]:
    """Yield an index on the rows with a rare constant, if all its statements were seen with it."""
    index = merged.index
    if index.predicate:
        return
    constants = [_constants(problem) for problem in mine]
    for column, value in constants[0].items():
        facts = evidence.column(index.table, column)
        frequency = dict(facts.common).get(value) if facts is not None else None
        same = all(found.get(column) == value for found in constants)
        if not same or frequency is None or frequency > _RARE:
            continue
        keys = tuple(key for key in index.keys if key.column != column) or index.keys
        yield index_candidate(
            replace(index, keys=keys, predicate=f"{quoted(column)} = {literal(value)}"),
            f"Index only the rows where {column} is {literal(value)}: it is smaller, but serves only "
            "statements that have this value as a constant.",
            evidence,
        )


def _constants(problem: Problem) -> dict[str, str]:
    """Return the columns that a statement compares with a constant, by its texts or by plans of its calls."""
    found: dict[str, str] = {}
    for plan in problem.statement.plans:
        for node in plan.root.walk() if plan.source in ("seen", "executed") else ():
            values = _VALUE.findall(node.condition("Filter"))
            found.update({column: value.replace("''", "'") for column, value in values})
    for each in problem.want.served:
        predicate = each.predicate
        if predicate.operator == "=" and predicate.value == "constant" and predicate.literal:
            found[predicate.column] = predicate.literal
    return found | dict(problem.statement.compared)
