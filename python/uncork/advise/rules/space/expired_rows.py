"""Rows of a large table that are deleted by their age, where dropping a partition would do. Pure.

Deleting a row writes WAL for the row, and leaves it and its index entries to VACUUM. Dropping a partition
removes files: about a tenth of the time, and a thousandth of the WAL (ADR-0052).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_bytes, format_count

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_BYTES: Final = 1 << 30
"""Size with indexes, from which on partitions can be worth their upkeep; at least that of shared buffers."""
_ROWS: Final = 1000
"""Deleted rows per call, from which on a call deletes a range and not a few rows."""
_TIMES: Final = frozenset({"timestamp without time zone", "timestamp with time zone", "date"})
_OLDER: Final = frozenset({"<", "<="})


def _find(evidence: Evidence) -> Iterator[Finding]:
    found: dict[tuple[str, str], list[Statement]] = {}
    for statement in evidence.costliest():
        key = _expired(statement, evidence)
        if key is not None:
            found.setdefault(key, []).append(statement)
    for (name, column), deletes in found.items():
        table = evidence.tables[name]
        if _can_be_partitioned(table, column, evidence):
            yield RULE.finding(
                f"Statements delete the old rows of table {name} by {column}",
                objects=(name,),
                bill=evidence.bill_of({delete.number for delete in deletes}),
                statements=deletes,
                evidence=(
                    "The statements deleted "
                    f"{format_count(sum(delete.rows or 0 for delete in deletes))} rows in "
                    f"{format_count(sum(delete.calls or 0 for delete in deletes))} calls.",
                    f"The table has {format_bytes(_size(table))} with its indexes"
                    + (f", and {format_count(table.dead)} dead rows." if table.dead else "."),
                ),
                candidates=(_partition(name, column),),
                proof="Compare both layouts with uncork run, with the reads and the writes of the table,"
                " as in the case message-archive.",
            )


def _expired(statement: Statement, evidence: Evidence) -> tuple[str, str] | None:
    """Return the table and the column of time if a statement deletes all rows that are older than a time."""
    shape = statement.shape
    if (
        shape is None
        or shape.kind != "delete"
        or not statement.calls
        or (statement.a_call(statement.rows) or 0) < _ROWS
    ):
        return None
    names = {use.name for use in shape.tables}
    if len(names) != 1:
        return None
    name = names.pop()
    rest = [predicate for predicate in shape.predicates if predicate.value != "subquery"]
    columns = {each.column for each in rest}
    if (
        name not in evidence.tables
        or len(columns) != 1
        or any(each.alternative or each.negated for each in rest)
    ):
        return None
    column = evidence.column(name, columns.pop())
    if column is None or column.type not in _TIMES or any(each.operator not in _OLDER for each in rest):
        return None
    return name, column.name


def _can_be_partitioned(table: TableFacts, column: str, evidence: Evidence) -> bool:
    """Return whether partitions by a column of time would serve the deletes, and nothing forbids them."""
    options = evidence.catalogue.options.get(table.name)
    is_part = options is not None and bool(options.parent or options.partition_key)
    if (
        table.kind != "table"
        or is_part
        or _size(table) < max(_BYTES, evidence.setting_bytes("shared_buffers") or 0)
    ):
        return False
    if any(key.referred == table.name for key in evidence.foreign_keys):
        return False
    if any(
        trigger.table == table.name and "delete" in trigger.events for trigger in evidence.catalogue.triggers
    ):
        return False
    changes = any(
        statement.shape is not None
        and column in statement.shape.set_columns
        and statement.changes(table.name)
        for statement in evidence.statements.values()
    )
    return evidence.indexed(table.name, column) and not changes


def _partition(name: str, column: str) -> Candidate:
    return Candidate(
        "ddl",
        f"Partition {name} by range of {column}, with one partition for each time that is deleted at once, "
        "and drop old partitions instead of deleting rows.",
        against=(
            f"All rows must be copied to a new table. Every unique key must contain {column}.",
            f"Statements that do not compare {column} read each partition.",
            "Partitions must be created in advance and dropped on time, by a job such as pg_partman.",
        ),
        unprovable="uncork does not convert a table to partitions on a copy.",
    )


def _size(table: TableFacts) -> int:
    return (table.bytes or 0) + table.index_bytes


RULE: Final = Rule("expired-rows-deleted", _find, of_tables=True)
