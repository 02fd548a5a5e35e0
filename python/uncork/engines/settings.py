"""Settings of the embedded server: what differs from PostgreSQL's defaults, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["DEFAULT_SETTINGS", "configuration_text"]

DEFAULT_SETTINGS: dict[str, object] = {
    # A trial starts from a known state: vacuumed, checkpointed. What disturbs it at a time of its own
    # choosing is kept out; an experiment about it turns it on again.
    "autovacuum": False,
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
    # Costs an operation, exact and by statement.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "pg_stat_statements.save": False,
    "track_io_timing": True,
    # Room for the data of all arms at once.
    "shared_buffers": "512MB",
    "max_connections": 200,
    # Restoring data by copying files: a clone where the file system can.
    "wal_compression": False,
}


def configuration_text(settings: Mapping[str, object], *, port: int, socket_folder: Path) -> str:
    """Write postgresql.conf. The address and the socket are not the experiment's to choose."""
    fixed = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",
    }
    return "".join(f"{name} = {_literal(value)}\n" for name, value in {**settings, **fixed}.items())


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
