"""Folds that the browser draws when they are opened: their content as compact JSON, which later.js reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from uncork.report.blocks import Beside, Block, Code, Document, Facts, Fold, Paragraph, Spark, Table, Value
from uncork.report.draw.spark import SPARK_HEIGHT, spark_path
from uncork.report.write.table_rows import hold

Files = Mapping[int, Sequence[tuple[str, str, str]]]


def later_data(document: Document, files: Files, few: Callable[[Table], bool]) -> Markup | None:
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
    """Return blocks as lists, which begin with the kind of block."""
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
