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

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from uncork.engines.connecting import time_to_connect
from uncork.engines.conninfo import Address
from uncork.engines.services.workers import WorkerWatch
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole, pool_counted
from uncork.errors import ConnectError, LoadError, UncorkError, UsageError
from uncork.model.http import HttpSpec, Request
from uncork.model.load import LoadOutcome
from uncork.model.redaction import redact
from uncork.model.results.service import WorkerFacts
from uncork.model.stored_run import RunStatus
from uncork.model.tables.service import ALL, APART
from uncork.profile.logs import LogRequest, read_logs
from uncork.requests.jobs import HttpJob, ServiceJob
from uncork.store.evidence import rows_table, write_evidence
from uncork.workbench.load.http import HttpSession, check_http_job, http_manifest
from uncork.workbench.load.monitor import Components, find_components
from uncork.workbench.profile.database_part import new_part, store_watch, watch_until
from uncork.workbench.profile.database_watch import Watched
from uncork.workbench.profile.log_files import expand
from uncork.workbench.profile.seen import store_evidence
from uncork.workbench.profile.service_code import record_code
from uncork.workbench.profile.service_functions import (
    CodeTimes,
    code_times,
    costliest_requests,
    has_routes,
    record_apart,
    sent_for,
)
from uncork.workbench.profile.service_slices import (
    Counted,
    StatementCounter,
    check_requests,
    measure_slices,
    other_trace,
    plan_slices,
)
from uncork.workbench.profile.stack_recording import Recorded
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
