"""Watch the processes of a service one by one: which of them work, in which runtime, with how many sessions.

Everything is read from /proc; what this account may not read is left out.
"""

from __future__ import annotations

import mmap
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncork.engines.process import stat_fields
from uncork.engines.services.inspection import process_tree, socket_inodes, thread_times
from uncork.model.results.service import Runtime, WorkerFacts

_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BY_NAME: Final[tuple[tuple[str, Runtime], ...]] = (
    *(("python", "python"), ("pypy", "python"), ("uwsgi", "python"), ("node", "node"), ("nodejs", "node")),
    *(("java", "java"), ("ruby", "ruby"), ("php", "php"), ("dotnet", ".net"), ("beam", "erlang")),
)
_BY_LIBRARY: Final[tuple[tuple[str, Runtime], ...]] = (
    *(("libpython", "python"), ("libjvm", "java"), ("libruby", "ruby"), ("libcoreclr", ".net")),
    *(("libnode", "node"), ("libphp", "php")),
)
_GO: Final = b"\xff Go buildinf:"
"""The magic number of the build information in every Go program (package debug/buildinfo)."""
_GO_WITHIN: Final = 1 << 28


class WorkerWatch:
    """Watch processes and their descendants from now on, until `end`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._roots = tuple(pids)
        self._begun_ns = time.monotonic_ns()
        self._before = {pid: _times(pid) for pid in process_tree(self._roots)}

    def end(self, ports: Iterable[int] | None = None) -> tuple[WorkerFacts, ...]:
        """Return the processes that are alive, parents before children.

        `ports` are the client's ports of the database's connections over TCP, None if unknown.
        """
        elapsed = max(1, time.monotonic_ns() - self._begun_ns)
        found = []
        wanted = None if ports is None else frozenset(ports)
        for pid in process_tree(self._roots):
            with suppress(OSError, ValueError, IndexError):
                after, before = _times(pid), self._before.get(pid)
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                used = _difference(before, after)
                sessions = None if wanted is None else sum(1 for port in socket_ports(pid) if port in wanted)
                found.append(
                    WorkerFacts(
                        pid,
                        int(stat_fields(pid)[1]),
                        name,
                        runtime_of(pid),
                        used.user_ns,
                        used.system_ns,
                        sum(waited for _, waited in used.threads.values()),
                        len(after.threads),
                        max((ran for ran, _ in used.threads.values()), default=0) / elapsed,
                        sessions,
                        elapsed,
                    )
                )
        return tuple(found)


def runtime_of(pid: int) -> Runtime:
    """Return the runtime of a process, from its program and libraries; ``native`` if it is none we know."""
    program = ""
    with suppress(OSError):
        program = Path(f"/proc/{pid}/exe").readlink().name.lower()
    for word, runtime in _BY_NAME:
        if re.match(rf"{word}[\d.]*\b", program):
            return runtime
    with suppress(OSError):
        libraries = Path(f"/proc/{pid}/maps").read_text()
        for word, runtime in _BY_LIBRARY:
            if f"/{word}" in libraries:
                return runtime
    with suppress(OSError, ValueError), Path(f"/proc/{pid}/exe").open("rb") as file:
        size = min(os.fstat(file.fileno()).st_size, _GO_WITHIN)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            if content.find(_GO) >= 0:
                return "go"
    return "native"


def socket_ports(pid: int) -> Iterator[int]:
    """Yield the local port of each TCP connection that a process has open."""
    inodes = set(socket_inodes(pid))
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                parts = line.split()
                if len(parts) > 9 and parts[9] in inodes:
                    yield int(parts[1].rpartition(":")[2], 16)


@dataclass(frozen=True, slots=True)
class _Times:
    """Processor time of a process, and how long each of its threads ran and waited to run, by thread."""

    user_ns: int
    system_ns: int
    threads: dict[int, tuple[int, int]]


def _difference(before: _Times | None, after: _Times) -> _Times:
    if before is None:
        return after
    threads = {
        thread: (ran - before.threads.get(thread, (0, 0))[0], waited - before.threads.get(thread, (0, 0))[1])
        for thread, (ran, waited) in after.threads.items()
    }
    return _Times(after.user_ns - before.user_ns, after.system_ns - before.system_ns, threads)


def _times(pid: int) -> _Times:
    user = system = 0
    with suppress(OSError, ValueError, IndexError):
        fields = stat_fields(pid)
        user, system = int(fields[11]) * _NS_A_TICK, int(fields[12]) * _NS_A_TICK
    return _Times(user, system, thread_times(pid))
