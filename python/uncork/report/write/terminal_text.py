"""Reports, text and tables in a terminal: wrapped, coloured, and in ASCII if the console needs it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Column,
    Document,
    Facts,
    Fold,
    Paragraph,
    Step,
    Table,
    Tone,
    Value,
)
from uncork.report.headline import split_answer
from uncork.report.words import hold_together

_STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "faster": "bold green",
    "slower": "bold red",
    "same": "",
    "unsure": "yellow",
    "refused": "bold magenta",
    "skipped": "dim",
    "muted": "dim",
}
_GAP: Final = 2
"""Spaces between two columns."""
_HELD: Final = "\N{NO-BREAK SPACE}"
_NOTE_WIDTH: Final = 26
"""Width of notes: the longest verdict with its sign fits, and longer reasons wrap."""
_LEAST_ENTRY: Final = 76
"""Texts of a list are not shortened below this, however narrow the console."""
_ASCII: Final = str.maketrans(
    {"✓": "+", "✗": "x", "–": "-", "−": "-", "×": "x", "÷": "/", "→": "->", "µ": "u", "±": "+-", "∞": "inf"}
    | {"•": "*", "·": "-", "←": "<-", "…": "..."}
    | dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True))
)


TerminalPart = Table | Callable[[Console], None] | None
"""A part of a report in the terminal: a table, or a function that prints something else; None is left out."""


def write_report(
    console: Console,
    document: Document,
    parts: Iterable[TerminalPart],
    *,
    question: bool = True,
    facts: bool = False,
) -> None:
    """Print a document: its answer, reasons and `question`, then `parts`, its `facts`, and its steps."""
    write_answer(console, document.answer)
    if document.reasons:
        write_items(console, document.reasons)
    if question:
        write_paragraph(console, document.question, "italic")
    for part in parts:
        if isinstance(part, Table):
            write_table(console, part)
        elif part is not None:
            part(console)
    if facts:
        write_paragraph(console, "; ".join(f"{name} {text}" for name, text in document.facts))
    write_steps(console, document.steps)


def write_table(console: Console, table: Table) -> None:
    """Print a table under its caption, if it has one, and an empty line."""
    if table.caption:
        write_lines(console, wrapped(table.caption, console.width), "bold")
    write_rows(console, table)
    console.print()


def write_rows(console: Console, table: Table) -> None:
    """Print a table without its caption; if its words do not fit side by side, a block for each row.

    A block begins with the row's headers. Its figures follow, each with the title of its column, and never
    broken within a figure if a line has room for it.
    """
    widths = _column_widths(table, console.width)
    if widths is not None:
        console.print(_drawn(table, widths, console))
        return
    for row in table.rows:
        heads, figures = [], []
        for column, value in zip(table.columns, row, strict=True):
            text = ", ".join(filter(None, (value.text, value.note, value.more)))
            if value.text and column.header:
                heads.append(text)
            elif value.text:
                figures.append(f"{column.title} {text}".strip())
        write_lines(console, wrapped(" · ".join(heads), console.width), "bold")
        room = console.width - 2
        joined = ";  ".join(
            figure.replace(" ", _HELD) if len(figure) < room else figure for figure in figures
        )
        write_lines(console, [f"  {line}" for line in wrapped(joined, room)])


def write_entry(console: Console, figures: Sequence[str], texts: Iterable[str], indent: int) -> None:
    """Print an entry of a list: its figures, in one line if there is room, then its texts, indented."""
    space = " " * indent
    line = "   ".join(figures)
    lines = [line]
    if len(line) > console.width:
        first, *rest = wrapped(figures[0].lstrip(), console.width - indent)
        gap = " " * (len(figures[0]) - len(figures[0].lstrip()))
        more = [one for text in figures[1:] for one in wrapped(text, console.width - indent)]
        lines = [f"{gap}{first}", *(f"{space}{text}" for text in (*rest, *more))]
    write_lines(console, lines, "bold")
    for text in texts:
        write_lines(console, [f"{space}{one}" for one in wrapped(text, console.width - indent)])


def entry_width(console: Console, indent: int) -> int:
    """Return the length to which a list shortens its texts: a line, or two lines of a narrow console."""
    return max(_LEAST_ENTRY, console.width - indent)


def table_width(table: Table) -> int:
    """Return the width of a table in which no text needs a second line, apart from notes."""
    return sum(_most_widths(table)) + _GAP * (len(table.columns) - 1)


def _column_widths(table: Table, width: int) -> list[int] | None:
    """Return the width of each column, in which no word is broken; None if the table does not fit."""
    least = [
        max(_longest(column.title), *(_least_width(column, row[place]) for row in table.rows), 0)
        for place, column in enumerate(table.columns)
    ]
    most = list(map(max, least, _most_widths(table)))
    room = width - _GAP * (len(least) - 1)
    if sum(least) > room:
        return None
    level = max(most, default=0)
    while sum(map(min, most, (max(number, level) for number in least))) > room:
        level -= 1
    return [min(whole, max(number, level)) for number, whole in zip(least, most, strict=True)]


def _least_width(column: Column, value: Value) -> int:
    """Return the width of a value's longest word, or of the whole text if it must not be broken."""
    text = len(value.text) if column.number or column.whole else _longest(value.text)
    return max(text, _longest(value.note), _longest(value.more))


def _most_widths(table: Table) -> list[int]:
    def most(value: Value) -> int:
        return max(map(len, (value.text, *_lines(value.note, _NOTE_WIDTH), value.more)))

    return [
        max(*map(len, column.title.split("\n")), *(most(row[place]) for row in table.rows), 0)
        for place, column in enumerate(table.columns)
    ]


def _longest(text: str) -> int:
    return max(map(len, re.split(r"[ \n]", hold_together(text))))


def _drawn(table: Table, widths: Sequence[int], console: Console) -> RichTable:
    found = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(table.columns, widths, strict=True):
        found.add_column(
            as_text(console, _in_column(column.title, width)),
            justify="right" if column.number else "left",
            width=width,
            overflow="fold",
        )
    for row in table.rows:
        found.add_row(*(_value(console, value, width) for value, width in zip(row, widths, strict=True)))
    return found


def _in_column(text: str, width: int) -> str:
    return "\n".join(line for part in text.split("\n") for line in _lines(part, width))


def _value(console: Console, value: Value, width: int) -> Text:
    text = as_text(console, _in_column(value.text, width), _STYLES[value.tone])
    notes = [*_lines(value.note, min(width, _NOTE_WIDTH)), *_lines(value.more, width)]
    for line in filter(None, notes):
        text.append("\n")
        text.append_text(as_text(console, line, "dim" if value.tone in ("same", "muted") else ""))
    return text


def write_block(console: Console, block: Block, indent: int) -> None:
    """Print a block of a document, indented; nothing for blocks that a terminal cannot show."""
    space, width = " " * indent, console.width - indent - 2
    match block:
        case Bullets(items):
            for text in items:
                first, *rest = wrapped(text, width)
                write_lines(console, [f"{space}• {first}", *(f"{space}  {line}" for line in rest)])
        case Paragraph(text):
            write_lines(console, [f"{space}{line}" for line in wrapped(text, width)])
        case Code(text, _, title):
            if title:
                write_lines(console, [f"{space}{title}:"])
            write_lines(console, [f"{space}  {line}" for line in text.splitlines()])
        case Facts(items):
            for name, text in items:
                write_lines(console, [f"{space}{line}" for line in wrapped(f"{name} {text}", width)])
        case Table():
            if block.caption:
                write_lines(console, [f"{space}{line}" for line in wrapped(block.caption, width)])
            write_rows(console, block)
        case Fold(summary, blocks):
            write_lines(console, [f"{space}{line}" for line in wrapped(summary, width)], "bold")
            for inner in blocks:
                write_block(console, inner, indent)
        case _:
            return


def write_title(console: Console, text: str) -> None:
    """Print the title of a section."""
    console.print(as_text(console, text, "bold"))


def write_paragraph(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph and an empty line; nothing for an empty text."""
    if text:
        write_lines(console, wrapped(text, console.width), style)
        console.print()


def write_answer(console: Console, answer: str) -> None:
    """Print an answer: its headline in bold, then its other sentences."""
    for text, style in zip(split_answer(answer), ("bold", ""), strict=True):
        write_paragraph(console, text, style)


def write_items(console: Console, items: Iterable[str]) -> None:
    """Print a list and an empty line."""
    for item in items:
        _write_item(console, item)
    console.print()


def write_list(console: Console, title: str, items: Sequence[str]) -> None:
    """Print a list under its title; nothing without items."""
    if items:
        write_title(console, title)
        write_items(console, items)


def _write_item(console: Console, item: str) -> None:
    first, *rest = wrapped(item, console.width - 4)
    write_lines(console, [f"  • {first}", *(f"    {line}" for line in rest)])


def write_steps(console: Console, steps: Sequence[Step]) -> None:
    """Print the next steps with their commands; nothing without steps."""
    if steps:
        write_title(console, "What to do next")
    for step in steps:
        _write_item(console, step.text)
        if step.command:
            console.print(as_text(console, f"      {step.command}", "bold cyan"), soft_wrap=True)


def write_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines without wrapping them."""
    all_of = list(lines)
    if all_of:
        console.print(as_text(console, "\n".join(all_of), style))  # each print of its own takes 0.7 ms


def wrapped(text: str, width: int) -> list[str]:
    """Wrap a text into lines, never within a number, its unit or an interval."""
    return _lines(text, max(width, 20))


def _lines(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(hold_together(text), max(width, 1), break_on_hyphens=False, break_long_words=False)
    return [line.replace(_HELD, " ") for line in lines] or [""]


def as_text(console: Console, text: str, style: str = "") -> Text:
    """Return a text without interpreting markup; signs become ASCII if the console needs it."""
    is_unicode = console.encoding.lower().startswith("utf")
    return Text(text if is_unicode else text.translate(_ASCII), style=style)
