"""Reads of more than a client needs: whole tables, large values, pages by OFFSET, open ranges. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.diagnosis.changes import client_change, ddl_change, index_change, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Statement
from uncork.diagnosis.rule import finding, statement_rule
from uncork.diagnosis.rules.indexes.estimates import fraction
from uncork.diagnosis.rules.indexes.reads import blocks_a_call
from uncork.diagnosis.rules.indexes.uses import Use, nodes_of, table_of, uses_of
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS, rows_returned
from uncork.diagnosis.rules.plans.rewrite import capped_count, keyset, values_order, with_columns
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal, quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import OrderKey, Predicate, StatementShape
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
    table = _counted_table(shape) if _OF_ROWS.search(statement.text) else None
    if table is None or not evidence.is_traffic(statement):
        return None
    counted = _counted(statement, shape, table, evidence)
    if counted is None or counted < _PART * evidence.rows(table) or evidence.rows(table) < LARGE_ROWS:
        return None
    return finding(
        f"Each call counts {format_count(float(f'{counted:.2g}'))} rows of {table} one by one",
        *_count_less(statement, shape, table),
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
        evidence=(
            f"It is called {(statement.calls or 0) / evidence.seconds:.2g} times a second.",
            *([f"A call takes {format_duration(statement.mean_ns)}."] if statement.mean_ns else []),
            "PostgreSQL keeps no count of rows, so each call visits every row that matches, in the "
            "table or in an index.",
        ),
        proof="Compare both statements with uncork run.",
    )


def _counted_table(shape: StatementShape) -> str | None:
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
    named = _column(statement.shape)
    order = values_order(statement.sql)
    values = statement.a_call(statement.rows)
    if named is None or order is None or values is None or not statement.mean_ns:
        return None
    table, name = named
    column = evidence.column(table, name)
    if column is None or column.type not in _TYPES or column.collation or not evidence.is_traffic(statement):
        return None
    descents_ns = (values + 2) * _DESCENT_NS
    if evidence.rows(table) < LARGE_ROWS or descents_ns > _MOST * statement.mean_ns:
        return None
    rows = format_count(float(f"{evidence.rows(table):.2g}"))
    descents, few = round(values) + 2, count_words(round(values), "value")
    return finding(
        f"Each call reads all {rows} rows of {table} for {few} of {name}",
        *_loose_scan(statement, column, order, evidence),
        objects=(table, name),
        bill=evidence.bill_of({statement.number: 1 - descents_ns / statement.mean_ns}),
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
    table = _shuffled_table(shape)
    if table is None or returned is None or not evidence.is_traffic(statement):
        return None
    rows = evidence.rows(table)
    if rows < LARGE_ROWS or returned > _FEW * rows:
        return None
    return finding(
        f"ORDER BY random() reads and sorts all rows of {table} for {format_count(round(returned))}",
        *_draw_less(shape, table, returned, evidence),
        objects=(table,),
        bill=evidence.bill_of((statement.number,)),
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
    if shape.kind != "select" or shape.aggregates or shape.grouping:
        return ()
    tables = tuple(use.name for use in shape.tables)
    plain = all(use.kind == "table" and use.level == 0 for use in shape.tables)
    once = len(set(tables)) == len(tables)
    return tables if plain and once and (shape.star or shape.outputs) else ()


def _large(statement: Statement, table: str, evidence: Evidence) -> tuple[ColumnFacts, ...]:
    shape = statement.shape
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
    every = statement.shape.star and len(statement.shape.tables) == 1
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
        evidence=(
            f"A call reads {format_count(round(blocks))} blocks.",
            f"{format_bytes(outside)} of {table} are stored out of line (TOAST), and each value "
            "takes several blocks.",
        ),
        proof="Compare both statements with uncork run.",
    )


# ---- pages and ranges that read more rows than they return ----


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
    if not (shape.offset and shape.limit) or shape.aggregates or shape.distinct:
        return None
    returned, blocks = statement.a_call(statement.rows), statement.a_call(statement.blocks)
    read, kept = _rows_read(statement, evidence), _kept(statement, evidence)
    if returned is None or read is None or kept is None or (blocks or _PAGE_BLOCKS) < _PAGE_BLOCKS:
        return None
    read *= kept  # what a filter discards is not the fault of OFFSET
    if read < _READ * (returned + 1):
        return None
    keys = tuple(key for key in shape.order if key.level == 0)
    use = next(use for use in shape.tables if use.kind == "table" and use.level == 0)
    return finding(
        f"OFFSET reads {format_count(round(read))} rows of {use.name} for "
        f"{format_count(round(returned))} rows",
        _next_page(statement, use.name, use.alias, keys, evidence),
        objects=(use.name, *(key.column for key in keys if key.column)),
        bill=evidence.bill_of({statement.number: 1 - returned / read}),
        evidence=(
            "OFFSET reads the rows of all pages before and discards them, so each page takes "
            "longer than the one before."
        ),
        proof="Compare OFFSET and the condition on the key with uncork run, for a page far from the first.",
    )


def _rows_read(statement: Statement, evidence: Evidence) -> float | None:
    """Return how many rows a call reads of its first table, by the table's counters, if no more are read."""
    use = next((use for use in statement.shape.tables if use.kind == "table" and use.level == 0), None)
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
        if len(statement.shape.tables) == 1
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


_MANY_ROWS: Final = 5_000.0
"""Rows that a call returns. No person reads so many, and a client that reads only what is new gets fewer."""
_GROWING: Final = 0.05
"""Fraction of the table that a call returns: it grows with the table."""
_SLOW_NS: Final = 20_000_000
"""Time of a call, from which on users notice it."""
_LOWER: Final = frozenset({">", ">="})
_UPPER: Final = frozenset({"<", "<="})


@statement_rule("unbounded-range", of_tables=True)
def find_unbounded(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a range with one bound only, so that each call reads a growing part of a large table."""
    shape, rows = statement.shape, statement.a_call(statement.rows)
    if shape.limit or shape.kind != "select" or not evidence.is_traffic(statement):
        return None
    if rows is None or rows < _MANY_ROWS or (statement.mean_ns or 0.0) < _SLOW_NS:
        return None
    open_end = _open(statement, evidence)
    if open_end is None or rows < _GROWING * evidence.rows(open_end.table):
        return None
    lower = open_end.operator in _LOWER
    end, missing = ("upper", "<") if lower else ("lower", ">=")
    name = quoted(open_end.column)
    return finding(
        f"Each call reads {open_end.table} to its end, as {open_end.column} has no {end} bound",
        statement_change(
            f"Add the other bound ({name} {missing} ...), or ORDER BY {name} LIMIT, and read "
            "on from the last row.",
            "A client that needs all rows must send several statements.",
            same_answers=False,
        ),
        objects=(open_end.table, open_end.column),
        bill=evidence.bill_of((statement.number,), _CLASSES),
        evidence=(
            f"A call returns {format_count(round(rows))} of "
            f"{format_count(round(evidence.rows(open_end.table)))} "
            f"rows, and takes {format_duration(statement.mean_ns or 0.0)}."
        ),
        proof="Compare both statements with uncork run.",
    )


def _open(statement: Statement, evidence: Evidence) -> Predicate | None:
    """Return the only range on a large table that has one bound, if nothing else restricts the table."""
    for predicate in statement.predicates:
        bounded = predicate.operator in _LOWER | _UPPER and predicate.value in {"parameter", "constant"}
        if not bounded or not predicate.column or predicate.alternative:
            continue
        of_table = [other for other in statement.predicates if other.table == predicate.table]
        if evidence.rows(predicate.table) >= LARGE_ROWS and len(of_table) == 1:
            return predicate
    return None


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
_FEW_INTERVALS: Final = 0.01
"""Fraction of the table up to which the intervals that contain a value are few."""


@statement_rule("interval-lookup", of_tables=True)
def find_interval(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a search for intervals that contain a value: an index on their bounds searches by one bound.

    See "Range Types" in PostgreSQL's manual.
    """
    shape, blocks, returned = statement.shape, blocks_a_call(statement), statement.a_call(statement.rows)
    if shape.kind != "select" or shape.limit or shape.aggregates:
        return None
    if blocks is None or returned is None or blocks < _SEARCH_BLOCKS * (_NEEDED + returned):
        return None
    for use in uses_of(statement, evidence):
        bounds = _bounds(use, evidence)
        if bounds is not None and use.alone and returned <= _FEW_INTERVALS * evidence.rows(use.table.name):
            table, first, last = use.table.name, bounds[0].column, bounds[1].column
            return finding(
                f"An index on {first} and {last} of {table} finds intervals by one bound only",
                *_candidates(use, *bounds, evidence),
                objects=(table, first, last),
                bill=evidence.bill_of({statement.number: 1 - (_NEEDED + returned) / blocks}),
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
