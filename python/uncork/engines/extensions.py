"""Extensions that variants need: whether a server has them, and what it must load when it starts."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

__all__ = ["LIBRARIES", "extensions_lacking", "libraries_to_load"]

LIBRARIES = {
    "citus": "citus",
    "pg_cron": "pg_cron",
    "pg_stat_statements": "pg_stat_statements",
    "pgaudit": "pgaudit",
    "timescaledb": "timescaledb",
}
"""Extensions of no use unless the server loads their library as it starts, with that library."""


def extensions_lacking(control: psycopg.Connection, extensions: Sequence[str]) -> str | None:
    """Say which extension the server cannot give, and why; None if it has them all."""
    here = _available(control, extensions)
    loaded = _loaded(control)
    for name in extensions:
        if name not in here:
            return f"the server has no extension {name}"
        if LIBRARIES.get(name, name) not in loaded and name in LIBRARIES:
            return f"the server has {name}, but does not load it as it starts (shared_preload_libraries)"
    return None


def libraries_to_load(control: psycopg.Connection, extensions: Sequence[str]) -> list[str]:
    """Return what a server must load as it starts and does not, of the extensions that it has."""
    loaded = _loaded(control)
    here = _available(control, extensions)
    wanted = (LIBRARIES[name] for name in extensions if name in LIBRARIES and name in here)
    return [library for library in dict.fromkeys(wanted) if library not in loaded]


def _available(control: psycopg.Connection, extensions: Sequence[str]) -> set[str]:
    query = "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)"
    return {str(name) for (name,) in control.execute(query, [list(extensions)]).fetchall()}


def _loaded(control: psycopg.Connection) -> set[str]:
    (text,) = control.execute("SELECT current_setting('shared_preload_libraries')").fetchone() or ("",)
    return {name.strip().strip('"') for name in str(text).split(",")}
