"""The HTML writer: one self-contained page, in light and dark, for screens, phones and paper."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from uncork.report.blocks import (
    Beside,
    Block,
    Chart,
    Code,
    Column,
    Document,
    Facts,
    Flame,
    Fold,
    ForestChart,
    Paragraph,
    Spark,
    Table,
    Value,
)
from uncork.report.draw.charts import REST_OPACITY, draw, layer_number
from uncork.report.draw.marks import SHAPES, Palette
from uncork.report.draw.spark import SPARK_HEIGHT, spark_path
from uncork.report.words import SYMBOLS, baseline_text, floor_text, hold_together

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
"""SVG paths of the shapes of variants, for legends."""
_TALL_TABLE: Final = 40
"""A sortable table with more rows than this scrolls within the page."""
_FEW_COLUMNS: Final = 4
"""Tables with up to this many columns keep their layout in a narrow window."""


def html_page(
    document: Document,
    links: Sequence[tuple[str, str]] = (),
    files: Mapping[int, Sequence[tuple[str, str, str]]] = MappingProxyType({}),
) -> str:
    """Return the page that shows a document.

    `links` lead to other pages of its site, each as text and address; a standalone page has none. `files` are
    the files of charts and tables, by the `id()` of each: format in words, full name, address.
    """
    palette = Palette(document.variants, document.baseline)
    numbers = count(1)

    def chart(block: Chart) -> Markup:
        return Markup(draw(block, palette, f"chart-{next(numbers)}"))  # noqa: S704 -- draw escapes its input

    environment = _environment()
    later = _later_data(document, files, _few)
    names = (
        *("theme.js", "tables.js"),
        *(("flame.js",) if _has_flames(document) else ()),
        *(("later.js",) if later is not None else ()),
    )
    script = "".join(source(name) for name in names)
    return environment.get_template("page.html.j2").render(
        document=document,
        later=later,
        links=links,
        files_of=lambda block: files.get(id(block), ()),
        chart=chart,
        forest_key=forest_key,
        region=_regions(),
        flame=lambda block: Markup(block.svg),  # noqa: S704 -- the core escapes names of frames
        table_rows=table_rows,
        kind=lambda block: type(block).__name__,
        palette=palette,
        mark=lambda variant: MARKS[SHAPES[palette.number(variant)]],
        symbols=SYMBOLS,
        layer_number=layer_number,
        rest_opacity=REST_OPACITY,
        tall_table=_TALL_TABLE,
        widths=lambda table: " ".join(map(_width, table.columns, zip(*table.rows, strict=True))),
        few=_few,
        spark_path=spark_path,
        spark_height=SPARK_HEIGHT,
        style=Markup(source("page.css")),  # noqa: S704 -- our own file
        script=Markup(script),  # noqa: S704 -- our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def policy_of(page: str) -> str:
    """Return the Content-Security-Policy of a page, which allows only its own script, by its hash."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    if found is None:
        raise AssertionError("every page of ours has one")
    return found[1]


def source(name: str) -> str:
    """Return a style sheet or script of the page, such as page.css, for other pages of the same look."""
    environment = _environment()
    if environment.loader is None:
        raise AssertionError("the environment above has a loader")
    return environment.loader.get_source(environment, name)[0]


def forest_key(block: ForestChart) -> str:
    """Return how to read a chart of effects."""
    floor = "" if not block.floor else f" Shaded: the noise floor, {floor_text(block.floor)}."
    published = any(mark.published for mark in block.marks)
    return (
        f"Dashed: the ±{block.practical * 100:.3g} % that matters in practice.{floor}"
        f"{' Hollow diamond: the published value.' if published else ''}"
    )


def _regions() -> Callable[[str, str], str]:
    """Return a function that names regions of a page for screen readers, each name unique."""
    used: Counter[str] = Counter()

    def region(kind: str, title: str) -> str:
        name = f"{kind}: {title}"
        used[name] += 1
        return name if used[name] == 1 else f"{name} ({used[name]})"

    return region


def _has_flames(document: Document) -> bool:
    return any(isinstance(block, Flame) for section in document.sections for block in section.blocks)


def _few(table: Table) -> bool:
    return len(table.columns) <= _FEW_COLUMNS and not any(column.header for column in table.columns)


def _width(column: Column, values: Sequence[Value]) -> str:
    """Return the width of a column of a tall table, whose rows are laid out when they become visible."""
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
    found.filters["hold"] = hold
    return found


# ---- folds that the browser draws when they are opened ----


Files = Mapping[int, Sequence[tuple[str, str, str]]]


def _later_data(document: Document, files: Files, few: Callable[[Table], bool]) -> Markup | None:
    """Return the content of all folds that are drawn later, by their ids; None if there is none.

    The JSON stands in a script element, so it has no ``<``. `files` are as in `html_page`; `few` says which
    tables keep their layout in a narrow window.

    Raises:
        TypeError: if such a fold holds another kind of block than later.js draws.
    """
    found = {fold.id: _blocks(fold.blocks, files, few) for fold in _folds(document)}
    if not found:
        return None
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 -- without "<" it cannot end its element


def _folds(document: Document) -> Iterator[Fold]:
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Fold) and block.later:
                yield block


def _blocks(blocks: Sequence[Block], files: Files, few: Callable[[Table], bool]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for block in blocks:
        match block:
            case Code():
                found.append(["code", block.title, block.language, block.text])
            case Facts():
                found.append(["facts", [[name, hold(text)] for name, text in block.items]])
            case Paragraph():
                found.append(["text", hold(block.text)])
            case Beside():
                found.append(["beside", _blocks(block.blocks, files, few)])
            case Spark():
                path, width = spark_path(block.values), len(block.values)
                found.append(["spark", hold(block.title), path, width, SPARK_HEIGHT, *block.ends])
            case Table(sortable=False):
                columns = [[column.title, int(column.header), int(column.number)] for column in block.columns]
                rows = [[_cell(value) for value in row] for row in block.rows]
                known = files.get(id(block), ())
                found.append(["table", hold(block.caption), columns, rows, int(few(block)), known])
            case _:
                raise TypeError(f"a fold that is drawn later cannot hold a {type(block).__name__}")
    return found


def _cell(value: Value) -> str | list[Any]:
    """Return a cell: its text, or the text with its note and its bar in percent."""
    text = hold(value.text)
    note = ", ".join(filter(None, (value.note, value.more)))
    if value.link or value.code or value.tone != "plain":
        raise TypeError("a cell that is drawn later is plain text")
    return [text, hold(note), float(f"{100 * (value.bar or 0):.3g}")] if note or value.bar else text


# ---- the rows of a table, which has thousands of cells: a template engine takes too long ----

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
            yield _table_cell(column, value, sortable=sortable, repeated=same and place == 0)
        yield "</tr>"
        before = row[0]


def _table_cell(column: Column, value: Value, *, sortable: bool, repeated: bool) -> str:
    heads = column.header and value.text
    classes = (
        "long" if column.header and len(value.text) >= _LONG else "",
        "number" if column.number else "",
        f"tone-{value.tone}" if value.tone != "plain" else "",
        "repeated" if repeated else "",
        "bar" if value.bar else "",
    )
    names = " ".join(filter(None, classes))
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
