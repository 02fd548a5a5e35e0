"""Watch processes through /proc, without any tool: their processor time, and where they sleep."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uncork.model.records import Record

_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_LOOK_S: Final = 0.5
"""How often to look for new processes, in seconds."""
_FRAME = re.compile(r"^\[<[0-9a-f]+>\] ([^+\s]+)")
_WAYS: Final = ("entry_", "do_syscall", "x64_sys_call", "ret_from_")


@dataclass(slots=True)
class Seen:
    """One process: `begun` and `ended` are its user and system time in ns at either end of the watch."""

    pid: int
    name: str
    begun: tuple[int, int]
    ended: tuple[int, int]


class Sleep(Record):
    """A sample of a sleeping process: time (monotonic clock), kernel frames, and how long it represents."""

    pid: int
    name: str
    time_ns: int
    stack: str
    value_ns: int


@dataclass(slots=True)
class ProcWatch:
    """Sample processes and their descendants at `rate_hz` times a second until stopped.

    Processes that are `left_out` are not sampled themselves, such as the tool that started the others.
    """

    pids: tuple[int, ...]
    rate_hz: float = 20.0
    left_out: frozenset[int] = frozenset()
    seen: dict[int, Seen] = field(default_factory=dict)
    asleep: list[Sleep] = field(default_factory=list)
    stacks_hidden: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start sampling; if it is already running, start over."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._stop.clear()
            self.seen.clear()
            self.asleep.clear()
        self._look(tree(self.pids, self.left_out), asleep=False)
        self._thread = threading.Thread(target=self._run, name="uncork-proc", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling. The results are in `seen` and `asleep`."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._look(self.seen, asleep=False)

    def _run(self) -> None:
        period, found, looked = 1.0 / self.rate_hz, set(self.seen), time.monotonic()
        due = time.monotonic() + period
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            if now - looked >= _LOOK_S:
                found, looked = tree(self.pids, self.left_out), now
            self._look(found, asleep=True)
            due = max(due + period, now)

    def _look(self, pids: Iterable[int], *, asleep: bool) -> None:
        now = time.monotonic_ns()
        for pid in list(pids):
            found = _stat(pid)
            if found is None:
                continue
            name, state, times = found
            known = self.seen.get(pid)
            if known is None:
                # A process that started meanwhile spent all its time during this watch.
                begun = (0, 0) if asleep else times
                self.seen[pid] = Seen(pid, name, begun, times)
            else:
                known.ended = times
            if asleep and state in "SD":
                stack = self._where(pid)
                if stack:
                    self.asleep.append(Sleep(pid, name, now, stack, round(1e9 / self.rate_hz)))

    def _where(self, pid: int) -> str:
        """Return the kernel frames in which a process sleeps, from the root on."""
        try:
            lines = Path(f"/proc/{pid}/stack").read_text().splitlines()
            frames = [match[1] for line in lines if (match := _FRAME.match(line))]
            frames = [frame for frame in reversed(frames) if not frame.startswith(_WAYS)]
            if frames:
                return ";".join(f"{frame}_[k]" for frame in frames)
        except PermissionError:
            self.stacks_hidden = True
        except OSError:
            return ""
        with contextlib.suppress(OSError):
            function = Path(f"/proc/{pid}/wchan").read_text().strip()
            if function not in ("", "0"):
                return f"{function}_[k]"
        return ""


def tree(pids: Iterable[int], left_out: frozenset[int] = frozenset()) -> set[int]:
    """Return processes and all their descendants, without those in `left_out`."""
    found: set[int] = set()
    left = list(pids)
    while left:
        pid = left.pop()
        if pid in found:
            continue
        found.add(pid)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    left += map(int, (task / "children").read_text().split())
    return found - left_out


def process_name(pid: int) -> str | None:
    """Return the name of a process; None if it does not live."""
    found = _stat(pid)
    return None if found is None or found[1] == "Z" else found[0]


def _stat(pid: int) -> tuple[str, str, tuple[int, int]] | None:
    """Return the name, the state, and user and system time of a process; None if it does not live."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        times = (int(fields[11]) * _NS_A_TICK, int(fields[12]) * _NS_A_TICK)
        return head.partition("(")[2], fields[0], times
    except (OSError, ValueError, IndexError):
        return None
