"""Empty space in tables and indexes that scans read, or that takes much of the disk. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from uncork.advise.changes import vacuum
from uncork.advise.evidence import WORK, Evidence, Existing, Piece, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.indexes.whole_reads import reads_whole
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_bytes, share_text

# ---- empty space in a table that scans read, or that takes much of the disk ----


_PART: Final = 0.5
_TABLE_BYTES: Final = 64 << 20
"""Empty space, as a fraction of the table and in bytes. An updated table needs room for new row versions, a
fifth with autovacuum's defaults. Rewriting a table needs a lock, which a few megabytes are not worth."""


def _find_tables(evidence: Evidence) -> Iterator[Finding]:
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
        yield TABLES.finding(
            f"Table {table.name} is {share_text(part)} empty{read}",
            objects=(table.name,),
            bill=bill,
            statements=readers,
            cost=f"{format_bytes(table.bloat_bytes)} of disk",
            evidence=(f"{room} is space of rows that are gone.",),
            candidates=(
                vacuum(
                    table.name,
                    "FULL, ANALYZE",
                    f"Rewrite table {table.name} with pg_repack, or with VACUUM FULL while nobody needs it.",
                    "VACUUM FULL locks the table against reading and writing until it ends.",
                    "The space comes back unless the cause is removed: find out what kept autovacuum from "
                    "freeing it.",
                ),
            ),
            proof="Compare the statements on a copy before and after VACUUM FULL.",
        )


TABLES: Final = Rule("bloat", _find_tables)


# ---- empty space in an index that scans read, or that takes much of the disk ----


_INDEX_BYTES: Final = 256 << 20
"""Empty space in bytes; as a fraction of the index, it is that of a table. A B-tree under random inserts is a
third empty, and after a rebuild it soon is again, so that only much more space is worth a rebuild."""
_PAGE: Final = 4.0
"""Time to visit a page of an index in shared buffers, as a multiple of the time to return an entry. REINDEX
saved 24 % to 32 % of the time if the index was 98 % empty, and 53 % if it was 99 % empty; this predicts 35 %
and 68 % (see bench/ADVICE.md)."""
_READS: Final = 0.3
"""Blocks per call, as a fraction of the index's blocks, from which on a call reads most of the index: at
least as many entries as a full index would have on so many blocks."""


def _find_indexes(evidence: Evidence) -> Iterator[Finding]:
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
                yield INDEXES.finding(
                    f"Index {index.facts.name} is {share_text(part)} empty"
                    + (", and statements read all of it" if costs_time else ""),
                    objects=(index.facts.name, table),
                    bill=bill,
                    statements=readers,
                    cost=f"{format_bytes(bloat)} of disk",
                    evidence=(
                        f"{format_bytes(bloat)} of {format_bytes(size)} is space of entries that are gone.",
                    ),
                    candidates=(_rebuild(index),),
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
    return Candidate(
        "maintenance",
        f"Rebuild index {existing.facts.name}.",
        sql=f"REINDEX INDEX CONCURRENTLY {sql_name(existing.facts.name)};",
        against=(
            "It needs the space of a second index, and waits for all transactions that are open.",
            "The space comes back unless its cause is removed, such as deleting old rows one by one.",
        ),
    )


INDEXES: Final = Rule("index-bloat", _find_indexes)
