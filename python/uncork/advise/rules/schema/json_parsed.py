"""JSON that is stored as text or json, so that each read of a row parses it again. Pure.

See "JSON Types" in PostgreSQL's manual: functions must reparse json for each execution, while jsonb is stored
in a decomposed binary form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.whole_reads import reads_whole
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_bytes, format_count

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts

_NS_PER_BYTE: Final = 8.0
"""Time to parse a byte of JSON, beyond what reading jsonb takes: measured with documents of 300 bytes on
PostgreSQL 18; a cast of text takes more than twice as long. A faster machine parses, and does the rest of the
statement, faster."""
_MOST: Final = 0.9
"""Fraction of a statement's time that parsing can be: the rows must be read in any case."""
_TEXTS: Final = frozenset({"text", "character varying"})


def _find(seen: Evidence) -> Iterator[Finding]:
    for table, columns in seen.catalogue.columns.items():
        for column in columns:
            if column.type != "json" and column.type not in _TEXTS:
                continue
            parts = {
                statement.number: part
                for statement in seen.statements.values()
                if seen.is_traffic(statement) and (part := _part(statement, column, seen))
            }
            if parts:
                yield _finding(table, column, parts, seen)


def _part(one: Statement, column: ColumnFacts, seen: Evidence) -> float:
    """Return the fraction of a statement's time that it parses a column's values; 0 if it does not."""
    if column.width is None or not one.mean_ns or not _parses(one, column) or not one.uses(column.table):
        return 0.0
    rows = _rows(one, column.table, seen)
    return min(_MOST, _NS_PER_BYTE * column.width * rows / one.mean_ns)


def _parses(one: Statement, column: ColumnFacts) -> bool:
    name = rf'(?<![\w$])"?{re.escape(column.name)}"?'
    if column.type == "json":
        return re.search(rf"{name}\s*\)?\s*(?:->|#>)|json_\w+\s*\(\s*(?:\w+\.)?{name}", one.text) is not None
    cast = rf"{name}\s*\)?\s*::\s*jsonb?\b|cast\s*\(\s*(?:\w+\.)?{name}\s+as\s+jsonb?\b"
    return re.search(cast, one.text) is not None


def _rows(one: Statement, table: str, seen: Evidence) -> float:
    """Return of how many rows a call parses the value: all that it scans, as counted, or by its plan."""
    known = seen.tables.get(table)
    counted = _counted_rows(one, table, seen)
    if counted is not None:
        return counted
    scanned = 0.0
    for node in () if one.plan is None else one.plan.root.walk():
        if node.relation == table:
            scanned += seen.rows(table) if node.kind == "Seq Scan" else node.rows
    if known is not None and reads_whole(one, known, seen):
        return seen.rows(table)
    return max(scanned if one.plan is not None else 0.0, one.a_call(one.rows) or 0.0)


def _counted_rows(one: Statement, table: str, seen: Evidence) -> float | None:
    """Return how many rows of a table a call reads, from the table's counters; None if they do not tell.

    The plan was asked for with drawn values, and the bounds of a range may be far from those of the calls.
    The counters of the table cover all statements, which have their part by the blocks that they read.
    """
    known = seen.tables.get(table)
    blocks = {each.number: each.blocks or 0.0 for each in seen.statements.values() if each.uses(table)}
    whole = sum(blocks.values())
    if known is None or not one.calls or not blocks.get(one.number) or one.shape is None:
        return None
    read = known.seq_rows + known.index_rows
    alone = len({use.name for use in one.shape.tables}) == 1
    return blocks[one.number] / whole * read / one.calls if read and alone else None


def _finding(table: str, column: ColumnFacts, parts: dict[int, float], seen: Evidence) -> Finding:
    numbers = seen.by_cost(parts)
    top = seen.statements[numbers[0]]
    name, rows = quoted(column.name), format_count(round(_rows(top, table, seen)))
    alter = f"ALTER TABLE {sql_name(table)} ALTER COLUMN {name} TYPE"
    return Finding(
        RULE.name,
        f"Column {column.name} of table {table} stores JSON as {column.type}, which each read parses",
        objects=(table, f"{table}.{column.name}"),
        bill=seen.bill_of(parts),
        templates=tuple(numbers),
        statement=top.text,
        evidence=(
            f"A call of the statement parses the values of about {rows} rows, "
            f"{format_bytes(column.width or 0)} each on average.",
        ),
        candidates=(
            Candidate(
                "ddl",
                f"Store {table}.{column.name} as jsonb, which is parsed once when it is written.",
                sql=f"{alter} jsonb USING {name}::jsonb;",
                undo=f"{alter} {column.storage_type} USING {name}::{column.storage_type};",
                same_answers=False,
                against=(
                    "The change rewrites the table under a lock against reading and writing.",
                    "jsonb keeps neither the order of keys, nor duplicate keys, nor white space. Values that "
                    "are not JSON make the change fail.",
                ),
            ),
        ),
        proof="Compare the statement with both types on a copy with uncork run.",
    )


RULE: Final = Rule("json-parsed", _find)
