"""Extensions that variants need: check that a server has them, and find libraries it must load at start."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

LIBRARIES = {
    "citus": "citus",
    "pg_cron": "pg_cron",
    "pg_stat_statements": "pg_stat_statements",
    "pgaudit": "pgaudit",
    "timescaledb": "timescaledb",
}
"""Extensions that work only if the server loads their library at start, with the library's name."""


def extensions_lacking(control: psycopg.Connection, extensions: Sequence[str]) -> str | None:
    """Return which extension is not available on the server, and why; None if all are."""
    here = _available(control, extensions)
    loaded = _loaded(control)
    for name in extensions:
        if name not in here:
            return f"the extension {name} is not installed on the server"
        if LIBRARIES.get(name, name) not in loaded and name in LIBRARIES:
            return (
                f"the extension {name} is installed but not loaded: add {LIBRARIES[name]} to "
                "shared_preload_libraries, and restart the server"
            )
    return None


def libraries_to_load(control: psycopg.Connection, extensions: Sequence[str]) -> list[str]:
    """Return the libraries of available extensions that the server must load at start, but does not."""
    loaded = _loaded(control)
    here = _available(control, extensions)
    needed = (LIBRARIES[name] for name in extensions if name in LIBRARIES and name in here)
    return [library for library in dict.fromkeys(needed) if library not in loaded]


def _available(control: psycopg.Connection, extensions: Sequence[str]) -> set[str]:
    query = "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)"
    return {str(name) for (name,) in control.execute(query, [list(extensions)]).fetchall()}


def _loaded(control: psycopg.Connection) -> set[str]:
    (text,) = control.execute("SELECT current_setting('shared_preload_libraries')").fetchone() or ("",)
    return {name.strip().strip('"') for name in str(text).split(",")}
