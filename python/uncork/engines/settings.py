"""Settings of the embedded server that differ from PostgreSQL's defaults, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DEFAULT_SETTINGS: dict[str, object] = {
    # A trial starts from a known state: vacuumed and checkpointed. Background work that starts at random
    # times is off; an experiment about it can turn it on again.
    "autovacuum": False,
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
    # Exact costs per operation and per statement.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "pg_stat_statements.save": False,
    "track_io_timing": True,
    # Enough for the data of all arms at once.
    "shared_buffers": "512MB",
    "max_connections": 200,
    # Data is restored by copying files, or by cloning them if the file system can.
    "wal_compression": False,
}


def configuration_text(settings: Mapping[str, object], *, port: int, socket_folder: Path) -> str:
    """Return the text of postgresql.conf. An experiment cannot change the address and the socket."""
    fixed = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",
    }
    return "".join(f"{name} = {_literal(value)}\n" for name, value in {**settings, **fixed}.items())


def setting_text(value: object) -> str:
    """Return a value of an experiment file as PostgreSQL writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
