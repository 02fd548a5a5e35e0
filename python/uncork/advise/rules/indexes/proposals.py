"""Write indexes as candidates: the SQL to create and to remove them, and what speaks against them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rules.indexes.estimates import pages
from uncork.advise.rules.indexes.merging import key_name
from uncork.model.database.finding import Candidate
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index, new_name
from uncork.model.units import format_bytes, format_count, series_words

_SHOWN: Final = 3
_LONGEST: Final = 40
"""Keys that a headline names, and characters of an expression in it."""
_BRIN_PAGES: Final = 1_000
_CORRELATED: Final = 0.9
"""Blocks and correlation from which on a BRIN index, which stores one range for 128 blocks, can replace a
B-tree: each part of the table has a narrow range of values only."""
_BRIN_VALUES: Final = 100
"""Fewest different values: a column with few looks ordered if nearly all rows have the same one, and then
each part of the table has the others, too."""


def columns_text(keys: Sequence[IndexKey]) -> str:
    """Return the keys of an index in a few words: ``a and b``, ``a, b and 2 more``."""
    names = [bare(key_name(key)) for key in keys]
    if len(names) <= _SHOWN:
        return series_words(names)
    return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} more"


def bare(expression: str) -> str:
    """Return an expression for a headline, without parentheses around it."""
    text = expression.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text if len(text) <= _LONGEST else "an expression"


def index_candidate(index: IndexShape, text: str, evidence: Evidence, extension: str = "") -> Candidate:
    """Return the candidate that creates an index, after the extension that it needs.

    An index on a partitioned table cannot be created or dropped concurrently.
    """
    index = _named(index, evidence)
    sql, undo = create_index(index), drop_index(index)
    if _partitioned(index.table, evidence):
        sql, undo = (one.replace(" CONCURRENTLY", "", 1) for one in (sql, undo))
    if extension:
        sql = f"CREATE EXTENSION IF NOT EXISTS {extension};\n{sql}"
    return Candidate("index", text, sql=sql, undo=undo, against=tuple(_against(index, extension, evidence)))


def index_candidates(index: IndexShape, evidence: Evidence, extension: str = "") -> Iterator[Candidate]:
    """Yield the candidates for an index: itself, and a smaller kind of it if the table's order allows one."""
    keys = columns_text(index.keys)
    partial = f" for rows where {index.predicate}" if index.predicate else ""
    kind = {"gin": "a GIN index", "gist": "a GiST index"}.get(index.method, "an index")
    yield index_candidate(index, f"Create {kind} on {keys} of {index.table}{partial}.", evidence, extension)
    column, table = evidence.column(index.table, index.keys[0].column), evidence.tables.get(index.table)
    if len(index.keys) != 1 or index.method != "btree" or index.predicate or column is None or table is None:
        return
    many = (evidence.distinct(index.table, column.name) or 0.0) >= _BRIN_VALUES
    if many and abs(column.correlation or 0.0) >= _CORRELATED and pages(table, evidence) >= _BRIN_PAGES:
        text = (
            f"Create a BRIN index on {column.name} of {index.table}: it is far smaller, and the table is "
            f"stored in the order of {column.name}."
        )
        yield index_candidate(IndexShape(index.table, (IndexKey(column.name),), "brin"), text, evidence)


def _named(index: IndexShape, evidence: Evidence) -> IndexShape:
    """Return an index with a name that no other index of its table has."""
    taken = {existing.facts.name for existing in evidence.indexes.get(index.table, ())}
    schema, dot, _ = index.table.rpartition(".")
    name = f"{schema}{dot}{new_name(index)}"
    number = next(count for count in ("", *range(2, 99)) if f"{name}{count}" not in taken)
    return replace(index, name=f"{name}{number}") if number else index


def _partitioned(table: str, evidence: Evidence) -> bool:
    facts = evidence.tables.get(table)
    return facts is not None and facts.kind == "partitioned table"


def _against(index: IndexShape, extension: str, evidence: Evidence) -> Iterator[str]:
    table = evidence.tables.get(index.table)
    if _partitioned(index.table, evidence):
        yield (
            "It blocks writes while it is built. To avoid that, create the index on each partition "
            "concurrently, then on the table alone (ON ONLY), and attach them."
        )
    if extension:
        yield f"It needs the extension {extension}, which the owner of the database can create."
    if table is None:
        return
    written = table.inserted + table.updated + table.deleted
    if written:
        hourly = format_count(round(written * 3600 / evidence.seconds))
        yield f"Writes must maintain it: {index.table} has {hourly} changed rows per hour."
    widths = [
        column.width or 8.0
        for column in evidence.catalogue.columns.get(index.table, ())
        if column.name in {key.column for key in index.keys}
    ]
    if index.method == "btree" and not index.predicate and len(widths) == len(index.keys):
        # Each entry has a header of 8 bytes and a pointer of 4; pages are filled to 90 %.
        yield f"It takes about {format_bytes(evidence.rows(index.table) * (sum(widths) + 12) / 0.9)} of disk."
