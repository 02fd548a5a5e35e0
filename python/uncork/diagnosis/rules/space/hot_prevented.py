"""Updates that must insert into every index, although they could be heap-only tuples (HOT). Pure.

See "Heap-Only Tuples (HOT)" in PostgreSQL's manual: an update inserts no entries into indexes if it
changes no column of an index, and if the page of the row has room for the new version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import TableOptions, ddl_change, drop_indexes
from uncork.diagnosis.evidence import Evidence, Existing, Statement
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.indexes.unneeded_indexes import serves_key, why_unprovable
from uncork.diagnosis.rules.space.vacuum import held_back
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_HOT: Final = 0.5
"""Share of heap-only updates below which it is a finding. Updates of random rows of a table with
little free space reach about half of them by reusing the space that pruning frees."""
_UPDATES: Final = 500
"""Fewest updated rows within the watch: the share of fewer depends on which pages they happened to hit."""
_SCANS: Final = 0.001
"""Scans of an index per updated row, up to which nothing needs the index during the watch."""
_ROWS: Final = 0.01
"""Fraction of a table's rows that one call may update. A bulk update fills every page, whatever the
fillfactor."""
_ROOM: Final = 90
"""A table with this fillfactor, or a lower one, has room reserved already."""
_SHARE_OF_ROOM: Final = 0.2
"""Least share of the busy time that a lower fillfactor must be able to save: it makes the table
larger, and takes effect only after the table is rewritten."""
_FANOUT: Final = 250.0
"""Entries on a page of a B-tree, for its height: 8 KB with entries of 16 to 40 bytes."""
_MOST: Final = 0.9
"""Fraction of an update's blocks that the upkeep of indexes can be: the row itself must be found
and changed anyway."""


@rule("hot-prevented")
def find_hot_prevented(evidence: Evidence) -> Iterator[Finding]:
    """Find updates that could be heap-only tuples without an index, or with more room on the pages."""
    for table in evidence.tables.values():
        if table.updated < _UPDATES or table.hot_updated >= _HOT * table.updated:
            continue
        updates = [
            statement for statement in evidence.costliest() if _updates(statement, table.name, evidence)
        ]
        indexes = [
            existing
            for existing in evidence.indexes.get(table.name, ())
            if existing.facts.warning != "invalid"
        ]
        if not updates or not all(index.shape.keys for index in indexes):
            continue
        changing = {update.number: _changed(update, indexes, evidence) for update in updates}
        found = _by_index(table, updates, changing, indexes, evidence) or _by_room(
            table, [update for update in updates if not changing[update.number]], indexes, evidence
        )
        if found is not None:
            yield found


def _updates(statement: Statement, table: str, evidence: Evidence) -> bool:
    shape = statement.shape
    if not shape.set_columns or not evidence.is_traffic(statement):
        return False
    rows = statement.a_call(statement.rows)
    return statement.changes(table) and rows is not None and rows <= max(1.0, _ROWS * evidence.rows(table))


def _changed(statement: Statement, indexes: Sequence[Existing], evidence: Evidence) -> tuple[Existing, ...]:
    columns = statement.shape.set_columns
    before_16 = 0 < evidence.major < 16  # from then on, BRIN indexes prevent no heap-only updates
    return tuple(
        index for index in indexes if (index.shape.method != "brin" or before_16) and _uses(index, columns)
    )


def _uses(existing: Existing, columns: Sequence[str]) -> bool:
    texts = [key.expression for key in existing.shape.keys] + [existing.shape.predicate]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    return bool({*existing.shape.columns, *existing.shape.included, *words}.intersection(columns))


def _height(existing: Existing, evidence: Evidence) -> int:
    pages = max(1.0, (existing.facts.bytes or 0) / evidence.block_bytes)
    return 1 + math.ceil(math.log(pages) / math.log(_FANOUT)) if pages > 1 else 1


def _bill(
    updates: Sequence[Statement], share: float, indexes: Sequence[Existing], evidence: Evidence
) -> Bill:
    heights = sum(_height(index, evidence) for index in indexes)
    parts: dict[int, float] = {}
    for update in updates:
        rows, blocks = update.a_call(update.rows), update.a_call(update.blocks)
        if rows and blocks:
            parts[update.number] = min(_MOST, rows * share * heights / blocks)
    return evidence.bill_of(parts, without_wal=parts)


def _by_index(
    table: TableFacts,
    updates: Sequence[Statement],
    changing: Mapping[int, Sequence[Existing]],
    indexes: Sequence[Existing],
    evidence: Evidence,
) -> Finding | None:
    unscanned = (index for index in indexes if index.facts.scans <= _SCANS * table.updated)
    idle = [index for index in unscanned if not index.shape.unique and not serves_key(index, evidence)]
    names = {existing.facts.name for existing in idle}
    freed = [
        update
        for update in updates
        if changing[update.number] and all(each.facts.name in names for each in changing[update.number])
    ]
    guilty = [existing for existing in idle if any(existing in changing[each.number] for each in freed)]
    bill = _bill(freed, 1.0, indexes, evidence)
    if not guilty or not worth(bill):
        return None
    first = guilty[0].facts.name
    more = "" if len(guilty) == 1 else f" (and {len(guilty) - 1} more)"
    columns = (name for update in freed for name in update.shape.set_columns)
    column = next((name for name in columns if any(_uses(index, (name,)) for index in guilty)), "")
    return finding(
        f"Index {first}{more} forces updates of {table.name} to change all its indexes",
        *(_drop(existing, evidence) for existing in guilty),
        objects=(table.name, *(existing.facts.name for existing in guilty)),
        bill=bill,
        statements=freed,
        evidence=(
            _counted(table, len(indexes)),
            f"The updates set column {column}, which is part of index {first}; nothing scanned "
            "that index during the watch.",
        ),
        proof="Compare the update with and without the index in uncork run, and "
        "pg_stat_user_tables.n_tup_hot_upd with n_tup_upd.",
    )


def _counted(table: TableFacts, indexes: int) -> str:
    share, updates = share_text(table.hot_updated / table.updated), format_count(table.updated)
    into = "the index" if indexes == 1 else f"all {indexes} indexes"
    return f"{share} of {updates} updates were heap-only (HOT). Each of the others adds an entry to {into}."


def _drop(existing: Existing, evidence: Evidence) -> Candidate:
    name, ever = existing.facts.name, existing.facts.scans_ever
    reports = "Reports that run seldom, and standby servers, may scan it: look at their counters first."
    counted = f"It was scanned {format_count(ever)} times since counting began." if ever else ""
    return drop_indexes(
        [existing],
        f"Drop index {name}, unless a report or a standby server needs it.",
        *((counted, reports) if counted else (reports,)),
        unprovable=why_unprovable([existing], evidence),
    )


def _by_room(
    table: TableFacts, updates: Sequence[Statement], indexes: Sequence[Existing], evidence: Evidence
) -> Finding | None:
    rows = sum(update.rows or 0 for update in updates)
    options = evidence.options(table.name)
    fill = int(options.get("fillfactor", "100"))
    # No page can be pruned while something keeps dead rows: fillfactor is not the cause then.
    if not rows or fill <= _ROOM or held_back(evidence):
        return None
    share = max(0.0, 1 - table.hot_updated / rows)
    bill = _bill(updates, share, indexes, evidence)
    if share < 1 - _HOT or not worth(bill, _SHARE_OF_ROOM):
        return None
    change = TableOptions(table.name, {"fillfactor": "80"}, options)
    return finding(
        f"Pages of table {table.name} have no room for updates, which change all its indexes",
        ddl_change(
            f"Reserve a fifth of each page of table {table.name} for updates, and rewrite the "
            "table (pg_repack, or VACUUM FULL while nobody needs it).",
            "The table becomes a quarter larger, and statements that scan all of it slower.",
            "VACUUM FULL locks the table against reading and writing until it ends.",
            sql=f"{change.sql} VACUUM (FULL, ANALYZE) {sql_name(table.name)};",
            undo=change.undo,
        ),
        objects=(table.name, "fillfactor"),
        bill=bill,
        statements=updates,
        evidence=(
            _counted(table, len(indexes)),
            "They set no column of an index.",
            f"The table's fillfactor is {fill}: INSERT leaves {100 - fill} % of each page free.",
        ),
        proof="Compare the update on a copy with both fillfactors, and "
        "pg_stat_user_tables.n_tup_hot_upd with n_tup_upd.",
    )
