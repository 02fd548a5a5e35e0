"""Start, record and end processes, and wait until they are ready."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

STATE = "running.json"


@dataclass(frozen=True, slots=True)
class Process:
    """A started process. Its start time tells it from a later process with the same id."""

    pid: int
    started: str


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop(folder: Path) -> None:
    """End the processes that `start` recorded in the folder, the service before its database."""
    state = folder / STATE
    if not state.exists():
        return
    running = [Process(**each) for each in json.loads(state.read_text())["processes"]]
    for process in reversed(running):
        for signalled in (signal.SIGINT, signal.SIGKILL):
            if _ended(process, 0):
                break
            os.killpg(process.pid, signalled)
            if _ended(process, 15):
                break
    state.unlink()


def spawn(
    command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path, user: str | None = None
) -> Process:
    """Start a command in a session of its own, as another user if one is given."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
        )
    return Process(started.pid, start_time(started.pid))


def record(folder: Path, processes: Iterable[Process]) -> None:
    """Write down what `stop` has to end."""
    (folder / STATE).write_text(json.dumps({"processes": [asdict(each) for each in processes]}))


def start_time(pid: int) -> str:
    """Return the start time of a process in clock ticks, or nothing if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _ended(process: Process, seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while start_time(process.pid) == process.started:
        if time.monotonic() >= limit:
            return False
        time.sleep(0.05)
    return True


def answers(url: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request succeeds."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=30):  # noqa: S310
            return True
    except (urllib.error.URLError, OSError):
        return False


def wait(ready: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    """Wait until something is ready; raise SystemExit, which names the log, if it takes too long."""
    limit = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > limit:
            raise SystemExit(f"not ready after {seconds:.0f} s" + (f"; see {log}" if log else ""))
        time.sleep(0.05)
