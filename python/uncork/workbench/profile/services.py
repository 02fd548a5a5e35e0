"""Profile a service: send requests to it, and watch service, database and machine at the same time.

Four steps follow each other. First every kind of request is sent alone, in short slices, which counts the
statements that each sends. Then all are sent together while the database's sessions and the service's
processes are watched. Then they are sent once more while a sampler records the service's functions, so that
its cost does not distort the latencies of the second step. At last each is sent alone again while functions
are recorded, unless the program labels its stacks with routes.

The load, the watch of the database, and the stacks are complete runs of their own, in ``parts/`` of
the run's folder.
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
from uncork.store.tables import rows_table, write_evidence
from uncork.workbench.load.monitor import Components, find_components
from uncork.workbench.load.sessions import HttpSession
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
    HttpSession(HttpJob(job.spec, job.command, job.pids, conninfo))
    components = find_components(job.pids, job.spec.server.host, job.spec.server.port, conninfo)
    if conninfo is not None and components.conninfo is None:
        raise ConnectError(next(text for text in components.missing if text.startswith("--postgres")))
    if job.send:
        _check(job)
    pooler = None if job.pooler is None else PoolerConsole(job.pooler)
    place = "" if job.postgres is None else redact(job.postgres.place)
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
        found = _Profile(run.folder, job, components, told, pooler, missing=list(components.missing))
        found.record()
        if logs:
            found.add_logs(LogRequest(logs, begin_us=begun_us))
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


@dataclass(slots=True)
class _Profile:
    """The profile of a service: what it works with, and what was recorded so far."""

    folder: Path
    job: ServiceJob
    components: Components
    told: Callable[[str], None]
    pooler: PoolerConsole | None
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

    def record(self) -> None:
        """Carry out the three steps."""
        kinds = len(self.job.spec.requests) if self.job.send else 1
        code = CodeTimes(0.0, 0.0)
        if self.job.code and self.components.service:
            code = code_times(self.job.seconds, kinds)
        server = None if self.components.conninfo is None else ServerWatch(self.components.conninfo)
        begun, counting = time.monotonic(), False
        try:
            if server is not None:
                counting = self._measure_alone(server)
            spent = time.monotonic() - begun
            left = max(self.job.seconds - code.together_s - code.apart_s - spent, _LEAST * self.job.seconds)
            if self.status == "complete":
                counter = server if counting else None
                self._watch_all(counter, left)
            if self.status == "complete" and code.together_s:
                self._record_functions(code)
            if server is not None and counting:
                self.texts = server.texts(self.counted.query_ids())
        except UncorkError as error:
            self.end("failed", str(error))
        finally:
            for one in (server, self.pooler):
                if one is not None:
                    one.close()

    def _measure_alone(self, server: ServerWatch) -> bool:
        """Send each request alone if the database counts statements; return whether it does."""
        if server.facts()["statements"] != "counting":
            self.missing.append(
                "which statements each request sends: the database does not count statements "
                "(shared_preload_libraries = 'pg_stat_statements', then CREATE EXTENSION pg_stat_statements)"
            )
            return False
        if self.job.send:
            plan = plan_slices(len(self.job.spec.requests), _ALONE * self.job.seconds)
            measure_slices(self.job.spec, server, plan, self.counted, self.told)
            if self.counted.interrupted:
                self.end("interrupted", "interrupted")
            elif self.counted.trouble:
                self.end("failed", self.counted.trouble)
        return True

    @contextmanager
    def _pool_counted(self) -> Iterator[None]:
        """Store what a pooler counts while the block runs."""
        if self.pooler is None:
            yield
            return
        with pool_counted(self.pooler, self.missing) as counted:
            yield
        self.pool = counted or None

    def _watch_all(self, counter: ServerWatch | None, seconds: float) -> None:
        what = "all requests together" if self.job.send else "the traffic that is there"
        self.told(f"{what}: {seconds:.0f} s")
        over = threading.Event()
        workers = None if self.components.service is None else WorkerWatch(self.components.service.pids)
        counts = None if counter is None else StatementCounter(counter)
        measured = None
        started = time.monotonic_ns()
        with ThreadPoolExecutor(2, "uncork-database") as pool:
            watching = connecting = None
            if self.components.conninfo is not None:
                watching = pool.submit(watch_until, self.components.conninfo, over)
                if self.counted.opens_connections():
                    connecting = pool.submit(_time_connections, self.components.conninfo, seconds, over)
            with self._pool_counted():
                try:
                    if self.job.send:
                        session = self._load_part(seconds)
                        outcome = session.run(None, lambda _: None)
                        self.parts.append("load")
                        measured = session.measured
                        if measured is not None:
                            self.costliest = costliest_requests(self.job.spec, measured.times)
                        if outcome is LoadOutcome.INTERRUPTED:
                            self.end("interrupted", "interrupted")
                    else:
                        time.sleep(seconds)
                except KeyboardInterrupt:
                    self.end("interrupted", "interrupted")
                finally:
                    try:
                        # Before the watch asks for plans, which some servers count as executions.
                        with uninterrupted():
                            if counts is not None:
                                counts.add(self.counted, ALL, "", measured)
                    finally:
                        over.set()
            with uninterrupted():
                if connecting is not None:
                    self.connect_ns = connecting.result()
                if workers is not None:
                    ports = None if counter is None else counter.session_ports()
                    self.workers = workers.end(ports)
                self._store_database(watching, time.monotonic_ns() - started)

    def _store_database(self, watching: Future[Watched] | None, elapsed_ns: int) -> None:
        if watching is None or self.job.postgres is None:
            return
        try:
            watched = watching.result()
        except UncorkError as error:
            self.missing.append(f"what the database's sessions did: {error}")
            return
        store_watch(self.folder, watched, elapsed_ns, redact(self.job.postgres.place), self.job.command)
        self.parts.append("database")
        if watched.trouble:
            self.missing.append(f"what the database's sessions did until the end: {watched.trouble}")

    def _load_part(self, seconds: float) -> HttpSession:
        spec = replace(self.job.spec, duration_ns=round(seconds * 1e9), operations=None, warmup_ns=0)
        pids = () if self.components.service is None else self.components.service.pids[:1]
        part = HttpSession(HttpJob(spec, self.job.command, self.job.pids or pids, self.components.conninfo))
        manifest = part.manifest("load", "load", "all requests together, in the profile of a service")
        return part.begin(new_part(self.folder, "load", manifest))

    def add_logs(self, request: LogRequest) -> None:
        """Store what the logs show of the time of the profile as a part."""
        started = time.monotonic_ns()
        try:
            reading = read_logs(request)
        except UncorkError as error:
            self.missing.append(f"what the logs show: {error}")
            return
        if not reading.facts["entries"]:
            self.missing.append("what the logs show: they have no entry of the time of the profile")
            return
        options = {"command": self.job.command}
        manifest = draft(kind="log", name="log", question="log", server="", options=options)
        record = new_part(self.folder, "log", manifest)
        elapsed = time.monotonic_ns() - started
        store_evidence(record, "complete", elapsed, reading.facts, reading.tables, lambda _: None)
        self.parts.append("log")

    def _record_functions(self, times: CodeTimes) -> None:
        labelled = self._record_code(times.together_s)
        if times.apart_s and not labelled and self.status == "complete":
            self._record_apart(times.apart_s)

    def _record_code(self, seconds: float) -> bool:
        """Record functions while all requests are sent; return whether the program labels them with routes.

        If nothing could be recorded, return True: then each request alone cannot be recorded either.
        """
        if not self.workers:
            return True
        started = time.monotonic_ns()
        load = replace(self.job.spec, trace=other_trace(self.job.spec.trace))
        try:
            with sent_for(seconds, load) if self.job.send else nullcontext():
                recorded, missing = record_code(self.workers, self.job.spec.server, seconds, self.told)
            if missing:
                self.missing.append(missing)
            if recorded.status == "interrupted":
                self.end("interrupted", "interrupted")
            self._store_code(recorded, "code", time.monotonic_ns() - started)
            return has_routes(recorded)
        except KeyboardInterrupt:
            self.end("interrupted", "interrupted")
        except UncorkError as error:
            self.missing.append(f"functions of the service: {error}")
        return True

    def _record_apart(self, seconds: float) -> None:
        started = time.monotonic_ns()
        try:
            recorded, trouble = record_apart(self.job.spec, self.costliest, self.workers, seconds, self.told)
        except KeyboardInterrupt:
            self.end("interrupted", "interrupted")
            return
        if recorded is None:
            self.missing.append(f"functions of each request: {trouble}")
            return
        if recorded.status == "interrupted":
            self.end("interrupted", "interrupted")
        self._store_code(recorded, APART, time.monotonic_ns() - started)

    def _store_code(self, recorded: Recorded, name: str, elapsed_ns: int) -> None:
        target = f"{self.workers[0].command} ({self.workers[0].pid})"
        options = {"command": self.job.command}
        manifest = draft(kind="cpu", name=name, question=f"stacks: {target}", server=target, options=options)
        facts = {**recorded.facts, "against": ""}
        record = new_part(self.folder, name, manifest)
        store_evidence(record, recorded.status, elapsed_ns, facts, recorded.tables, lambda _: None)
        self.parts.append(name)


def _time_connections(conninfo: str, seconds: float, over: threading.Event) -> float | None:
    """Return the median time to open a connection while requests are sent; None if none could be opened."""
    times: list[int] = []
    while len(times) < _CONNECTIONS and not over.wait(seconds / (_CONNECTIONS + 1)):
        try:
            times.append(time_to_connect(conninfo))
        except ConnectError:
            break
    return median(times) if times else None


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

    `py_spy` is its path, `pprof` the address of a Go service's own profile, empty if it has none;
    `mapped` says whether a process writes a map of its code for perf.
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

    Raises UncorkError if nothing could be recorded.
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
