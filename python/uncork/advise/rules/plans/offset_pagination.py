"""Pages by OFFSET: the server reads all rows of the pages before, and discards them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.indexes.estimates import fraction
from uncork.advise.rules.indexes.uses import table_of
from uncork.advise.rules.plans.rewrite import keyset
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode
    from uncork.model.database.statement import OrderKey, Predicate, StatementShape

_READ: Final = 10.0
"""Rows read for each row returned. The pages that people open first need a few times their rows at most."""
_PASSES: Final = 0.2
"""Fraction of the rows that pass a filter, below which an index on the filter's columns must come first."""
_BLOCKS: Final = 50.0
"""Blocks per call below which reading takes less than the round trip of the client."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape = statement.shape
    if shape is None or not (shape.offset and shape.limit) or shape.aggregates or shape.distinct:
        return None
    returned, blocks = statement.a_call(statement.rows), statement.a_call(statement.blocks)
    read, kept = _rows_read(statement, evidence), _kept(statement, evidence)
    if returned is None or read is None or kept is None or (blocks or _BLOCKS) < _BLOCKS:
        return None
    read *= kept  # what a filter discards is not the fault of OFFSET
    return _finding(statement, shape, returned, read, evidence) if read >= _READ * (returned + 1) else None


def _rows_read(statement: Statement, evidence: Evidence) -> float | None:
    """Return how many rows a call reads of its first table, by the table's counters, if no more are read."""
    shape = statement.shape
    if shape is None:
        return None
    use = next((use for use in shape.tables if use.kind == "table" and use.level == 0), None)
    facts = None if use is None else evidence.tables.get(use.name)
    others = sum(
        evidence.busy(each.number)
        for each in evidence.statements.values()
        if each.number != statement.number
        and each.shape is not None
        and use is not None
        and any(other.name == use.name for other in each.shape.tables)
    )
    if facts is None or not statement.calls:
        return None
    # Other statements that read the table count by the time that they take.
    mine = evidence.busy(statement.number) / (evidence.busy(statement.number) + others) if others else 1.0
    counted = mine * (facts.index_rows + facts.seq_rows) / statement.calls
    if statement.plan is not None and any(
        node.kind == "Index Only Scan" for node in statement.plan.root.walk()
    ):
        # It counts no rows of the table, but reads a block for each hundred rows or fewer.
        return max(counted, statement.a_call(statement.blocks) or 0.0)
    return counted


def _kept(statement: Statement, evidence: Evidence) -> float | None:
    """Return which fraction of the rows that the plan reads passes its filter, if it reads them in order.

    None if it sorts all rows, or filters most of them: an index must come first.
    """
    if statement.plan is None:
        return 1.0
    scans = [node for node in statement.plan.root.walk() if node.relation]
    if not scans or any(node.kind == "Sort" for node in statement.plan.root.walk()):
        return None
    if not scans[0].condition("Filter"):
        return 1.0
    table = table_of(scans[0], evidence)
    filtered = [
        predicate
        for predicate in (() if statement.shape is None else statement.shape.predicates)
        if predicate.table == table and predicate.clause == "where" and not _searched(predicate, scans[0])
    ]
    unknown = any(each.alternative or not each.column for each in filtered)
    part = None if unknown or not filtered else _passing(filtered, table, evidence)
    return part if part is not None and part >= _PASSES else None


def _passing(filtered: Sequence[Predicate], table: str, evidence: Evidence) -> float | None:
    """Return the fraction of rows that pass a filter; `<>` passes the rows that `=` rejects."""
    product = 1.0
    for each in filtered:
        opposite = replace(each, operator={"<>": "=", "not in": "in"}.get(each.operator, each.operator))
        part = fraction(opposite, table, evidence)
        if part is None:
            return None
        product *= part if opposite == each else 1 - part
    return product


def _searched(predicate: Predicate, scan: PlanNode) -> bool:
    """Return whether the scan searches its index for a predicate, so that no row is discarded for it."""
    return re.search(rf"\b{re.escape(predicate.column)}\b", scan.condition("Index Cond")) is not None


def _finding(
    statement: Statement, shape: StatementShape, returned: float, read: float, evidence: Evidence
) -> Finding:
    keys = tuple(key for key in shape.order if key.level == 0)
    use = next(use for use in shape.tables if use.kind == "table" and use.level == 0)
    return Finding(
        RULE.name,
        f"OFFSET reads {format_count(round(read))} rows of {use.name} for {format_count(round(returned))} "
        "rows",
        objects=(use.name, *(key.column for key in keys if key.column)),
        bill=evidence.bill_of({statement.number: 1 - returned / read}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            "OFFSET reads the rows of all pages before and discards them, so each page takes longer than "
            "the one before.",
        ),
        candidates=(_candidate(statement, use.name, use.alias, keys, evidence),),
        proof="Compare OFFSET and the condition on the key with uncork run, for a page far from the first.",
    )


def _candidate(
    statement: Statement, table: str, alias: str, keys: tuple[OrderKey, ...], evidence: Evidence
) -> Candidate:
    against = [
        "The client must keep the last row of a page; it cannot jump to a page by its number.",
    ]
    total = all(key.column and key.table == table for key in keys)
    same = len({key.descending for key in keys}) == 1
    if not keys or not total:
        text = "Order the rows by columns of one table, and continue after the last row of the page before."
        return Candidate("statement", text, same_answers=False, against=tuple(against))
    columns = [key.column for key in keys]
    unique = [
        constraint.columns
        for constraint in evidence.catalogue.constraints
        if constraint.table == table and constraint.kind in {"primary key", "unique"}
    ]
    if not any(set(each) <= set(columns) for each in unique):
        primary = min(unique, key=len, default=())
        columns += [name for name in primary if name not in columns]
        if not primary:
            against.append("Add a unique column to the order: rows with equal values could be skipped.")
        else:
            against.append(f"Rows with equal values need {', '.join(primary)} as the last part of the order.")
    if any((column := evidence.column(table, name)) is not None and not column.not_null for name in columns):
        against.append("Rows with NULL in such a column are on no page.")
    prefix = f"{quoted(alias)}." if alias and alias != table else f"{sql_name(table)}."
    names = (
        [quoted(name) for name in columns]
        if _alone(statement)
        else [prefix + quoted(name) for name in columns]
    )
    operator = "<" if keys[0].descending else ">"
    values = ", ".join(f"${place + 1}" for place in range(len(names)))
    condition = f"({', '.join(names)}) {operator} ({values})"
    if not same:
        return Candidate(
            "statement",
            f"Continue after the last row of the page before: compare {', '.join(columns)} with its values.",
            same_answers=False,
            against=(*against, "The order mixes directions, so one comparison of rows does not express it."),
        )
    return Candidate(
        "statement",
        f"Continue after the last row of the page before: WHERE {condition}, with its values, and no OFFSET.",
        sql=keyset(statement.sql, names, descending=keys[0].descending) if statement.sql else "",
        same_answers=False,
        against=tuple(against),
    )


def _alone(statement: Statement) -> bool:
    return statement.shape is not None and len(statement.shape.tables) == 1


RULE: Final = Rule("offset-pagination", each_statement(_find), of_tables=True)
