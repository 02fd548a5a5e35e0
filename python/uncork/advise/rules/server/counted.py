"""Growth of the server's counters, and sizes among its settings. Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.advise.evidence import Evidence

_SIZE: Final = re.compile(r"(\d+)\s*(B|kB|MB|GB|TB)")
_UNITS: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""PostgreSQL's units of memory are powers of 1024."""


def grown(evidence: Evidence, *names: str) -> float:
    """Return how much counters grew during the watch, summed over names and objects; 0 if unknown."""
    counters = () if evidence.database is None else evidence.database.counters
    return sum(counter.delta for counter in counters if counter.counter in names)


def wal_writes(evidence: Evidence) -> float:
    """Return how often the server wrote WAL to its files; 0 if unknown."""
    return grown(evidence, "wal_write") or _wal_io(evidence, "writes")


def wal_flushes(evidence: Evidence) -> float:
    """Return how often the server flushed WAL to disk; 0 if unknown."""
    return grown(evidence, "wal_sync") or _wal_io(evidence, "fsyncs")


def _wal_io(evidence: Evidence, name: str) -> float:
    """Return a counter of WAL in pg_stat_io, which replaces those of pg_stat_wal from PostgreSQL 18 on."""
    counters = () if evidence.database is None else evidence.database.counters
    return sum(
        counter.delta
        for counter in counters
        if counter.view == "pg_stat_io" and counter.counter == name and ", wal, normal" in counter.object
    )


def setting(name: str, evidence: Evidence) -> str:
    """Return the value of a setting of the server; an empty string if it is unknown."""
    settings = () if evidence.database is None else evidence.database.settings
    return evidence.catalogue.setting(name) or next((one.value for one in settings if one.name == name), "")


def setting_bytes(name: str, evidence: Evidence) -> int | None:
    """Return a size among the server's settings in bytes; None if it is unknown."""
    match = _SIZE.fullmatch(setting(name, evidence).strip())
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def size_text(size: int) -> str:
    """Return a size as PostgreSQL writes it in settings: ``32kB``, ``128MB``, ``4GB``."""
    whole = [unit for unit in ("GB", "MB") if size and size % _UNITS[unit] == 0]
    unit = whole[0] if whole else "kB"
    return f"{size // _UNITS[unit]}{unit}"
