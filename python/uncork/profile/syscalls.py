"""Count and time the system calls of processes with `perf trace -s` or `strace`."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from uncork.model.records import Record
from uncork.profile.perf import end_tracer
from uncork.spawn.child import scratch_folder, start

_PROCESS = re.compile(r"^ (?P<name>\S.*) \((?P<pid>\d+)\), \d+ events")
_CALL = re.compile(r"^   (?P<name>\w+)\s+(?P<calls>\d+)\s+(?P<errors>\d+)\s+(?P<ms>[\d.]+)\s")
_LINE = re.compile(r"^(?P<pid>\d+) +(?P<time>\d+\.\d+) (?P<rest>.*)$")
_DONE = re.compile(
    r"^(?:<\.\.\. )?(?P<name>\w+)(?: resumed>|\().*= (?P<result>\S+)(?: .*)? <(?P<seconds>[\d.]+)>$"
)
_END_S: Final = 5.0
_MOST_BYTES: Final = 512 << 20


class Syscalls(Record):
    """System calls: rows with pid, process, syscall, calls, errors and time_ns; the tool, and for how long.

    `lack` is the reason why nothing could be counted; otherwise it is empty.
    """

    rows: tuple[dict[str, Any], ...]
    tool: str
    watched_ns: int
    lack: str


def count_syscalls(pids: Sequence[int], seconds: float) -> Syscalls:
    """Count the system calls of processes for some seconds. The processes run on unchanged afterwards.

    strace stops a process at each call, which makes it many times slower. `perf trace` does not, so it is
    preferred if it works.
    """
    missing = []
    for tool, count in (("perf", _by_perf), ("strace", _by_strace)):
        found = shutil.which(tool)
        if found is None:
            missing.append(f"{tool} is not installed")
            continue
        try:
            rows = count(found, pids, seconds)
        except OSError as error:
            missing.append(f"cannot run {tool}: {error.strerror}")
            continue
        if isinstance(rows, str):
            missing.append(f"{tool}: {rows}")
            continue
        return Syscalls(tuple(rows), "perf trace" if tool == "perf" else tool, round(seconds * 1e9), "")
    return Syscalls((), "", 0, "; ".join(missing))


def _by_perf(perf: str, pids: Sequence[int], seconds: float) -> list[dict[str, Any]] | str:
    with scratch_folder("uncork-trace-") as folder:
        output = folder / "summary"
        call = [perf, "trace", "-s", "-o", str(output), "-p", ",".join(map(str, pids))]
        printed = _run([*call, "--", "sleep", f"{seconds:.3f}"], seconds)
        text = output.read_text(errors="replace") if output.is_file() else ""
        rows = parse_summary(text.splitlines())
        if not rows and "Summary of events" not in text:
            return _reason(printed or text)
        return rows


def _by_strace(strace: str, pids: Sequence[int], seconds: float) -> list[dict[str, Any]] | str:
    with scratch_folder("uncork-trace-") as folder:
        output = folder / "calls"
        call = [strace, "-f", "-q", "-T", "-ttt", "-s", "0", "-o", str(output)]
        for pid in pids:
            call += ["-p", str(pid)]
        printed = _run(call, seconds, interrupt=True)
        if not output.is_file() or not output.stat().st_size:
            return _reason(printed)
        if output.stat().st_size > _MOST_BYTES:
            return "its output is larger than 512 MB; count for a shorter time"
        with output.open(errors="replace") as lines:
            return parse_strace(lines)


def _run(call: list[str], seconds: float, *, interrupt: bool = False) -> str:
    """Run a tracer for some seconds; it detaches from the processes when it is interrupted."""
    with tempfile.TemporaryFile() as messages:
        quiet = subprocess.DEVNULL
        running = start(call, stdin=quiet, stdout=quiet, stderr=messages)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(seconds if interrupt else seconds + _END_S)
        finally:
            end_tracer(running, (_END_S, _END_S, _END_S))
        messages.seek(0)
        return messages.read().decode(errors="replace")


def _reason(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if "permi" in printed.lower():
        return "it may not observe these processes (run as root, or allow ptrace and tracepoints)"
    return (lines[-1] if lines else "it printed nothing")[:160]


def parse_summary(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Parse the output of `perf trace -s`. Pure."""
    rows: list[dict[str, Any]] = []
    process: dict[str, Any] = {}
    for line in lines:
        if match := _PROCESS.match(line):
            process = {"pid": int(match["pid"]), "process": match["name"]}
        elif process and (match := _CALL.match(line)):
            counts = {"calls": int(match["calls"]), "errors": int(match["errors"])}
            time_ns = round(float(match["ms"]) * 1e6)
            rows.append({**process, "syscall": match["name"], **counts, "time_ns": time_ns})
    return rows


def parse_strace(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return calls by process and name from the output of `strace -f -T -ttt`. Pure."""
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in lines:
        match = _LINE.match(line.rstrip("\n"))
        done = _DONE.match(match["rest"]) if match else None
        if match is None or done is None:
            continue
        found = sums[int(match["pid"]), done["name"]]
        found[0] += 1
        found[1] += done["result"].startswith("-")
        found[2] += round(float(done["seconds"]) * 1e9)
    return [
        {"pid": pid, "process": "", "syscall": name, "calls": calls, "errors": errors, "time_ns": time_ns}
        for (pid, name), (calls, errors, time_ns) in sums.items()
    ]
