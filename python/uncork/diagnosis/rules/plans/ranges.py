"""Ranges that read more rows than a client needs: pages by OFFSET, one bound only, intervals. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.diagnosis.changes import index_change, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Statement
from uncork.diagnosis.rule import finding, statement_rule
from uncork.diagnosis.rules.indexes.estimates import fraction
from uncork.diagnosis.rules.indexes.reads import blocks_a_call
from uncork.diagnosis.rules.indexes.uses import Use, table_of, uses_of
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS
from uncork.diagnosis.rules.plans.rewrite import keyset
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import OrderKey, Predicate, StatementShape
from uncork.model.units import count_words, format_count, format_duration

_READ: Final = 10.0
"""Rows read for each row returned. The pages that people open first need a few times their rows at most."""
_PASSES: Final = 0.2
"""Fraction of the rows that pass a filter, below which an index on the filter's columns must come first."""
_PAGE_BLOCKS: Final = 50.0
"""Blocks per call below which reading takes less than the round trip of the client."""


@statement_rule("offset-pagination", of_tables=True)
def find_offset(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find pages by OFFSET: the server reads all rows of the pages before, and discards them."""
    shape = statement.shape
    if shape is None or not (shape.offset and shape.limit) or shape.aggregates or shape.distinct:
        return None
    returned, blocks = statement.a_call(statement.rows), statement.a_call(statement.blocks)
    read, kept = _rows_read(statement, evidence), _kept(statement, evidence)
    if returned is None or read is None or kept is None or (blocks or _PAGE_BLOCKS) < _PAGE_BLOCKS:
        return None
    read *= kept  # what a filter discards is not the fault of OFFSET
    return _offset(statement, shape, returned, read, evidence) if read >= _READ * (returned + 1) else None


def _rows_read(statement: Statement, evidence: Evidence) -> float | None:
    """Return how many rows a call reads of its first table, by the table's counters, if no more are read."""
    shape = statement.shape
    if shape is None:
        return None
    use = next((use for use in shape.tables if use.kind == "table" and use.level == 0), None)
    facts = None if use is None else evidence.tables.get(use.name)
    if use is None or facts is None or not statement.calls:
        return None
    others = sum(
        evidence.busy(each.number)
        for each in evidence.statements.values()
        if each.number != statement.number and each.uses(use.name)
    )
    # Other statements that read the table count by the time that they take.
    mine = evidence.busy(statement.number) / (evidence.busy(statement.number) + others) if others else 1.0
    counted = mine * (facts.index_rows + facts.seq_rows) / statement.calls
    if any(node.kind == "Index Only Scan" for node in statement.nodes):
        # It counts no rows of the table, but reads a block for each hundred rows or fewer.
        return max(counted, statement.a_call(statement.blocks) or 0.0)
    return counted


def _kept(statement: Statement, evidence: Evidence) -> float | None:
    """Return which fraction of the rows that the plan reads passes its filter, if it reads them in order.

    None if it sorts all rows, or filters most of them: an index must come first.
    """
    if statement.plan is None:
        return 1.0
    scans = [node for node in statement.nodes if node.relation]
    if not scans or any(node.kind == "Sort" for node in statement.nodes):
        return None
    if not scans[0].condition("Filter"):
        return 1.0
    table = table_of(scans[0], evidence)
    filtered = [
        predicate
        for predicate in statement.predicates
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


def _offset(
    statement: Statement, shape: StatementShape, returned: float, read: float, evidence: Evidence
) -> Finding:
    keys = tuple(key for key in shape.order if key.level == 0)
    use = next(use for use in shape.tables if use.kind == "table" and use.level == 0)
    return finding(
        f"OFFSET reads {format_count(round(read))} rows of {use.name} for {format_count(round(returned))} "
        "rows",
        _next_page(statement, use.name, use.alias, keys, evidence),
        objects=(use.name, *(key.column for key in keys if key.column)),
        bill=evidence.bill_of({statement.number: 1 - returned / read}),
        statements=[statement],
        evidence=(
            "OFFSET reads the rows of all pages before and discards them, so each page takes "
            "longer than the one before."
        ),
        proof="Compare OFFSET and the condition on the key with uncork run, for a page far from the first.",
    )


def _next_page(
    statement: Statement, table: str, alias: str, keys: tuple[OrderKey, ...], evidence: Evidence
) -> Candidate:
    against = ["The client must keep the last row of a page; it cannot jump to a page by its number."]
    total = all(key.column and key.table == table for key in keys)
    same = len({key.descending for key in keys}) == 1
    if not keys or not total:
        text = "Order the rows by columns of one table, and continue after the last row of the page before."
        return statement_change(text, *against, same_answers=False)
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
        if statement.shape is not None and len(statement.shape.tables) == 1
        else [prefix + quoted(name) for name in columns]
    )
    operator = "<" if keys[0].descending else ">"
    values = ", ".join(f"${place + 1}" for place in range(len(names)))
    condition = f"({', '.join(names)}) {operator} ({values})"
    if not same:
        return statement_change(
            f"Continue after the last row of the page before: compare {', '.join(columns)} with its values.",
            *against,
            "The order mixes directions, so one comparison of rows does not express it.",
            same_answers=False,
        )
    return statement_change(
        f"Continue after the last row of the page before: WHERE {condition}, with its values, and no OFFSET.",
        *against,
        sql=keyset(statement.sql, names, descending=keys[0].descending) if statement.sql else "",
        same_answers=False,
    )


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


@statement_rule("unbounded-range", of_tables=True)
def find_unbounded(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a range with one bound only, so that each call reads a growing part of a large table."""
    shape, rows = statement.shape, statement.a_call(statement.rows)
    if shape is None or shape.limit or shape.kind != "select" or not evidence.is_traffic(statement):
        return None
    if rows is None or rows < _ROWS or (statement.mean_ns or 0.0) < _SLOW_NS:
        return None
    open_end = _open(statement, evidence)
    if open_end is None or rows < _PART * evidence.rows(open_end.table):
        return None
    return _unbounded(statement, open_end, rows, evidence)


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


def _unbounded(statement: Statement, found: Predicate, rows: float, evidence: Evidence) -> Finding:
    lower = found.operator in _LOWER
    end, missing = ("upper", "<") if lower else ("lower", ">=")
    name = quoted(found.column)
    return finding(
        f"Each call reads {found.table} to its end, as {found.column} has no {end} bound",
        statement_change(
            f"Add the other bound ({name} {missing} ...), or ORDER BY {name} LIMIT, and read "
            "on from the last row.",
            "A client that needs all rows must send several statements.",
            same_answers=False,
        ),
        objects=(found.table, found.column),
        bill=evidence.bill_of((statement.number,), _CLASSES),
        statements=[statement],
        evidence=(
            f"A call returns {format_count(round(rows))} of "
            f"{format_count(round(evidence.rows(found.table)))} "
            f"rows, and takes {format_duration(statement.mean_ns or 0.0)}."
        ),
        proof="Compare both statements with uncork run.",
    )


_RANGES: Final = {
    "integer": "int4range",
    "bigint": "int8range",
    "numeric": "numrange",
    "date": "daterange",
    "timestamp without time zone": "tsrange",
    "timestamp with time zone": "tstzrange",
}
"""Functions that make a range, by the type of its bounds."""
_SEARCH_BLOCKS: Final = 20.0
"""Fewest blocks a call, and blocks for each block that a search of the range needs."""
_NEEDED: Final = 6.0
"""Blocks of a search in a GiST index: its levels, and a few leaves whose ranges overlap."""
_FEW: Final = 0.01
"""Fraction of the table up to which the intervals that contain a value are few."""


@statement_rule("interval-lookup", of_tables=True)
def find_interval(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a search for intervals that contain a value: an index on their bounds searches by one bound.

    See "Range Types" in PostgreSQL's manual.
    """
    shape, blocks, returned = statement.shape, blocks_a_call(statement), statement.a_call(statement.rows)
    if shape is None or shape.kind != "select" or shape.limit or shape.aggregates:
        return None
    if blocks is None or returned is None or blocks < _SEARCH_BLOCKS * (_NEEDED + returned):
        return None
    for use in uses_of(statement, evidence):
        bounds = _bounds(use, evidence)
        if bounds is not None and use.alone and returned <= _FEW * evidence.rows(use.table.name):
            table, first, last = use.table.name, bounds[0].column, bounds[1].column
            return finding(
                f"An index on {first} and {last} of {table} finds intervals by one bound only",
                *_candidates(use, *bounds, evidence),
                objects=(table, first, last),
                bill=evidence.bill_of({statement.number: 1 - (_NEEDED + returned) / blocks}),
                statements=[statement],
                evidence=_evidence(statement, use, blocks, returned, evidence),
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
        f"returns {count_words(round(returned), 'row')}: it reads all intervals that begin before "
        "the value, or all that end after it."
    )


def _candidates(use: Use, first: Predicate, last: Predicate, evidence: Evidence) -> Iterator[Candidate]:
    table = use.table.name
    known = [evidence.column(table, each.column) for each in (first, last)]
    kind = next(_RANGES[found.type] for found in known if found is not None)
    inclusive = f"{'[' if first.operator == '<=' else '('}{']' if last.operator == '>=' else ')'}"
    span = f"{kind}({quoted(first.column)}, {quoted(last.column)}, '{inclusive}')"
    optional = [found.name for found in known if found is not None and not found.not_null]
    name = f"{table.rpartition('.')[2]}_range_idx"
    yield index_change(
        f"Create a GiST index on the range, and search with {span} @> value.",
        *(
            f"A range with NULL in {column} has no bound there, so it contains more values."
            for column in optional
        ),
        "The index cannot be created if an interval ends before it begins.",
        sql=f"CREATE INDEX CONCURRENTLY {quoted(name)} ON {sql_name(table)} USING gist ({span});",
        undo=f"DROP INDEX CONCURRENTLY {quoted(name)};",
        same_answers=not optional,
        unprovable="The statement has to change with the index. Compare both ways with uncork run",
    )
    yield statement_change(
        "If intervals never overlap, read the last one that begins before the value "
        f"(ORDER BY {first.column} DESC LIMIT 1), and compare {last.column} afterwards.",
        same_answers=False,
    )
