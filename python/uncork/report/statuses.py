"""How charts group HTTP statuses: individually if there are few, otherwise by class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST: Final = 6
"""Above this number, statuses are drawn by class, so that each line has its own colour."""


def status_groups(statuses: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the statuses of each group by its name, in order: ``404``, or ``4xx`` with all its statuses."""
    ordered = sorted(set(statuses), key=int)
    names = {text: text if len(ordered) <= _MOST else f"{int(text) // 100}xx" for text in ordered}
    return {
        name: frozenset(text for text in ordered if names[text] == name)
        for name in dict.fromkeys(names.values())
    }
