"""SQL text for other engines: split scripts, place parameters, and detect statements that may write. Pure.

Strings, quoted names and comments are skipped, in the syntax of all supported engines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<skip>
          --[^\n]*
        | /\*.*?\*/
        | '(?:[^'\\]|\\.|'')*'
        | "(?:[^"]|"")*"
        | `(?:[^`]|``)*`
        | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
      )
    | \$(?P<number>[1-9][0-9]*)
    | (?P<percent>%)
    | (?P<end>;)
    | (?P<word>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_READING = {"select", "values", "from", "show", "explain", "describe", "desc", "table", "with"}
_WRITING = {"insert", "update", "delete", "merge", "replace", "into", "nextval", "setval"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, and the line where it begins, counted from 1."""

    line: int
    text: str


def split_script(script: str) -> list[Piece]:
    """Split a script at its semicolons, and drop pieces that contain only comments.

    The body of a trigger stays in one piece: a statement that starts with CREATE and contains BEGIN
    ends after the matching END.
    """
    pieces, start, depth, words = [], 0, 0, 0
    created = False
    for match in _TOKEN.finditer(script):
        word = (match["word"] or "").lower()
        if word:
            words += 1
            created = created or (words == 1 and word == "create")
            depth += (created and word in ("begin", "case")) - (depth > 0 and word == "end")
        elif match["end"] and depth == 0:
            if words:
                pieces.append(_piece(script, start, match.start()))
            start, words, created = match.end(), 0, False
    if words:
        pieces.append(_piece(script, start, len(script)))
    return pieces


def place(sql: str, style: str, count: int) -> tuple[str, list[int]]:
    """Rewrite the placeholders ``$1`` ... ``$count`` in a driver's parameter style.

    `style` is a paramstyle of PEP 249, or ``dollar`` for a driver that accepts ``$1`` as is. With `count` 0,
    the text is returned unchanged. Return the text, and the parameter (from 0) of each placeholder in it. For
    ``named`` and ``pyformat`` the parameters are called p1, p2, ...
    """
    if count == 0:
        return sql, []
    order: list[int] = []
    pieces, position = [], 0
    for match in _TOKEN.finditer(sql):
        doubled = style in ("format", "pyformat")
        text = match[0].replace("%", "%%") if doubled else match[0]
        if match["number"]:
            number = int(match["number"])
            order.append(number - 1)
            text = _STYLES[style].format(number)
        pieces += [sql[position : match.start()], text]
        position = match.end()
    text = "".join([*pieces, sql[position:]])
    return text, order if style in ("qmark", "format") else list(range(count))


_STYLES = {
    "dollar": "${}",
    "qmark": "?",
    "numeric": ":{}",
    "named": ":p{}",
    "format": "%s",
    "pyformat": "%(p{})s",
}


def may_write(statements: Sequence[str]) -> bool:
    """Return whether any statement may change data, that is, does not clearly just read."""
    return any(not _reads(words) for words in map(_words, statements))


def returns_rows(sql: str) -> bool:
    """Return whether a statement returns rows rather than just a count of changed rows."""
    words = _words(sql)
    return _reads(words) or "returning" in words or (bool(words) and words[0] == "pragma")


def _reads(words: list[str]) -> bool:
    return bool(words) and words[0] in _READING and not _WRITING.intersection(words)


def _words(sql: str) -> list[str]:
    return [match["word"].lower() for match in _TOKEN.finditer(sql) if match["word"]]


def _piece(script: str, start: int, end: int) -> Piece:
    """Cut out a statement with the comments before it. Its line is the line of its first word."""
    first = next(match.start() for match in _TOKEN.finditer(script, start, end) if match["word"])
    return Piece(script.count("\n", 0, first) + 1, script[start:end].strip())
