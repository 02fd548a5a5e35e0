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


def _find(evidence: Evidence) -> Iterator[Finding]:
    for table, columns in evidence.catalogue.columns.items():
        for column in columns:
            if column.type != "json" and column.type not in _TEXTS:
                continue
            parts = {
                statement.number: part
                for statement in evidence.statements.values()
                if evidence.is_traffic(statement) and (part := _part(statement, column, evidence))
            }
            if parts:
                yield _finding(table, column, parts, evidence)


def _part(statement: Statement, column: ColumnFacts, evidence: Evidence) -> float:
    """Return the fraction of a statement's time that it parses a column's values; 0 if it does not."""
    if (
        column.width is None
        or not statement.mean_ns
        or not _parses(statement, column)
        or not statement.uses(column.table)
    ):
        return 0.0
    rows = _rows(statement, column.table, evidence)
    return min(_MOST, _NS_PER_BYTE * column.width * rows / statement.mean_ns)


def _parses(statement: Statement, column: ColumnFacts) -> bool:
    name = rf'(?<![\w$])"?{re.escape(column.name)}"?'
    if column.type == "json":
        return (
            re.search(rf"{name}\s*\)?\s*(?:->|#>)|json_\w+\s*\(\s*(?:\w+\.)?{name}", statement.text)
            is not None
        )
    cast = rf"{name}\s*\)?\s*::\s*jsonb?\b|cast\s*\(\s*(?:\w+\.)?{name}\s+as\s+jsonb?\b"
    return re.search(cast, statement.text) is not None


def _rows(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return of how many rows a call parses the value: all that it scans, as counted, or by its plan."""
    known = evidence.tables.get(table)
    counted = _counted_rows(statement, table, evidence)
    if counted is not None:
        return counted
    scanned = 0.0
    for node in () if statement.plan is None else statement.plan.root.walk():
        if node.relation == table:
            scanned += evidence.rows(table) if node.kind == "Seq Scan" else node.rows
    if known is not None and reads_whole(statement, known, evidence):
        return evidence.rows(table)
    return max(scanned if statement.plan is not None else 0.0, statement.a_call(statement.rows) or 0.0)


def _counted_rows(statement: Statement, table: str, evidence: Evidence) -> float | None:
    """Return how many rows of a table a call reads, from the table's counters; None if they do not tell.

    The plan was asked for with drawn values, and the bounds of a range may be far from those of the calls.
    The counters of the table cover all statements, which have their part by the blocks that they read.
    """
    known = evidence.tables.get(table)
    blocks = {each.number: each.blocks or 0.0 for each in evidence.statements.values() if each.uses(table)}
    whole = sum(blocks.values())
    if known is None or not statement.calls or not blocks.get(statement.number) or statement.shape is None:
        return None
    read = known.seq_rows + known.index_rows
    alone = len({use.name for use in statement.shape.tables}) == 1
    return blocks[statement.number] / whole * read / statement.calls if read and alone else None


def _finding(table: str, column: ColumnFacts, parts: dict[int, float], evidence: Evidence) -> Finding:
    numbers = evidence.by_cost(parts)
    top = evidence.statements[numbers[0]]
    name, rows = quoted(column.name), format_count(round(_rows(top, table, evidence)))
    alter = f"ALTER TABLE {sql_name(table)} ALTER COLUMN {name} TYPE"
    return Finding(
        RULE.name,
        f"Column {column.name} of table {table} stores JSON as {column.type}, which each read parses",
        objects=(table, f"{table}.{column.name}"),
        bill=evidence.bill_of(parts),
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
