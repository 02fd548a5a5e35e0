"""Load a PostgreSQL server: find or start it, create its tables, send the load, and store the result."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncork.engines import process
from uncork.engines.conninfo import Address, resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postmaster import postmaster_of
from uncork.engines.tpcb import Initialised, Progress, initialise, scale_of
from uncork.engines.watch.observe import describe, vacuum
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.load.parts import Lease, PartControl, held_lease
from uncork.load.run import INTERVAL_NS, Messages, check_load, hdr_log, load_plan, run_load, without_password
from uncork.load.sql import build_facts
from uncork.model.database.recording import TRANSACTIONS
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadPart, LoadProgress, LoadScript, LoadSpec
from uncork.model.stored_run import RunStatus
from uncork.model.tables.load import LoadTotals
from uncork.model.units import format_duration
from uncork.requests.jobs import LoadJob, TablesOptions
from uncork.store.layout import Manifest, RunKind, write_atomically
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.store.parts import RESERVATIONS
from uncork.store.snapshots import delete_snapshots
from uncork.workbench.clock import now_text
from uncork.workbench.load.progress_log import logged
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    from uncork.workbench.load.targets import SqlTarget


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


def new_load(root: Path, job: LoadJob) -> LoadSession:
    """Start the run of a new load.

    Raises:
        SetupError: if its folder cannot be written.
        ConnectError, UsageError: if a script or the connection string is wrong.
    """
    return start_load(root, job, "load", sql_question(job.spec))


def start_load(root: Path, job: LoadJob, kind: RunKind, question: str) -> LoadSession:
    """Check a job, and start the run of a load or of a sweep.

    Raises SetupError, ConnectError or UsageError: see `new_load`.
    """
    address = checked(job)
    check_start(job.spec.part)
    if job.postgres or job.logs:
        from uncork.workbench.load.advising import check_sources  # noqa: PLC0415 -- only with --advise

        check_sources(job)
    name = sql_name(job.spec, kind)
    return LoadSession(start_run(root, load_manifest(job, address, kind, name, question)), job, address)


def checked(job: LoadJob) -> Address | None:
    """Check a job and return the address of its server; None for an embedded server.

    Raises ConnectError or UsageError: see `new_load`.
    """
    address = None if job.server.embedded else job.server.address()
    try:
        check_load(_scaled(job.spec, job.scale), asdict(address or _NOT_YET))
    except LoadError as error:
        raise UsageError(str(error)) from error
    return address


def load_manifest(job: LoadJob, address: Address | None, kind: RunKind, name: str, question: str) -> Manifest:
    """Return the manifest of a load that starts now."""
    return draft(
        kind=kind,
        name=name,
        question=question,
        seed=job.spec.seed,
        server="embedded" if address is None else f"existing: {address.place}",
        options={"command": job.command, "again": _again(job, address), **part_facts(job.spec.part)},
    )


class LoadSession:
    """One load. `run` carries it out; the run's folder exists from the start."""

    def __init__(self, record: RunRecord, job: LoadJob, address: Address | None) -> None:
        self.record = record
        self.folder = record.folder
        self.job = job
        self._address = address
        self._sent = job.spec

    def run(
        self,
        progress: Callable[[LoadProgress], None] | None,
        notify: Notify,
        control: PartControl | None = None,
        messages: Messages | None = None,
    ) -> LoadOutcome:
        """Load the server, and store the result. A server that refuses connections is an outcome too.

        Each second is also stored as a snapshot, so that others can follow the load and a killed load is not
        lost. If the load cannot start (no tables, a statement refused), its folder is deleted. `control`
        steers a part of a load. `messages` receives the lines that the load's verbosity asks for.

        Raises:
            SetupError: if tables are missing or cannot be created, or the server cannot be started.
            UsageError: if a statement cannot be prepared.
            StoreError: if the result cannot be written.
        """
        part = self.job.spec.part
        with (
            self.record,
            held_lease(None if part is None else part.lease, control) as lease,
            self.served(notify) as (address, pid),
        ):
            measured = self._measure(address, pid, progress, notify, (lease, control), messages)
            with uninterrupted():
                write_measurement(self.folder, measured)
                delete_snapshots(self.folder)
            if self.job.advise:
                self._advise(address, pid, measured, notify)
            self.record.end(*load_ending(measured.totals))
        return measured.totals.outcome

    @contextmanager
    def served(self, notify: Notify) -> Iterator[tuple[Address, int | None]]:
        """Yield the server's address, and its postmaster if local; stop an embedded server afterwards."""
        if self._address is not None:
            yield self._address, postmaster_of(self.job.postgres or self._address.conninfo())
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

    @contextmanager
    def driven(self, notify: Notify) -> Iterator[SqlTarget]:
        """Yield a target that sends this load at any level: see `uncork.workbench.load.targets`."""
        from uncork.workbench.load.monitor import Components  # noqa: PLC0415 -- only sweeps watch the server
        from uncork.workbench.load.targets import SqlTarget  # noqa: PLC0415

        with self.served(notify) as (address, pid):
            load = self.prepared(address, notify)
            yield SqlTarget(load, Components(address.conninfo(), pid, indirect=False), asdict(address), pid)

    def _advise(self, address: Address, pid: int | None, measured: LoadMeasurement, notify: Notify) -> None:
        from uncork.engines.watch.observing import count_statements  # noqa: PLC0415 -- only with --advise
        from uncork.workbench.load.advising import StepSources, watch_again  # noqa: PLC0415
        from uncork.workbench.load.monitor import Components  # noqa: PLC0415
        from uncork.workbench.load.targets import SqlTarget  # noqa: PLC0415

        if self._address is None:
            count_statements(address.conninfo())
        watched = address if self.job.postgres is None else resolve(self.job.postgres)
        components = Components(watched.conninfo(), pid, indirect=False)
        target = SqlTarget(self._sent, components, asdict(address), pid)
        sources = StepSources(address, self.job.pooler, self.job.logs)
        watch_again(self.record, target, measured, watched.place, notify, sources)

    def _measure(
        self,
        address: Address,
        pid: int | None,
        progress: Callable[[LoadProgress], None] | None,
        notify: Notify,
        held: tuple[Lease | None, PartControl | None],
        messages: Messages | None,
    ) -> LoadMeasurement:
        (lease, control) = held
        spec, connection = self.job.spec, asdict(address)
        try:
            spec = self.prepared(address, notify)
        except ConnectError as error:
            return self._refusal(error, connection)
        self._sent = spec = replace(spec, part=kept_part(started_part(spec.part, control), self.folder))
        options = with_time(
            {**self.record.manifest.options, **part_facts(spec.part)}, spec.warmup_ns, spec.part
        )
        self.record.change(started_at=now_text(), options=options)
        write_plan(self.folder, without_password(load_plan(spec, connection, pid=pid)))
        note_warm_up(spec.warmup_ns, notify)
        try:
            shown = logged(self.folder, progress)
            return run_load(
                spec,
                connection,
                pid=pid,
                progress=shown,
                lease=lease,
                messages=messages,
                stopped=None if control is None else control.stopped,
            )
        except LoadError as error:
            raise UsageError(str(error)) from error

    def prepared(self, address: Address, notify: Notify) -> LoadSpec:
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

    def _refusal(self, error: ConnectError, connection: dict[str, object]) -> LoadMeasurement:
        """Return the outcome of a load on a server that refused the first connection, with its error codes.

        Raises:
            ConnectError: the first refusal, if the server accepts connections now: nothing was prepared.
        """
        spec = _scaled(self.job.spec, self.job.scale)
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


def note_warm_up(warmup_ns: int, notify: Notify) -> None:
    """Report that a load begins with a warm-up, if it has one."""
    if warmup_ns:
        notify(f"warming up for {format_duration(warmup_ns)}, which is not counted")


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


def _scaled(spec: LoadSpec, scale: int | None) -> LoadSpec:
    """Return the spec with the variable `scale` that pgbench's scripts expect, unless it is set already."""
    return replace(spec, variables={"scale": str(scale or 1), **spec.variables})


def sql_question(spec: LoadSpec) -> str:
    """Return in a few words what a load does."""
    names = ", ".join(script.name for script in spec.scripts)
    if spec.recorded is not None:
        names = "replay of a recording" if spec.recorded.clients else "mix of a recording"
    clients = f"{spec.clients} client{'' if spec.clients == 1 else 's'}"
    return f"load: {names} by {clients}, {spec.protocol}" + ("" if spec.arrivals is None else ", open loop")


def _again(job: LoadJob, address: Address | None) -> dict[str, object]:
    """Return the part of a job that its plan does not store, so that it can be repeated; without secrets."""
    return {
        "embedded": address is None,
        "binaries": None if job.server.binaries is None else str(job.server.binaries),
        "password": address is not None and address.password is not None,
        "tables": None if job.tables is None else asdict(job.tables),
        "needs_tables": job.needs_tables,
        "scale": job.scale,
        "variables": dict(job.spec.variables),
        "vacuum": job.vacuum,
    }


def sql_name(spec: LoadSpec, kind: RunKind) -> str:
    """Return the name of a load's run: its kind, and its first script, or how a recording is sent."""
    if spec.recorded is not None:
        return f"{kind}-{'replay' if spec.recorded.clients else 'mix'}"
    return f"{kind}-{_file_word(spec.scripts[0].name)}"


def _file_word(name: str) -> str:
    stem = Path(name.partition("#")[0]).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "script"


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
