"""Read processor time many times a second: of the machine, a server's processes, and this process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from uncork.workbench.overhead.observers import process_cpu_ns

_MACHINE: Final = tuple(
    Path("/sys/fs/cgroup") / folder / "cpuacct.usage" for folder in ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")
)
"""The processor time of all tasks in nanoseconds, where the kernel has it (control groups, version 1)."""
_STAT: Final = Path("/proc/stat")
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Used(NamedTuple):
    """Processor time so far, in nanoseconds: of all tasks, stolen by the host, the server's, and our own.

    `time_ns` is the monotonic clock. A value that cannot be read does not change.
    """

    time_ns: int
    all_ns: int
    stolen_ns: int
    server_ns: int
    own_ns: int


class Clocks:
    """The clocks of a machine and of a server's processes that exist now.

    Without control groups, the time of all tasks comes from /proc/stat, in ticks of 10 ms. It then explains
    less of the variation in a tenth of a second, but is not biased.
    """

    def __init__(self, postmaster: int) -> None:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        self._server = (postmaster, *map(int, children))
        self._stat = _open(_STAT)
        self._machine = next((one for path in _MACHINE if (one := _open(path)) is not None), None)

    def read(self) -> Used:
        """Read all clocks; this takes about ten microseconds."""
        now = time.monotonic_ns()
        user = nice = system = hard = soft = stolen = 0
        if self._stat is not None:
            line = os.pread(self._stat, 200, 0).partition(b"\n")[0].split()[1:9]
            user, nice, system, _, _, hard, soft, stolen = map(int, line)
        busy = (user + nice + system + hard + soft) * _TICK_NS
        if self._machine is not None:
            busy = int(os.pread(self._machine, 32, 0))
        server = sum(process_cpu_ns(pid) or 0 for pid in self._server)
        return Used(now, busy, stolen * _TICK_NS, server, time.process_time_ns())

    def close(self) -> None:
        """Close the files."""
        for number in (self._stat, self._machine):
            if number is not None:
                os.close(number)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
