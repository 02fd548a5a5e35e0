"""Find a service's processes on this machine, and watch their open files, threads and accept queue.

Everything is read from /proc: open files and their limit, threads, and the queue of connections
that wait to be accepted. What cannot be read is reported as unknown, never guessed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncork.engines.process import stat_fields
from uncork.model.services.program import RunningProgram, stored_program
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
    found = process_tree(pid for pid in listeners(port) if pid != os.getpid()) if here else ()
    return (Service(found, port) if found else None), ()


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
                limits = Path(f"/proc/{pid}/limits").read_text()
                found = re.search(r"^Max open files\s+(\d+)", limits, re.MULTILINE)
                limit = int(found[1]) if found else 0  # no limit, or it is unknown
                files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 -- names only, and many of them
                seen = (files / limit if limit else 0.0, files, limit)
                self._most = seen if self._most is None else max(self._most, seen)
        if self._service.port is not None:
            nets = (list(_listening(f"/proc/{pid}/net", self._service.port)) for pid in self._pids)
            if queues := next(filter(None, nets), None):
                self._backlog = max(self._backlog or 0, *(many for _, many in queues))

    def end(self) -> Held:
        """Return the peaks of all looks."""
        after = self._overflowed()
        lost = None if after is None or self._overflows is None else max(0, after - self._overflows)
        _, files, limit = self._most or (0.0, None, None)
        return Held(files, limit or None, self._backlog, lost)

    def _overflowed(self) -> int | None:
        return next((count for pid in self._pids if (count := _overflows(pid)) is not None), None)


class ThreadTimes:
    """Measure how long the threads of processes and their descendants run and wait, from creation to `end`.

    For threads that end in between, such as the sessions of a load, the values of the last `look` count.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._roots = tuple(pids)
        self._begun_ns = time.monotonic_ns()
        self._before = self._read()
        self._last = dict(self._before)

    def look(self) -> None:
        """Read the times of threads that may soon end."""
        self._last |= self._read()

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

    def _read(self) -> dict[tuple[int, int], tuple[int, int]]:
        pids = process_tree(self._roots)
        return {(pid, thread): times for pid in pids for thread, times in thread_times(pid).items()}


def listening_inodes(lines: Iterable[str], port: int) -> Iterator[tuple[str, int]]:
    """Yield the inode of each socket that listens on a port, and how many connections wait to be accepted.

    `lines` are the lines of /proc/net/tcp or tcp6. Listening sockets come first there, so the rest
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
    for pid in all_pids() if inodes else ():
        if not set(inodes).isdisjoint(socket_inodes(pid)):
            yield pid


def socket_inodes(pid: int) -> Iterator[str]:
    """Yield the inode of each socket that a process has open, once for each of its files."""
    with suppress(OSError):
        for file in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- names only, and many of them
            target = _link(f"/proc/{pid}/fd/{file}") or ""
            if target.startswith("socket:["):
                yield target[8:-1]


def process_tree(roots: Iterable[int]) -> tuple[int, ...]:
    """Return processes and all their descendants, parents before children."""
    wanted = list(dict.fromkeys(roots))
    if not wanted:
        return ()
    below: dict[int, list[int]] = defaultdict(list)
    for pid in all_pids():
        with suppress(OSError, ValueError, IndexError):
            below[int(stat_fields(pid)[1])].append(pid)
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
        return int(stat_fields(pid)[1])
    except (OSError, ValueError, IndexError):
        return None


def _overflows(pid: int) -> int | None:
    try:
        return overflows_in(Path(f"/proc/{pid}/net/netstat").read_text())
    except OSError:
        return None


def thread_times(pid: int) -> dict[int, tuple[int, int]]:
    """Return how long each thread of a process ran and waited to run, in nanoseconds."""
    found: dict[int, tuple[int, int]] = {}
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- names only
            with suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
                found[int(thread)] = int(fields[0]), int(fields[1])
    return found


# ---- how the program was started ----


def listening_program(host: str, port: int, wanted: Sequence[int] = ()) -> RunningProgram | None:
    """Return the program that listens on a port of this machine, or of the processes given by id.

    If several processes listen, because a server has started workers, it is the one that started
    the others. None if the host is another machine, or if no process can be seen.
    """
    pids = list(wanted) or ([pid for pid in listeners(port) if pid != os.getpid()] if is_here(host) else [])
    for pid in sorted(pids, key=lambda pid: parent_of(pid) in pids):
        with suppress(OSError):
            return _program(pid)
    return None


def _program(pid: int) -> RunningProgram:
    words = [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")][:-1]
    folder = _link(f"/proc/{pid}/cwd") or "/"
    environment: dict[str, str] | None = None
    with suppress(OSError):
        pairs = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
        environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    first = _resolved(pid, words[0] if words else "", folder, (environment or {}).get("PATH"))
    if first is None:
        return stored_program((), folder, environment, " ".join(words))
    return stored_program((first, *words[1:]), folder, environment)


def _resolved(pid: int, word: str, folder: str, path: str | None) -> str | None:
    """Return the absolute path by which a program was started; None if its first word is not a program.

    The path matters: Python finds a virtual environment by it, although the file is the same.
    """
    file = _link(f"/proc/{pid}/exe")
    if file is None or not word:
        return None
    named = (
        str(Path(folder, word)) if "/" in word else shutil.which(word, path=path or os.environ.get("PATH"))
    )
    if named is not None and Path(named).exists():
        return named
    return file if Path(word).name == Path(file).name else None


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None
