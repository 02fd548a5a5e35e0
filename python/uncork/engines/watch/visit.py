"""A short visit to a server that is about to be loaded: what it is, and its pgbench tables vacuumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from uncork.engines.connecting import connect_to_watch
from uncork.engines.host import machine_facts
from uncork.engines.watch.observe import server_facts
from uncork.errors import ConnectError

__all__ = ["describe", "vacuum"]

_USUAL: Final = (
    "VACUUM pgbench_branches",
    "VACUUM pgbench_tellers",
    "TRUNCATE pgbench_history",
)
_ACCOUNTS: Final = "VACUUM (ANALYZE) pgbench_accounts"


def describe(conninfo: str) -> dict[str, dict[str, str]]:
    """Return what the server is, with the settings that differ from PostgreSQL's, and what this machine is.

    Raises:
        ConnectError: if the server cannot be reached or refuses us.
    """
    with _connected(conninfo) as connection:
        return {"server": server_facts(connection), "machine": machine_facts()}


def vacuum(conninfo: str, *, accounts: bool) -> list[str]:
    """Vacuum pgbench's small tables and empty its history, as pgbench does; with `accounts` that table too.

    Returns what the server refused of it, a sentence each: a load goes on without.

    Raises:
        ConnectError: if the server cannot be reached or refuses us.
    """
    refused = []
    with _connected(conninfo) as connection:
        for command in (*_USUAL, *((_ACCOUNTS,) if accounts else ())):
            try:
                connection.execute(command)
            except psycopg.Error as error:
                refused.append(f"{command}: {error.diag.message_primary or error}")
    return refused


@contextmanager
def _connected(conninfo: str) -> Iterator[psycopg.Connection]:
    try:
        connection = connect_to_watch(conninfo)
    except psycopg.Error as error:
        raise ConnectError(" ".join(str(error).split())) from error
    with connection:
        yield connection
