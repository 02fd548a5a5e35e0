"""Charts and tables of a report as files: SVG and PNG for slides, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import vl_convert

from uncork.errors import UsageError
from uncork.model.units import format_bytes, format_duration
from uncork.report.blocks import (
    Beside,
    Block,
    Chart,
    Document,
    DotChart,
    Fold,
    ForestChart,
    Gallery,
    LineChart,
    StackChart,
    Table,
    Value,
)
from uncork.report.quantity_words import share_text
from uncork.report.write.sheet import Drawn, sheet

FORMS: Final = {
    "svg": "SVG",
    "dark.svg": "SVG, dark",
    "png": "PNG",
    "dark.png": "PNG, dark",
    "csv": "CSV",
}
"""File formats of charts and tables, by the suffix of their file names."""

_PNG_SCALE: Final = 2.0
"""Pixels per point, for sharp slides."""


@dataclass(frozen=True, slots=True)
class Export:
    """One chart or table of a document: its number, title, section, and available formats."""

    number: int
    title: str
    section: str
    forms: tuple[str, ...]


Addresses = Callable[[int, str], str]
"""Map the number and format of an export to its address."""


def exports(document: Document) -> tuple[Export, ...]:
    """Return all charts and tables of a document, in order."""
    return tuple(
        Export(number, _title(block), section, _forms(block))
        for number, (section, block) in enumerate(_exported(document), start=1)
    )


def export(document: Document, number: int, form: str) -> bytes:
    """Return a chart or table of a document as a file.

    Raises:
        UsageError: if the number does not exist, or is not available in that format.
    """
    found = [block for _, block in _exported(document)]
    if not 1 <= number <= len(found):
        raise UsageError(f"the report has {len(found)} charts and tables; there is no number {number}")
    block = found[number - 1]
    if form not in _forms(block):
        raise UsageError(f"{_title(block)}: not available as {form}; choose {', '.join(_forms(block))}")
    if form == "csv":
        return _csv(_rows(block)).encode()
    if isinstance(block, Table):
        raise AssertionError("tables have no drawing")
    svg = sheet(block, document, "dark" if form.startswith("dark.") else "light")
    return svg.encode() if form.endswith("svg") else bytes(vl_convert.svg_to_png(svg, scale=_PNG_SCALE))


def files_of(document: Document, address: Addresses) -> dict[int, tuple[tuple[str, str, str], ...]]:
    """Return the files of each chart and table, by its `id()`: format in words, full name, and address."""
    found = {}
    for number, (_, block) in enumerate(_exported(document), start=1):
        title = _title(block)
        found[id(block)] = tuple(
            (FORMS[form], f"{title} as {FORMS[form]}", address(number, form)) for form in _forms(block)
        )
    return found


def _exported(document: Document) -> Iterator[tuple[str, Drawn | Table]]:
    for section in document.sections:
        for block in _flat(section.blocks):
            if isinstance(block, Drawn | Table):
                yield section.title, block


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold | Beside):
            yield from _flat(block.blocks)
        if isinstance(block, Gallery):
            yield from block.charts


def _title(block: Drawn | Table) -> str:
    return block.caption if isinstance(block, Table) else block.title


def _forms(block: Drawn | Table) -> tuple[str, ...]:
    if isinstance(block, Table):
        return ("csv",)
    return tuple(FORMS) if isinstance(block, Chart) else tuple(form for form in FORMS if form != "csv")


# ---- values ----


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


_UNITS: Final = {"ns": " (ns)", "share": " (share of 1)", "number": ""}


def _rows(block: Drawn | Table) -> Iterator[Iterable[Any]]:
    if isinstance(block, Table):
        yield from _table_rows(block)
    elif isinstance(block, ForestChart):
        yield "label", "variant", "verdict", "ratio", "ratio, low", "ratio, high", "ratio, published"
        for mark in block.marks:
            yield (
                *(_plain(mark.label), _plain(mark.variant), mark.verdict.value),
                *(mark.ratio, mark.low, mark.high, mark.published),
            )
    elif isinstance(block, LineChart):
        x, y = _plain(block.x_title or block.axis), _plain(block.y_title)
        yield "variant", "style", x, f"{y}{_UNITS[block.unit]}"
        for line in block.lines:
            yield from ((_plain(line.variant), line.style, x, y) for x, y in line.points)
    elif isinstance(block, StackChart):
        yield "seconds since 1970", *(f"{_plain(layer.name)} ({block.y_title})" for layer in block.layers)
        for step, values in enumerate(zip(*(layer.values for layer in block.layers), strict=True)):
            yield block.start_s + step * block.step_s, *values
    elif isinstance(block, DotChart):
        yield "label", "variant", *(f"{name}{_UNITS[block.unit]}" for name in ("value", "low", "high"))
        for dot in block.marks:
            yield _plain(dot.label), _plain(dot.variant), dot.value, dot.low, dot.high


def _table_rows(table: Table) -> Iterator[Iterable[Any]]:
    """Yield the texts; each formatted number is followed by its value, with the unit in the title."""
    columns = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    numbers = [any(value.sort is not None for value in values) for values in columns]
    titles: list[str] = []
    for column, number, values in zip(table.columns, numbers, columns, strict=True):
        titles += [column.title, f"{column.title} ({_unit(values)})"] if number else [column.title]
    yield titles
    for row in table.rows:
        cells: list[Any] = []
        for value, number in zip(row, numbers, strict=True):
            cells += [_plain(value.text), value.sort] if number else [_plain(value.text)]
        yield cells


def _unit(values: Sequence[Value]) -> str:
    """Return the unit of a column's numbers: the unit in which each number formats to its text."""
    known = [(value.text, value.sort) for value in values if value.sort is not None and value.text]
    for unit, show in _READ:
        if known and all(show(number) == text for text, number in known):
            return unit
    return "number"


_READ: Final[tuple[tuple[str, Callable[[float], str]], ...]] = (
    ("ns", format_duration),
    ("B", format_bytes),
    ("share of 1", share_text),
)


def _plain(text: str) -> str:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe."""
    formula = text[:1] in ("=", "@", "\t", "\r") or (text[:1] in ("+", "-") and re.search(r"[(|!]", text))
    return f"'{text}" if formula else text
