"""Reads of more than a client needs: whole tables to count or to choose, and large values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.diagnosis.changes import client_change, ddl_change, index_change, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Statement
from uncork.diagnosis.rule import finding, statement_rule
from uncork.diagnosis.rules.indexes.uses import nodes_of
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS, rows_returned
from uncork.diagnosis.rules.plans.rewrite import capped_count, values_order, with_columns
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal, quoted, sql_name
from uncork.model.database.statement import StatementShape
from uncork.model.units import count_words, format_bytes, format_count, format_duration

_PART: Final = 0.2
"""Fraction of the rows that a call counts, from which on no other index makes it cheap."""
_SHOWN: Final = 1_000
_OF_ROWS: Final = re.compile(r"\bcount\s*\(\s*(?:\*|\?|\$\d+|\d+)\s*\)", re.IGNORECASE)
"""A count of rows. Who counts the values of a column wants that number itself."""


@statement_rule("whole-count", of_tables=True)
def find_count(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find rows of a large table that each request counts, often to show the number of pages.

    PostgreSQL keeps no count of rows: ``count(*)`` visits each one that matches, since another
    transaction may see other rows.
    """
    shape = statement.shape
    table = None if shape is None or not _OF_ROWS.search(statement.text) else _counted_table(shape)
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
    return finding(
        f"Each call counts {format_count(float(f'{counted:.2g}'))} rows of {table} one by one",
        *_count_less(statement, shape, table),
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
        statements=[statement],
        evidence=(
            f"It is called {(statement.calls or 0) / evidence.seconds:.2g} times a second.",
            *([f"A call takes {format_duration(statement.mean_ns)}."] if statement.mean_ns else []),
            "PostgreSQL keeps no count of rows, so each call visits every row that matches, in the "
            "table or in an index.",
        ),
        proof="Compare both statements with uncork run.",
    )


def _counted_table(shape: StatementShape) -> str | None:
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


def _count_less(statement: Statement, shape: StatementShape, table: str) -> Iterator[Candidate]:
    sql = capped_count(statement.sql, _SHOWN + 1)
    yield statement_change(
        f'Stop counting after {format_count(_SHOWN + 1)} rows (LIMIT within the count), and show "more than '
        f'{format_count(_SHOWN)}" for a larger count.',
        "The exact number of a larger count is unknown.",
        sql=sql,
        undo=statement.sql if sql else "",
        same_answers=False,
    )
    if not shape.predicates:
        yield statement_change(
            "Show the number of rows that ANALYZE and autovacuum estimate.",
            "It is an estimate, and -1 before the first ANALYZE.",
            sql=f"SELECT reltuples::bigint FROM pg_class WHERE oid = {literal(sql_name(table))}::regclass;",  # noqa: S608
            same_answers=False,
        )
    yield client_change(
        "Count once and keep the number for a while, or count only for the first page; a page "
        "needs no count to know whether another one follows: ask for one row more than it shows.",
        "The number that people see can be out of date.",
        same_answers=False,
    )


_DESCENT_NS: Final = 30_000.0
"""Time to find one value by a descent of the index, within a recursive query."""
_MOST: Final = 0.2
"""Part of a call's time that the descents may take at most."""
_TYPES: Final = frozenset(
    {"bigint", "boolean", "character varying", "date", "integer", "smallint", "text", "uuid"}
)
"""Types of which equal values are the same, so that it does not matter which row gives a value."""


@statement_rule("distinct-values", of_tables=True)
def find_values(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find the few values of a column, for which each call reads all rows of a large table.

    PostgreSQL finds the distinct values of a column by reading all rows, or all entries of an
    index. With an index, a recursive query finds each value by one descent: the smallest, then the
    smallest above it, and so on (the PostgreSQL wiki calls this a loose index scan).
    """
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
    return finding(
        f"Each call reads all {rows} rows of {table} for {few} of {name}",
        *_loose_scan(statement, column, order, evidence),
        objects=(table, name),
        bill=evidence.bill_of({statement.number: 1 - descents_ns / statement.mean_ns}),
        statements=[statement],
        evidence=(
            f"It is called {(statement.calls or 0) / evidence.seconds:.2g} times a second.",
            f"A call takes {format_duration(statement.mean_ns)}.",
            f"{count_words(descents, 'descent')} of an index take about {format_duration(descents_ns)}.",
        ),
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


def _loose_scan(
    statement: Statement, column: ColumnFacts, order: str, evidence: Evidence
) -> Iterator[Candidate]:
    table, name = column.table, column.name
    served = evidence.indexed(table, name, completely=True)
    index = quoted(f"{table.rpartition('.')[2]}_{name}_idx")
    rewritten = statement_change(
        f"Find each value of {name} with one descent of the index: the least, then the least above it.",
        f"It is slower once {name} has many values.",
        sql=_loose(column, order),
        undo=statement.sql,
        unprovable="" if served else f"Without an index on {name} it reads the table for each value.",
    )
    if not served:
        yield index_change(
            f"Create an index on {name} of {table}.",
            "Alone, it lets each call read the index instead of the table, which is still all entries.",
            sql=f"CREATE INDEX CONCURRENTLY {index} ON {sql_name(table)} ({quoted(name)});",
            undo=f"DROP INDEX CONCURRENTLY {index};",
        )
    yield rewritten
    yield client_change(
        f"Keep the values of {name} in a table of their own, which a foreign key refers to.",
        "A value stays there when its last row is gone.",
        same_answers=False,
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


_RANDOM: Final = re.compile(r"\b(?:random|gen_random_uuid|uuid_generate_v4)\s*\(\s*\)", re.IGNORECASE)
_FEW: Final = 0.1
"""Fraction of the table's rows that a call returns, up to which a sample is cheaper than sorting all."""


@statement_rule("random-order", depth=2, of_tables=True)
def find_random_order(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find random rows chosen by ``ORDER BY random()``: each call reads and sorts all rows for a few."""
    shape, returned = statement.shape, statement.a_call(statement.rows)
    table = None if shape is None else _shuffled_table(shape)
    if shape is None or table is None or returned is None or not evidence.is_traffic(statement):
        return None
    rows = evidence.rows(table)
    if rows < LARGE_ROWS or returned > _FEW * rows:
        return None
    return finding(
        f"ORDER BY random() reads and sorts all rows of {table} for {format_count(round(returned))}",
        *_draw_less(shape, table, returned, evidence),
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
        statements=[statement],
        evidence=(
            f"Table {table} has {format_count(round(rows))} rows.",
            *([f"A call takes {format_duration(statement.mean_ns)}."] if statement.mean_ns else []),
        ),
        proof="Compare both statements with uncork run.",
    )


def _shuffled_table(shape: StatementShape) -> str | None:
    """Return the only table of a query that orders its rows by chance and returns the first ones."""
    first = next((key for key in shape.order if key.level == 0), None)
    tables = [use.name for use in shape.tables if use.kind == "table"]
    if shape.kind != "select" or not shape.limit or first is None or len(tables) != len(shape.tables):
        return None
    return tables[0] if len(tables) == 1 and _RANDOM.search(first.expression) else None


def _draw_less(shape: StatementShape, table: str, returned: float, evidence: Evidence) -> Iterator[Candidate]:
    key = _key(table, evidence)
    alone = not any(predicate.clause == "where" for predicate in shape.predicates)
    if key and alone:
        name, number = quoted(key), f"{max(1, round(returned))}"
        yield statement_change(
            f"Draw values of {key} between its least and its greatest, and look these rows up by its index.",
            f"Rows behind gaps of {key} are missing: draw more values, and again if too few rows come.",
            sql=f"SELECT * FROM {sql_name(table)} WHERE {name} = ANY (ARRAY(SELECT least + floor(random() * "  # noqa: S608
            f"(most - least + 1))::bigint FROM (SELECT min({name}) AS least, max({name}) AS most "
            f"FROM {sql_name(table)}) AS ends, generate_series(1, {number} * 2))) "
            f"ORDER BY random() LIMIT {number};",
            same_answers=False,
        )
    if alone:
        share = min(100.0, max(0.01, 500.0 * (returned + 20) / max(1.0, evidence.rows(table))))
        yield statement_change(
            f"Read random blocks instead of all: FROM {table} TABLESAMPLE SYSTEM ({share:.2g}), "
            "and order only these rows by random().",
            "Rows of the same block come together, and a sample can be empty.",
            same_answers=False,
        )
    yield ddl_change(
        f"Store a random number in each row of {table}, with an index, and read on from a random "
        "place in its order.",
        "Rows keep their neighbours until their numbers are drawn anew.",
        same_answers=False,
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


_ROWS: Final = 10.0
"""Rows per call. A page that shows one row may show its large values too; a list seldom does."""
_BLOCKS: Final = 3.0
"""Blocks read for each row returned. A row takes one block of its table, or less; a value out of
line takes two blocks of its index and at least one for the value."""
_JOINED: Final = 4.0
"""Blocks that finding the row of a joined table takes: three levels of an index, and the row's own."""
_EVERY: Final = re.compile(r"\s*select\s+\*\s")
"""Selects the columns of all joined tables; the star of one of them is an alias with a star."""
_DISCARDS: Final = ("Filter", "Join Filter")
"""Conditions that discard rows while a plan runs. Discarded rows are read too, so they explain blocks."""
_LARGE_TYPES: Final = frozenset({"text", "character varying", "json", "jsonb", "bytea", "xml", "character"})
_CLASSES: Final = WORK | {"Client"}
"""Sending the values takes time too: the session waits until the client has read them."""
_POINTER: Final = range(16, 25)
"""Average width of a column whose values are all out of line: a pointer has 18 bytes."""
_WIDE: Final = 1_000
_OUT_OF_LINE: Final = 0.2
"""Fraction of a table's size that is stored out of line, from which on reading it matters."""


@statement_rule("wide-columns")
def find_wide_columns(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find rows read with all columns, among them large values that are stored out of line."""
    rows, blocks = statement.a_call(statement.rows), statement.a_call(statement.blocks)
    discards = any(node.condition(name) for node in statement.nodes for name in _DISCARDS)
    if rows is None or blocks is None or rows < _ROWS or discards:
        return None
    tables = _tables(statement)
    needed = rows * (1 + _JOINED * (len(tables) - 1))
    if not tables or not blocks or blocks < needed + (_BLOCKS - 1) * rows:
        return None
    bill = evidence.bill_of({statement.number: max(0.0, 1 - (needed + 10) / blocks)}, _CLASSES)
    for table in tables:
        outside, large = _outside(table, evidence), _large(statement, table, evidence)
        if outside and large:
            return _wide_columns(statement, table, large, outside, bill, evidence)
    return None


def _outside(table: str, evidence: Evidence) -> int:
    """Return how many bytes of a table are stored out of line; 0 if they are too few to matter."""
    options, facts = evidence.catalogue.options.get(table), evidence.tables.get(table)
    outside = 0 if options is None else options.toast_bytes or 0
    return outside if facts is not None and outside >= _OUT_OF_LINE * (facts.bytes or 0) else 0


def _tables(statement: Statement) -> tuple[str, ...]:
    """Return the tables of a SELECT that returns columns as they are; each at most once."""
    shape = statement.shape
    if shape is None or shape.kind != "select" or shape.aggregates or shape.grouping:
        return ()
    tables = tuple(use.name for use in shape.tables)
    plain = all(use.kind == "table" and use.level == 0 for use in shape.tables)
    once = len(set(tables)) == len(tables)
    return tables if plain and once and (shape.star or shape.outputs) else ()


def _large(statement: Statement, table: str, evidence: Evidence) -> tuple[ColumnFacts, ...]:
    """Return the columns that the statement returns whose values may be stored out of line."""
    shape = statement.shape
    if shape is None:
        return ()
    every = shape.star and (len(shape.tables) == 1 or _EVERY.match(statement.text) is not None)
    named = {name.column for name in shape.outputs if name.table in ("", table)}
    compared = {predicate.column for predicate in shape.predicates if predicate.table in ("", table)}
    return tuple(
        column
        for column in evidence.catalogue.columns.get(table, ())
        if (every or column.name in named)
        and column.name not in compared
        and (column.type in _LARGE_TYPES or column.type.endswith("[]"))
        and _out_of_line(column)
    )


def _out_of_line(column: ColumnFacts) -> bool:
    """Return whether values are stored out of line. ANALYZE gathers no values longer than 1 kB."""
    if column.width is None:
        return True
    without = not column.common and not column.bounds
    return column.width >= _WIDE or (round(column.width) in _POINTER and without)


def _wide_columns(
    statement: Statement,
    table: str,
    large: tuple[ColumnFacts, ...],
    outside: int,
    bill: Bill,
    evidence: Evidence,
) -> Finding:
    names = {column.name for column in large}
    narrow = [each.name for each in evidence.catalogue.columns.get(table, ()) if each.name not in names]
    widest = large[0] if len(large) == 1 else max(large, key=lambda each: each.width or 0.0)
    rows, blocks = statement.a_call(statement.rows) or 0.0, statement.a_call(statement.blocks) or 0.0
    every = statement.shape is not None and statement.shape.star and len(statement.shape.tables) == 1
    return finding(
        f"Each call reads large values of {table}.{widest.name} for {format_count(round(rows))} rows",
        statement_change(
            "Name the columns that the client uses, without " + ", ".join(sorted(names)) + ".",
            "The client must read the large values separately, where it shows them.",
            sql=with_columns(statement.sql, [quoted(name) for name in narrow]) if every and narrow else "",
            same_answers=False,
        ),
        objects=(table, widest.name),
        bill=bill,
        statements=[statement],
        evidence=(
            f"A call reads {format_count(round(blocks))} blocks.",
            f"{format_bytes(outside)} of {table} are stored out of line (TOAST), and each value "
            "takes several blocks.",
        ),
        proof="Compare both statements with uncork run.",
    )
