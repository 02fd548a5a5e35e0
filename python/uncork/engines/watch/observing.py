"""Observers that are part of PostgreSQL, turned on by settings of a session, and whether we may set them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.engines.watch.snapshot_sql import LOCKS_HELD
from uncork.errors import ServerCrash, SetupError

Setting = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SettingObserver:
    """An observer that is part of the server: its title, and the settings that turn it on."""

    title: str
    settings: Mapping[str, Setting]


QUIET: Final[Mapping[str, Setting]] = {
    "pg_stat_statements.track": "none",
    "compute_query_id": "off",
    "track_io_timing": False,
    "log_min_duration_statement": -1,
}
"""The settings that turn every observer off, as far as a session can."""

SETTING_OBSERVERS: Final[Mapping[str, SettingObserver]] = {
    "pg_stat_statements": SettingObserver(
        "pg_stat_statements counts every statement",
        {"pg_stat_statements.track": "top", "compute_query_id": "auto"},
    ),
    "auto_explain": SettingObserver(
        "auto_explain measures every plan, and logs those over 1 s",
        {
            "session_preload_libraries": "auto_explain",
            "auto_explain.log_min_duration": "1s",
            "auto_explain.log_analyze": True,
            "auto_explain.log_buffers": True,
        },
    ),
    "auto_explain_no_timing": SettingObserver(
        "the same without the time of each node",
        {
            "session_preload_libraries": "auto_explain",
            "auto_explain.log_min_duration": "1s",
            "auto_explain.log_analyze": True,
            "auto_explain.log_timing": False,
        },
    ),
    "log_statements": SettingObserver(
        "log_min_duration_statement = 0 logs every statement with its time", {"log_min_duration_statement": 0}
    ),
    "track_io_timing": SettingObserver("track_io_timing times reads and writes", {"track_io_timing": True}),
}


def create_extension(conninfo: str, name: str) -> None:
    """Create an extension in a database of a server that is ours.

    Raises SetupError if the server refuses.
    """
    try:
        with connect_to_watch(conninfo) as connection:
            connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise SetupError(f"cannot create {name}: {' '.join(str(error).split())}") from error


def count_statements(conninfo: str) -> None:
    """Let pg_stat_statements count statements and their planning, on a server that is ours.

    Raises SetupError if the server refuses.
    """
    create_extension(conninfo, "pg_stat_statements")
    try:
        with connect_to_watch(conninfo) as connection:
            connection.execute("ALTER SYSTEM SET pg_stat_statements.track_planning = on")
            connection.execute("SELECT pg_catalog.pg_reload_conf()")
    except psycopg.Error as error:
        raise SetupError(f"cannot count planning: {' '.join(str(error).split())}") from error


def refusal(conninfo: str, settings: Mapping[str, Setting]) -> str | None:
    """Return why the server refuses a session with these settings; None if it accepts them."""
    options = " ".join(f"-c {name}={_text(value)}" for name, value in settings.items())
    try:
        with connect_to_watch(conninfo, options=options) as connection:
            for name in settings:
                if name.startswith("pg_stat_statements."):
                    # Without the library, the server accepts any name with a dot and ignores it.
                    connection.execute("SELECT current_setting('pg_stat_statements.max')")
                if name == "session_preload_libraries":
                    connection.execute("SELECT current_setting('auto_explain.log_nested_statements')")
    except psycopg.Error as error:
        # If the connection is refused, psycopg's message names the address before the reason.
        return reason_of(error).rpartition("FATAL: ")[2].strip()
    return None


def _text(value: Setting) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value).replace(" ", "\\ ")


# ---- locks that are held ----


_Lock = tuple[str, int, str]


class LockProbe:
    """Follows the locks of the session with the process id `pid`.

    `longest_ns` is at least as long as the longest lock that was seen: each is taken to begin with
    the look before the first that saw it, and to end with the look after the last. A lock between
    two looks is not seen. `looks` counts them. Raises ConnectError if the server cannot be reached.
    """

    PAUSE_S: Final = 0.001
    """The time to wait between two looks."""

    def __init__(self, conninfo: str, pid: int) -> None:
        with connect_errors():
            self._connection = connect_to_watch(conninfo)
        self._pid = pid
        self._since: dict[_Lock, int] = {}
        self._before = time.monotonic_ns()
        self.looks = 0
        self.longest_ns = 0

    def look(self) -> None:
        """Ask the server once. Raises ServerCrash if it went away."""
        asked = time.monotonic_ns()
        try:
            rows = self._connection.execute(LOCKS_HELD.encode(), {"pid": self._pid}, prepare=True).fetchall()
        except psycopg.Error as error:
            raise ServerCrash(f"the server went away: {' '.join(str(error).split())}") from error
        answered = time.monotonic_ns()
        held = {(transaction, relation, mode) for transaction, relation, mode in rows}
        for lock in held:
            self._since.setdefault(lock, self._before)
        for since in self._since.values():
            self.longest_ns = max(self.longest_ns, answered - since)
        self._since = {lock: since for lock, since in self._since.items() if lock in held}
        self._before = asked
        self.looks += 1

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
