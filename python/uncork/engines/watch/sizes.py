"""Add the sizes on disk and the widths of columns to tables and indexes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from uncork.model.tables.rows import Rows

__all__ = ["add_sizes"]

Row = Mapping[str, Any]
Sizes = Mapping[int, tuple[int | None, int | None]]
Widths = Mapping[int, Mapping[int, float]]

_UNKNOWN: Final = (None, None)
_OF_INDEX: Final = ("bytes", "key_width")
_OF_TABLE: Final = ("main_bytes", "bytes", "index_bytes", "row_width")


def add_sizes(tables: Rows, indexes: Rows, sizes: Sizes, widths: Widths) -> None:
    """Add columns for their sizes to tables and indexes, which are None where they are unknown.

    `sizes` has the bytes of a relation's main file and of all its files; `widths` the mean widths of columns
    by number. Both are by oid.
    """
    of_index = [(sizes.get(row["oid"], _UNKNOWN)[0], _key_width(row, widths)) for row in indexes]
    index_bytes: dict[int, int] = {}
    for row, (size, _) in zip(indexes, of_index, strict=True):
        index_bytes[row["table_oid"]] = index_bytes.get(row["table_oid"], 0) + (size or 0)
    of_table = list(_of_tables(tables.column("oid"), index_bytes, sizes, widths))
    tables.add_columns(_OF_TABLE, of_table)
    indexes.add_columns(_OF_INDEX, of_index)


def _of_tables(
    oids: Iterable[int], index_bytes: Mapping[int, int], sizes: Sizes, widths: Widths
) -> Iterable[tuple[Any, ...]]:
    for oid in oids:
        of_table = widths.get(oid)
        width = None if of_table is None else sum(of_table.values())
        yield (*sizes.get(oid, _UNKNOWN), index_bytes.get(oid, 0), width)


def _key_width(index: Row, widths: Widths) -> float | None:
    """Add up the widths of an index's columns. Widths of expressions are recorded under the index itself."""
    columns = [int(key.split(":")[0]) for key in (index["keys"] or "").split(",") if key]
    columns += [int(number) for number in index["included"].split(",") if number]
    of_table, own = widths.get(index["table_oid"], {}), widths.get(index["oid"], {})
    found = [
        own.get(place) if number == 0 else of_table.get(number) for place, number in enumerate(columns, 1)
    ]
    known = [width for width in found if width is not None]
    return sum(known) if len(known) == len(columns) else None
