"""Load a PostgreSQL server or a service: prepare it, send the load, and store the result."""

from __future__ import annotations

import os
import platform
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from uncork.engines import process
from uncork.engines.conninfo import Address, resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.host import machine_facts
from uncork.engines.postmaster import postmaster_of
from uncork.engines.services.inspection import listening_program
from uncork.engines.tpcb import Initialised, Progress, initialise, scale_of
from uncork.engines.watch.connection import check_conninfo
from uncork.engines.watch.observe import describe, vacuum
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.load.http import check_http
from uncork.load.parts import PartControl, held_lease
from uncork.load.run import INTERVAL_NS, Messages, check_load, hdr_log, load_plan, run_load, without_password
from uncork.load.sql import build_facts
from uncork.model.database.recording import TRANSACTIONS
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadPart, LoadProgress, LoadScript, LoadSpec
from uncork.model.redaction import redact
from uncork.model.stored_run import RunStatus
from uncork.model.tables.load import LoadTotals
from uncork.model.units import format_duration
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob, TablesOptions
from uncork.store.layout import Manifest, RunKind, write_atomically
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.store.parts import RESERVATIONS
from uncork.store.run_documents import LoadedService, Pressed, write_pressed, write_service
from uncork.store.snapshots import delete_snapshots
from uncork.workbench.clock import now_text
from uncork.workbench.load.monitor import Components, Monitor, find_components, seen_of
from uncork.workbench.load.progress_log import logged
from uncork.workbench.load.targets import HttpTarget, LoadTarget, SqlTarget
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    from uncork.workbench.load.advising import StepSources


_SPARE_CONNECTIONS = 10
"""Connections that an embedded server allows beyond those of the load: uncork's own, and its reserve."""
_NOT_YET = Address("127.0.0.1", 5432, "uncork", "postgres")
"""A placeholder for an embedded server that has not been started yet."""


Notify = Callable[[str], None]
"""Receives a line about what is being done."""


def sql_files(name: str) -> list[str] | None:
    """Return the paths of a folder's .sql files in the order of their names; None if it is no folder.

    A recording also has a file of transactions.
    """
    folder = Path(name)
    if not folder.is_dir():
        return None
    recorded = folder / TRANSACTIONS
    return sorted(str(path) for path in folder.glob("*.sql")) + (
        [str(recorded)] if recorded.is_file() else []
    )


def make_tables(
    conninfo: str, tables: TablesOptions, progress: Callable[[Progress], None] | None = None
) -> Initialised:
    """Create pgbench's tables.

    Raises:
        SetupError: if a step fails on the server.
        ConnectError: if the server cannot be reached, or refuses the connection.
    """
    return initialise(conninfo, **asdict(tables), progress=progress)


def new_load(root: Path, job: AnyLoad, kind: RunKind = "load", question: str = "") -> LoadSession:
    """Check a job, and start the run of a load or of a sweep.

    Raises:
        SetupError: if its folder cannot be written.
        ConnectError, UsageError: if a script, a request, certificates or the connection string are wrong.
    """
    session = checked(job)
    check_start(job.spec.part)
    if isinstance(job, LoadJob) and (job.postgres or job.logs):
        from uncork.workbench.load.advising import check_sources  # noqa: PLC0415 -- only with --advise

        check_sources(job)
    manifest = session.manifest(kind, f"{kind}-{session.name}", question or session.question)
    return session.begin(start_run(root, manifest))


def checked(job: AnyLoad) -> SqlSession | HttpSession:
    """Check a job without contacting the server or the service. Raises ConnectError or UsageError."""
    return HttpSession(job) if isinstance(job, HttpJob) else SqlSession(job)


class LoadSession(ABC):
    """A load that was checked. `begin` gives it its run, and `run` carries it out.

    `question` says in a few words what the load does, and `name` is a part of its run's name. `server` is
    where it is sent, and `place` the same in short. `again` has the part of a job that its plan does not
    store, so that it can be repeated; without secrets. `measured` is what was measured, None before.
    """

    job: AnyLoad
    record: RunRecord
    question: str
    name: str
    server: str
    place: str
    again: Mapping[str, object]
    measured: LoadMeasurement | None = None

    @abstractmethod
    def driven(self, notify: Notify) -> AbstractContextManager[LoadTarget]:
        """Prepare the server, and yield a target that sends this load at any level.

        See `uncork.workbench.load.targets`. Raises SetupError, ConnectError.
        """

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.record.folder

    def begin(self, record: RunRecord) -> Self:
        """Use a run, whose folder exists."""
        self.record = record
        return self

    def manifest(self, kind: RunKind, name: str, question: str) -> Manifest:
        """Return the manifest of a load that starts now."""
        job = self.job
        return draft(
            kind=kind,
            name=name,
            question=question,
            seed=job.spec.seed,
            server=self.server,
            options={"command": job.command, "again": self.again, **part_facts(job.spec.part)},
        )

    def run(
        self,
        progress: Callable[[LoadProgress], None] | None,
        notify: Notify,
        control: PartControl | None = None,
        messages: Messages | None = None,
    ) -> LoadOutcome:
        """Send the load, and store the result. A server that refuses connections is an outcome too.

        Each second is also stored as a snapshot, so that others can follow the load and a killed load is not
        lost. If the load cannot start (no tables, a statement refused), its folder is deleted. `control`
        steers a part of a load. `messages` receives the lines that the load's verbosity asks for.

        Raises:
            SetupError: if tables are missing or cannot be created, or the server cannot be started.
            UsageError: if a statement or a request cannot be sent.
            StoreError: if the result cannot be written.
        """
        part, folder = self.job.spec.part, self.folder
        lease_source = None if part is None else part.lease
        with self.record as record, held_lease(lease_source, control) as lease, ExitStack() as prepared:
            try:
                target = prepared.enter_context(self.driven(notify))
            except ConnectError as error:
                measured = self._refusal(error)
                with uninterrupted():
                    write_measurement(folder, measured)
                record.end(*load_ending(measured.totals))
                return measured.totals.outcome
            target = target.with_part(kept_part(started_part(part, control), folder))
            spec = target.spec
            options = {**record.manifest.options, **part_facts(spec.part)}
            record.change(started_at=now_text(), options=with_time(options, spec.warmup_ns, spec.part))
            write_plan(folder, target.plan())
            if spec.warmup_ns:
                notify(f"warming up for {format_duration(spec.warmup_ns)}, which is not counted")
            indirect = target.components.indirect
            with Monitor(target.components) if indirect else nullcontext() as monitor:
                measured = self.measured = target.carry_out(
                    progress=logged(folder, progress),
                    lease=lease,
                    messages=messages,
                    stopped=None if control is None else control.stopped,
                )
            with uninterrupted():
                if monitor is not None:
                    seen = seen_of(measured, monitor.noticed, spec.threads, indirect=indirect)
                    write_pressed(folder, [Pressed(None, seen, monitor.noticed.missing)])
                write_measurement(folder, measured)
                delete_snapshots(folder)
            if self.job.advise:
                from uncork.workbench.load.advising import watch_again  # noqa: PLC0415 -- only with --advise

                watch_again(record, target, measured, notify, self._sources(target))
            record.end(*load_ending(measured.totals))
        return measured.totals.outcome

    def _refusal(self, error: ConnectError) -> LoadMeasurement:
        """Return the outcome of a load on a server that refused the first connection. Raises ConnectError."""
        raise error

    def _sources(self, target: LoadTarget) -> StepSources | None:
        """Return what else divides the time of the load."""
        return None


# ---- a load by SQL ----


class SqlSession(LoadSession):
    """A load by SQL. `address` is the server's; None for an embedded server.

    Raises ConnectError, UsageError if a script or the connection string is wrong.
    """

    def __init__(self, job: LoadJob) -> None:
        self.job: LoadJob = job
        self.address = address = None if job.server.embedded else job.server.address()
        try:
            check_load(_scaled(job.spec, job.scale), asdict(address or _NOT_YET))
        except LoadError as error:
            raise UsageError(str(error)) from error
        self.question, self.name = _question(job.spec), _name(job.spec)
        self.server = self.place = "embedded"
        if address is not None:
            self.server, self.place = f"existing: {address.place}", f"{address.host}:{address.port}"
        self.again = {
            "embedded": address is None,
            "binaries": None if job.server.binaries is None else str(job.server.binaries),
            "password": address is not None and address.password is not None,
            "tables": None if job.tables is None else asdict(job.tables),
            "needs_tables": job.needs_tables,
            "scale": job.scale,
            "variables": dict(job.spec.variables),
            "vacuum": job.vacuum,
        }

    @contextmanager
    def driven(self, notify: Notify) -> Iterator[SqlTarget]:
        """See `LoadSession`."""
        with self._served(notify) as (address, pid):
            spec = self._prepared(address, notify)
            watched = address if self.job.postgres is None else resolve(self.job.postgres)
            yield SqlTarget(spec, Components(watched.conninfo(), pid, indirect=False), asdict(address), pid)

    @contextmanager
    def _served(self, notify: Notify) -> Iterator[tuple[Address, int | None]]:
        """Yield the server's address, and its postmaster if local; stop an embedded server afterwards."""
        if self.address is not None:
            yield self.address, postmaster_of(self.job.postgres or self.address.conninfo())
            return
        settings: dict[str, object] = {"autovacuum": True}
        connections = self.job.spec.most_clients + _SPARE_CONNECTIONS
        settings |= {"max_connections": connections} if connections > 200 else {}
        server = EmbeddedServer(settings, binaries=self.job.server.binaries)
        server.start()
        try:
            if self.job.tables is not None:
                made = make_tables(server.conninfo(), self.job.tables)
                notify(
                    f"created pgbench's tables at scale {made.scale} in {format_duration(made.elapsed_ns)}"
                )
            yield resolve(server.conninfo()), server.pid
        finally:
            with uninterrupted():
                server.stop()

    def _prepared(self, address: Address, notify: Notify) -> LoadSpec:
        """Store the server's facts, vacuum, and find the scale; return the spec with the scale."""
        job, conninfo = self.job, address.conninfo()
        write_environment(self.folder, {**describe(conninfo), "core": build_facts()})
        scale = job.scale
        if job.needs_tables:
            scale = scale_of(conninfo)
            if job.scale not in (None, scale) and job.tables is None:
                notify(f"scale option ignored, using count from pgbench_branches table ({scale})")
        if job.vacuum != "none":
            for refused in vacuum(conninfo, accounts=job.vacuum == "all"):
                notify(f"{refused} (continuing without)")
        return _scaled(job.spec, scale)

    def _refusal(self, error: ConnectError) -> LoadMeasurement:
        """Return the outcome of a load on a server that refused the first connection, with its error codes.

        Raises:
            ConnectError: the first refusal, if the server accepts connections now: nothing was prepared.
        """
        if self.address is None:
            raise error
        spec, connection = _scaled(self.job.spec, self.job.scale), asdict(self.address)
        write_environment(self.folder, {"core": build_facts()})
        self.record.change(options=with_time(self.record.manifest.options, part=spec.part))
        write_plan(self.folder, without_password(load_plan(spec, connection, pid=None)))
        knock = LoadSpec(
            scripts=(LoadScript("knock", 1, "SELECT 1;\n"),),
            clients=spec.clients,
            threads=spec.threads,
            operations_each=1,
        )
        measured = run_load(knock, connection)
        if measured.totals.outcome is not LoadOutcome.REFUSED:
            raise ConnectError(f"{error}; a moment later it accepted connections: try again") from error
        return measured

    def _sources(self, target: LoadTarget) -> StepSources | None:
        from uncork.engines.watch.observing import count_statements  # noqa: PLC0415 -- only with --advise
        from uncork.workbench.load.advising import StepSources  # noqa: PLC0415

        address = self.address
        if address is None:
            address = resolve(target.components.conninfo or "")
            count_statements(address.conninfo())
        return StepSources(address, self.job.pooler, self.job.logs)


def _scaled(spec: LoadSpec, scale: int | None) -> LoadSpec:
    """Return the spec with the variable `scale` that pgbench's scripts expect, unless it is set already."""
    return replace(spec, variables={"scale": str(scale or 1), **spec.variables})


def _question(spec: LoadSpec) -> str:
    names = ", ".join(script.name for script in spec.scripts)
    if spec.recorded is not None:
        names = "replay of a recording" if spec.recorded.clients else "mix of a recording"
    clients = f"{spec.clients} client{'' if spec.clients == 1 else 's'}"
    return f"load: {names} by {clients}, {spec.protocol}" + ("" if spec.arrivals is None else ", open loop")


def _name(spec: LoadSpec) -> str:
    if spec.recorded is not None:
        return "replay" if spec.recorded.clients else "mix"
    stem = Path(spec.scripts[0].name.partition("#")[0]).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "script"


# ---- a load by HTTP ----


class HttpSession(LoadSession):
    """A load by HTTP. Raises UsageError if a request cannot be sent, or certificates cannot be read."""

    def __init__(self, job: HttpJob) -> None:
        self.job: HttpJob = job
        try:
            check_http(job.spec)
        except (LoadError, ConnectError) as error:
            raise UsageError(str(error)) from error
        if job.postgres is not None:
            try:
                check_conninfo(job.postgres)
            except UsageError as error:
                raise UsageError(f"--postgres: {error}") from error
        spec = job.spec
        clients = f"{spec.clients} connection{'' if spec.clients == 1 else 's'}"
        many = f" × {spec.streams}" if spec.streams > 1 else ""
        open_loop = ", open loop" if spec.arrivals else ""
        self.question = f"load: {spec.server.place} by {clients}{many}{open_loop}"
        self.name, self.server, self.place = spec.server.host, spec.server.place, spec.server.place
        secret = job.postgres is not None and redact(job.postgres) != job.postgres
        self.again = {"postgres": None if secret else job.postgres}

    @contextmanager
    def driven(self, notify: Notify) -> Iterator[HttpTarget]:
        """See `LoadSession`."""
        write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
        job, server = self.job, self.job.spec.server
        components = find_components(job.service_pids, server.host, server.port, job.postgres)
        for sentence in components.missing:
            notify(sentence)
        program = listening_program(server.host, server.port, job.service_pids)
        postgres = None if job.postgres is None else redact(job.postgres)
        write_service(self.folder, LoadedService(program, postgres))
        yield HttpTarget(job.spec, components)


# ---- how a load ended ----


def with_time(options: Mapping[str, Any], warmup_ns: int = 0, part: LoadPart | None = None) -> dict[str, Any]:
    """Return a load's options with the time at which measuring starts: now plus the warm-up, or as given."""
    start_ns = None if part is None else part.start_at_ns
    return {**options, "measured_us": (start_ns or time.time_ns() + warmup_ns) // 1000}


def load_ending(totals: LoadTotals) -> tuple[RunStatus, str]:
    """Return how a load ended, and why. A load in which no operation succeeded has failed."""
    status = _STATUS.get(totals.outcome, "failed")
    reason = totals.message or str(totals.outcome)
    if status == "complete" and not totals.succeeded:
        error = f": {totals.first_error}" if totals.first_error else ""
        return "failed", f"none of {totals.started} operations succeeded{error}"
    return status, reason


def write_hdr_log(folder: Path, path: Path) -> None:
    """Write a stored load's histograms by interval and script, in the format of HdrHistogram's tools.

    Raises StoreError if the run is damaged, or the file cannot be written.
    """
    reader = LoadReader(folder)
    try:
        measured, begun = reader.measurement(), reader.manifest.started_at
    finally:
        reader.close()
    elapsed = measured.totals.elapsed_ns
    lines = [
        (
            row.script,
            row.start_ns / 1e9,
            max(1, min(INTERVAL_NS, elapsed - row.start_ns)) / 1e9,
            row.histogram,
        )
        for row in measured.series
        if row.histogram
    ]
    write_atomically(path, hdr_log(datetime.fromisoformat(begun).timestamp(), lines))


_STATUS: dict[LoadOutcome, RunStatus] = {
    LoadOutcome.COMPLETE: "complete",
    LoadOutcome.INTERRUPTED: "interrupted",
}
"""The status of a run by the outcome of its load; any other outcome is a failure."""


# ---- one part of a load ----


_LEAST_AHEAD_NS: Final = 1_000_000_000
"""Time to connect, and to start the threads that wait for the start."""


def check_start(part: LoadPart | None) -> None:
    """Raise UsageError if a part is to start in less than a second, or has started."""
    if part is None or part.start_at_ns is None:
        return
    now_ns = time.time_ns()
    ahead_ns = part.start_at_ns - now_ns
    if ahead_ns < _LEAST_AHEAD_NS:
        when = "in the past" if ahead_ns < 0 else f"only {ahead_ns / 1e9:.1f} s ahead"
        now = datetime.fromtimestamp(now_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise UsageError(
            f"--start-at is {when}: it is {now} by the clock of this machine; give a time at least 1 s ahead"
        )


def started_part(part: LoadPart | None, control: PartControl | None) -> LoadPart | None:
    """Return a part with its start: with `control`, wait until the coordinator gives it."""
    if part is None or control is None:
        return part
    start_ns = control.await_start()
    return replace(part, start_at_ns=start_ns, clock_offset_ns=control.clock_offset_ns)


def kept_part(part: LoadPart | None, folder: Path) -> LoadPart | None:
    """Return a part that keeps its counts in the folder of its run."""
    return None if part is None else replace(part, reservations=str(folder / RESERVATIONS))


def part_facts(part: LoadPart | None) -> dict[str, Any]:
    """Return what a part's manifest says about it: also on which machine it runs."""
    if part is None:
        return {}
    machine = (process.identity(os.getpid()) or {}).get("machine", 0)
    return {
        "part": {
            "number": part.number,
            "count": part.count,
            "start_at_ns": part.start_at_ns,
            "host": platform.node(),
            "machine": machine,
        }
    }
