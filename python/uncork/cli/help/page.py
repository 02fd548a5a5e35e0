"""The layout of help: usage, text, panels of options or verbs, examples; wrapped to the terminal's width.

It is laid out here because rich loads a Markdown parser and a highlighter for it, which doubles the
time that help takes. Text may contain code in backquotes and lists of lines that begin with ``-``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_STYLES: Final = {
    "usage": "1;33",
    "name": "1;36",
    "short": "1;32",
    "value": "1;33",
    "code": "36",
    "note": "2",
    "border": "2",
}
_WIDEST: Final = 100
"""Longer lines are hard to read."""
_NARROWEST: Final = 20
_LEAST_TEXT: Final = 28
"""If less remains beside the names, the text of a row is placed below them."""
_VALUE: Final = 18
"""Width from which a long list of values is folded behind its bars."""
_CORNERS: Final = ("╭─", "╮", "│", "╰", "╯", "─", "•")
_ASCII_CORNERS: Final = ("+-", "+", "|", "+", "+", "-", "*")


@dataclass(frozen=True, slots=True)
class Row:
    """One option, argument or verb: its names, the values that it takes, its text, and remarks after it."""

    name: str
    short: str = ""
    value: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """A frame with a title and rows. `name_width` aligns the names of several panels."""

    title: str
    rows: Sequence[Row]
    name_width: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """How wide the page is, and whether it has colours and lines that ASCII has no characters for."""

    width: int
    coloured: bool = False
    ascii: bool = False

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style, if the page has colours."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.coloured and style and text else text


@dataclass(slots=True)
class _Word:
    parts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return sum(len(text) for text, _ in self.parts)

    def painted(self, style: Style) -> str:
        return "".join(style.paint(text, name) for text, name in self.parts)


def page_text(usage: str, text: str, panels: Iterable[Panel], end: str, style: Style) -> str:
    """Return a page of help. `usage` are the words behind ``Usage:``; `end` is what follows the panels."""
    style = Style(max(_NARROWEST, min(style.width, _WIDEST)), style.coloured, style.ascii)
    first, *rest = text.split("\n\n")
    lines = ["", *_indented(f"Usage: {usage}", 1, style, ""), ""]
    lines[1] = lines[1].replace("Usage:", style.paint("Usage:", "usage"), 1)
    for paragraph, look in ((first, ""), ("\n\n".join(rest), "note")):
        if paragraph:
            lines += [*_paragraphs(paragraph, style, look), ""]
    for panel in panels:
        lines += _framed(panel, style)
    if end:
        lines += ["", *_paragraphs(end, style, "")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _paragraphs(text: str, style: Style, look: str) -> Iterator[str]:
    bullet = (_ASCII_CORNERS if style.ascii else _CORNERS)[-1]
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("- "):
            for item in paragraph.removeprefix("- ").split("\n- "):
                first, *rest = _wrapped(item, style.width - 5, style, look)
                yield f"  {bullet} {first}"
                yield from (f"    {line}" for line in rest)
        else:
            yield from _indented(paragraph, 1, style, look)


def _indented(text: str, margin: int, style: Style, look: str) -> Iterator[str]:
    for line in _wrapped(text, style.width - 2 * margin, style, look):
        yield f"{' ' * margin}{line}"


def _framed(panel: Panel, style: Style) -> Iterator[str]:
    left, right, side, bottom_left, bottom_right, bar, _ = _ASCII_CORNERS if style.ascii else _CORNERS
    inner = style.width - 4
    top = f"{left} {panel.title} "
    yield style.paint(top + bar * (style.width - len(top) - 1) + right, "border")
    edge = style.paint(side, "border")
    for line, length in _table(panel, inner, style):
        yield f"{edge} {line}{' ' * (inner - length)} {edge}"
    yield style.paint(bottom_left + bar * (style.width - 2) + bottom_right, "border")


def _table(panel: Panel, width: int, style: Style) -> Iterator[tuple[str, int]]:
    name = max(panel.name_width, *(len(row.name) for row in panel.rows))
    short = max(len(row.short) for row in panel.rows)
    folded = [_folded(row.value) for row in panel.rows]
    value = max((len(line) for lines in folded for line in lines), default=0)
    columns = [(name, "name"), (short, "short"), (value, "value")]
    beside = sum(length + 2 for length, _ in columns if length)
    below = width - beside < _LEAST_TEXT
    for row, values in zip(panel.rows, folded, strict=True):
        if below:
            yield from _stacked(row, width, style)
            continue
        text = [*_row_text(row, width - beside, style)]
        for number in range(max(len(values), len(text), 1)):
            cells = (row.name, row.short) if number == 0 else ("", "")
            shown = (*cells, values[number] if number < len(values) else "")
            names = "".join(
                style.paint(cell, look) + " " * (length - len(cell) + 2)
                for cell, (length, look) in zip(shown, columns, strict=True)
                if length
            )
            line, length = text[number] if number < len(text) else ("", 0)
            yield names + line, beside + length


def _stacked(row: Row, width: int, style: Style) -> Iterator[tuple[str, int]]:
    cells = [(row.name, "name"), (row.short, "short"), (row.value, "value")]
    words = [_Word([cell]) for cell in cells if cell[0]]
    for words_of_line in _lines(words, width):
        yield _joined(words_of_line, style), _length(words_of_line)
    for line, length in _row_text(row, width - 4, style):
        yield f"    {line}", 4 + length


def _row_text(row: Row, width: int, style: Style) -> Iterator[tuple[str, int]]:
    words = _words(row.text, "")
    for note in row.notes:  # in one line, if it fits into one
        words += [_Word([(note, "note")])] if len(note) <= width else _words(note, "note")
    for line in _lines(words, width):
        yield _joined(line, style), _length(line)


def _folded(value: str) -> list[str]:
    """Return a list of values in lines that break before a bar; other text in one line."""
    lines = [""]
    for number, part in enumerate(value.split("|")):
        piece = part if number == 0 else f"|{part}"
        if lines[-1] and len(lines[-1]) + len(piece) > _VALUE:
            lines.append("")
        lines[-1] += piece
    return lines if value else []


def _wrapped(text: str, width: int, style: Style, look: str) -> list[str]:
    return [_joined(line, style) for line in _lines(_words(text, look), width)] or [""]


def _words(text: str, look: str) -> list[_Word]:
    """Return the words of a text; those in backquotes are code."""
    words, word = [], _Word()
    for number, part in enumerate(text.split("`")):
        for place, piece in enumerate(part.replace("\n", " ").split(" ")):
            if place:
                words.append(word)
                word = _Word()
            if piece:
                word.parts.append((piece, "code" if number % 2 else look))
    return [one for one in (*words, word) if one.parts]


def _lines(words: Iterable[_Word], width: int) -> Iterator[list[_Word]]:
    """Divide words into lines; a word that is longer than a line is divided too."""
    line: list[_Word] = []
    for whole in words:
        for word in _pieces(whole, width):
            if line and _length(line) + 1 + word.length > width:
                yield line
                line = []
            line.append(word)
    if line:
        yield line


def _pieces(word: _Word, width: int) -> Iterator[_Word]:
    if word.length <= width:
        yield word
        return
    letters = [(letter, look) for text, look in word.parts for letter in text]
    for start in range(0, len(letters), width):
        yield _Word(letters[start : start + width])


def _length(line: Sequence[_Word]) -> int:
    return sum(word.length for word in line) + len(line) - 1


def _joined(line: Sequence[_Word], style: Style) -> str:
    return " ".join(word.painted(style) for word in line)
