"""Record stacks of processes with Linux's `perf`, and choose the method that yields complete stacks."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from uncork.errors import UsageError
from uncork.model.records import Record
from uncork.profile.proc_watch import process_name
from uncork.profile.stacks import read_profile
from uncork.spawn.child import Child, run, scratch_folder, start

CallGraph = Literal["dwarf", "fp"]

_METHODS: Final[tuple[CallGraph, ...]] = ("dwarf", "fp")
_PROBE_S: Final = 0.4
_PROBE_HZ: Final = 199
_STACK_BYTES: Final = 16_384
"""Bytes of stack to copy with each sample for DWARF. PostgreSQL's executor uses stacks of 2 to 8 kB."""
_FEW: Final = 5
"""With fewer samples, a probe says nothing about the depth of stacks."""
_DEEPER: Final = 1.5
"""How many times deeper DWARF's stacks must be than those by frame pointers to be worth copying the stack."""
_SCRIPT_S: Final = 120.0
"""How long `perf script` may take."""
_FIELDS: Final = "comm,pid,tid,time,event,ip,sym,dso"
_END_S: Final = 15.0
_TRIES: Final = 5
"""How often to retry a recording because a process ended meanwhile."""


class PerfLack(Exception):
    """perf cannot be used here. The message gives the reason and, if known, a remedy, in one line."""


class Choice(Record):
    """A method to find stacks, and why it was chosen."""

    method: CallGraph
    reason: str


class Recording(Record):
    """A recording: samples with measure, pid, process, time_ns (CLOCK_MONOTONIC), stack and value.

    `status` is the exit status of a recorded command; None for processes.
    """

    samples: pa.Table
    events: tuple[str, ...]
    watched_ns: int
    interrupted: bool
    status: int | None
    notes: tuple[str, ...]


def find_perf() -> str:
    """Return the path of perf. Raises PerfLack if it is not installed."""
    found = shutil.which("perf")
    if found is None:
        raise PerfLack("perf is not installed (Debian: linux-perf; Ubuntu: linux-tools-generic)")
    return found


def choose_call_graph(perf: str, pids: Sequence[int]) -> Choice:
    """Record processes with each method at the same time, and choose the one with complete stacks.

    Raises PerfLack if perf may not observe the processes.
    """

    def probe(method: CallGraph) -> pa.Table:
        return record(perf, method, _PROBE_HZ, pids=pids, seconds=_PROBE_S).samples

    with ThreadPoolExecutor(len(_METHODS), "uncork-probe") as pool:
        probes = dict(zip(_METHODS, pool.map(probe, _METHODS), strict=True))
    return decide({method: _user_depth(found) for method, found in probes.items() if len(found) >= _FEW})


def decide(depths: dict[CallGraph, float]) -> Choice:
    """Choose a method by the median number of user frames that each found in its probe. Pure."""
    if len(depths) < 2:
        few = "the processes hardly ran during the probes, and DWARF works without frame pointers"
        return Choice("dwarf", few)
    dwarf, frames = depths["dwarf"], depths["fp"]
    deep = f"stacks are {dwarf:.0f} user frames deep with DWARF, {frames:.0f} with frame pointers"
    if dwarf >= _DEEPER * frames:
        return Choice("dwarf", deep)
    return Choice(
        "fp",
        f"stacks are {frames:.0f} user frames deep with frame pointers, {dwarf:.0f} with DWARF, which costs "
        "more",
    )


def record(
    perf: str,
    method: CallGraph,
    rate_hz: int,
    *,
    pids: Sequence[int] = (),
    seconds: float = 0.0,
    command: Sequence[str] = (),
    started: Callable[[int], None] | None = None,
) -> Recording:
    """Record processes and their children for some seconds, or a command until it ends.

    Ctrl-C ends the recording early and keeps it. perf ends with uncork, even if uncork is killed. `started`
    is called with the process id of perf.

    Raises:
        PerfLack: if perf may not observe the processes, or they have ended.
        UsageError: if the command cannot be started.
    """
    left, tries = list(pids), _TRIES
    while True:
        call = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(rate_hz), "-k", "mono"]
        call += ["--call-graph", f"dwarf,{_STACK_BYTES}" if method == "dwarf" else "fp"]
        call += ["-p", ",".join(map(str, left))] if left else []
        try:
            return _record(call, seconds, command, started)
        except PerfLack:
            # perf fails, sometimes without a reason, if one of its processes has ended; servers come and go.
            living = [pid for pid in left if process_name(pid) is not None]
            tries -= 1
            if len(living) == len(left) or not tries:
                raise
            if not living:
                raise PerfLack("the processes ended before perf could observe them") from None
            left, started = living, None


def _record(
    call: Sequence[str], seconds: float, command: Sequence[str], started: Callable[[int], None] | None
) -> Recording:
    """Run `perf record` for some seconds, or until a command ends; Ctrl-C ends it cleanly."""
    with scratch_folder("uncork-perf-") as folder:
        data = folder / "perf.data"
        what = command or ["sleep", f"{seconds:.3f}"]
        began, interrupted = time.monotonic_ns(), False
        with (folder / "messages").open("w+b") as messages:
            try:
                running = start(
                    [*call, "-o", str(data), "--", *what],
                    stdin=subprocess.DEVNULL,
                    # A command's own output goes to standard error, so that it does not mix with the report.
                    stdout=2 if command else subprocess.DEVNULL,
                    stderr=messages,
                )
            except OSError as error:
                raise PerfLack(f"cannot run perf: {error.strerror}") from error
            try:
                if started is not None:
                    started(running.pid)
                running.wait(None if command else seconds + _END_S)
            except KeyboardInterrupt:
                interrupted = True
            except subprocess.TimeoutExpired:
                pass
            finally:
                end_tracer(running, (10.0, 3.0, 3.0))
            watched = time.monotonic_ns() - began
            messages.seek(0)
            printed = messages.read().decode(errors="replace")
        if not data.is_file() or not data.stat().st_size:
            raise PerfLack(explain(printed))
        samples, events, notes = _script(call[0], data, folder)
        status = running.returncode if command else None
        return Recording(samples, events, watched, interrupted, status, notes)


def end_tracer(running: Child, patience_s: Sequence[float]) -> None:
    """End perf or strace by SIGINT, SIGTERM or SIGKILL; wait for so long after each."""
    for number, seconds in zip((signal.SIGINT, signal.SIGTERM, signal.SIGKILL), patience_s, strict=True):
        if running.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            running.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(seconds)


def _script(perf: str, data: Path, folder: Path) -> tuple[pa.Table, tuple[str, ...], tuple[str, ...]]:
    """Return the samples of a recording, its events, and notes."""
    call = [perf, "script", "-i", str(data), "--no-inline", "-F", _FIELDS]
    text = folder / "script"
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        with text.open("wb") as output:
            done = run(call, stdin=null, stdout=output, stderr=pipe, timeout=_SCRIPT_S)
    except subprocess.TimeoutExpired as error:
        raise PerfLack(
            f"perf script did not resolve the names of the frames within {_SCRIPT_S:.0f} s"
        ) from error
    content = text.read_bytes()
    notes = (f"perf script failed with exit status {done.returncode}",) if done.returncode else ()
    if not content.strip():
        types = {name: pa.string() for name in ("process", "route", "stack")}
        names = ("measure", "pid", "process", "route", "time_ns", "stack", "value")
        return pa.table({name: pa.array([], types.get(name, pa.int64())) for name in names}), (), notes
    try:
        found = read_profile(content, "perf script", format="perf", times=True)
    except UsageError as error:
        raise PerfLack(f"cannot parse the output of perf: {error}") from error
    return found.stacks, tuple(name for name, _ in found.measures), notes


def _user_depth(samples: pa.Table) -> float:
    """Return the median number of user frames of the samples.

    The mean would be misleading: in code without frame pointers, an occasional sample has a hundred bogus
    frames.
    """
    stacks = samples["stack"].cast(pa.string())
    frames = pc.add(pc.count_substring(stacks, ";"), 1)
    kernel = pc.count_substring(stacks, "_[k]")
    return float(pc.quantile(pc.subtract(frames, kernel), 0.5)[0].as_py())


def explain(printed: str) -> str:
    """Return in one line why perf did not record, from its messages. Pure."""
    text = " ".join(printed.split())
    low = text.lower()
    if "perf_event_paranoid" in low or "permission" in low or "operation not permitted" in low:
        setting = ""
        with contextlib.suppress(OSError):
            setting = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
        level = f" (kernel.perf_event_paranoid is {setting})" if setting else ""
        return (
            f"perf may not observe these processes{level}: run as root, or as their owner with "
            "kernel.perf_event_paranoid at 2 or less; in a container it needs CAP_PERFMON"
        )
    if "no such process" in low:
        return "the processes ended before perf could observe them"
    if "not supported" in low or "enosys" in low or "not implemented" in low:
        return "this kernel does not support sampling of processes (a sandbox, such as gVisor)"
    return f"perf recorded nothing: {text[:200] or 'it printed no reason'}"
