"""Find the processes of a server that runs on this machine; only then can they be sampled."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from uncork.engines.connecting import connect_errors, connect_to_watch
from uncork.engines.process import identity, stat_fields
from uncork.spawn.reaper import all_pids


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


_START_S: Final = 3.0
"""How far the start time that a server reports may differ from the kernel's start time of its process."""


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """A server's postmaster on this machine; None, with a `reason`, if the server runs elsewhere."""

    postmaster: int | None
    version: int
    reason: str


def find_processes(conninfo: str) -> ServerProcesses:
    """Connect to a server, and find its processes from the pid of our own session.

    A server in a container on this machine has different pids inside; the kernel reports both.
    Raises ConnectError if the server cannot be reached, or refuses the connection.
    """
    with connect_errors(), connect_to_watch(conninfo) as connection:
        version = connection.info.server_version // 10000
        query = "SELECT pg_backend_pid(), extract(epoch FROM pg_postmaster_start_time())::float8"
        for pid, started in connection.execute(query).fetchall():
            for candidate in [pid, *_inside_containers(pid)]:
                parent = _parent(candidate)
                if parent is not None and abs(_started(parent) - started) <= _START_S:
                    return ServerProcesses(parent, version, "")
    return ServerProcesses(
        None,
        version,
        "the server does not run on this machine, or its processes are not visible, so uncork cannot observe "
        "them; run uncork on the server's machine",
    )


def _parent(pid: int) -> int | None:
    """Return the parent of a PostgreSQL process; None for any other process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        if head.partition("(")[2] in ("postgres", "postmaster"):
            return int(tail.split()[1])
    return None


def _started(pid: int) -> float:
    """Return the start time of a process, in seconds since 1970; 0 if it does not live."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return booted + int(stat_fields(pid)[19]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _inside_containers(pid: int) -> list[int]:
    """Return the processes of this machine that have this pid inside a container."""
    found = []
    for all_pid in all_pids():
        with contextlib.suppress(OSError, ValueError):
            lines = Path(f"/proc/{all_pid}/status").read_text().splitlines()
            line = next((line for line in lines if line.startswith("NSpid:")), "")
            numbers = [int(word) for word in line.split()[1:]]
            if len(numbers) > 1 and numbers[-1] == pid:
                found.append(numbers[0])
    return found
