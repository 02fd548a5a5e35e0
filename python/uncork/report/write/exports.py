"""Charts and tables of a report as files: SVG and PNG for slides, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Final, Literal

import vl_convert

from uncork.errors import UsageError
from uncork.model.units import format_bytes, format_duration, share_text
from uncork.report.blocks import (
    Beside,
    Block,
    Chart,
    Document,
    DotChart,
    Flame,
    Fold,
    ForestChart,
    Gallery,
    LineChart,
    StackChart,
    Table,
    Value,
)
from uncork.report.draw.charts import REST_OPACITY, draw, layer_number
from uncork.report.draw.marks import Palette
from uncork.report.words import baseline_text
from uncork.report.write.html import MARKS, forest_key, source

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


Drawn = Chart | Flame
Theme = Literal["light", "dark"]

_FONT: Final = "DejaVu Sans, Liberation Sans, Arial, sans-serif"
_MARGIN: Final = 16.0
_LEAST_WIDTH: Final = 420.0
_LETTER: Final = 0.62
"""Upper bound of the mean width of a letter, as a share of the font size: DejaVu Sans is a wide font."""
_KEY: Final = 38.0
"""Width of a mark in the legend."""
_GAP: Final = 22.0
_TITLE, _TEXT, _SMALL = 16.0, 12.5, 11.0


def sheet(block: Drawn, document: Document, theme: Theme) -> str:
    """Return a drawing of a document as an SVG file, in the colours of the light or the dark page."""
    palette = Palette(document.variants, document.baseline)
    drawing = block.svg if isinstance(block, Flame) else draw(block, palette, "chart")
    width, height = _size(drawing)
    whole = max(width, _LEAST_WIDTH)
    parts: list[str] = []
    y = 0.0
    for size, weight, colour, text in (
        (_TITLE, "600", "ink", block.title),
        (_TEXT, "400", "soft", _note(block)),
    ):
        for line in _lines(text, whole, size):
            y += size * 1.4
            parts.append(_text(line, 0, y, size, colour, weight))
    y += 8
    found, y = _legend(list(_keys(block, palette)), whole, y)
    parts += found
    parts.append(drawing.replace("<svg ", f'<svg x="0" y="{y:.1f}" ', 1))
    y += height + 6
    run = next((text for name, text in document.facts if name == "run"), "")
    origin = ", ".join(dict.fromkeys(filter(None, (document.title, run, f"uncork {document.version}"))))
    for line in _lines(origin, whole, _SMALL):
        y += _SMALL * 1.4
        parts.append(_text(line, 0, y, _SMALL, "soft", "400"))
    right, bottom = math.ceil(whole + 2 * _MARGIN), math.ceil(y + 2 * _MARGIN)
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom}" '
        f'viewBox="0 0 {right} {bottom}" font-family="{_FONT}"><rect width="100%" height="100%" '
        f'fill="var(--card)"/><g transform="translate({_MARGIN:g} {_MARGIN:g})">{"".join(parts)}</g></svg>\n'
    )
    return re.sub(r"var\(--([\w-]+)\)", lambda match: _colours(theme).get(match[1], "#808080"), text)


def _size(svg: str) -> tuple[float, float]:
    tag = svg[: svg.index(">")]
    sizes = [re.search(rf'\b{name}="([\d.]+)"', tag) for name in ("width", "height")]
    if None not in sizes:
        return float(sizes[0][1]), float(sizes[1][1])  # type: ignore[index]
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', tag)
    if box is None:
        raise AssertionError("every drawing has a size")
    return float(box[1]), float(box[2])


def _note(block: Drawn) -> str:
    if isinstance(block, ForestChart):
        return forest_key(block)
    if isinstance(block, StackChart):
        return block.y_title
    if isinstance(block, DotChart):
        return block.description
    if isinstance(block, LineChart):
        shaded = "shaded: where the best variant changes" if block.crossovers else ""
        return "; ".join(filter(None, (block.y_title, shaded, block.note)))
    return block.note


def _keys(block: Drawn, palette: Palette) -> Iterator[tuple[str, str]]:
    if isinstance(block, StackChart):
        for layer in reversed(block.layers):
            number = layer_number(block, layer)
            opacity = f' fill-opacity="{REST_OPACITY}"' if layer.rest else ""
            mark = f'<rect x="8" width="22" height="12" rx="3" fill="var(--v{number})"{opacity}/>'
            yield mark, f"{number} {layer.name}" if number else layer.name
    elif isinstance(block, LineChart | ForestChart | DotChart):
        drawn = {line.variant for line in (block.lines if isinstance(block, LineChart) else block.marks)}
        for name in (name for name in block.variants if name in drawn):
            number = palette.number(name)
            mark = (
                f'<path d="M0 6h38" stroke="var(--v{number})" stroke-width="2"/>'
                f'<path d="{MARKS[palette.shape(name)]}" fill="var(--v{number})"/>'
            )
            yield mark, baseline_text(name) if name == palette.baseline else name


def _legend(keys: Sequence[tuple[str, str]], width: float, y: float) -> tuple[list[str], float]:
    """Return the legend, in as many lines as it needs, and the y coordinate where it ends."""
    parts: list[str] = []
    x = 0.0
    most = max(8, int((width - _KEY - _GAP) / (_TEXT * _LETTER)))
    for place, (mark, name) in enumerate(keys):
        shown = name if len(name) <= most else f"{name[: most - 1]}…"
        long = _KEY + 6 + len(shown) * _TEXT * _LETTER
        if place == 0 or x + long > width:
            x, y = 0.0, y + _TEXT * 1.6
        parts.append(f'<g transform="translate({x:.1f} {y - 10:.1f})">{mark}</g>')
        parts.append(_text(shown, x + _KEY + 6, y, _TEXT, "ink", "400"))
        x += long + _GAP
    return parts, y + (10 if keys else 0)


def _lines(text: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(text, max(20, int(width / (size * _LETTER))))


def _text(text: str, x: float, y: float, size: float, colour: str, weight: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" font-weight="{weight}" '
        f'fill="var(--{colour})">{escape(text)}</text>'
    )


@cache
def _colours(theme: Theme) -> dict[str, str]:
    """Return the colour variables of a theme: the style sheet defines those of the light page first."""
    found = re.findall(r"--([\w-]+): (#[0-9a-f]{6})", source("page.css"))
    return dict(reversed(found)) if theme == "light" else dict(found)
