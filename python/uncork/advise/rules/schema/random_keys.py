"""Random keys (UUIDs of version 4), whose inserts touch pages all over an index. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Existing, Piece, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.wal_volume import part_of_volume
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count, share_text

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts

_VERSION_4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MAKERS: Final = ("gen_random_uuid()", "uuid_generate_v4()", "uuidv4()")
_VALUES: Final = 8
_PAGES: Final = 0.2
"""Full-page images for each inserted row. Keys in order fill one page after the other: hundreds of rows share
one."""
_READS: Final = 0.2
"""Blocks read from outside shared buffers for each inserted row. Keys in order find their page there."""
_UUIDV7: Final = 18
"""The first version of PostgreSQL with uuidv7()."""
_READING: Final = frozenset({"DataFileRead", "DataFileWrite", "AioIoCompletion"})
"""Waits for a page of the index, and for the changed page that must be written to make room for it."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    shape = statement.shape
    if shape is None or shape.kind != "insert" or not statement.rows:
        return None
    table = next((use.name for use in shape.tables if use.changed), "")
    columns = evidence.catalogue.columns.get(table, ())
    column = next((column for column in columns if _indexes(column, evidence)), None)
    if column is None:
        return None
    pages, share = _full_pages(statement, evidence)
    writes = pages >= _PAGES * statement.rows
    reads = (statement.blocks_read or 0) >= _READS * statement.rows
    volume = min(share, part_of_volume(share * (statement.wal_bytes or 0), evidence)) if writes else 0.0
    outside = _part(column, evidence) if reads else 0.0
    volume = max(volume, outside * _within(statement, evidence))
    return Finding(
        RULE.name,
        f"Random keys in {table}.{column.name} make inserts "
        + ("read pages all over the index" if reads else "write whole pages to the WAL"),
        objects=(table, f"{table}.{column.name}"),
        bill=evidence.bill(partial(_costs, statement.number, volume, outside)),
        templates=(statement.number,),
        statement=statement.text,
        evidence=tuple(_evidence(statement, pages, share, writes=writes, reads=reads)),
        candidates=(_candidate(table, column, evidence),),
        proof="Compare inserts with both keys on a copy with uncork run, across several checkpoints.",
    )


def _within(statement: Statement, evidence: Evidence) -> float:
    """Return the part of a statement's waiting for WAL that is within its execution, not in its commit.

    A changed page can be written, to make room for another one, only after its WAL was flushed.
    """
    wal = sum(
        piece.sessions
        for piece in evidence.pieces
        if piece.template == statement.number and piece.waits_for_wal
    )
    executing = (statement.calls or 0) * (statement.mean_ns or 0.0) / 1e9 / evidence.seconds
    return min(1.0, max(0.0, executing - (evidence.all_of(statement.number) - wal)) / wal) if wal else 0.0


def _costs(number: int, volume: float, outside: float, piece: Piece) -> float:
    """Return which part of a piece of time random keys cost."""
    if piece.template != number:
        return 0.0
    if piece.waits_for_wal:
        return volume
    return outside if piece.wait_event in _READING else 0.0


def _evidence(statement: Statement, pages: int, share: float, *, writes: bool, reads: bool) -> Iterator[str]:
    rows = format_count(statement.rows or 0)
    if reads:
        yield (
            f"{format_count(statement.blocks_read or 0)} blocks read from outside shared buffers for {rows} "
            "inserted rows: each row goes to another page of the index."
        )
    if writes:
        yield (
            f"{format_count(pages)} full-page images for {rows} inserted rows are {share_text(share)} of its "
            "WAL: each row goes to another page of the index."
        )


def _indexes(column: ColumnFacts, evidence: Evidence) -> tuple[Existing, ...]:
    """Return the indexes that begin with a column, if it holds random UUIDs."""
    values = [*(value for value, _ in column.common), *column.bounds]
    drawn = len(values) >= _VALUES and all(_VERSION_4.fullmatch(value) for value in values)
    if column.type != "uuid" or not (drawn or any(maker in column.default for maker in _MAKERS)):
        return ()
    return tuple(
        each
        for each in evidence.indexes.get(column.table, ())
        if each.shape is not None
        and each.shape.method == "btree"
        and each.shape.columns[:1] == (column.name,)
    )


def _part(column: ColumnFacts, evidence: Evidence) -> float:
    """Return the indexes that begin with a column as a part of all indexes of its table, by size."""
    whole = sum(each.facts.bytes or 0 for each in evidence.indexes.get(column.table, ()))
    return sum(index.facts.bytes or 0 for index in _indexes(column, evidence)) / whole if whole else 0.0


def _full_pages(statement: Statement, evidence: Evidence) -> tuple[int, float]:
    """Return the full-page images that a statement wrote, and their part of its WAL."""
    templates = () if evidence.database is None else evidence.database.templates
    facts = next((template.statements for template in templates if template.number == statement.number), None)
    if facts is None or not statement.wal_bytes or evidence.database is None:
        return 0, 0.0
    return facts.wal_fpi, min(1.0, facts.wal_fpi * evidence.database.block_bytes / statement.wal_bytes)


def _candidate(table: str, column: ColumnFacts, evidence: Evidence) -> Candidate:
    text = "Use UUIDs of version 7, which begin with the time, so that new rows are next to each other."
    against = ("Keys then show when a row was created.", "Existing keys stay where they are.")
    name = f"ALTER TABLE {sql_name(table)} ALTER COLUMN {quoted(column.name)}"
    if not column.default or evidence.major < _UUIDV7:
        return Candidate("client", text, against=against)
    undo = f"{name} SET DEFAULT {column.default};"
    return Candidate("ddl", text, f"{name} SET DEFAULT uuidv7();", undo, against=against)


RULE: Final = Rule("random-keys", each_statement(_find), of_tables=True)
