"""Find a server's postmaster if it runs on this machine; only then can its processes be sampled."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import psycopg

from uncork.engines.connecting import connect_to_watch
from uncork.engines.process import identity


def postmaster_of(conninfo: str) -> int | None:
    """Return the postmaster's process id, found over a separate connection; None if it is not here."""
    try:
        with connect_to_watch(conninfo) as connection:
            return local_postmaster(connection)
    except psycopg.Error:
        return None


def local_postmaster(connection: psycopg.Connection) -> int | None:
    """Return the postmaster's process id; None if its processes are not visible here.

    The server's own report is not enough: a pid of another machine or container may belong to an unrelated
    process here. Over a Unix socket, the kernel reports which process listens. Over TCP, the pid that the
    server reports for our session must belong to a local process whose title contains our client port.
    """
    try:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as link:
            if link.family == socket.AF_UNIX:
                pid, _, _ = struct.unpack(
                    "3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                )
                return pid if pid > 0 and identity(pid) is not None else None
            port = link.getsockname()[1]
    except (OSError, AttributeError):
        return None
    backend = connection.info.backend_pid
    title = _read(f"/proc/{backend}/cmdline")
    if "postgres" not in title or f"({port})" not in title:
        return None
    parent = _read(f"/proc/{backend}/stat").rpartition(")")[2].split()
    return int(parent[1]) if len(parent) > 1 else None


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError:
        return ""
