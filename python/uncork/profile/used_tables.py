"""Select the tables of a watched database whose catalogue is worth reading: the used ones. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["MOST_TABLES", "UsedTables", "used_tables", "words_of"]

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


@dataclass(frozen=True, slots=True)
class UsedTables:
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
    rows = {row["oid"]: row for row in after}
    for oid in list(activity):
        parent = rows[oid]["partition_of"]
        while parent in rows:
            activity[parent] = activity.get(parent, 0) + activity[oid]
            parent = rows[parent]["partition_of"]
    chosen = dict.fromkeys(sorted(activity, key=lambda oid: (-activity[oid], oid)))
    by_name: dict[str, list[int]] = defaultdict(list)
    for oid, row in rows.items():
        by_name[row["name"]].append(oid)
    for word in words:
        same = by_name.get(word, ())
        if not any(oid in activity for oid in same):
            chosen.update(dict.fromkeys(same))
    linked = defaultdict(list)
    for key in keys:
        if key["table_oid"] in rows and key["referred_oid"] in rows:
            linked[key["table_oid"]].append(key["referred_oid"])
            linked[key["referred_oid"]].append(key["table_oid"])
    many = len(chosen)
    for oid in list(chosen):
        chosen.update(dict.fromkeys(linked.get(oid, ())))
    return UsedTables(tuple(rows[oid] for oid in list(chosen)[:MOST_TABLES]), max(0, many - MOST_TABLES))


def _activity(before: Sequence[Row], after: Sequence[Row]) -> dict[int, int]:
    """Return how much the counters of each table grew, without tables whose counters did not change."""
    earlier = {row["oid"]: row for row in before}
    found = {}
    for row in after:
        then = earlier.get(row["oid"], {})
        now = [row[name] or 0 for name in _USES]
        past = [then.get(name) or 0 for name in _USES]
        if now != past:
            fell = any(one < other for one, other in zip(now, past, strict=True))
            found[row["oid"]] = sum(now) if fell else sum(now) - sum(past)
    return found
