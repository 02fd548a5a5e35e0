"""What tables and indexes say of themselves: indexes not worth their upkeep, bloat, islands of tables.

Bloat is estimated as check_postgres and ioguix's queries do: rows by the planner's count, their width by its
statistics, and what they would take on freshly written pages; what a file has beyond that is left by rows
that are gone. It is right to some tenths, and is not told below them. The planner's count is as old as the
last VACUUM or ANALYZE: beside the size of today it means nothing unless little has changed since. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

__all__ = [
    "fresh_statistics",
    "index_bloat",
    "index_doubts",
    "islands",
    "rests_on_index",
    "table_bloat",
    "whole_reads",
]

Row = Mapping[str, Any]
Doubt = tuple[Literal["", "invalid", "duplicate", "covered", "unused"], str]

_ALIGNMENT: Final = 8
_PAGE_HEADER: Final = 24
_ROW_HEADER: Final = 24 + 4
"""A row's header to the next multiple of eight, and its pointer."""
_ENTRY_HEADER: Final = 8 + 4
_BTREE_SPECIAL: Final = 16
_LEAST_BLOAT: Final = 0.2
"""The estimate is no better than this part of a file."""
_LEAST_PAGES: Final = 128
"""A smaller file is not worth an estimate."""
_CHANGED_ROWS: Final = 50
_CHANGED_PART: Final = 0.1
"""Changes since ANALYZE up to which statistics are fresh: those at which autovacuum itself would analyse."""
_CERTAIN: Final = 0.5
"""Least part of a file for an estimate from old statistics to be reported: row widths may have changed."""
_GROWN: Final = 0.1
"""Part by which a file may differ from its pages at the last VACUUM or ANALYZE: half of the least bloat."""


def fresh_statistics(row: Row, block: int) -> bool:
    """Say whether a table's statistics describe it as it is now."""
    known = (row["analysed_us"], row["modified"], row["rows"], row["pages"], row["main_bytes"])
    if None in known:
        return False
    pages = row["main_bytes"] / block
    return bool(
        row["modified"] <= _CHANGED_ROWS + _CHANGED_PART * row["rows"]
        and abs(pages - row["pages"]) <= _GROWN * max(pages, row["pages"])
    )


def whole_reads(row: Row, block: int) -> float | None:
    """Return how often sequential scans read all rows of a table; None if its rows are not known.

    The rows that scans read, divided by the rows of the table: the server's own count of scans has each
    parallel worker as one more, though they share the table among them.
    """
    if not row["seq_scans"]:
        return 0.0
    rows = _rows_now(row, block)
    return float(row["seq_rows"] / rows) if rows else None


def _rows_now(row: Row, block: int) -> float | None:
    """Estimate a table's rows as the planner does: as dense as at the last VACUUM or ANALYZE."""
    if row["rows"] is None:
        return None if row["live"] is None else float(row["live"])
    if not row["pages"] or row["main_bytes"] is None:
        return float(row["rows"] or row["live"] or 0)
    return float(row["rows"] * row["main_bytes"] / block / row["pages"])


def table_bloat(row: Row, block: int) -> int | None:
    """Return about how many bytes of a table's main file are left by rows that are gone; None if unknown.

    If statistics are not fresh, this is what would be empty if all changes since were new rows, provided that
    it is most of the file.
    """
    known = (row["row_width"], row["rows"], row["main_bytes"], row["analysed_us"], row["modified"])
    if None in known:
        return None
    if fresh_statistics(row, block):
        return _table_beyond(row, row["rows"], block)
    certain = _table_beyond(row, row["rows"] + row["modified"], block)
    return certain if certain >= _CERTAIN * row["main_bytes"] > 0 else None


def _table_beyond(row: Row, rows: float, block: int) -> int:
    width = _ROW_HEADER + _aligned(row["row_width"])
    usable = (block - _PAGE_HEADER) * row["fillfactor"] / 100
    return _beyond(row["main_bytes"], math.ceil(rows * width / usable), block)


def index_bloat(row: Row, block: int, *, fresh: bool) -> int | None:
    """Return the same of a B-tree; None for other methods, or if its table's statistics are not `fresh`."""
    known = (row["key_width"], row["rows"], row["bytes"], row["pages"])
    if row["method"] != "btree" or not fresh or None in known:
        return None
    if abs(row["bytes"] / block - row["pages"]) > _GROWN * max(row["bytes"] / block, row["pages"]):
        return None
    width = _ENTRY_HEADER + _aligned(row["key_width"])
    usable = (block - _PAGE_HEADER - _BTREE_SPECIAL) * row["fillfactor"] / 100
    pages = 1 + math.ceil(row["rows"] * width / usable)
    return _beyond(row["bytes"], pages, block)


def _aligned(width: float) -> float:
    return math.ceil(width / _ALIGNMENT) * _ALIGNMENT


def _beyond(size: int, pages: int, block: int) -> int:
    if size < _LEAST_PAGES * block:
        return 0
    beyond = max(0, size - pages * block)
    return beyond if beyond >= _LEAST_BLOAT * size else 0


# ---- indexes ----


def index_doubts(rows: Sequence[Row]) -> dict[int, Doubt]:
    """Return by number what speaks against an index, with the index that does its work.

    Of duplicates, the one that a constraint rests on stays, else the unique, else the older one. An index is
    covered if another B-tree on the same table begins with the same columns: it answers the same questions,
    though from a larger file. Uniqueness and constraints are never in doubt for not being scanned, nor is
    an index that the work of another is left to.
    """
    found: dict[int, Doubt] = {}
    by_table: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_table[row["table_oid"]].append(row)
    for of_table in by_table.values():
        ranked = sorted(of_table, key=lambda row: (not row["constraint"], not row["unique"], row["oid"]))
        doubts = {row["oid"]: _doubt(row, ranked[:place], ranked) for place, row in enumerate(ranked)}
        needed = {doubt[1] for doubt in doubts.values()}
        found |= {
            row["oid"]: ("", "") if doubts[row["oid"]][0] == "unused" and row["name"] in needed else doubt
            for row, doubt in zip(ranked, doubts.values(), strict=True)
        }
    return found


def _doubt(row: Row, better: Sequence[Row], all_of: Sequence[Row]) -> Doubt:
    if not row["valid"]:
        return "invalid", ""
    if row["constraint"]:
        return "", ""
    for other in better:
        if other["valid"] and _same(row, other) and (other["unique"] or not row["unique"]):
            return "duplicate", other["name"]
    if row["unique"]:
        return "", ""
    for other in all_of:
        if other["valid"] and _covers(other, row):
            return "covered", other["name"]
    return ("unused", "") if row["scans"] == 0 else ("", "")


_BESIDE: Final = ("method", "expressions", "predicate")


def _same(one: Row, other: Row) -> bool:
    return all(one[name] == other[name] for name in ("keys", "included", *_BESIDE))


def _covers(longer: Row, shorter: Row) -> bool:
    """Say whether the one B-tree begins with all the columns of the other; expressions are left alone."""
    return bool(
        longer["oid"] != shorter["oid"]
        and longer["method"] == shorter["method"] == "btree"
        and not longer["expressions"]
        and not shorter["expressions"]
        and longer["predicate"] == shorter["predicate"]
        and not shorter["included"]
        and longer["keys"].startswith(f"{shorter['keys']},")
    )


# ---- foreign keys ----


def rests_on_index(key: Row, indexes: Iterable[Row]) -> bool:
    """Say whether an index begins with the columns of a foreign key, in any order.

    Without one, each row deleted from the table that is referred to costs a scan of the one that refers.
    """
    wanted = {int(number) for number in key["numbers"].split(",")}
    for index in indexes:
        if index["table_oid"] != key["table_oid"] or index["predicate"] or not index["valid"]:
            continue
        columns = [int(column.split(":")[0]) for column in index["keys"].split(",")]
        if index["method"] == "btree" and set(columns[: len(wanted)]) == wanted:
            return True
        if index["method"] != "btree" and len(wanted) == 1 and columns == list(wanted):
            return True
    return False


def islands(links: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Return the sets of tables that foreign keys join, directly or through others."""
    island: dict[int, set[int]] = {}
    for one, other in links:
        joined = island.get(one, {one}) | island.get(other, {other})
        for member in joined:
            island[member] = joined
    return list({id(members): members for members in island.values()}.values())
