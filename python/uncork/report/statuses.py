"""How charts group HTTP statuses: individually if there are few, otherwise by class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST: Final = 6
"""Above this number, statuses are drawn by class, so that each line has its own colour."""


def status_groups(statuses: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the statuses of each group by its name, in order: ``404``, or ``4xx`` with all its statuses."""
    ordered = sorted(set(statuses), key=int)
    names = {one: one if len(ordered) <= _MOST else f"{int(one) // 100}xx" for one in ordered}
    return {
        name: frozenset(one for one in ordered if names[one] == name)
        for name in dict.fromkeys(names.values())
    }
