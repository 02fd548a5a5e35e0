"""The session of a watch: read-only, with short timeouts, on the server itself or through a pooler.

A pooler such as PgBouncer can send each transaction of a client to another session of the server,
and later hands that session to an application. A session that uncork made read-only would then
refuse the application's writes. Through a pooler, uncork therefore sets everything for one
transaction only, and prepares nothing that outlives it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq.abc import PGresult

from uncork.engines.connecting import connect_error, connect_errors, connect_to_watch
from uncork.engines.watch.snapshot_sql import MARK, VALUES_OF_SETTINGS, backend
from uncork.errors import ConnectError
from uncork.model.database.names import literal

_ROUND_TRIPS: Final = 20
_ROUND_TRIPS_NS: Final = 200_000_000
"""Most empty statements whose time is measured, and for how long at most."""
_READ_ONLY: Final = {"transaction_read_only": "on", "jit": "off"}
_PLACEHOLDER: Final = re.compile(r"%\(\w+\)s|%%")
_SETTING: Final = "SELECT {mark} {calls} FROM pg_catalog.pg_backend_pid(); "
"""Sets settings. The FROM distinguishes the query from those of applications in pg_stat_statements."""

_OWN_QUERIES: Final[set[str]] = set()


def own_queries() -> frozenset[str]:
    """Return the queries that this process has sent to watched servers, as pg_stat_statements shows them.

    Their parameters are $1, so that they have the templates of the server's texts. Statements of
    applications that uncork asked the plans of are not among them.
    """
    return frozenset(_OWN_QUERIES)


def add_own_query(query: str) -> None:
    """Record a query that is sent otherwise than by a WatchSession's methods."""
    _OWN_QUERIES.add(query)


class WatchSession:
    """A read-only session whose settings are known.

    `pooled` means that the connection goes through a pooler; `pid` is the server process that
    answered first. `hidden` means that pg_stat_statements does not count what this session
    executes. Raises ConnectError if the server cannot be reached or refuses the connection, or a
    pooler allows no transactions.
    """

    def __init__(self, conninfo: str) -> None:
        with connect_errors():
            self.connection = connect_to_watch(conninfo)
        self._settings: dict[str, str] = {}
        try:
            query = backend(self.connection.info.server_version // 10000)
            row: tuple[int, bool] = self.connection.execute(query.encode()).fetchone() or (0, False)
            _OWN_QUERIES.add(query)
            self.pid, may_hide = row
            self.hidden = False
            # A pooler gives its clients keys of its own to cancel queries.
            self.pooled = self.pid != self.connection.info.backend_pid
            if self.pooled:
                self._settings = dict(_READ_ONLY)
                self.connection.cursor_factory = psycopg.ClientCursor
                self.connection.prepare_threshold = None
                self.connection.execute(f"BEGIN {MARK}".encode())
                self.connection.execute(f"ROLLBACK {MARK}".encode())
            else:
                self._change(f"SET {MARK} SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
                if may_hide:
                    self._change(f"SET {MARK} pg_stat_statements.track = 'none'")
                    self.hidden = True
                self.set(jit="off")
        except psycopg.Error as error:
            self.connection.close()
            if "statement pooling" in str(error):
                raise ConnectError(
                    "cannot watch through this pooler: it uses statement pooling, which allows no "
                    "transactions; connect to the server itself, or to a pool in session or transaction mode"
                ) from error
            raise connect_error(error) from error

    @property
    def lost(self) -> bool:
        """Whether the connection no longer works."""
        return self.connection.closed or self.connection.broken

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def set(self, **settings: str) -> None:
        """Change settings of this session; through a pooler, of each transaction from now on.

        Raises psycopg.Error if the server refuses.
        """
        if self.pooled:
            self._settings.update(settings)
            return
        for name, value in settings.items():
            self.execute(_setting({name: value}, local=False))

    def _change(self, statement: str) -> None:
        add_own_query(statement)
        self.connection.execute(statement.encode())

    @contextmanager
    def using(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Apply settings until the block ends. Skip a setting that the role may not change.

        Raises psycopg.Error if the server goes away.
        """
        if self.pooled:
            before, self._settings = self._settings, {**self._settings, **settings}
            try:
                yield
            finally:
                self._settings = before
            return
        rows = self.execute(VALUES_OF_SETTINGS, {"names": list(settings)}).fetchall() if settings else []
        known: dict[str, str] = {}
        for name, value in rows:
            with suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
                self.execute(_setting({name: settings[name]}, local=False))
                known[name] = value
        try:
            yield
        finally:
            if known and not self.lost:
                self.execute(_setting(known, local=False))

    def execute(
        self, query: str | sql.Composed, parameters: Mapping[str, Any] | None = None
    ) -> psycopg.Cursor:
        """Execute one or several statements; return the cursor with the rows of the last one.

        Raises psycopg.Error if the server refuses or went away.
        """
        composed = query if isinstance(query, sql.Composed) else sql.Composed([sql.SQL(query)])
        text = composed.as_string(self.connection)
        if parameters is not None:  # the server gets $1 for each placeholder of psycopg
            text = _PLACEHOLDER.sub(lambda found: "%" if found[0] == "%%" else "$1", text)
        _OWN_QUERIES.add(text)
        cursor = self.connection.execute(sql.SQL(self._prefix()) + composed, parameters)
        while cursor.nextset():
            pass
        return cursor

    def send(self, query: bytes) -> PGresult:
        """Execute a query through libpq; return its result."""
        return self.connection.pgconn.exec_(self._prefix().encode() + query)

    def round_trip_ns(self) -> float | None:
        """Return the shortest time from an empty statement to its answer; None if the connection is lost.

        The network, the protocol and both programs need at least this for each statement.
        """
        server = self.connection.pgconn
        found: list[int] = []
        begun = time.monotonic_ns()
        while len(found) < _ROUND_TRIPS and (not found or time.monotonic_ns() - begun < _ROUND_TRIPS_NS):
            sent = time.monotonic_ns()
            if server.exec_(b"").status != psycopg.pq.ExecStatus.EMPTY_QUERY:
                return None
            found.append(time.monotonic_ns() - sent)
        return float(min(found))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the same session of the server until the block ends, then undo all settings.

        Without a pooler, this does nothing.
        """
        if not self.pooled:
            yield
            return
        server = self.connection.pgconn
        server.exec_(f"BEGIN {MARK} READ ONLY; {self._prefix()}".encode())
        try:
            yield
        finally:
            server.exec_(f"ROLLBACK {MARK}".encode())

    def _prefix(self) -> str:
        """Return the statement that sets everything for one transaction; empty without a pooler.

        Statements that are sent together are one transaction.
        """
        return _setting(self._settings, local=True) if self._settings else ""


def _setting(settings: Mapping[str, str], *, local: bool) -> str:
    """Return the query that sets `settings` for the session, or `local` for its transaction."""
    calls = ", ".join(
        f"pg_catalog.set_config({literal(name)}, {literal(value)}, {str(local).lower()})"
        for name, value in settings.items()
    )
    query = _SETTING.format(mark=MARK, calls=calls)
    _OWN_QUERIES.add(query)
    return query
