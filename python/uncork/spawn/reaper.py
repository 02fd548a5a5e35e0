"""End all processes that uncork started, after uncork has ended. A program that needs no other package.

uncork starts one reaper before its first child, as ``python -I -S reaper.py TOKEN PID START``, and keeps the
write end of the pipe that is the reaper's standard input. The pipe closes whenever uncork ends, even by
SIGKILL. Until then the reaper sleeps, and wakes only to read orders, one line of JSON each::

    {"leader": [pid, start], "ask": signal}   a child that leads a session; a signal to send first, or 0
    {"folder": path}                          a folder to remove

When the pipe is closed, or the owner has ended, the reaper ends

- the sessions of these children, if the leader is still the process that was started,
- processes with TOKEN in their environment, whatever session they have moved to, and
- all descendants of either,

and then removes the folders. A later process may have the same pid. The reaper compares start
times, while holding a pidfd, to make sure that it ends the right one.

The reaper survives when uncork's process group is killed or its terminal closes: it has its own session,
inherits no other stream, and ignores termination signals. It exits as soon as nothing is left to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

TOKEN = "UNCORK_OWNER"  # noqa: S105 -- the name of a variable
"""The environment variable that identifies the descendants of a process."""
ASKED_S = 1.0
"""How long a process may take to shut down after its first signal before it is killed."""
LONGEST_S = 30.0
"""How long to wait for killed processes to vanish; they may be waiting for a disk."""
PAUSES_S = (0.05, 0.1, 0.25)
"""The pauses between checks that find nothing. A child cannot be recognised between its fork and its exec."""
_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """A living process as /proc shows it; `start` is in clock ticks since boot."""

    pid: int
    parent: int
    session: int
    start: int


@dataclass(slots=True)
class Orders:
    """The owner's orders: session leaders with start time and signal, and folders to remove."""

    leaders: dict[tuple[int, int], int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def add(self, line: bytes) -> None:
        """Add an order. Ignore a broken line, which an owner leaves if it is killed while writing."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            order = json.loads(line)
            if "folder" in order:
                self.folders.append(str(order["folder"]))
            else:
                pid, start = order["leader"]
                self.leaders[int(pid), int(start)] = int(order["ask"])


def start_of(pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since boot; None if it does not live."""
    found = _read(pid)
    return None if found is None else found.start


def all_pids() -> list[int]:
    """Return the pids of all processes, some of which may have ended by the time they are looked at.

    `Path.glob` below /proc would fail if a process ends meanwhile.
    """
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- half the cost


def processes() -> list[Process]:
    """Return all living processes."""
    return [found for pid in all_pids() if (found := _read(pid)) is not None]


def belonging(living: Iterable[Process], sessions: Iterable[int], token: str, own: int) -> dict[int, Process]:
    """Return the processes that belong to these sessions or carry the token, and their descendants.

    Other reapers are left out: if one of the processes is an uncork, its reaper must end its children.
    """
    known = set(sessions)
    by_parent: dict[int, list[Process]] = {}
    found: dict[int, Process] = {}
    left = []
    for process in living:
        by_parent.setdefault(process.parent, []).append(process)
        if process.session in known or _carries(process.pid, token):
            left.append(process)
    while left:
        process = left.pop()
        if process.pid in found or process.pid == own or _is_reaper(process.pid):
            continue
        found[process.pid] = process
        left += by_parent.get(process.pid, ())
    return found


def main() -> None:
    """Wait until the owner has ended, then end everything that it started."""
    token, owner, start = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork():  # detach from uncork, so that it does not wait for the reaper
        os._exit(0)
    orders = Orders()
    _wait(owner, start, orders)
    _end(orders, token)
    for folder in orders.folders:
        shutil.rmtree(folder, ignore_errors=True)


# ---- steps ----


def _wait(owner: int, start: int, orders: Orders) -> None:
    """Read orders until the pipe closes, or until the owner ends while others still hold the pipe."""
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    held = _hold(Process(owner, 0, 0, start))
    if held is not None:
        waiting.register(held, select.POLLIN)
    text = b""
    while True:
        ready = {number for number, _ in waiting.poll()}
        if 0 in ready:
            read = os.read(0, 1 << 16)
            *lines, text = (text + read).split(b"\n")
            for line in lines:
                orders.add(line)
            if not read:
                return
        elif held in ready:
            return


def _end(orders: Orders, token: str) -> None:
    """End all processes of the owner, until three further checks find nothing."""
    begun = time.monotonic()
    known = {pid for pid, start in orders.leaders if start_of(pid) == start}
    signalled: set[int] = set()
    quiet = 0
    while time.monotonic() < begun + LONGEST_S:
        living = processes()
        left = belonging(living, known, token, os.getpid())
        polite: dict[int, Process] = {}
        if time.monotonic() < begun + ASKED_S:
            ask = {pid: orders.leaders.get((pid, process.start), 0) for pid, process in left.items()}
            polite = belonging(living, [pid for pid, number in ask.items() if number], "", os.getpid())
            for pid, number in ask.items():
                if number and pid not in signalled and _send(left[pid], number):
                    signalled.add(pid)
        # A PostgreSQL backend may outlive its parent; from now on, find it by its session.
        known |= {process.session for process in polite.values()}
        # Do not wait for processes that we may not signal because they changed to another user.
        killed = [_send(process, signal.SIGKILL) for pid, process in left.items() if pid not in polite]
        if any(killed) or polite:
            quiet = 0
            time.sleep(_AGAIN_S)
        elif quiet == len(PAUSES_S):
            return
        else:
            time.sleep(PAUSES_S[quiet])
            quiet += 1


def _send(process: Process, number: int) -> bool:
    """Send a signal to a process if it still has its pid; return whether it was sent."""
    held = _hold(process)
    try:
        if held is not None:
            signal.pidfd_send_signal(held, number)
        elif start_of(process.pid) == process.start:
            os.kill(process.pid, number)
        else:
            return False
    except OSError:
        return False
    finally:
        if held is not None:
            os.close(held)
    return True


def _hold(process: Process) -> int | None:
    """Return a pidfd of this process; None if it has ended, or pidfds are not supported."""
    try:
        held = os.pidfd_open(process.pid)
    except (OSError, AttributeError):  # Python may have been built for an older kernel, without pidfd_open
        return None
    if start_of(process.pid) == process.start:
        return held
    os.close(held)
    return None


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- pathlib takes as long to import as all else
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def _carries(pid: int, token: str) -> bool:
    return bool(token) and f"{TOKEN}={token}".encode() in _words(pid, "environ")


def _is_reaper(pid: int) -> bool:
    return __file__.encode() in _words(pid, "cmdline")


def _words(pid: int, name: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123 -- see above
            return file.read().split(b"\0")
    except OSError:
        return []


if __name__ == "__main__":
    main()
