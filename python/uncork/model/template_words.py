"""Shorten templates of statements to one line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

_WIDTH: Final = 90
_INLINE_WIDTH: Final = 60
_SELECT: Final = "select "
_MARKS: Final = re.compile(r"[()]| from ")
_LEAST_COLUMNS: Final = 4
"""Minimum number of characters to save by leaving out columns: the length of the ellipsis."""
_LONGEST_COLUMN: Final = 40
_BEFORE: Final = 12
"""Characters to show before the place where a template differs from another."""


def short_template(text: str, width: int = _WIDTH) -> str:
    """Shorten a template to one line, leaving out the columns of a query first to keep its tables."""
    if len(text) > width:
        text = _without_columns(text)
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def inline_statement(text: str) -> str:
    """Return a statement as a sentence names it: in one line, shortened to 60 characters."""
    return short_template(" ".join(text.split()), _INLINE_WIDTH)


def short_templates(texts: Sequence[str], width: int = _WIDTH) -> list[str]:
    """Shorten templates of one table to one line each, so that different templates look different.

    Templates that would look the same show, after their beginning, the part in which they differ.
    """
    short = [short_template(text, width) for text in texts]
    alike: dict[str, set[str]] = defaultdict(set)
    for shown, text in zip(short, texts, strict=True):
        alike[shown].add(text)
    return [
        shown if len(alike[shown]) == 1 else _from_difference(text, alike[shown] - {text}, width)
        for shown, text in zip(short, texts, strict=True)
    ]


def _from_difference(text: str, others: Iterable[str], width: int) -> str:
    """Return the beginning of a text, and its part from where it differs from the most similar other one."""
    place = max(_alike(text, other) for other in others)
    head = text[: max(_LEAST_COLUMNS, width // 3)].rstrip()
    room = max(_LEAST_COLUMNS, width - len(head) - 3)
    start = max(len(head), min(place - _BEFORE, len(text) - room))
    tail = text[start:]
    cut = tail if len(tail) <= room else f"{tail[: room - 1].rstrip()}…"
    return f"{head} … {cut.lstrip()}"


def _alike(one: str, other: str) -> int:
    """Return how many characters two different texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _without_columns(text: str) -> str:
    """Return ``select id, … from orders`` for a query with many columns; return other texts unchanged."""
    end = _end_of_columns(text)
    first = text.find(",", len(_SELECT))
    if 0 < first < end - _LEAST_COLUMNS:
        return f"{text[: min(first, _LONGEST_COLUMN)]}, …{text[end:]}"
    return text


def _end_of_columns(text: str) -> int:
    """Return the position of a query's first `` from `` outside parentheses; 0 if there is none."""
    if text.startswith(_SELECT):
        depth = 0
        for match in _MARKS.finditer(text, len(_SELECT)):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if match[0] == " from " and not depth:
                return match.start()
    return 0
