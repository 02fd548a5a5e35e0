"""Find the processes of a service on this machine, and look at what they hold while it is loaded.

All of it is read from /proc: open files and their limit, threads, the queue of connections that wait to be
accepted. What cannot be read is told, never guessed.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "Held",
    "Service",
    "ServiceWatch",
    "ThreadTimes",
    "find_service",
    "listening_inodes",
    "overflows_in",
]

_LISTENS: Final = "0A"
"""The state of a socket that listens, in /proc/net/tcp."""
_CHILDREN_NS: Final = 1_000_000_000
"""Children are looked for so often: it reads the whole of /proc."""
_MOST_THREADS: Final = 64
"""Threads that are told, the busiest first."""


@dataclass(frozen=True, slots=True)
class Service:
    """Processes of a service, parents before their children, and the port that it is loaded on, if here."""

    pids: tuple[int, ...]
    port: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """What a service held while it was watched.

    `descriptors` are the most open files that one process had of its `descriptor_limit`. `backlog` is the
    most connections that waited to be accepted, `overflows` how many there was no room for, by the kernel's
    count for all programs; None where unknown.
    """

    descriptors: int | None
    descriptor_limit: int | None
    backlog: int | None
    overflows: int | None


def find_service(wanted: Sequence[int], host: str, port: int) -> tuple[Service | None, tuple[str, ...]]:
    """Return the processes that were named, or else those that listen on the port of a host that is here.

    With them come their children, at any depth, and a sentence for each that is lacking.
    """
    here = is_here(host)
    if wanted:
        lacking = tuple(
            f"there is no process {pid} (--service-pid): the load goes on without what it uses"
            for pid in wanted
            if not Path(f"/proc/{pid}").is_dir()
        )
        pids = _tree(pid for pid in wanted if Path(f"/proc/{pid}").is_dir())
        return (Service(pids, port if here else None) if pids else None), lacking
    if not here:
        return None, ()
    found = _tree(pid for pid in _listeners(port) if pid != os.getpid())
    if found:
        return Service(found, port), ()
    return None, ()


def is_here(host: str) -> bool:
    """Say whether an address is this machine's own: only then can a socket be bound to it."""
    try:
        told = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, address in told:
        with suppress(OSError), socket.socket(family, kind) as probe:
            probe.bind(address)
            return True
    return False


class ServiceWatch:
    """Looks at a service now and then: `look` it, and `end` tells what was seen."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pids = service.pids
        self._looked_ns = time.monotonic_ns()
        self._most: tuple[float, int, int] | None = None
        self._backlog: int | None = None
        self._overflows = self._overflowed()

    def look(self) -> None:
        """Read what may soon be different again: open files, and the queue of connections."""
        if time.monotonic_ns() - self._looked_ns >= _CHILDREN_NS:
            self._pids, self._looked_ns = _tree(self._service.pids), time.monotonic_ns()
        for pid in self._pids:
            with suppress(OSError):
                limit = _limit(pid)
                files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 -- names only, and many of them
                seen = (files / limit if limit else 0.0, files, limit)
                self._most = seen if self._most is None else max(self._most, seen)
        if self._service.port is not None:
            queued = [many for _, many in self._listening(self._service.port)]
            if queued:
                self._backlog = max(self._backlog or 0, *queued)

    def end(self) -> Held:
        """Return what was seen."""
        after = self._overflowed()
        lost = None if after is None or self._overflows is None else max(0, after - self._overflows)
        _, files, limit = self._most or (0.0, None, None)
        return Held(files, limit or None, self._backlog, lost)

    def _overflowed(self) -> int | None:
        return next((told for pid in self._pids if (told := _overflows(pid)) is not None), None)

    def _listening(self, port: int) -> Iterator[tuple[str, int]]:
        for pid in self._pids:
            found = list(_listening(f"/proc/{pid}/net", port))
            if found:
                yield from found
                return


class ThreadTimes:
    """What threads of processes and of all below them do between its beginning and `end`.

    Threads that end in between, as the sessions of a load do with it, are known as of the last `look`.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._roots = tuple(pids)
        self._begun_ns = time.monotonic_ns()
        self._before = dict(_thread_times(_tree(self._roots)))
        self._last = dict(self._before)

    def look(self) -> None:
        """Read what may soon be gone."""
        self._last.update(_thread_times(_tree(self._roots)))

    def end(self) -> tuple[tuple[float, ...], float]:
        """Return how busy threads were, as parts of the time, and how many waited for a processor on average.

        The busiest comes first; of more than `_MOST_THREADS` the others are left out.
        """
        elapsed = max(1, time.monotonic_ns() - self._begun_ns)
        busy, waiting = [], 0.0
        self.look()
        for thread, (ran, waited) in self._last.items():
            ran_before, waited_before = self._before.get(thread, (0, 0))
            busy.append(max(0, ran - ran_before) / elapsed)
            waiting += max(0, waited - waited_before) / elapsed
        return tuple(sorted(busy, reverse=True)[:_MOST_THREADS]), waiting


def listening_inodes(lines: Iterable[str], port: int) -> Iterator[tuple[str, int]]:
    """Yield, of the text of /proc/net/tcp or tcp6, sockets that listen on a port.

    Each with how many connections wait on it to be accepted. Those that listen stand first, so that the rest
    is not read. Pure.
    """
    for line in lines:
        parts = line.split()
        if len(parts) < 10 or not parts[0].endswith(":"):
            continue
        if parts[3] != _LISTENS:
            return
        if int(parts[1].rpartition(":")[2], 16) == port:
            yield parts[9], int(parts[4].partition(":")[2], 16)


def overflows_in(text: str) -> int | None:
    """Return, of the text of /proc/net/netstat, how many connections no backlog had room for. Pure."""
    lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
    if len(lines) < 2 or "ListenOverflows" not in lines[0]:
        return None
    return int(lines[1][lines[0].index("ListenOverflows")])


# ---- reading /proc ----


def _listening(net: str, port: int) -> Iterator[tuple[str, int]]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError), Path(net, name).open() as lines:
            yield from listening_inodes(lines, port)


def _listeners(port: int) -> Iterator[int]:
    """Yield processes that hold a socket which listens on a port, as far as they may be looked at."""
    wanted = {f"socket:[{inode}]" for inode, _ in _listening("/proc/net", port)}
    if not wanted:
        return
    for pid in _all():
        with suppress(OSError):
            files = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 -- names only, and many of them
            if any(_target(f"/proc/{pid}/fd/{one}") in wanted for one in files):
                yield pid


def _target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _all() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def _tree(roots: Iterable[int]) -> tuple[int, ...]:
    """Return processes and all below them, parents before their children."""
    wanted = list(dict.fromkeys(roots))
    if not wanted:
        return ()
    below: dict[int, list[int]] = defaultdict(list)
    for pid in _all():
        with suppress(OSError, ValueError, IndexError):
            below[int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])].append(pid)
    found: dict[int, None] = {}
    while wanted:
        pid = wanted.pop(0)
        if pid not in found:
            found[pid] = None
            wanted += below[pid]
    return tuple(found)


def _limit(pid: int) -> int:
    """Return how many files a process may have open; 0 where it does not say, or without bound."""
    found = re.search(r"^Max open files\s+(\d+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def _overflows(pid: int) -> int | None:
    try:
        return overflows_in(Path(f"/proc/{pid}/net/netstat").read_text())
    except OSError:
        return None


def _thread_times(pids: Iterable[int]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield for how long threads ran and waited to run, in nanoseconds, by process and thread."""
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- names only
                with suppress(OSError, ValueError, IndexError):
                    told = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
                    yield (pid, int(thread)), (int(told[0]), int(told[1]))
