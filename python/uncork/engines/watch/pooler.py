"""Read what PgBouncer counts, from its console (the database `pgbouncer`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

import psycopg

from uncork.engines.connecting import connect_errors, connect_to_watch
from uncork.errors import ConnectError, ServerCrash

_CONSOLE: Final = "pgbouncer"
"""The console's own row among the databases."""
_TOTALS: Final = (
    *("total_xact_count", "total_query_count", "total_xact_time", "total_query_time", "total_wait_time"),
)
"""The columns of the fields of `PoolerCounts`, after the first."""


@dataclass(frozen=True, slots=True)
class PoolerCounts:
    """What PgBouncer counted since its start; `at_ns` is on the monotonic clock.

    The times are those of all clients together. That of transactions includes the wait for a connection.
    """

    at_ns: int
    transactions: int
    queries: int
    transaction_us: int
    query_us: int
    wait_us: int


class PoolerConsole:
    """A connection to the console of PgBouncer; the role must be one of admin_users or stats_users.

    Raises ConnectError if the console cannot be reached, or refuses the connection or its statistics.
    """

    def __init__(self, conninfo: str) -> None:
        with connect_errors():  # the console knows the simple protocol only
            self._connection = connect_to_watch(conninfo, cursor_factory=psycopg.ClientCursor)
        try:
            self.counts()
        except ServerCrash as error:
            self.close()
            raise ConnectError(
                f"this is not the console of PgBouncer, or it refuses its statistics ({error}); write "
                "dbname=pgbouncer, and a user of admin_users or stats_users"
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def counts(self, database: str | None = None) -> PoolerCounts:
        """Return what PgBouncer counted until now, for a database by the name its clients use, or for all.

        Raises ServerCrash if the console went away or refuses.
        """
        try:
            cursor = self._connection.execute("SHOW STATS")
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except psycopg.Error as error:
            raise ServerCrash(" ".join(str(error).split())) from error
        wanted = [row for row in rows if row["database"] != _CONSOLE and database in (None, row["database"])]
        return PoolerCounts(time.monotonic_ns(), *(sum(int(row[name]) for row in wanted) for name in _TOTALS))


@contextmanager
def pool_counted(
    pooler: PoolerConsole, missing: list[str], database: str | None = None
) -> Iterator[dict[str, float]]:
    """Count what a pooler does while the block runs, for one database or for all.

    Yields the counts by their names in `PoolerCounts`, with ``elapsed_ns``; filled when the block
    ends. If the console refuses then, they stay empty, and `missing` receives the reason. Raises
    ServerCrash if the console refuses at the beginning.
    """
    counted: dict[str, float] = {}
    before = pooler.counts(database)
    yield counted
    try:
        after = pooler.counts(database)
    except ServerCrash as error:
        missing.append(f"what the clients of PgBouncer waited for: {error}")
        return
    grown = {name: value - getattr(before, name) for name, value in asdict(after).items()}
    if min(grown.values()) < 0:
        missing.append("what the clients of PgBouncer waited for: it started anew meanwhile")
        return
    counted.update({"elapsed_ns": grown.pop("at_ns"), **grown})
