"""What is drawn of HTTP's statuses over time: each by itself where they are few, else their classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["status_groups"]

_MOST: Final = 6
"""More statuses than these are drawn by class: each line keeps a colour of its own."""


def status_groups(statuses: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return what stands together by its name, in order: ``404``, or ``4xx`` with all that are in it."""
    ordered = sorted(set(statuses), key=int)
    names = {one: one if len(ordered) <= _MOST else f"{int(one) // 100}xx" for one in ordered}
    return {
        name: frozenset(one for one in ordered if names[one] == name)
        for name in dict.fromkeys(names.values())
    }
