"""The observers whose cost is measured while they watch a working server."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import SetupError, UncorkError
from uncork.experiment.observe import NOTHING
from uncork.load.sampler import Sampler, trial_watch
from uncork.model.engine import POSTGRESQL
from uncork.model.results.observer_cost import IdleCost
from uncork.model.server import Target
from uncork.spawn.child import Child, run, scratch_folder, start
from uncork.stats.interval import radius, summary
from uncork.workbench.profile.database_watch import Samples, sample_sessions
from uncork.workbench.signals import uninterrupted

SESSIONS_HZ: Final = 20
PERF_HZ: Final = 99
_FOREVER_NS: Final = 10**18
_PATIENCE_S: Final = 20.0
_REST_S: Final = 0.04
_RESTING: Final = 0.1
"""perf has started when it has used less than `_RESTING` of a processor for `_REST_S`."""


@dataclass(slots=True)
class _Watching:
    cpu_ns: int | None = None


class LocalObservers:
    """Implements the runner's `Observers` port on this machine."""

    @contextmanager
    def beside(self, observer: str, target: Target) -> Iterator[_Watching]:
        """Observe until the context ends.

        Raises SetupError if the observer cannot start, or stopped early.
        """
        kinds = {"system": _system, "sessions": _sessions, "perf": _perf}
        watching = _Watching()
        with kinds[observer](target, watching):
            yield watching


@contextmanager
def _system(target: Target, watching: _Watching) -> Iterator[None]:
    sampler = Sampler(trial_watch(target.pid))
    try:
        yield
    finally:
        seen = sampler.stop()
    watching.cpu_ns = None if seen is None else seen.facts["own_ns"]


@contextmanager
def _sessions(target: Target, watching: _Watching) -> Iterator[None]:
    if target.engine != POSTGRESQL:
        raise SetupError(f'observe = "sessions" is for PostgreSQL; this variant runs on {target.engine}')
    connection: dict[str, Any] = {**target.connection}
    watch = ServerWatch(Address(**connection).conninfo(target.database))
    ended = threading.Event()
    trouble: list[UncorkError] = []
    used: list[int] = []

    def look() -> None:
        begun = time.thread_time_ns()
        found = Samples(time.monotonic_ns(), time.time_ns() // 1000)
        try:
            sample_sessions(watch, found, _FOREVER_NS, round(1e9 / SESSIONS_HZ), ended=ended.is_set)
        except UncorkError as error:
            trouble.append(error)
        used.append(time.thread_time_ns() - begun)

    thread = threading.Thread(target=look, name="sessions", daemon=True)
    try:
        watch.begin_sampling()
        for blockers in (True, False, False):
            # The first answers cost more, because the server plans the query and reads its catalog.
            watch.look((), blockers=blockers)
        thread.start()
        yield
    finally:
        ended.set()
        with uninterrupted():
            if thread.ident is not None:
                thread.join()
            watch.close()
    if trouble:
        raise SetupError(f"the session sampler stopped early: {trouble[0]}")
    watching.cpu_ns = used[0]


@contextmanager
def _perf(_target: Target, watching: _Watching) -> Iterator[None]:
    with scratch_folder("uncork-perf-") as folder:
        data = folder / "data"
        process = start(_perf_command(data), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _begun(process, data)
            before = process_cpu_ns(process.pid)
            yield
            after = process_cpu_ns(process.pid)
        finally:
            with uninterrupted():
                _end(process)
    if before is None or after is None:
        raise SetupError("perf stopped early")
    watching.cpu_ns = after - before


def _perf_command(data: Path) -> list[str]:
    """Return the command that samples stacks on all processors; virtual machines have only this event."""
    return ["perf", "record", "-F", str(PERF_HZ), "-a", "-g", "-e", "cpu-clock", "-o", str(data)]


def _begun(process: Child, data: Path) -> None:
    """Wait until perf samples: it has written its file's header, and rests between samples."""
    deadline = time.monotonic() + _PATIENCE_S
    used = 0
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(_REST_S)
        now = process_cpu_ns(process.pid) or 0
        if data.exists() and data.stat().st_size and now - used < _RESTING * _REST_S * 1e9:
            return
        used = now
    raise SetupError(f"perf did not start: {_output(process)}")


def _end(process: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def process_cpu_ns(pid: int) -> int | None:
    """Return the processor time of a process of any user; None if there is no such process.

    It is read from the kernel's clock of the process, whose number is derived from the pid
    (clock_getcpuclockid).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def _output(process: Child) -> str:
    if process.poll() is None:
        return "it took too long"
    _, output = process.communicate()
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[0] if lines else f"exit status {process.returncode}"


def perf_trouble() -> str | None:
    """Return why perf cannot sample on this machine; None if it can."""
    if shutil.which("perf") is None:
        return "perf is not installed (Debian: linux-perf)"
    with scratch_folder("uncork-perf-") as folder:
        command = [*_perf_command(folder / "data"), "--", "true"]
        tried = run(command, capture_output=True, timeout=_PATIENCE_S)
    if tried.returncode == 0:
        return None
    lines = [line.strip() for line in tried.stderr.decode(errors="replace").splitlines() if line.strip()]
    reason = next(
        (line for line in lines if "ermission" in line or "paranoid" in line), lines[0] if lines else ""
    )
    return f"perf may not sample all processors: {reason} (lower kernel.perf_event_paranoid, or run as root)"


_WINDOW_S: Final = 0.75
_WINDOWS: Final = 8
"""The number of idle windows of each observer, and their length."""


def idle_seconds(observers: int) -> float:
    """Return how long measuring so many observers takes, in seconds."""
    return _WINDOWS * _WINDOW_S * (observers + 1)


def idle_costs(names: Sequence[str], target: Target, seed: int) -> dict[str, IdleCost]:
    """Measure observers on an idle server, in windows with each observer and without, in random order."""
    order = random.Random(seed)
    observers = LocalObservers()
    server: dict[str, list[float]] = {name: [] for name in names}
    own: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_WINDOWS):
        found: dict[str, float | None] = {}
        turns: list[str | None] = [None, *names]
        order.shuffle(turns)
        for name in turns:
            if name is None:
                found[NOTHING] = _window(target)
                continue
            with observers.beside(name, target) as watching:
                begun = time.monotonic_ns()
                found[name] = _window(target)
                passed = time.monotonic_ns() - begun
            own[name].append((watching.cpu_ns or 0) / passed * 1e9)
        quiet = found[NOTHING]
        for name in names:
            busy = found[name]
            if busy is not None and quiet is not None:
                server[name].append(busy - quiet)
    return {name: _idle_cost(own[name], server[name]) for name in names}


def _idle_cost(own: Sequence[float], server: Sequence[float]) -> IdleCost:
    own_mean, own_spread = _mean(own)
    known = _mean(server) if server else (None, None)
    return IdleCost(len(own), own_mean or 0.0, own_spread, *known)


def _mean(values: Sequence[float]) -> tuple[float | None, float | None]:
    count, mean, deviation = summary(values)
    half = float(radius(count, deviation, 0.95))
    return mean, half if half < float("inf") else None


def _window(target: Target) -> float | None:
    """Return the processor time per second of the server's processes; None if they are not local."""
    before, begun = _server_cpu(target.pid), time.monotonic_ns()
    time.sleep(_WINDOW_S)
    after, passed = _server_cpu(target.pid), time.monotonic_ns() - begun
    if before is None or after is None:
        return None
    return sum(used - before.get(pid, 0) for pid, used in after.items()) / passed * 1e9


def _server_cpu(postmaster: int | None) -> dict[int, int] | None:
    """Return the processor time of the server's processes by pid; None if they are not local."""
    if postmaster is None:
        return None
    try:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    except OSError:
        return None
    clocks = {pid: process_cpu_ns(pid) for pid in (postmaster, *map(int, children))}
    return {pid: used for pid, used in clocks.items() if used is not None}
