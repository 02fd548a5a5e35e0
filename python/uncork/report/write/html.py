"""The HTML writer: one page that needs nothing but itself, in light and dark, on paper and on a telephone."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import count
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from uncork.report.blocks import Block, Chart, Column, Document, Flame, ForestChart, Graph, Table, Value
from uncork.report.draw.charts import SHAPES, Palette, draw
from uncork.report.draw.graph_drawing import draw_graph
from uncork.report.draw.spark import SPARK_HEIGHT, spark_path
from uncork.report.draw.stack_chart import REST_OPACITY, layer_number
from uncork.report.words import SYMBOLS, baseline_text, floor_text, hold_together

__all__ = ["MARKS", "forest_key", "html_page", "policy_of", "source"]

MARKS: Final = {
    "circle": "M15 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "square": "M15.5 2.5h7v7h-7z",
    "triangle-up": "M19 1.5l4.5 8h-9z",
    "triangle-down": "M19 10.5l4.5-8h-9z",
    "triangle-right": "M23.5 6l-8 4.5v-9z",
    "triangle-left": "M14.5 6l8 4.5v-9z",
    "cross": "M17.5 1.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "wedge": "M19 1.5l2.5 9h-5z",
}
"""The legend's drawings of Vega's shapes."""
_TALL_TABLE: Final = 40
"""A table that is sorted by its reader, of more rows than these, scrolls within the page."""
_FEW_COLUMNS: Final = 4
"""So many stand side by side in a narrow window too."""


def html_page(
    document: Document,
    links: Sequence[tuple[str, str]] = (),
    files: Mapping[int, Sequence[tuple[str, str, str]]] = MappingProxyType({}),
) -> str:
    """Return the page that shows a document.

    `links` lead elsewhere on the site that shows it, each a text and an address; a page by itself has none.
    `files` are those of charts and tables, by the `id()` of each: form in words, whole name, address.
    """
    palette = Palette(document.variants, document.baseline)
    numbers = count(1)

    def chart(block: Chart) -> Markup:
        return Markup(draw(block, palette, f"chart-{next(numbers)}"))  # noqa: S704 -- draw escapes what it is given

    def graph(block: Graph) -> Markup:
        return Markup(draw_graph(block, f"graph-{next(numbers)}"))  # noqa: S704 -- it escapes what it is given

    environment = _environment()
    names = ("theme.js", "tables.js", *(("flame.js",) if _has_flames(document) else ()))
    script = "".join(source(name) for name in names)
    return environment.get_template("page.html.j2").render(
        document=document,
        links=links,
        files_of=lambda block: files.get(id(block), ()),
        chart=chart,
        graph=graph,
        forest_key=forest_key,
        region=_regions(),
        flame=lambda block: Markup(block.svg),  # noqa: S704 -- the core escapes names of frames
        classes=_classes,
        kind=_kind,
        palette=palette,
        mark=lambda variant: MARKS[SHAPES[palette.number(variant)]],
        symbols=SYMBOLS,
        layer_number=layer_number,
        rest_opacity=REST_OPACITY,
        tall_table=_TALL_TABLE,
        widths=_widths,
        few=_few,
        spark_path=spark_path,
        spark_height=SPARK_HEIGHT,
        style=Markup(source("page.css")),  # noqa: S704 -- our own file
        script=Markup(script),  # noqa: S704 -- our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def policy_of(page: str) -> str:
    """Return the Content-Security-Policy that a page asks for: no script but its own, by its hash."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    if found is None:
        raise AssertionError("every page of ours has one")
    return found[1]


def source(name: str) -> str:
    """Return a style sheet or script of the page, such as page.css, for pages that are to look like it."""
    environment = _environment()
    if environment.loader is None:
        raise AssertionError("the environment above has a loader")
    return environment.loader.get_source(environment, name)[0]


def forest_key(block: ForestChart) -> str:
    """Say how a chart of effects is read."""
    floor = "" if not block.floor else f" Shaded: the noise floor, {floor_text(block.floor)}."
    published = any(mark.published for mark in block.marks)
    return (
        f"Dashed: the ±{block.practical * 100:.3g} % that matters.{floor}"
        f"{' Hollow diamond: the published figure.' if published else ''}"
    )


def _regions() -> Callable[[str, str], str]:
    """Return what names a region of a page for those who hear it; no two have the same name."""
    used: Counter[str] = Counter()

    def region(kind: str, title: str) -> str:
        name = f"{kind}: {title}"
        used[name] += 1
        return name if used[name] == 1 else f"{name} ({used[name]})"

    return region


def _has_flames(document: Document) -> bool:
    return any(isinstance(block, Flame) for section in document.sections for block in section.blocks)


def _kind(block: Block) -> str:
    return type(block).__name__


def _classes(column: Column, value: Value, repeated: bool) -> str:
    names = (
        "number" if column.number else "",
        f"tone-{value.tone}" if value.tone != "plain" else "",
        "repeated" if repeated else "",
        "bar" if value.bar else "",
    )
    return " ".join(filter(None, names))


def _few(table: Table) -> bool:
    return len(table.columns) <= _FEW_COLUMNS and not any(column.header for column in table.columns)


def _widths(table: Table) -> str:
    """Return the widths of a tall table's columns: its rows are laid out one by one, only when they are seen.

    A browser that lays out two thousand rows together takes half a second for it, and again for each sort.
    """
    return " ".join(map(_width, table.columns, zip(*table.rows, strict=True)))


def _width(column: Column, values: Sequence[Value]) -> str:
    if column.header:
        return "minmax(14rem,4fr)"
    if not column.number:
        return "minmax(6rem,1fr)"
    longest = max(len(column.title) + 2, *(len(value.text) for value in values))
    return f"{1.3 + 0.54 * longest:.3g}rem"


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("uncork.report.write"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["baseline_text"] = baseline_text
    found.filters["hold"] = lru_cache(1 << 16)(hold_together)  # figures come again and again
    return found
