"""Rows read with all columns, among them large values that are stored out of line. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import WORK, Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.rewrite import with_columns
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import quoted
from uncork.model.units import format_bytes, format_count

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts

_ROWS: Final = 10.0
"""Rows per call. A page that shows one row may show its large values too; a list seldom does."""
_BLOCKS: Final = 3.0
"""Blocks read for each row returned. A row takes one block of its table, or less; a value out of line takes
two blocks of its index and at least one for the value."""
_JOINED: Final = 4.0
"""Blocks that finding the row of a joined table takes: three levels of an index, and the row's own."""
_EVERY: Final = re.compile(r"\s*select\s+\*\s")
"""Selects the columns of all joined tables; the star of one of them is an alias with a star."""
_DISCARDS: Final = ("Filter", "Join Filter")
_LARGE_TYPES: Final = frozenset({"text", "character varying", "json", "jsonb", "bytea", "xml", "character"})
_CLASSES: Final = WORK | {"Client"}
"""Sending the values takes time too: the session waits until the client has read them."""
_POINTER: Final = range(16, 25)
"""Average width of a column whose values are all out of line: a pointer has 18 bytes."""
_WIDE: Final = 1_000
_OUT_OF_LINE: Final = 0.2
"""Fraction of a table's size that is stored out of line, from which on reading it matters."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    rows, blocks = statement.a_call(statement.rows), statement.a_call(statement.blocks)
    if rows is None or blocks is None or rows < _ROWS or not _reads_only_these(statement):
        return None
    tables = _tables(statement)
    needed = rows * (1 + _JOINED * (len(tables) - 1))
    if not tables or not blocks or blocks < needed + (_BLOCKS - 1) * rows:
        return None
    bill = evidence.bill_of({statement.number: max(0.0, 1 - (needed + 10) / blocks)}, _CLASSES)
    for table in tables:
        outside, large = _outside(table, evidence), _large(statement, table, evidence)
        if outside and large:
            return _finding(statement, table, large, outside, bill, evidence)
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


def _reads_only_these(statement: Statement) -> bool:
    """Return whether the plan discards no rows, which would explain the blocks too."""
    if statement.plan is None:
        return True
    return not any(node.condition(name) for node in statement.plan.root.walk() for name in _DISCARDS)


def _finding(
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
    return RULE.finding(
        f"Each call reads large values of {table}.{widest.name} for {format_count(round(rows))} rows",
        objects=(table, widest.name),
        bill=bill,
        statements=[statement],
        evidence=(
            f"A call reads {format_count(round(blocks))} blocks.",
            f"{format_bytes(outside)} of {table} are stored out of line (TOAST), and each value takes "
            "several blocks.",
        ),
        candidates=(
            Candidate(
                "statement",
                "Name the columns that the client uses, without " + ", ".join(sorted(names)) + ".",
                sql=with_columns(statement.sql, [quoted(name) for name in narrow])
                if every and narrow
                else "",
                same_answers=False,
                against=("The client must read the large values separately, where it shows them.",),
            ),
        ),
        proof="Compare both statements with uncork run.",
    )


RULE: Final = Rule("wide-columns", each_statement(_find))
