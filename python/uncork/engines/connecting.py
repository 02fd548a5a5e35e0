"""Open uncork's own connections to PostgreSQL, with an application name that identifies their purpose."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from uncork.errors import ConnectError
from uncork.model.server import WATCH_APPLICATION

# psycopg warns about connections that are lost, which uncork reports itself.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_REMEDIES: Final = (
    ("password authentication failed", "check the user and the password (PGPASSWORD or ~/.pgpass)"),
    ("no password supplied", "set PGPASSWORD, or add the password to ~/.pgpass"),
    ("no pg_hba.conf entry", "allow this user and this address in the server's pg_hba.conf"),
    ("FATAL: database", "check the name of the database"),
    ("FATAL: role", "check the name of the user"),
    ("permission denied for database", "GRANT CONNECT ON DATABASE … TO this user"),
    ("database system is starting up", "wait until the server has started"),
    ("database system is shutting down", "start the server again"),
    (
        "too many connections for",
        "close other connections, or raise the CONNECTION LIMIT of the role or database",
    ),
    ("too many clients", "close other connections, or raise max_connections"),
    (
        "unsupported startup parameter",
        "connect to the server itself, leave out options and PGOPTIONS, or add the parameter "
        "to ignore_startup_parameters of PgBouncer",
    ),
    ("no more connections allowed", "close other connections, or raise max_client_conn of PgBouncer"),
    ("bouncer config error", "check that PgBouncer's configuration contains this database and this user"),
    ("no such database", "check the name of the database"),
    ("no such user", "check the name of the user"),
    ("remaining connection slots", "close other connections, or raise max_connections"),
    ("timeout expired", "check the host, the port, and any firewall in between"),
    ("failed to resolve host", "check the host name"),
)
"""What to do about a failure to connect, by a part of its message. libpq explains some others itself."""


def connect_to_watch(conninfo: str, **options: Any) -> psycopg.Connection:
    """Open an autocommit connection for watching the server, not for load.

    Its application name is `WATCH_APPLICATION`, whatever `conninfo` says. Raises psycopg.Error if
    the server cannot be reached, or refuses the connection.
    """
    return psycopg.connect(conninfo, autocommit=True, application_name=WATCH_APPLICATION, **options)


def time_to_connect(conninfo: str) -> int:
    """Open and close a connection; return how many nanoseconds it took to open.

    Raises ConnectError if the server cannot be reached, or refuses the connection.
    """
    started = time.monotonic_ns()
    with connect_errors(), connect_to_watch(conninfo):
        return time.monotonic_ns() - started


@contextmanager
def connect_errors() -> Iterator[None]:
    """Raise ConnectError for any error of psycopg in the block."""
    try:
        yield
    except psycopg.Error as error:
        raise connect_error(error) from error


def connect_error(error: psycopg.Error) -> ConnectError:
    """Return the ConnectError for a failure to connect: the address, libpq's reason, and what to do."""
    text = str(error).replace("\n\tIs the server", "; is the server")  # libpq asks in a line of its own
    reason = re.sub(r"^(connection failed|connection is bad): ", "", " ".join(text.split()))
    if isinstance(error, psycopg.ProgrammingError):
        return ConnectError(
            f'the connection string is not valid: {reason}; write postgresql://user@host/database or "host=… '
            'dbname=…"'
        )
    remedy = next((f"; {text}" for part, text in _REMEDIES if part in reason), "")
    return ConnectError(f"cannot connect to the server: {reason}{remedy}")


def reason_of(error: psycopg.Error) -> str:
    """Return the server's words for an error, or else libpq's, in one line."""
    return error.diag.message_primary or " ".join(str(error).split())
