"""Space that is empty, or that rows take which are deleted by their age. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from uncork.diagnosis.changes import ddl_change, maintenance, vacuum
from uncork.diagnosis.evidence import WORK, Evidence, Existing, Piece, Statement
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.indexes.reads import reads_whole
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.results.database import TableFacts
from uncork.model.units import format_bytes, format_count, share_text

_PART: Final = 0.5
_TABLE_BYTES: Final = 64 << 20
"""Empty space, as a fraction of the table and in bytes. An updated table needs room for new row versions, a
fifth with autovacuum's defaults. Rewriting a table needs a lock, which a few megabytes are not worth."""


@rule("bloat")
def find_empty_tables(evidence: Evidence) -> Iterator[Finding]:
    """Find empty space in a table that scans read, or that takes much of the disk."""
    for table in evidence.tables.values():
        if not table.bloat_bytes or not table.bytes:
            continue
        part = min(1.0, table.bloat_bytes / table.bytes)
        readers = [statement for statement in evidence.costliest() if reads_whole(statement, table, evidence)]
        bill = evidence.bill_of({reader.number: part for reader in readers})
        costs_time = worth(bill)
        if not costs_time and (part < _PART or table.bloat_bytes < _TABLE_BYTES):
            continue
        room = f"{format_bytes(table.bloat_bytes)} of {format_bytes(table.bytes)}"
        read = ", and statements read all of it" if costs_time else ""
        yield finding(
            f"Table {table.name} is {share_text(part)} empty{read}",
            vacuum(
                table.name,
                "FULL, ANALYZE",
                f"Rewrite table {table.name} with pg_repack, or with VACUUM FULL while nobody needs it.",
                "VACUUM FULL locks the table against reading and writing until it ends.",
                "The space comes back unless the cause is removed: find out what kept "
                "autovacuum from freeing it.",
            ),
            objects=(table.name,),
            bill=bill,
            statements=readers,
            cost=f"{format_bytes(table.bloat_bytes)} of disk",
            evidence=f"{room} is space of rows that are gone.",
            proof="Compare the statements on a copy before and after VACUUM FULL.",
        )


_INDEX_BYTES: Final = 256 << 20
"""Empty space in bytes; as a fraction of the index, it is that of a table. A B-tree under random inserts is a
third empty, and after a rebuild it soon is again, so that only much more space is worth a rebuild."""
_PAGE: Final = 4.0
"""Time to visit a page of an index in shared buffers, as a multiple of the time to return an entry.
REINDEX saved 24 % to 32 % of the time if the index was 98 % empty, and 53 % if it was 99 % empty;
this predicts 35 % and 68 % (see bench/ADVICE.md)."""
_READS: Final = 0.3
"""Blocks per call, as a fraction of the index's blocks, from which on a call reads most of the
index: at least as many entries as a full index would have on so many blocks."""


@rule("index-bloat")
def find_empty_indexes(evidence: Evidence) -> Iterator[Finding]:
    """Find empty space in an index that scans read, or that takes much of the disk."""
    for table, indexes in evidence.indexes.items():
        for index in indexes:
            bloat, size = index.facts.bloat_bytes, index.facts.bytes
            if not bloat or not size:
                continue
            part = min(1.0, bloat / size)
            readers = [each for each in evidence.costliest() if _reads_most(each, index, evidence)]
            bill = _bill({reader.number for reader in readers}, part, index, evidence)
            costs_time = worth(bill)
            if costs_time or (part >= _PART and bloat >= _INDEX_BYTES):
                yield finding(
                    f"Index {index.facts.name} is {share_text(part)} empty"
                    + (", and statements read all of it" if costs_time else ""),
                    _rebuild(index),
                    objects=(index.facts.name, table),
                    bill=bill,
                    statements=readers,
                    cost=f"{format_bytes(bloat)} of disk",
                    evidence=f"{format_bytes(bloat)} of {format_bytes(size)} is space of entries that "
                    "are gone.",
                    proof="Compare the statements on a copy before and after REINDEX.",
                )


def _bill(readers: Collection[int], part: float, index: Existing, evidence: Evidence) -> Bill:
    """Return what empty pages cost: their part of waiting for blocks, and of the other time by `_PAGE`."""
    visits = _PAGE * (index.facts.bytes or 0) / evidence.block_bytes
    entries = evidence.rows(index.facts.table)
    rest = part * visits / (visits + entries)

    def costs(piece: Piece) -> float:
        if piece.template not in readers or piece.wait_class not in WORK:
            return 0.0
        return part if piece.wait_class == "IO" else rest

    return evidence.bill(costs)


def _reads_most(statement: Statement, index: Existing, evidence: Evidence) -> bool:
    """Return whether each call reads most of an index, by its plan and the number of blocks."""
    blocks, name = statement.a_call(statement.blocks) or 0.0, index.facts.name.rpartition(".")[2]
    scans = [node for node in statement.nodes if node.index and node.index.rpartition(".")[2] == name]
    only = all(node.kind == "Index Only Scan" for node in scans)
    return bool(scans) and only and blocks * evidence.block_bytes >= _READS * (index.facts.bytes or 0)


def _rebuild(existing: Existing) -> Candidate:
    return maintenance(
        f"Rebuild index {existing.facts.name}.",
        "It needs the space of a second index, and waits for all transactions that are open.",
        "The space comes back unless its cause is removed, such as deleting old rows one by one.",
        sql=f"REINDEX INDEX CONCURRENTLY {sql_name(existing.facts.name)};",
    )


_PARTITIONED_BYTES: Final = 1 << 30
"""Size with indexes, from which on partitions can be worth their upkeep; at least that of shared buffers."""
_DELETED_ROWS: Final = 1000
"""Deleted rows per call, from which on a call deletes a range and not a few rows."""
_TIMES: Final = frozenset({"timestamp without time zone", "timestamp with time zone", "date"})
_OLDER: Final = frozenset({"<", "<="})


@rule("expired-rows-deleted", of_tables=True)
def find_expired(evidence: Evidence) -> Iterator[Finding]:
    """Find rows of a large table that are deleted by their age, where dropping a partition would do.

    Deleting a row writes WAL for the row, and leaves it and its index entries to VACUUM. Dropping a
    partition removes files: about a tenth of the time, and a thousandth of the WAL (ADR-0052).
    """
    found: dict[tuple[str, str], list[Statement]] = {}
    for statement in evidence.costliest():
        key = _expired(statement, evidence)
        if key is not None:
            found.setdefault(key, []).append(statement)
    for (name, column), deletes in found.items():
        table = evidence.tables[name]
        if _can_be_partitioned(table, column, evidence):
            yield finding(
                f"Statements delete the old rows of table {name} by {column}",
                _partition(name, column),
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
        or (statement.a_call(statement.rows) or 0) < _DELETED_ROWS
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
        or _size(table) < max(_PARTITIONED_BYTES, evidence.setting_bytes("shared_buffers") or 0)
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
    return ddl_change(
        f"Partition {name} by range of {column}, with one partition for each time that is deleted "
        "at once, and drop old partitions instead of deleting rows.",
        f"All rows must be copied to a new table. Every unique key must contain {column}.",
        f"Statements that do not compare {column} read each partition.",
        "Partitions must be created in advance and dropped on time, by a job such as pg_partman.",
        unprovable="uncork does not convert a table to partitions on a copy.",
    )


def _size(table: TableFacts) -> int:
    return (table.bytes or 0) + table.index_bytes
