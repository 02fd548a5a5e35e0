"""Measure how long a session of the server holds locks on tables, by asking for them very often."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.watch.snapshot_sql import LOCKS_HELD
from uncork.errors import ServerCrash

_Lock = tuple[str, int, str]


class LockProbe:
    """Follows the locks of the session with the process id `pid`.

    `longest_ns` is at least as long as the longest lock that was seen: each is taken to begin with the look
    before the first that saw it, and to end with the look after the last. A lock between two looks is not
    seen. `looks` counts them.

    Raises:
        ConnectError: if the server cannot be reached.
    """

    PAUSE_S: Final = 0.001
    """The time to wait between two looks."""

    def __init__(self, conninfo: str, pid: int) -> None:
        try:
            self._connection = connect_to_watch(conninfo)
        except psycopg.Error as error:
            raise connect_error(error) from error
        self._pid = pid
        self._since: dict[_Lock, int] = {}
        self._before = time.monotonic_ns()
        self.looks = 0
        self.longest_ns = 0

    def look(self) -> None:
        """Ask the server once.

        Raises:
            ServerCrash: if it went away.
        """
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
