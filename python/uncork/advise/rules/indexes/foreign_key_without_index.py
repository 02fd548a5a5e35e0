"""Deletes that scan a table which refers to the deleted rows, because its foreign key has no index. Pure.

PostgreSQL creates no index for a foreign key. The check of each deleted row is a query of a trigger, whose
time and blocks are counted for the DELETE. See "Foreign Keys" in PostgreSQL's manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.estimates import pages
from uncork.advise.rules.indexes.proposals import index_candidate
from uncork.advise.rules.indexes.reads import blocks_a_call
from uncork.advise.rules.indexes.within import bill_of_scans, part_of_scans, scans_a_call, within_sentences
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.advise.rules.writes.within_functions import Within, executed_within
from uncork.model.database.finding import Finding
from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.units import count_words, format_count

if TYPE_CHECKING:
    from uncork.model.results.database import ForeignKeyFacts, TableFacts

_PART: Final = 0.5
"""Blocks per deleted row, as a fraction of the referring table's, that show a scan of it."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for key in evidence.foreign_keys:
        table, referred = evidence.tables.get(key.table), evidence.tables.get(key.referred)
        if key.indexed or table is None or referred is None or evidence.rows(table.name) < LARGE_ROWS:
            continue
        if not table.seq_scans or not (referred.deleted or referred.updated):
            continue
        fractions = {
            statement.number: part
            for statement in evidence.costliest()
            if statement.number >= 0 and (part := _part(statement, key, table, referred, evidence))
        }
        if not fractions:
            continue
        within = {number for number in fractions if not _checks(evidence.statements[number], key, evidence)}
        columns = tuple(part.strip().strip('"') for part in key.columns.split(","))
        first = evidence.statements[next(iter(fractions))]
        index = IndexShape(table.name, tuple(IndexKey(column) for column in columns))
        names = " and ".join(columns)
        yield Finding(
            "foreign-key-without-index",
            f"Deletes from {referred.name} scan {table.name}, which has no index on {names}",
            objects=(table.name, *columns, key.name, referred.name),
            bill=bill_of_scans(fractions, within, evidence),
            templates=tuple(fractions),
            statement=first.text,
            evidence=tuple(_evidence(first, key, table, referred, evidence)),
            candidates=(
                index_candidate(
                    index, f"Create an index on {names} of {table.name}, the foreign key.", evidence
                ),
            ),
            proof="Compare the deletes with and without the index in uncork run.",
        )


def _part(
    statement: Statement, key: ForeignKeyFacts, table: TableFacts, referred: TableFacts, evidence: Evidence
) -> float:
    """Return the fraction of a statement's time in the scans for a foreign key; 0 if it does none."""
    if not _checks(statement, key, evidence):
        scans, _ = _within(statement, key, table, evidence)
        return part_of_scans(statement, scans, table, evidence)
    executed = [dict(plan.triggers).get(key.name) for plan in statement.plans if plan.source == "executed"]
    times = [time for time in executed if time is not None]
    if times and statement.mean_ns:
        return min(1.0, max(times) * 1e6 / statement.mean_ns)
    blocks, rows = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is None or rows is None:
        return 0.9 if table.whole_reads and table.whole_reads >= _PART * max(1, referred.deleted) else 0.0
    scans = rows if referred.name in _changed(statement) else referred.deleted / max(1, statement.calls or 1)
    needed = scans * pages(table, evidence)
    return min(1.0, needed / blocks) if needed and blocks >= _PART * needed else 0.0


def _within(
    statement: Statement, key: ForeignKeyFacts, table: TableFacts, evidence: Evidence
) -> tuple[float, Within | None]:
    """Return how often a call scans for a foreign key within functions, and the statement that does so."""
    inside = executed_within(statement, evidence) if evidence.busy(statement.number) else ()
    inner = next((each for each in inside if _checks(each.statement, key, evidence)), None)
    if inner is None:
        return 0.0, None

    def scans(each: Statement) -> float:
        return (each.a_call(each.rows) or 1.0) if _checks(each, key, evidence) else 0.0

    return scans_a_call(statement, table, scans, evidence), inner


def _changed(statement: Statement) -> set[str]:
    return set() if statement.shape is None else {use.name for use in statement.shape.tables if use.changed}


def _checks(statement: Statement, key: ForeignKeyFacts, evidence: Evidence) -> bool:
    """Return whether a statement deletes rows to which a foreign key refers, or changes their key."""
    if statement.shape is None or statement.shape.kind not in ("delete", "update"):
        return False
    if statement.shape.kind == "update":
        return key.referred in _changed(statement) and _changes_key(statement, key, evidence)
    return bool(_changed(statement) & _deleting(key.referred, evidence))


def _changes_key(statement: Statement, key: ForeignKeyFacts, evidence: Evidence) -> bool:
    constraints = [constraint for constraint in evidence.catalogue.constraints if constraint.name == key.name]
    referred = {column for constraint in constraints for column in constraint.referred_columns}
    return statement.shape is not None and bool(set(statement.shape.set_columns) & referred)


def _deleting(table: str, evidence: Evidence) -> set[str]:
    """Return the tables whose deletes delete rows of a table: itself, and tables that cascade to it."""
    found, before = {table}, 0
    while len(found) > before:
        before = len(found)
        found |= {key.referred for key in evidence.foreign_keys if key.table in found}
    return found


def _evidence(
    first: Statement, key: ForeignKeyFacts, table: TableFacts, referred: TableFacts, evidence: Evidence
) -> Iterator[str]:
    yield f"Foreign key {key.name} of {table.name} ({key.columns}) refers to {referred.name}."
    yield (
        f"For each deleted row, its trigger searches {table.name}, which has "
        f"{format_count(round(evidence.rows(table.name)))} rows."
    )
    blocks, calls = blocks_a_call(first), first.calls
    if blocks is not None and calls:
        yield f"Each of {count_words(calls, 'call')} reads {count_words(round(blocks), 'block')}."
    scans, within = (0.0, None) if _checks(first, key, evidence) else _within(first, key, table, evidence)
    if within is not None:
        yield from within_sentences(within, scans, table)
    elif table.whole_reads:
        yield f"{table.name} was read as a whole {format_count(round(table.whole_reads))} times."


RULE: Final = Rule("foreign-key-without-index", _find, depth=2)
