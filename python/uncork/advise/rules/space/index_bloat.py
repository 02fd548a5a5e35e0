"""Empty space in an index that scans read, or that takes much of the disk. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from uncork.advise.evidence import WORK, Evidence, Existing, Piece, Statement
from uncork.advise.rule import Rule, worth
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_bytes, share_text

_PART: Final = 0.5
_BYTES: Final = 256 << 20
"""Empty space, as a fraction of the index and in bytes. A B-tree under random inserts is a third empty, and
after a rebuild it soon is again, so that only much more space is worth a rebuild."""
_PAGE: Final = 4.0
"""Time to visit a page of an index in shared buffers, as a multiple of the time to return an entry. REINDEX
saved 24 % to 32 % of the time if the index was 98 % empty, and 53 % if it was 99 % empty; this predicts 35 %
and 68 % (see bench/ADVICE.md)."""
_READS: Final = 0.3
"""Blocks per call, as a fraction of the index's blocks, from which on a call reads most of the index: at
least as many entries as a full index would have on so many blocks."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for table, indexes in evidence.indexes.items():
        for index in indexes:
            bloat, size = index.facts.bloat_bytes, index.facts.bytes
            if not bloat or not size:
                continue
            part = min(1.0, bloat / size)
            readers = [each for each in evidence.costliest() if _reads_most(each, index, evidence)]
            bill = _bill({reader.number for reader in readers}, part, index, evidence)
            costs_time = worth(bill)
            if costs_time or (part >= _PART and bloat >= _BYTES):
                yield Finding(
                    RULE.name,
                    f"Index {index.facts.name} is {share_text(part)} empty"
                    + (", and statements read all of it" if costs_time else ""),
                    objects=(index.facts.name, table),
                    bill=bill if costs_time else None,
                    templates=tuple(reader.number for reader in readers) if costs_time else (),
                    statement=readers[0].text if costs_time else "",
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
    blocks, plan = statement.a_call(statement.blocks), statement.plan
    if blocks is None or plan is None:
        return False
    name = index.facts.name.rpartition(".")[2]
    scans = [node for node in plan.root.walk() if node.index and node.index.rpartition(".")[2] == name]
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


RULE: Final = Rule("index-bloat", _find)
