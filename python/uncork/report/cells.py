"""Tables whose columns are declared together with their cells, and cells of formatted numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from uncork.model.template_words import short_templates
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text
from uncork.report.blocks import Block, Column, Fold, Table, Value
from uncork.report.words import instant_text

_Item = TypeVar("_Item")
_Cell = Value | str
Cells = Callable[[_Item], _Cell] | Sequence[_Cell]
"""How to make a cell from the item of a row, or the cells of all rows."""


@dataclass(frozen=True, slots=True)
class BoundColumn(Generic[_Item]):
    """A column and its cells; only a `shown` column is part of the table."""

    column: Column
    cells: Cells[_Item]
    shown: bool


def table_of(
    caption: str, items: Iterable[_Item], *columns: BoundColumn[_Item], sortable: bool = False
) -> Table:
    """Return a table with one row per item."""
    rows = tuple(items)
    shown = [bound for bound in columns if bound.shown]
    cells = [map(bound.cells, rows) if callable(bound.cells) else bound.cells for bound in shown]
    return Table(
        caption,
        tuple(bound.column for bound in shown),
        tuple(
            tuple(cell if isinstance(cell, Value) else Value(cell) for cell in row)
            for row in zip(*cells, strict=True)
        ),
        sortable,
    )


def table_if_any(
    caption: str, items: Iterable[_Item], *columns: BoundColumn[_Item], sortable: bool = False
) -> Table | None:
    """Return a table with one row per item; None without items."""
    table = table_of(caption, items, *columns, sortable=sortable)
    return table if table.rows else None


def without_empty_columns(table: Table, *kept: str) -> Table:
    """Return a table without its empty columns, except headers and the titles in `kept`."""
    shown = [
        place
        for place, column in enumerate(table.columns)
        if column.header or column.title in kept or any(row[place].text for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in table.rows),
    )


def folded_if_long(table: Table, most: int) -> Block:
    """Return a table, or a fold with it if it has more than `most` rows."""
    if len(table.rows) <= most:
        return table
    return Fold(f"{table.caption} ({count_words(len(table.rows), 'row')})", (table,))


def facts_table(caption: str, facts: Iterable[tuple[str, _Cell]], label: str = "", value: str = "") -> Table:
    """Return a table of labels and values, in columns with the titles `label` and `value`."""
    return table_of(caption, facts, header(label, lambda fact: fact[0]), column(value, lambda fact: fact[1]))


def header(
    title: str, cells: Cells[_Item], *, number: bool = False, when: object = True
) -> BoundColumn[_Item]:
    """Return a column whose cells name their row; it is left out unless `when` holds."""
    return BoundColumn(Column(title, header=True, number=number), cells, bool(when))


def column(
    title: str, cells: Cells[_Item], *, whole: bool = False, when: object = True
) -> BoundColumn[_Item]:
    """Return a column of texts, never wrapped if `whole`; it is left out unless `when` holds."""
    return BoundColumn(Column(title, whole=whole), cells, bool(when))


def number(
    title: str, cells: Cells[_Item], *, whole: bool = False, when: object = True
) -> BoundColumn[_Item]:
    """Return a column of numbers, aligned right; it is left out unless `when` holds."""
    return BoundColumn(Column(title, number=True, whole=whole), cells, bool(when))


def not_shown(left: int, noun: str) -> str:
    """Return the end of a caption, such as "; 3 others not shown"; empty if none is left out."""
    return f"; {count_words(left, noun)} not shown" if left > 0 else ""


def duration_cell(nanoseconds: float | None) -> Value:
    """Return a cell with a duration; empty for None."""
    if nanoseconds is None:
        return Value("")
    return _cell(round(nanoseconds), format_duration(nanoseconds))


def mean_cell(total_ns: float, count: int) -> Value:
    """Return a cell with a mean duration; empty for a count of 0."""
    return duration_cell(total_ns / count if count else None)


def count_cell(count: float | None, note: str = "") -> Value:
    """Return a cell with a count; empty for None."""
    return _cell(count, "" if count is None else format_count(count), note)


def bytes_cell(size: int) -> Value:
    """Return a cell with a size."""
    return _cell(size, format_bytes(size))


def share_cell(share: float) -> Value:
    """Return a cell with a share of a whole, 0 to 1."""
    return Value(share_text(share), sort=round(share, 9), bar=share)


def instant_cell(micros: int | None) -> Value:
    """Return a cell with a point in time, to the second; empty for None."""
    return _cell(micros, instant_text(micros))


def template_cells(
    texts: Sequence[str], width: int, links: Sequence[str] | None = None, *, back: bool = True
) -> list[Value]:
    """Return cells with templates in `width` characters, which link to folds by the ids in `links`."""
    shown = short_templates(texts, width)
    ids = [""] * len(shown) if links is None else links
    return [Value(text, code=True, link=link, back=back) for text, link in zip(shown, ids, strict=True)]


def rank_cells(count: int) -> list[Value]:
    """Return cells with the numbers from 1 to `count`."""
    return [Value(str(rank), sort=rank) for rank in range(1, count + 1)]


def _cell(number: float | None, text: str, note: str = "") -> Value:
    return Value(text, note=note, sort=number)
