"""Open uncork's own connections to PostgreSQL, with an application name that identifies their purpose."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg

from uncork.errors import ConnectError
from uncork.model.server import WATCH_APPLICATION

__all__ = ["connect_error", "connect_to_watch"]

_REMEDIES: Final = (
    ("password authentication failed", "check the user and the password (PGPASSWORD or ~/.pgpass)"),
    ("no password supplied", "set PGPASSWORD, or add the password to ~/.pgpass"),
    ("no pg_hba.conf entry", "allow this user and this address in the server's pg_hba.conf"),
    ("too many clients", "close other connections, or raise max_connections"),
    ("remaining connection slots", "close other connections, or raise max_connections"),
    ("timeout expired", "check the host, the port, and any firewall in between"),
    ("failed to resolve host", "check the host name"),
)
"""What to do about a failure to connect, by a part of its message. libpq explains some others itself."""


def connect_to_watch(conninfo: str, **options: Any) -> psycopg.Connection:
    """Open an autocommit connection for watching the server, not for load.

    Its application name is `WATCH_APPLICATION`, whatever `conninfo` says.

    Raises:
        psycopg.Error: if the server cannot be reached, or refuses the connection.
    """
    return psycopg.connect(conninfo, autocommit=True, application_name=WATCH_APPLICATION, **options)


def connect_error(error: psycopg.Error) -> ConnectError:
    """Return the ConnectError for a failure to connect: the address, libpq's reason, and what to do."""
    reason = re.sub(r"^(connection failed|connection is bad): ", "", " ".join(str(error).split()))
    if isinstance(error, psycopg.ProgrammingError):
        return ConnectError(
            f'the connection string is not valid: {reason}; write postgresql://user@host/database or "host=… '
            'dbname=…"'
        )
    remedy = next((f"; {text}" for part, text in _REMEDIES if part in reason), "")
    return ConnectError(f"cannot connect to the server: {reason}{remedy}")
