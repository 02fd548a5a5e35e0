"""Shorten templates of statements to one line."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["short_template"]

_WIDTH: Final = 90
_SELECT: Final = "select "
_MARKS: Final = re.compile(r"[()]| from ")
_LEAST_COLUMNS: Final = 4
"""Minimum number of characters to save by leaving out columns: the length of the ellipsis."""
_LONGEST_COLUMN: Final = 40


def short_template(text: str, width: int = _WIDTH) -> str:
    """Shorten a template to one line, leaving out the columns of a query first to keep its tables."""
    if len(text) > width:
        text = _without_columns(text)
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


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
