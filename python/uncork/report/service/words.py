"""Words of the report on a profiled service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncork.model.results.service import PlaceKind

PLACES: Final[Mapping[PlaceKind, str]] = {
    "database parsing": "database: parsing statements",
    "database planning": "database: planning statements",
    "database cpu": "database: computing",
    "database queue": "database: waiting for a processor",
    "locks": "database: waiting for locks",
    "commit": "database: waiting for commits to be safe on disk",
    "storage": "database: waiting for storage",
    "internal locks": "database: waiting for each other",
    "database other": "database: other waits",
    "idle in transaction": "service: between statements of an open transaction",
    "service cpu": "service: computing",
    "service queue": "service: waiting for a processor",
    "process queue": "service: waiting for a free process",
    "pool wait": "service: waiting for a connection of PgBouncer",
    "service wait": "service: other waits",
}
"""Each place where requests pass their time, as a table names it."""


def percent_text(share: float) -> str:
    """Return a fraction as a percentage: ``61 %``, ``0.4 %``."""
    return f"{share * 100:.0f} %" if share >= 0.01 or not share else f"{share * 100:.1g} %"


def many_text(number: float | None) -> str:
    """Return a mean count: ``50``, ``1.02``, ``0.1``; empty if unknown."""
    if number is None:
        return ""
    return f"{number:.0f}" if number >= 10 and abs(number - round(number)) < 0.05 else f"{number:.3g}"
