"""Findings about tables and indexes: indexes not worth their upkeep, bloat, and islands of tables. Pure.

Bloat is estimated as in check_postgres and in ioguix's queries. The planner's number of rows and their
average width give the size of freshly written pages; anything beyond it is left over from deleted rows. The
estimate is accurate to a few tenths, so smaller values are not reported. The planner's number of rows dates
from the last VACUUM or ANALYZE, and can be compared with the current size only if little has changed since.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

Row = Mapping[str, Any]
Doubt = tuple[Literal["", "invalid", "duplicate", "covered", "unused"], str]

_ALIGNMENT: Final = 8
_PAGE_HEADER: Final = 24
_ROW_HEADER: Final = 24 + 4
"""A row's header, rounded up to a multiple of eight, and its line pointer."""
_ENTRY_HEADER: Final = 8 + 4
_BTREE_SPECIAL: Final = 16
_LEAST_BLOAT: Final = 0.2
"""The accuracy of the estimate, as a fraction of the file."""
_LEAST_PAGES: Final = 128
"""Smaller files are not estimated."""
_CHANGED_ROWS: Final = 50
_CHANGED_PART: Final = 0.1
"""Statistics are fresh up to this many changes since ANALYZE, the threshold at which autovacuum analyses."""
_CERTAIN: Final = 0.5
"""The least bloat, as a fraction of the file, to report from old statistics: row widths may have changed."""
_IDENTITY: Final = ("keys", "included", "method", "expressions", "predicate")
_GROWN: Final = 0.1
"""How much a file's size may have changed since the last VACUUM or ANALYZE: half of the least bloat."""


def fresh_statistics(row: Row, block: int) -> bool:
    """Return whether a table's statistics describe its current state."""
    known = (row["analysed_us"], row["modified"], row["rows"], row["pages"], row["main_bytes"])
    if None in known:
        return False
    pages = row["main_bytes"] / block
    return bool(
        row["modified"] <= _CHANGED_ROWS + _CHANGED_PART * row["rows"]
        and abs(pages - row["pages"]) <= _GROWN * max(pages, row["pages"])
    )


def whole_reads(row: Row, block: int) -> float | None:
    """Return how often sequential scans read the whole table; None if its number of rows is unknown.

    This is the number of rows read by scans, divided by the rows of the table. The server's own count of
    scans is not suitable: it counts each parallel worker, although the workers share the table.
    """
    if not row["seq_scans"]:
        return 0.0
    rows = _rows_now(row, block)
    return float(row["seq_rows"] / rows) if rows else None


def _rows_now(row: Row, block: int) -> float | None:
    """Estimate a table's rows as the planner does: with the density at the last VACUUM or ANALYZE."""
    if row["rows"] is None:
        return None if row["live"] is None else float(row["live"])
    if not row["pages"] or row["main_bytes"] is None:
        return float(row["rows"] or row["live"] or 0)
    return float(row["rows"] * row["main_bytes"] / block / row["pages"])


def table_bloat(row: Row, block: int) -> int | None:
    """Estimate the bytes of a table's main file that deleted rows left behind; None if unknown.

    If the statistics are not fresh, the estimate assumes that all changes since were new rows, and is
    returned only if it is most of the file.
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
    """Estimate the bloat of a B-tree; None for other methods, or if the table has no `fresh` statistics."""
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
    """Return by oid why each index may be unnecessary, with the index that can replace it.

    Of duplicates, uncork keeps the one that a constraint uses, else the unique one, else the older one. An
    index is covered if another B-tree on the same table begins with the same columns: that index serves the
    same queries, though from a larger file. An index that enforces uniqueness or a constraint is never
    reported as unused, nor is an index that replaces another.
    """
    found: dict[int, Doubt] = {}
    by_table: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_table[row["table_oid"]].append(row)
    for of_table in by_table.values():
        ranked = sorted(of_table, key=lambda row: (not row["constraint"], not row["unique"], row["oid"]))
        warnings = {row["oid"]: _doubt(row, ranked[:place], ranked) for place, row in enumerate(ranked)}
        needed = {warning[1] for warning in warnings.values()}
        found |= {
            row["oid"]: ("", "") if warnings[row["oid"]][0] == "unused" and row["name"] in needed else warning
            for row, warning in zip(ranked, warnings.values(), strict=True)
        }
    return found


def _doubt(row: Row, better: Sequence[Row], all_of: Sequence[Row]) -> Doubt:
    if not row["valid"]:
        return "invalid", ""
    if row["constraint"]:
        return "", ""
    for other in better:
        same = all(row[name] == other[name] for name in _IDENTITY)
        if other["valid"] and same and (other["unique"] or not row["unique"]):
            return "duplicate", other["name"]
    if row["unique"]:
        return "", ""
    for other in all_of:
        if other["valid"] and _covers(other, row):
            return "covered", other["name"]
    return ("unused", "") if row["scans"] == 0 else ("", "")


def _covers(longer: Row, shorter: Row) -> bool:
    """Return whether a B-tree begins with all columns of another. Indexes on expressions never match."""
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
    """Return whether an index begins with the columns of a foreign key, in any order.

    Without such an index, each row deleted from the referenced table costs a scan of the referencing table.
    """
    needed = {int(number) for number in key["numbers"].split(",")}
    for index in indexes:
        if index["table_oid"] != key["table_oid"] or index["predicate"] or not index["valid"]:
            continue
        columns = [int(column.split(":")[0]) for column in index["keys"].split(",")]
        if index["method"] == "btree" and set(columns[: len(needed)]) == needed:
            return True
        if index["method"] != "btree" and len(needed) == 1 and columns == list(needed):
            return True
    return False


def islands(links: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Return the sets of tables that foreign keys connect, directly or through other tables."""
    linked: dict[int, set[int]] = defaultdict(set)
    for number, other in links:
        linked[number].add(other)
        linked[other].add(number)
    found: list[set[int]] = []
    reached: set[int] = set()
    for start in linked:
        if start in reached:
            continue
        island, ahead = {start}, [start]
        while ahead:
            further = linked[ahead.pop()] - island
            island |= further
            ahead += further
        found.append(island)
        reached |= island
    return found
