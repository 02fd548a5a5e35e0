"""Record which functions of a service use the processors, with the sampler that fits its runtime.

py-spy reads the stacks of Python; Go services that serve net/http/pprof report their own profile; perf
records everything else, and names functions of Node.js and Java if the process writes a map of its code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from uncork.errors import UncorkError
from uncork.model.extras import install_extra
from uncork.model.http import HttpServer
from uncork.model.results.service import Runtime, WorkerFacts
from uncork.profile.perf import CallGraph
from uncork.spawn.child import run, scratch_folder
from uncork.workbench.profile.stack_recording import Recorded, StackRequest, record_stacks

_RATE_HZ: Final = 100
_MARGIN_S: Final = 30.0
_PROBE_S: Final = 2.0
_MAPPED: Final[dict[Runtime, str]] = {
    "node": "start node with --perf-basic-prof-only-functions",
    "java": "attach perf-map-agent, or start java with -XX:+PreserveFramePointer and -XX:+DumpPerfMapAtExit",
    ".net": "set DOTNET_PerfMapEnabled=1",
}


@dataclass(frozen=True, slots=True)
class Sampler:
    """How to record a service: with which tool, from which process, and what it cannot name (`missing`)."""

    tool: str
    pid: int
    url: str = ""
    missing: str = ""


def choose_sampler(
    workers: Sequence[WorkerFacts], *, py_spy: str | None, pprof: str, mapped: Callable[[int], bool]
) -> Sampler:
    """Choose the sampler for the runtime that uses most of the processor time. Pure.

    `py_spy` is its path, `pprof` the address of a Go service's own profile, empty if it has none; `mapped`
    says whether a process writes a map of its code for perf.
    """
    used: Counter[Runtime] = Counter()
    for worker in workers:
        used[worker.runtime] += worker.user_ns + worker.system_ns + 1
    runtime = used.most_common(1)[0][0]
    root = workers[0].pid
    busiest = max(
        (worker for worker in workers if worker.runtime == runtime),
        key=lambda one: one.user_ns + one.system_ns,
    )
    if runtime == "python":
        if py_spy is not None:
            return Sampler("py-spy", root)
        if mapped(busiest.pid):
            return Sampler("perf", root)
        return Sampler(
            "perf",
            root,
            missing=f"functions of Python, because perf sees only the interpreter: {install_extra('py-spy')}",
        )
    if runtime == "go" and pprof:
        return Sampler("pprof", root, pprof)
    if runtime in _MAPPED and not mapped(busiest.pid):
        return Sampler("perf", root, missing=f"functions of compiled code: {_MAPPED[runtime]}")
    return Sampler("perf", root)


def record_code(
    workers: Sequence[WorkerFacts], server: HttpServer, seconds: float, told: Callable[[str], None]
) -> tuple[Recorded, str]:
    """Record the service for some seconds; return the stacks, and what could not be recorded.

    Raises:
        UncorkError: if nothing could be recorded.
    """
    go = any(worker.runtime == "go" for worker in workers)
    sampler = choose_sampler(
        workers, py_spy=_find_py_spy(), pprof=_pprof(server) if go else "", mapped=_mapped
    )
    told(f"recording the service's functions with {sampler.tool}")
    request = StackRequest(seconds=seconds, rate_hz=_RATE_HZ)
    if sampler.tool == "pprof":
        url = f"{sampler.url}?seconds={max(1, round(seconds))}"
        return record_stacks(replace(request, imports=(url,), format="pprof")), sampler.missing
    if sampler.tool == "py-spy":
        with scratch_folder("uncork-py-spy-") as folder:
            reason = _py_spy(sampler.pid, seconds, folder / "stacks.folded")
            if not reason:
                imports = (str(folder / "stacks.folded"),)
                return record_stacks(replace(request, imports=imports, format="folded")), sampler.missing
        return record_stacks(replace(request, pids=(sampler.pid,))), f"functions of Python: py-spy: {reason}"
    graph: CallGraph = "dwarf" if workers[0].runtime in ("native", "python") else "fp"
    return record_stacks(replace(request, pids=(sampler.pid,), call_graph=graph)), sampler.missing


def _py_spy(pid: int, seconds: float, path: Path) -> str:
    """Record with py-spy; return why it failed, or an empty text.

    Only threads that hold the interpreter's lock are sampled: the others wait, or run code outside Python.
    """
    call = [
        _find_py_spy() or "py-spy",
        "record",
        "--pid",
        str(pid),
        "--subprocesses",
        "--format",
        "raw",
        "--output",
        str(path),
    ]
    call += ["--gil", "--rate", str(_RATE_HZ), "--duration", str(max(1, round(seconds)))]
    try:
        done = run(call, timeout=seconds + _MARGIN_S, capture_output=True, stdin=subprocess.DEVNULL)
    except (OSError, UncorkError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode or not path.is_file() or not path.stat().st_size:
        lines = (done.stderr or b"").decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with status {done.returncode} and no samples"
    return ""


def _find_py_spy() -> str | None:
    """Return the path of py-spy: of the package beside this Python, or else of the PATH."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def _pprof(server: HttpServer) -> str:
    """Return the address of a Go service's CPU profile; empty if it does not serve one."""
    if server.tls:
        return ""
    place = f"{server.place}/debug/pprof/"
    try:
        with urlopen(place, timeout=_PROBE_S) as answer:  # noqa: S310 -- http only
            return f"{place}profile" if answer.status == 200 else ""
    except (URLError, OSError, ValueError):
        return ""


def _mapped(pid: int) -> bool:
    tmp = Path("/proc", str(pid), "root", "tmp")  # as the process sees it, in a container too
    return (tmp / f"perf-{pid}.map").is_file()
