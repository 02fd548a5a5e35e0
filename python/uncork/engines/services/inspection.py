"""Find a service's processes on this machine, and watch their open files, threads and accept queue.

Everything is read from /proc: open files and their limit, threads, and the queue of connections that wait to
be accepted. What cannot be read is reported as unknown, never guessed.
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

from uncork.spawn.reaper import all_pids

_LISTENS: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""
_UNCONNECTED: Final = "07"
"""The state of a socket in /proc/net/udp that receives from anyone."""
_CHILDREN_NS: Final = 1_000_000_000
"""How often to look for new child processes, which reads all of /proc."""
_MOST_THREADS: Final = 64
"""The most threads to report, the busiest first."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service's processes, parents before children, and the port under load if it is on this machine."""

    pids: tuple[int, ...]
    port: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """Peaks of what a service held while it was watched; None means unknown.

    `descriptors` is the number of open files of the process that came closest to its `descriptor_limit`.
    `backlog` is the most connections that waited to be accepted. `overflows` is the number of connections
    dropped because the queue was full; the kernel counts it for all programs together.
    """

    descriptors: int | None
    descriptor_limit: int | None
    backlog: int | None
    overflows: int | None


def find_service(wanted: Sequence[int], host: str, port: int) -> tuple[Service | None, tuple[str, ...]]:
    """Return the processes given by id; without ids, the processes that listen on the port of a local host.

    Children are included, at any depth. The second value has a sentence for each process that does not exist.
    """
    here = is_here(host)
    if wanted:
        missing = tuple(
            f"there is no process {pid} (--service-pid); the load continues without watching it"
            for pid in wanted
            if not Path(f"/proc/{pid}").is_dir()
        )
        pids = process_tree(pid for pid in wanted if Path(f"/proc/{pid}").is_dir())
        return (Service(pids, port if here else None) if pids else None), missing
    if not here:
        return None, ()
    found = process_tree(pid for pid in listeners(port) if pid != os.getpid())
    if found:
        return Service(found, port), ()
    return None, ()


def is_here(host: str) -> bool:
    """Return whether an address belongs to this machine: only then can a socket be bound to it."""
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, address in addresses:
        with suppress(OSError), socket.socket(family, kind) as probe:
            probe.bind(address)
            return True
    return False


class ServiceWatch:
    """Watch a service: call `look` from time to time, and `end` for the peaks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pids = service.pids
        self._looked_ns = time.monotonic_ns()
        self._most: tuple[float, int, int] | None = None
        self._backlog: int | None = None
        self._overflows = self._overflowed()

    def look(self) -> None:
        """Read the number of open files, and the length of the accept queue."""
        if time.monotonic_ns() - self._looked_ns >= _CHILDREN_NS:
            self._pids, self._looked_ns = process_tree(self._service.pids), time.monotonic_ns()
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
        """Return the peaks of all looks."""
        after = self._overflowed()
        lost = None if after is None or self._overflows is None else max(0, after - self._overflows)
        _, files, limit = self._most or (0.0, None, None)
        return Held(files, limit or None, self._backlog, lost)

    def _overflowed(self) -> int | None:
        return next((count for pid in self._pids if (count := _overflows(pid)) is not None), None)

    def _listening(self, port: int) -> Iterator[tuple[str, int]]:
        for pid in self._pids:
            found = list(_listening(f"/proc/{pid}/net", port))
            if found:
                yield from found
                return


class ThreadTimes:
    """Measure how long the threads of processes and their descendants run and wait, from creation to `end`.

    For threads that end in between, such as the sessions of a load, the values of the last `look` count.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._roots = tuple(pids)
        self._begun_ns = time.monotonic_ns()
        self._before = dict(_thread_times(process_tree(self._roots)))
        self._last = dict(self._before)

    def look(self) -> None:
        """Read the times of threads that may soon end."""
        self._last.update(_thread_times(process_tree(self._roots)))

    def end(self) -> tuple[tuple[float, ...], float]:
        """Return the busy fraction of each thread, and how many threads waited for a processor on average.

        The busiest thread comes first. Only the `_MOST_THREADS` busiest are returned.
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
    """Yield the inode of each socket that listens on a port, and how many connections wait to be accepted.

    `lines` are the lines of /proc/net/tcp or tcp6. Listening sockets come first there, so the rest is not
    read. Pure.
    """
    for line in lines:
        parts = line.split()
        if len(parts) < 10 or not parts[0].endswith(":"):
            continue
        if parts[3] != _LISTENS:
            return
        if int(parts[1].rpartition(":")[2], 16) == port:
            yield parts[9], int(parts[4].partition(":")[2], 16)


def unconnected_inodes(lines: Iterable[str], port: int) -> Iterator[str]:
    """Yield the inode of each UDP socket that receives from anyone on a port.

    `lines` are the lines of /proc/net/udp or udp6. Pure.
    """
    for line in lines:
        parts = line.split()
        if len(parts) < 10 or parts[3] != _UNCONNECTED:
            continue
        if int(parts[1].rpartition(":")[2], 16) == port:
            yield parts[9]


def overflows_in(text: str) -> int | None:
    """Return how many connections were dropped by full accept queues, from /proc/net/netstat. Pure."""
    lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
    if len(lines) < 2 or "ListenOverflows" not in lines[0]:
        return None
    return int(lines[1][lines[0].index("ListenOverflows")])


# ---- reading /proc ----


def _listening(net: str, port: int) -> Iterator[tuple[str, int]]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError), Path(net, name).open() as lines:
            yield from listening_inodes(lines, port)


def _receiving(net: str, port: int) -> Iterator[str]:
    for name in ("udp", "udp6"):
        with suppress(OSError), Path(net, name).open() as lines:
            yield from unconnected_inodes(lines, port)


def receives_datagrams(port: int) -> bool:
    """Return whether a process of this machine listens on a UDP port."""
    return next(_receiving("/proc/net", port), None) is not None


def listeners(port: int) -> Iterator[int]:
    """Yield the processes that listen on a TCP port, or else on the UDP port, as servers of HTTP/3 do.

    Only processes whose open files we may read are found.
    """
    inodes = [inode for inode, _ in _listening("/proc/net", port)] or list(_receiving("/proc/net", port))
    wanted = {f"socket:[{inode}]" for inode in inodes}
    if not wanted:
        return
    for pid in all_pids():
        with suppress(OSError):
            files = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 -- names only, and many of them
            if any(_target(f"/proc/{pid}/fd/{file}") in wanted for file in files):
                yield pid


def _target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def process_tree(roots: Iterable[int]) -> tuple[int, ...]:
    """Return processes and all their descendants, parents before children."""
    wanted = list(dict.fromkeys(roots))
    if not wanted:
        return ()
    below: dict[int, list[int]] = defaultdict(list)
    for pid in all_pids():
        with suppress(OSError, ValueError, IndexError):
            below[_parent(pid)].append(pid)
    found: dict[int, None] = {}
    while wanted:
        pid = wanted.pop(0)
        if pid not in found:
            found[pid] = None
            wanted += below[pid]
    return tuple(found)


def parent_of(pid: int) -> int | None:
    """Return a process's parent; None if the process has ended."""
    try:
        return _parent(pid)
    except (OSError, ValueError, IndexError):
        return None


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _limit(pid: int) -> int:
    """Return how many files a process may have open; 0 if there is no limit or it is unknown."""
    found = re.search(r"^Max open files\s+(\d+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def _overflows(pid: int) -> int | None:
    try:
        return overflows_in(Path(f"/proc/{pid}/net/netstat").read_text())
    except OSError:
        return None


def _thread_times(pids: Iterable[int]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield how long each thread ran and waited to run, in nanoseconds, by process and thread."""
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- names only
                with suppress(OSError, ValueError, IndexError):
                    fields = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
                    yield (pid, int(thread)), (int(fields[0]), int(fields[1]))
