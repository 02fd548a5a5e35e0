"""The rows of a table in HTML. Tables have thousands of cells, for which a template engine takes too long."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from markupsafe import Markup, escape

from uncork.report.blocks import Column, Table, Value
from uncork.report.words import hold_together

_LONG: Final = 40
"""Characters from which on the head of a row is broken into lines, if the table is wider than the page."""

hold: Final = lru_cache(1 << 16)(hold_together)
"""`hold_together`; the same numbers recur often."""


def table_rows(table: Table, sortable: bool) -> Markup:
    """Return the rows of a table. In a `sortable` one, cells have the numbers by which they sort."""
    return Markup("\n".join(_rows(table, sortable)))  # noqa: S704 -- each text in it is escaped


def _rows(table: Table, sortable: bool) -> Iterator[str]:
    before: Value | None = None
    groups = table.columns[0].header and not sortable
    for row in table.rows:
        same = groups and before == row[0]
        yield "<tr>" if same else '<tr class="first">'
        for place, (column, value) in enumerate(zip(table.columns, row, strict=True)):
            yield _cell(column, value, sortable=sortable, repeated=same and place == 0)
        yield "</tr>"
        before = row[0]


def _cell(column: Column, value: Value, *, sortable: bool, repeated: bool) -> str:
    heads = column.header and value.text
    names = _classes(column, value, repeated)
    opening = "<th scope=row" if heads else "<td"
    if names:
        opening += f' class="{names}"'
    if value.bar:
        opening += f' style="--w:{100 * value.bar:.3g}%"'
    if sortable and value.sort is not None:
        opening += f' data-v="{value.sort}"'
    text = f"<code>{escape(value.text)}</code>" if value.code and value.text else escape(hold(value.text))
    if value.link:
        place = f' id="to-{escape(value.link)}"' if value.back else ""
        text = f'<a{place} href="#{escape(value.link)}">{text}</a>'
    if value.note or value.more:
        note = hold(", ".join(filter(None, (value.note, value.more))))
        text = f"{text}<small>{escape(note)}</small>"
    return f"{opening}>{text}</{'th' if heads else 'td'}>"


def _classes(column: Column, value: Value, repeated: bool) -> str:
    names = (
        "long" if column.header and len(value.text) >= _LONG else "",
        "number" if column.number else "",
        f"tone-{value.tone}" if value.tone != "plain" else "",
        "repeated" if repeated else "",
        "bar" if value.bar else "",
    )
    return " ".join(filter(None, names))
