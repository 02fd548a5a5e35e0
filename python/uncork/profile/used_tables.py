"""Select the tables of a watched database whose catalogue is worth reading: the used ones. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from uncork.model.records import Record
from uncork.model.tables.rows import Rows

Row = Mapping[str, Any]

MOST_TABLES: Final = 300
"""The most tables whose catalogue is read."""
_LONGEST: Final = 20_000
"""The number of characters of a statement that are searched for names."""
_WORD: Final = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')
_USES: Final = (
    *("heap_read", "heap_hit", "seq_scans", "index_scans", "index_rows"),
    *("inserted", "updated", "deleted"),
)
"""Counters that grow when a statement uses a table."""


class UsedTables(Record):
    """Rows of tables, the most used first, and how many further tables were used."""

    rows: tuple[Row, ...]
    more: int


def words_of(texts: Iterable[str]) -> dict[str, None]:
    """Return the identifiers of statements in the order of their first appearance, key words included."""
    found: dict[str, None] = {}
    for text in texts:
        for quoted, plain in _WORD.findall(text[:_LONGEST]):
            found[quoted.replace('""', '"') if quoted else plain.lower()] = None
    return found


def used_tables(
    before: Sequence[Row],
    after: Sequence[Row],
    keys: Sequence[Row],
    words: Iterable[str],
    *,
    read: bool = True,
) -> UsedTables:
    """Return the tables whose counters grew, then tables named in `words`, then tables that these refer to.

    A table referring to one of them by a foreign key (`keys`) counts too, and so does the partitioned table
    of a used partition. A name selects tables without activity only if no table of that name was active. If
    the earlier counters could not be `read`, activity is unknown.
    """
    activity = _activity(before, after) if read else {}
    oids, found_names, parents = Rows.of(after, "oid", "name", "partition_of")
    place_of = {oid: place for place, oid in enumerate(oids)}
    for oid in list(activity):
        parent = parents[place_of[oid]]
        while parent in place_of:
            activity[parent] = activity.get(parent, 0) + activity[oid]
            parent = parents[place_of[parent]]
    chosen = dict.fromkeys(sorted(activity, key=lambda oid: (-activity[oid], oid)))
    by_name: dict[str, list[int]] = defaultdict(list)
    for oid, name in zip(oids, found_names, strict=True):
        by_name[name].append(oid)
    for word in words:
        same = by_name.get(word, ())
        if not any(oid in activity for oid in same):
            chosen.update(dict.fromkeys(same))
    linked = defaultdict(list)
    for table, referred in zip(*Rows.of(keys, "table_oid", "referred_oid"), strict=True):
        if table in place_of and referred in place_of:
            linked[table].append(referred)
            linked[referred].append(table)
    many = len(chosen)
    for oid in list(chosen):
        chosen.update(dict.fromkeys(linked.get(oid, ())))
    rows = tuple(after[place_of[oid]] for oid in list(chosen)[:MOST_TABLES])
    return UsedTables(rows, max(0, many - MOST_TABLES))


def _activity(before: Sequence[Row], after: Sequence[Row]) -> dict[int, int]:
    """Return how much the counters of each table grew, without tables whose counters did not change."""
    earlier = dict(zip(*Rows.of(before, "oid"), zip(*Rows.of(before, *_USES), strict=True), strict=True))
    found = {}
    nothing = (0,) * len(_USES)
    for oid, now in zip(*Rows.of(after, "oid"), zip(*Rows.of(after, *_USES), strict=True), strict=True):
        past = earlier.get(oid, nothing)
        pairs = [(new or 0, old or 0) for new, old in zip(now, past, strict=True)] if now != past else []
        if any(new != old for new, old in pairs):
            fell = any(new < old for new, old in pairs)
            found[oid] = sum(new if fell else new - old for new, old in pairs)
    return found
