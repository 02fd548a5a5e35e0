"""Find ``:name`` in SQL text, and replace it by texts or by ``$1``.

The notation is that of psql and pgbench: ``:name`` is replaced except in string literals, quoted identifiers,
comments and dollar quotes. ``::type`` is a cast and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["bind", "names_in", "substitute"]

_TOKEN = re.compile(
    r"""
      (?P<skip>
          --[^\n]*                                   # comment to the end of the line
        | (?P<comment>/\*)                           # C-style comment; see _comment_end
        | (?<!\w)[eE]'(?:[^'\\]|\\.|'')*'           # string with escapes
        | '(?:[^']|'')*'                             # string
        | "(?:[^"]|"")*"                             # quoted identifier
        | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$   # dollar quotes
        | ::                                         # cast
        | :=
      )
    | :(?P<name>[A-Za-z][A-Za-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def names_in(sql: str) -> set[str]:
    """Return the names written as ``:name``."""
    found: set[str] = set()

    def collect(name: str) -> None:
        found.add(name)

    _replace(sql, collect)
    return found


def substitute(sql: str, texts: Mapping[str, str]) -> str:
    """Replace each name by its text; names without a text stay unchanged."""
    return _replace(sql, texts.get)


def bind(sql: str, names: Mapping[str, int]) -> tuple[str, list[int]]:
    """Replace parameters by ``$1``, ``$2``, ....

    Args:
        sql: the text.
        names: for each parameter, its column in the parameter table.

    Returns:
        The text, and for ``$1``, ``$2``, ... the column that provides its value. A name used twice is bound
        once.
    """
    order: dict[str, int] = {}

    def number(name: str) -> str | None:
        return f"${order.setdefault(name, len(order) + 1)}" if name in names else None

    text = _replace(sql, number)
    return text, [names[name] for name in order]


def _replace(sql: str, text_for: Callable[[str], str | None]) -> str:
    """Replace each name by its `text_for`; a name for which that is None stays."""
    pieces: list[str] = []
    position = 0
    while match := _TOKEN.search(sql, position):
        name = match["name"]
        end = match.end() if match["comment"] is None else _comment_end(sql, match.end())
        text = None if name is None else text_for(name)
        pieces += [sql[position : match.start()], sql[match.start() : end] if text is None else text]
        position = end
    return "".join([*pieces, sql[position:]])


def _comment_end(sql: str, position: int) -> int:
    """Return the end of a comment that began before `position`; PostgreSQL's comments nest."""
    depth = 1
    for match in _COMMENT_EDGE.finditer(sql, position):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(sql)
