"""Charts and tables of a report as files: SVG and PNG for slides, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import vl_convert

from uncork.errors import UsageError
from uncork.report.blocks import (
    Beside,
    Block,
    Chart,
    Document,
    Flame,
    Fold,
    ForestChart,
    Gallery,
    Graph,
    LineChart,
    StackChart,
    Table,
)
from uncork.report.charts import Palette, draw
from uncork.report.graph_drawing import draw_graph
from uncork.report.html import source

__all__ = ["Export", "export", "exports"]

_PNG_SCALE: Final = 2.0
"""Pixels a point: sharp on a slide."""
_FONT: Final = "DejaVu Sans, Liberation Sans, Arial, sans-serif"
_Drawn = Chart | Graph | Flame


@dataclass(frozen=True, slots=True)
class Export:
    """One chart or table of a document: its number, its title, where it stands, and the forms it has."""

    number: int
    title: str
    section: str
    forms: tuple[str, ...]


def exports(document: Document) -> tuple[Export, ...]:
    """Return all charts and tables of a document, in its order."""
    return tuple(
        Export(number, _title(block), section, _forms(block))
        for number, (section, block) in enumerate(_exported(document), start=1)
    )


def export(document: Document, number: int, form: str) -> bytes:
    """Return a chart or table of a document as a file.

    Raises:
        UsageError: if there is none of that number, or not in that form.
    """
    found = [block for _, block in _exported(document)]
    if not 1 <= number <= len(found):
        raise UsageError(f"the report has {len(found)} charts and tables; there is no {number}")
    block = found[number - 1]
    if form not in _forms(block):
        raise UsageError(f"{_title(block)}: there is no {form} of it, but {', '.join(_forms(block))}")
    if form == "csv":
        return _csv(_rows(block)).encode()
    svg = _svg(block, document)
    return svg.encode() if form == "svg" else bytes(vl_convert.svg_to_png(svg, scale=_PNG_SCALE))


def _exported(document: Document) -> Iterator[tuple[str, _Drawn | Table]]:
    for section in document.sections:
        for block in _flat(section.blocks):
            if isinstance(block, _Drawn | Table):
                yield section.title, block


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold | Beside):
            yield from _flat(block.blocks)
        if isinstance(block, Gallery):
            yield from block.charts


def _title(block: _Drawn | Table) -> str:
    return block.caption if isinstance(block, Table) else block.title


def _forms(block: _Drawn | Table) -> tuple[str, ...]:
    if isinstance(block, Table):
        return ("csv",)
    return ("svg", "png", "csv") if isinstance(block, Chart) else ("svg", "png")


# ---- drawings ----


def _svg(block: _Drawn | Table, document: Document) -> str:
    """Return a drawing that stands by itself: on white, with the colours of the light page."""
    if isinstance(block, Table):
        raise AssertionError("tables have no drawing")
    if isinstance(block, Flame):
        svg = block.svg
    elif isinstance(block, Graph):
        svg = draw_graph(block, "graph")
    else:
        svg = draw(block, Palette(document.variants, document.baseline), "chart")
    svg = re.sub(r"var\(--([\w-]+)\)", lambda match: _colours().get(match[1], "#000000"), svg)
    opening, _, rest = svg.partition(">")
    if "xmlns=" not in opening:
        opening += ' xmlns="http://www.w3.org/2000/svg"'
    return f'{opening} font-family="{_FONT}"><rect width="100%" height="100%" fill="#ffffff"/>{rest}'


@cache
def _colours() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6})", source("page.css")):
        found.setdefault(name, value)  # those of the light page come first
    return found


# ---- figures ----


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rows(block: _Drawn | Table) -> Iterator[Iterable[Any]]:
    if isinstance(block, Table):
        yield from _table_rows(block)
    elif isinstance(block, ForestChart):
        yield "label", "variant", "verdict", "ratio", "low", "high", "published"
        for mark in block.marks:
            yield (
                *(_plain(mark.label), _plain(mark.variant), mark.verdict.value),
                *(mark.ratio, mark.low, mark.high, mark.published),
            )
    elif isinstance(block, LineChart):
        yield (
            "variant",
            "style",
            _plain(block.x_title or block.axis),
            f"{_plain(block.y_title)} ({block.unit})",
        )
        for line in block.lines:
            yield from ((_plain(line.variant), line.style, x, y) for x, y in line.points)
    elif isinstance(block, StackChart):
        yield "seconds since 1970", *(_plain(layer.name) for layer in block.layers)
        for step, values in enumerate(zip(*(layer.values for layer in block.layers), strict=True)):
            yield block.start_s + step * block.step_s, *values


def _table_rows(table: Table) -> Iterator[Iterable[Any]]:
    """Yield the texts; a figure for people is followed by the number that it stands for."""
    numbers = [any(row[place].sort is not None for row in table.rows) for place in range(len(table.columns))]
    titles: list[str] = []
    for column, number in zip(table.columns, numbers, strict=True):
        titles += [column.title, f"{column.title} (number)"] if number else [column.title]
    yield titles
    for row in table.rows:
        cells: list[Any] = []
        for value, number in zip(row, numbers, strict=True):
            cells += [_plain(value.text), value.sort] if number else [_plain(value.text)]
        yield cells


def _plain(text: str) -> str:
    """Keep a spreadsheet from taking text of others for a formula: it begins with an apostrophe then."""
    formula = text[:1] in ("=", "@", "\t", "\r") or (text[:1] in ("+", "-") and re.search(r"[(|!]", text))
    return f"'{text}" if formula else text
