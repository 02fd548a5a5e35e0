"""Growth of the server's counters, and sizes among its settings. Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.advise.evidence import Evidence

__all__ = ["grown", "setting", "setting_bytes", "size_text"]

_SIZE: Final = re.compile(r"(\d+)\s*(B|kB|MB|GB|TB)")
_UNITS: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""PostgreSQL's units of memory are powers of 1024."""


def grown(seen: Evidence, *names: str) -> float:
    """Return how much counters grew during the watch, summed over names and objects; 0 if unknown."""
    counters = () if seen.database is None else seen.database.counters
    return sum(one.delta for one in counters if one.counter in names)


def setting(name: str, seen: Evidence) -> str:
    """Return the value of a setting of the server; an empty string if it is unknown."""
    settings = () if seen.database is None else seen.database.settings
    return seen.catalogue.setting(name) or next((one.value for one in settings if one.name == name), "")


def setting_bytes(name: str, seen: Evidence) -> int | None:
    """Return a size among the server's settings in bytes; None if it is unknown."""
    match = _SIZE.fullmatch(setting(name, seen).strip())
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def size_text(size: int) -> str:
    """Return a size as PostgreSQL writes it in settings: ``128MB``, ``4GB``."""
    return f"{size >> 30}GB" if size and size % (1 << 30) == 0 else f"{size >> 20}MB"
