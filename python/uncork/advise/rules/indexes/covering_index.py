"""An index that finds the rows, and a table that is read for a column or two of each. Pure.

If an index includes all columns that a statement needs, PostgreSQL reads the index alone, as long as VACUUM
has marked the table's blocks as visible to all. See "Index-Only Scans and Covering Indexes" in its manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Existing, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.proposals import columns_text, index_candidate
from uncork.advise.rules.indexes.uses import Use, nodes_of, uses_of
from uncork.advise.rules.indexes.variants import covered_columns
from uncork.model.database.finding import Finding
from uncork.model.units import format_count, series_words

if TYPE_CHECKING:
    from uncork.model.database.index import IndexShape
    from uncork.model.database.plan import PlanNode

_BLOCKS: Final = 200.0
"""Blocks per call, below which a call takes hardly longer than the round trip of its client."""
_SCATTERED: Final = 0.5
"""Blocks per row fetched, from which on nearly each row is in another block."""
_SAVED: Final = 0.85
"""Part of the time of fetching scattered rows that reading them from the index saves, with all blocks in
shared buffers: 2000 rows took 3.5 to 3.8 ms against 0.40 to 0.51 ms (PostgreSQL 15). From disk it is more."""
_ENTRIES: Final = 150.0
"""Entries of an index with included columns in a block, at least."""
_ORDERED: Final = 0.5
"""Correlation between the order of the index and that of the table, from which on neighbouring entries lead
to the same blocks."""
_CHANGED: Final = 0.01
"""Fraction of the table's rows that may change or be new after a watch: their blocks must be read as before,
until VACUUM marks them."""
_SCANS: Final = frozenset({"Index Scan", "Bitmap Heap Scan"})


def _find(evidence: Evidence) -> Iterator[Finding]:
    for statement in evidence.costliest():
        blocks = statement.a_call(statement.blocks)
        if statement.number < 0 or blocks is None or blocks < _BLOCKS or not evidence.is_traffic(statement):
            continue
        for use in uses_of(statement, evidence):
            found = _index(use, statement, blocks, evidence) if use.alone else None
            if found is None:
                continue
            index, fetched = found
            covering = covered_columns(use, statement, evidence, set(index.columns))
            saved = _SAVED * max(0.0, 1 - (fetched / _ENTRIES + 4) / blocks)
            if covering and not _covered(index, covering, evidence):
                yield _finding(statement, index, covering, fetched, saved, evidence)


def _index(
    use: Use, statement: Statement, blocks: float, evidence: Evidence
) -> tuple[IndexShape, float] | None:
    """Return the index by which a statement finds scattered rows of its table, and how many they are."""
    scans = [
        node for node in nodes_of(statement, use.table.name, evidence) if node.kind != "Bitmap Index Scan"
    ]
    if len(scans) != 1 or scans[0].kind not in _SCANS or scans[0].parallel:
        return None
    changed = use.table.inserted + use.table.updated + use.table.deleted
    if changed > _CHANGED * evidence.rows(use.table.name) or use.table.kind == "partitioned table":
        return None
    names = {node.index for node in scans[0].walk() if node.index}
    fetched = _rows(scans[0])
    known = [each for each in evidence.indexes.get(use.table.name, ()) if each.facts.name in names]
    if len(names) != 1 or not known or known[0].shape is None or blocks < _SCATTERED * fetched:
        return None
    shape = known[0].shape
    first = evidence.column(use.table.name, shape.keys[0].column)
    if first is None or abs(first.correlation or 0.0) >= _ORDERED:
        return None
    return (shape, fetched) if shape.method == "btree" and fetched >= _BLOCKS * _SCATTERED else None


def _rows(scan: PlanNode) -> float:
    if scan.actual_rows is not None and scan.loops:
        return (scan.actual_rows + (scan.removed or 0.0)) / scan.loops
    return scan.rows


def _covered(index: IndexShape, covering: tuple[str, ...], evidence: Evidence) -> bool:
    """Return whether an index that exists has these columns behind the same keys."""

    def covers(other: Existing) -> bool:
        shape = other.shape
        if shape is None or shape.predicate != index.predicate or other.facts.warning == "invalid":
            return False
        begins = shape.keys[: len(index.keys)] == index.keys
        return begins and set(covering) <= {*shape.columns, *shape.included}

    return any(covers(other) for other in evidence.indexes.get(index.table, ()))


def _finding(
    statement: Statement,
    index: IndexShape,
    covering: tuple[str, ...],
    fetched: float,
    saved: float,
    evidence: Evidence,
) -> Finding:
    table, words = index.table, series_words(list(covering))
    wanted = replace(
        index, included=tuple(dict.fromkeys((*index.included, *covering))), unique=False, name=""
    )
    candidate = index_candidate(
        wanted,
        f"Create an index on {columns_text(index.keys)} of {table} that includes {words}, so that calls need "
        "not read the table.",
        evidence,
    )
    return Finding(
        RULE.name,
        f"Calls find rows by {index.name}, then read a block of {table} for each",
        objects=(table, index.name, *covering),
        bill=evidence.bill_of({statement.number: saved}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"A call reads {format_count(round(statement.a_call(statement.blocks) or 0))} blocks for about "
            f"{format_count(round(fetched))} rows.",
            f"Besides the keys of the index, it needs only {words}.",
        ),
        candidates=(
            replace(
                candidate,
                against=(
                    *candidate.against,
                    "It helps only while VACUUM keeps up: blocks that changed since must be read as before.",
                    f"Updates of {words} can then not be heap-only.",
                    *(
                        []
                        if index.unique
                        else [f"It replaces {index.name}: drop this one once nothing scans it."]
                    ),
                ),
            ),
        ),
        proof="Compare the statements with and without the index in uncork run.",
    )


RULE: Final = Rule("covering-index", _find)
