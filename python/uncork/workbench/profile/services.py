"""Profile a service: send requests to it, and watch service, database and machine at the same time.

Four steps follow each other. First every kind of request is sent alone, in short slices, which counts the
statements that each sends. Then all are sent together while the database's sessions and the service's
processes are watched. Then they are sent once more while a sampler records the service's functions, so that
its cost does not distort the latencies of the second step. At last each is sent alone again while functions
are recorded, unless the program labels its stacks with routes.

The load, the watch of the database, and the stacks are complete runs of their own, in ``parts/`` of the run's
folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow as pa

from uncork.engines.connecting import time_to_connect
from uncork.engines.conninfo import Address
from uncork.engines.services.workers import WorkerWatch
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole, pool_counted
from uncork.errors import ConnectError, LoadError, UncorkError, UsageError
from uncork.load.http import run_http
from uncork.model.extras import install_extra
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import LoadOutcome
from uncork.model.redaction import redact
from uncork.model.results.service import Runtime, WorkerFacts
from uncork.model.stored_run import RunStatus
from uncork.model.tables.load import LoadTimes
from uncork.model.tables.service import ALL, APART
from uncork.profile.logs import LogRequest, read_logs
from uncork.profile.perf import CallGraph
from uncork.requests.jobs import HttpJob, ServiceJob
from uncork.spawn.child import run, scratch_folder
from uncork.store.profile_tables import rows_table, write_evidence
from uncork.workbench.load.http import HttpSession, check_http_job, http_manifest
from uncork.workbench.load.monitor import Components, find_components
from uncork.workbench.profile.database_watch import Watched
from uncork.workbench.profile.databases import new_part, store_watch, watch_until
from uncork.workbench.profile.log_files import expand
from uncork.workbench.profile.service_slices import (
    Counted,
    StatementCounter,
    check_requests,
    measure_slices,
    only_request,
    other_trace,
    plan_slices,
)
from uncork.workbench.profile.stack_recording import Recorded, StackRequest, record_stacks
from uncork.workbench.profile.storing import store_evidence
from uncork.workbench.run_record import draft, start_run
from uncork.workbench.signals import uninterrupted

_ALONE: Final = 0.35
"""Fraction of the time for sending each request alone."""
_LEAST: Final = 0.25
"""Fraction of the time that the second step lasts at least, if the first one took longer than planned."""
_CONNECTIONS: Final = 10
"""Connections that are opened to measure how long that takes."""


@dataclass(slots=True)
class _Found:
    """What was recorded so far."""

    counted: Counted = field(default_factory=Counted)
    texts: dict[int, str] = field(default_factory=dict)
    workers: tuple[WorkerFacts, ...] = ()
    connect_ns: float | None = None
    pool: dict[str, float] | None = None
    missing: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    costliest: tuple[Request, ...] = ()
    status: RunStatus = "complete"
    reason: str = ""

    def end(self, status: RunStatus, reason: str) -> None:
        """Record how the profile ended, unless it had already ended early."""
        if self.status == "complete":
            self.status, self.reason = status, reason


def profile_service(root: Path, job: ServiceJob, told: Callable[[str], None]) -> tuple[Path, RunStatus, str]:
    """Profile a service, and store what was observed; return the run's folder, how it ended, and why.

    `told` receives messages about the progress. Ctrl-C ends the profile early and keeps what was recorded.

    Raises:
        UsageError: if a request cannot be sent, or fails, or a folder of logs is empty.
        ConnectError: if the database cannot be reached, or refuses the connection.
        SetupError: if the run's folder cannot be written.
        StoreError: if the result cannot be written.
    """
    logs = tuple(expand(list(job.logs)))
    conninfo = None if job.postgres is None else job.postgres.conninfo()
    check_http_job(HttpJob(job.spec, job.command, job.pids, conninfo))
    components = find_components(job.pids, job.spec.server.host, job.spec.server.port, conninfo)
    if conninfo is not None and components.conninfo is None:
        raise ConnectError(next(text for text in components.missing if text.startswith("--postgres")))
    if job.send:
        _check(job)
    pooler = None if job.pooler is None else PoolerConsole(job.pooler)
    place = "" if job.postgres is None else _place(job.postgres)
    manifest = draft(
        kind="service",
        name=f"service-{job.spec.server.host}",
        question=f"service: {job.spec.server.place}",
        server=job.spec.server.place,
        seed=job.spec.seed,
        options={"command": job.command},
    )
    begun, begun_us = time.monotonic_ns(), time.time_ns() // 1000
    with start_run(root, manifest, undone="nothing was stored") as run:
        found = _Found(missing=list(components.missing))
        _record(run.folder, job, components, found, told, pooler)
        if logs:
            _read_logs(run.folder, job, LogRequest(logs, begin_us=begun_us), found)
        facts: dict[str, Any] = {
            "database": place,
            "sent": job.send,
            "seconds": job.seconds,
            "connect_ns": found.connect_ns,
            "pool": found.pool,
            "trace": job.spec.trace if job.send else None,
            "missing": found.missing,
            "parts": found.parts,
            "trouble": found.reason,
        }
        tables = found.counted.tables(found.texts)
        rows = {**tables, "service_processes": [asdict(worker) for worker in found.workers]}
        with uninterrupted():
            write_evidence(run.folder, facts, {name: rows_table(name, of) for name, of in rows.items()})
            run.end(found.status, found.reason or found.status, time.monotonic_ns() - begun)
    return run.folder, found.status, found.reason


def _check(job: ServiceJob) -> None:
    try:
        trouble = check_requests(job.spec)
    except LoadError as error:
        raise UsageError(str(error)) from error
    if trouble:
        raise UsageError(f"{trouble}; nothing was profiled, because each request must succeed once")


def _record(
    folder: Path,
    job: ServiceJob,
    components: Components,
    found: _Found,
    told: Callable[[str], None],
    pooler: PoolerConsole | None,
) -> None:
    """Carry out the three steps; each adds to `found`."""
    kinds = len(job.spec.requests) if job.send else 1
    code = code_times(job.seconds, kinds) if job.code and components.service else CodeTimes(0.0, 0.0)
    server = None if components.conninfo is None else ServerWatch(components.conninfo)
    begun, counting = time.monotonic(), False
    try:
        if server is not None:
            counting = server.facts()["statements"] == "counting"
            if not counting:
                found.missing.append(
                    "which statements each request sends: the database does not count statements "
                    "(shared_preload_libraries = 'pg_stat_statements', then CREATE EXTENSION "
                    "pg_stat_statements)"
                )
        if job.send and counting and server is not None:
            alone = _ALONE * job.seconds
            plan = plan_slices(len(job.spec.requests), alone)
            measure_slices(job.spec, server, plan, found.counted, told)
            if found.counted.interrupted:
                found.end("interrupted", "interrupted")
            elif found.counted.trouble:
                found.end("failed", found.counted.trouble)
        spent = time.monotonic() - begun
        left = max(job.seconds - code.together_s - code.apart_s - spent, _LEAST * job.seconds)
        if found.status == "complete":
            counter = server if counting else None
            _watch_all(folder, job, components, counter, left, found, told, pooler)
        if found.status == "complete" and code.together_s:
            _record_functions(folder, job, code, found, told)
        if server is not None and counting:
            found.texts = server.texts(found.counted.query_ids())
    except UncorkError as error:
        found.end("failed", str(error))
    finally:
        for one in (server, pooler):
            if one is not None:
                one.close()


@contextmanager
def _pool_counted(pooler: PoolerConsole | None, found: _Found) -> Iterator[None]:
    """Store what a pooler counts while the block runs."""
    if pooler is None:
        yield
        return
    with pool_counted(pooler, found.missing) as counted:
        yield
    found.pool = counted or None


# ---- all requests together ----


def _watch_all(
    folder: Path,
    job: ServiceJob,
    components: Components,
    counter: ServerWatch | None,
    seconds: float,
    found: _Found,
    told: Callable[[str], None],
    pooler: PoolerConsole | None,
) -> None:
    what = "all requests together" if job.send else "the traffic that is there"
    told(f"{what}: {seconds:.0f} s")
    over = threading.Event()
    workers = None if components.service is None else WorkerWatch(components.service.pids)
    counts = None if counter is None else StatementCounter(counter)
    measured = None
    started = time.monotonic_ns()
    with ThreadPoolExecutor(2, "uncork-database") as pool:
        watching = connecting = None
        if components.conninfo is not None:
            watching = pool.submit(watch_until, components.conninfo, over)
            if found.counted.opens_connections():
                connecting = pool.submit(_time_connections, components.conninfo, seconds, over)
        with _pool_counted(pooler, found):
            try:
                if job.send:
                    session = _load_part(folder, job, components, seconds)
                    outcome = session.run(None, lambda _: None)
                    found.parts.append("load")
                    measured = session.measured
                    if measured is not None:
                        found.costliest = costliest_requests(job.spec, measured.times)
                    if outcome is LoadOutcome.INTERRUPTED:
                        found.end("interrupted", "interrupted")
                else:
                    time.sleep(seconds)
            except KeyboardInterrupt:
                found.end("interrupted", "interrupted")
            finally:
                try:
                    # Before the watch asks for plans, which some servers count as executions.
                    with uninterrupted():
                        if counts is not None:
                            counts.add(found.counted, ALL, "", measured)
                finally:
                    over.set()
        with uninterrupted():
            if connecting is not None:
                found.connect_ns = connecting.result()
            if workers is not None:
                ports = None if counter is None else counter.session_ports()
                found.workers = workers.end(ports)
            _store_database(folder, job, watching, time.monotonic_ns() - started, found)


def _time_connections(conninfo: str, seconds: float, over: threading.Event) -> float | None:
    """Return the median time to open a connection while requests are sent; None if none could be opened."""
    times: list[int] = []
    while len(times) < _CONNECTIONS and not over.wait(seconds / (_CONNECTIONS + 1)):
        try:
            times.append(time_to_connect(conninfo))
        except ConnectError:
            break
    return median(times) if times else None


def _store_database(
    folder: Path, job: ServiceJob, watching: Future[Watched] | None, elapsed_ns: int, found: _Found
) -> None:
    if watching is None or job.postgres is None:
        return
    try:
        watched = watching.result()
    except UncorkError as error:
        found.missing.append(f"what the database's sessions did: {error}")
        return
    store_watch(folder, watched, elapsed_ns, _place(job.postgres), job.command)
    found.parts.append("database")
    if watched.trouble:
        found.missing.append(f"what the database's sessions did until the end: {watched.trouble}")


def _load_part(folder: Path, job: ServiceJob, components: Components, seconds: float) -> HttpSession:
    spec = _lasting(job.spec, seconds)
    pids = () if components.service is None else components.service.pids[:1]
    part = HttpJob(spec, job.command, job.pids or pids, components.conninfo)
    manifest = http_manifest(part, "load", "load", "all requests together, in the profile of a service")
    return HttpSession(new_part(folder, "load", manifest), part)


def _lasting(spec: HttpSpec, seconds: float) -> HttpSpec:
    return replace(spec, duration_ns=round(seconds * 1e9), operations=None, warmup_ns=0)


# ---- logs ----


def _read_logs(folder: Path, job: ServiceJob, request: LogRequest, found: _Found) -> None:
    """Store what the logs show of the time of the profile as a part."""
    started = time.monotonic_ns()
    try:
        reading = read_logs(request)
    except UncorkError as error:
        found.missing.append(f"what the logs show: {error}")
        return
    if not reading.facts["entries"]:
        found.missing.append("what the logs show: they have no entry of the time of the profile")
        return
    manifest = draft(kind="log", name="log", question="log", server="", options={"command": job.command})
    record = new_part(folder, "log", manifest)
    elapsed = time.monotonic_ns() - started
    store_evidence(record, "complete", elapsed, reading.facts, reading.tables, lambda _: None)
    found.parts.append("log")


# ---- functions ----


def _record_functions(
    folder: Path, job: ServiceJob, times: CodeTimes, found: _Found, told: Callable[[str], None]
) -> None:
    labelled = _record_code(folder, job, times.together_s, found, told)
    if times.apart_s and not labelled and found.status == "complete":
        _record_apart(folder, job, times.apart_s, found, told)


def _record_code(
    folder: Path, job: ServiceJob, seconds: float, found: _Found, told: Callable[[str], None]
) -> bool:
    """Record functions while all requests are sent; return whether the program labels them with routes.

    If nothing could be recorded, return True: then each request alone cannot be recorded either.
    """
    if not found.workers:
        return True
    started = time.monotonic_ns()
    load = replace(job.spec, trace=other_trace(job.spec.trace))
    try:
        with sent_for(seconds, load) if job.send else nullcontext():
            recorded, missing = record_code(found.workers, job.spec.server, seconds, told)
        if missing:
            found.missing.append(missing)
        if recorded.status == "interrupted":
            found.end("interrupted", "interrupted")
        _store_code(folder, job, recorded, "code", time.monotonic_ns() - started, found)
        return has_routes(recorded)
    except KeyboardInterrupt:
        found.end("interrupted", "interrupted")
    except UncorkError as error:
        found.missing.append(f"functions of the service: {error}")
    return True


def _record_apart(
    folder: Path, job: ServiceJob, seconds: float, found: _Found, told: Callable[[str], None]
) -> None:
    """Record functions while each kind of request is sent alone."""
    started = time.monotonic_ns()
    try:
        recorded, trouble = record_apart(job.spec, found.costliest, found.workers, seconds, told)
    except KeyboardInterrupt:
        found.end("interrupted", "interrupted")
        return
    if recorded is None:
        found.missing.append(f"functions of each request: {trouble}")
        return
    if recorded.status == "interrupted":
        found.end("interrupted", "interrupted")
    _store_code(folder, job, recorded, APART, time.monotonic_ns() - started, found)


def _store_code(
    folder: Path,
    job: ServiceJob,
    recorded: Recorded,
    name: str,
    elapsed_ns: int,
    found: _Found,
) -> None:
    target = f"{found.workers[0].command} ({found.workers[0].pid})"
    manifest = draft(
        kind="cpu", name=name, question=f"stacks: {target}", server=target, options={"command": job.command}
    )
    facts = {**recorded.facts, "against": ""}
    record = new_part(folder, name, manifest)
    store_evidence(record, recorded.status, elapsed_ns, facts, recorded.tables, lambda _: None)
    found.parts.append(name)


def _place(address: Address) -> str:
    return redact(address.place)


# ---- record the functions of a service while only one kind of request is sent, one kind after the other ----
#
# Samplers do not know which request a stack worked for, unless the program labels it. While only one kind
# of request is sent, every stack of the service belongs to it.


_ALL: Final = 0.25
"""Fraction of a profile for recording functions if they are recorded for all requests together only."""
_SHARED: Final = 0.15
"""Fraction for all requests together, and again for each alone."""
_LONGEST_S: Final = 15.0
_LEAST_S: Final = 1.5
"""The shortest recording of one kind of request; py-spy and pprof round it to two seconds."""
_LEAD_S: Final = 0.5
"""How much longer requests are sent than recorded."""


@dataclass(frozen=True, slots=True)
class CodeTimes:
    """How long functions are recorded: of all requests together, and of each alone (`apart_s` in all)."""

    together_s: float
    apart_s: float


def code_times(seconds: float, kinds: int) -> CodeTimes:
    """Divide a profile of some seconds; with one kind of request, all are together anyway."""
    if kinds < 2:
        return CodeTimes(min(_LONGEST_S, _ALL * seconds), 0.0)
    return CodeTimes(min(_LONGEST_S, _SHARED * seconds), min(_LONGEST_S, _SHARED * seconds))


def costliest_requests(spec: HttpSpec, times: Sequence[LoadTimes]) -> tuple[Request, ...]:
    """Return the requests, those first that took most time in a load of all of them."""
    spent = {row.script: row.sum_ns for row in times if row.kind == "script"}
    return tuple(sorted(spec.requests, key=lambda request: -spent.get(request.name, 0)))


def has_routes(recorded: Recorded) -> bool:
    """Return whether labels of the program name the route of stacks."""
    return any(recorded.tables["stacks"]["route"].to_pylist())


@contextmanager
def sent_for(seconds: float, spec: HttpSpec) -> Iterator[None]:
    """Send requests while the block runs, somewhat longer than `seconds`; then wait for the last answers."""
    load = replace(spec, operations=None, warmup_ns=0, duration_ns=round((seconds + _LEAD_S) * 1e9))
    sending = threading.Thread(target=run_http, args=(load,), daemon=True)
    sending.start()
    try:
        yield
    finally:
        sending.join()


def record_apart(
    spec: HttpSpec,
    requests: Sequence[Request],
    workers: Sequence[WorkerFacts],
    seconds: float,
    told: Callable[[str], None],
) -> tuple[Recorded | None, str]:
    """Record as many requests as fit into some seconds, at least two, each alone, in the order given.

    Returns what was recorded, with the name of the request as each stack's route, and why nothing was.
    """
    chosen = requests[: max(2, int(seconds / _LEAST_S))]
    each = max(_LEAST_S, seconds / len(chosen))
    found: list[pa.Table] = []
    last, trouble = None, ""
    for request in chosen:
        told(f"functions while only {request.name} is sent")
        try:
            with sent_for(each, only_request(spec, request, duration_ns=0, operations=None)):
                last, _ = record_code(workers, spec.server, each, lambda _: None)
        except UncorkError as error:  # such as a profile without samples, because the service hardly works
            trouble = trouble or str(error)
            continue
        stacks = last.tables["stacks"]
        names = pa.repeat(pa.scalar(request.name, pa.string()), len(stacks))
        found.append(stacks.set_column(stacks.schema.get_field_index("route"), "route", names))
        if last.status == "interrupted":
            break
    if last is None:
        return None, trouble
    return replace(last, tables={**last.tables, "stacks": pa.concat_tables(found)}), ""


# ---- record which functions of a service use the processors, with the sampler that fits its runtime ----
#
# py-spy reads the stacks of Python; Go services that serve net/http/pprof report their own profile; perf
# records everything else, and names functions of Node.js and Java if the process writes a map of its
# code.


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
        key=lambda worker: worker.user_ns + worker.system_ns,
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
