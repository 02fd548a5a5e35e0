"""A drawing as a standalone file, with its title, explanation, legend, and the run it belongs to.

On a page, these surround the drawing. A file for slides or a ticket must contain them, in the colours of the
light or the dark page, because file viewers do not know the style sheet.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Final, Literal

from uncork.report.blocks import (
    Chart,
    Document,
    DotChart,
    Flame,
    ForestChart,
    LineChart,
    StackChart,
)
from uncork.report.draw.charts import draw
from uncork.report.draw.palette import Palette
from uncork.report.draw.stack_chart import REST_OPACITY, layer_number
from uncork.report.words import baseline_text
from uncork.report.write.html import MARKS, forest_key, source

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


# ---- what is drawn ----


def _size(svg: str) -> tuple[float, float]:
    """Return the width and height of a drawing, from its first tag."""
    tag = svg[: svg.index(">")]
    sizes = [re.search(rf'\b{name}="([\d.]+)"', tag) for name in ("width", "height")]
    if None not in sizes:
        return float(sizes[0][1]), float(sizes[1][1])  # type: ignore[index]
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', tag)
    if box is None:
        raise AssertionError("every drawing has a size")
    return float(box[1]), float(box[2])


def _note(block: Drawn) -> str:
    """Return the note that a page shows under the title."""
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
    """Yield the marks of the legend, each with its name."""
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


# ---- laying out ----


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
