"""Prepare a server for a load: read its settings, and vacuum its pgbench tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.host import machine_facts
from uncork.engines.watch.observe import server_facts

_USUAL: Final = (
    "VACUUM pgbench_branches",
    "VACUUM pgbench_tellers",
    "TRUNCATE pgbench_history",
)
_ACCOUNTS: Final = "VACUUM (ANALYZE) pgbench_accounts"


def describe(conninfo: str) -> dict[str, dict[str, str]]:
    """Return facts about the server, with the settings that differ from the defaults, and about this machine.

    Raises:
        ConnectError: if the server cannot be reached, or refuses the connection.
    """
    with _connected(conninfo) as connection:
        return {"server": server_facts(connection), "machine": machine_facts()}


def vacuum(conninfo: str, *, accounts: bool) -> list[str]:
    """Vacuum pgbench's small tables and empty its history, as pgbench does.

    With `accounts`, also vacuum and analyse the accounts table. Return a sentence for each command that the
    server refused; the load goes on without it.

    Raises:
        ConnectError: if the server cannot be reached, or refuses the connection.
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
        raise connect_error(error) from error
    with connection:
        yield connection
