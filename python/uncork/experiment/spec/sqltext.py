"""Find ``:name`` in SQL text, and replace it by texts or by ``$1``, or the other way round.

The notation is that of psql and pgbench: ``:name`` is replaced except in string literals, quoted identifiers,
comments and dollar quotes. ``::type`` is a cast and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

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
    | \$(?P<number>[0-9]+)
    | (?P<end>;)
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

    `names` has the column of each parameter in the parameter table. Return the text, and the column that
    provides the value of each number; a name used twice is bound once.
    """
    order: dict[str, int] = {}

    def number(name: str) -> str | None:
        return f"${order.setdefault(name, len(order) + 1)}" if name in names else None

    text = _replace(sql, number)
    return text, [names[name] for name in order]


def named(sql: str) -> str:
    """Return a statement with ``:p1`` for ``$1``, as a workload writes it; any ``:name`` is kept as SQL."""
    plain = plain_colons(sql)
    return renumbered(plain, {number: f":p{number}" for number in numbers_in(plain)})


def renumbered(sql: str, texts: Mapping[int, str]) -> str:
    """Return SQL with the texts in place of ``$1``, ``$2``, ...; other numbers stay."""
    pieces: list[str] = []
    for match, text in _tokens(sql):
        number = None if match is None else match["number"]
        pieces.append(text if number is None else texts.get(int(number), text))
    return "".join(pieces)


def masked(sql: str) -> str:
    """Return SQL of the same length, with blanks in place of comments, strings and quoted identifiers."""
    return "".join(
        text if match is None or match["name"] or match["number"] or match["end"] else " " * len(text)
        for match, text in _tokens(sql)
    )


def plain_colons(sql: str) -> str:
    """Return SQL in which ``:name``, as in ``list[1:size]``, is not a name of the experiment file."""
    return _replace(sql, lambda name: f": {name}")


def numbers_in(sql: str) -> set[int]:
    """Return the numbers written as ``$1``."""
    return {int(match["number"]) for match, _ in _tokens(sql) if match is not None and match["number"]}


def statements_in(sql: str) -> list[str]:
    """Return the statements of a script, without semicolons and without empty ones."""
    found = [""]
    for match, text in _tokens(sql):
        if match is not None and match["end"]:
            found.append("")
        else:
            found[-1] += text
    return [text.strip() for text in found if text.strip()]


def _tokens(sql: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Yield each match of `_TOKEN` with its whole text, and the texts between with None."""
    position = 0
    while match := _TOKEN.search(sql, position):
        end = match.end() if match["comment"] is None else _comment_end(sql, match.end())
        yield None, sql[position : match.start()]
        yield match, sql[match.start() : end]
        position = end
    yield None, sql[position:]


def _replace(sql: str, text_for: Callable[[str], str | None]) -> str:
    """Replace each name by its `text_for`; a name for which that is None stays."""
    pieces: list[str] = []
    for match, written in _tokens(sql):
        text = None if match is None or match["name"] is None else text_for(match["name"])
        pieces.append(written if text is None else text)
    return "".join(pieces)


def _comment_end(sql: str, position: int) -> int:
    depth = 1
    for match in _COMMENT_EDGE.finditer(sql, position):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(sql)
