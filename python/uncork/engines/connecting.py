"""Open uncork's own connections to PostgreSQL; each carries a name that tells what it is for."""

from __future__ import annotations

from typing import Any

import psycopg

from uncork.model.application import WATCH_APPLICATION

__all__ = ["connect_to_watch"]


def connect_to_watch(conninfo: str, **options: Any) -> psycopg.Connection:
    """Open a connection, in autocommit, that looks at the server and is not part of its load.

    It carries `WATCH_APPLICATION`, whatever name `conninfo` gives to a load.

    Raises:
        psycopg.Error: if the server cannot be reached or refuses us.
    """
    return psycopg.connect(conninfo, autocommit=True, application_name=WATCH_APPLICATION, **options)
