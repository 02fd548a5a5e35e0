"""Reapers of processes that tests start: found, and killed, to see what happens without them."""

import os
import signal
import time
from pathlib import Path

from uncork.spawn import reaper


def reaper_of(owner: int) -> int | None:
    """Return the process that waits for the end of `owner`; None if there is none."""
    for process in reaper.processes():
        try:
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if reaper.__file__.encode() in words and words[-3] == str(owner).encode():
            return process.pid
    return None


def kill_with_reaper(owner: int) -> None:
    """Kill a process and its reaper, as if the machine ran out of memory and took both."""
    found = reaper_of(owner)
    assert found is not None, "it has no reaper"
    os.kill(found, signal.SIGKILL)
    os.kill(owner, signal.SIGKILL)


def ends(pid: int, start: int | None, seconds: float = 5.0) -> bool:
    """Wait until a process has ended; say whether it did in time."""
    deadline = time.monotonic() + seconds
    while reaper.start_of(pid) == start is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
