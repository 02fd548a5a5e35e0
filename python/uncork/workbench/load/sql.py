"""Load a server by itself: find it or start it, make its tables, load it, keep what came of it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uncork import __version__
from uncork.analysis.runs.figures import remember
from uncork.engines import process
from uncork.engines.checkout import current_commit
from uncork.engines.conninfo import Address, resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postmaster import postmaster_of
from uncork.engines.tpcb import Initialised, Progress, initialise, scale_of
from uncork.engines.watch.visit import describe, vacuum
from uncork.errors import ConnectError, LoadError, SetupError, StoreError, UsageError
from uncork.load.run import INTERVAL_NS, check_load, hdr_log, load_plan, run_load, without_password
from uncork.load.sql import build_facts
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadProgress, LoadScript, LoadSpec, LoadTotals
from uncork.model.results.experiment import RunStatus
from uncork.model.units import format_duration
from uncork.requests.jobs import LoadJob, TablesOptions
from uncork.store.glances import forget_glances
from uncork.store.layout import Manifest, RunKind, Sitting, new_run_folder, write_atomically, write_manifest
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.workbench.load.monitor import Components
from uncork.workbench.load.progress_log import noted
from uncork.workbench.load.targets import SqlTarget
from uncork.workbench.signals import uninterrupted

__all__ = [
    "LoadSession",
    "checked",
    "close_manifest",
    "lay_out",
    "load_manifest",
    "make_tables",
    "new_load",
    "place_of",
    "with_time",
    "write_hdr_log",
]


_SPARE_CONNECTIONS = 10
"""Connections that an embedded server has beyond those of the load: ours, and its own reserve."""
_NOT_YET = Address("127.0.0.1", 5432, "uncork", "postgres")
"""Stands for a server of our own that is not started yet."""


Tell = Callable[[str], None]


def make_tables(
    conninfo: str, tables: TablesOptions, progress: Callable[[Progress], None] | None = None
) -> Initialised:
    """Make pgbench's tables.

    Raises:
        SetupError: if the server refuses a step.
        ConnectError: if it cannot be reached, or refuses us.
    """
    return initialise(conninfo, **asdict(tables), progress=progress)


def new_load(root: Path, job: LoadJob) -> LoadSession:
    """Lay out the folder of a new load.

    Raises:
        SetupError: if it cannot be written.
        ConnectError, UsageError: if a script is wrong, or the words that name the server are.
    """
    return LoadSession(*lay_out(root, job, "load", _question(job.spec)))


def lay_out(
    root: Path, job: LoadJob, kind: RunKind, question: str
) -> tuple[Path, Manifest, LoadJob, Address | None]:
    """Check a job, and lay out the folder of its run; return what a session is made of.

    Raises:
        SetupError, ConnectError, UsageError: as `new_load`.
    """
    address = checked(job)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    try:
        folder = new_run_folder(root, f"{kind}-{_file_word(job.spec.scripts[0].name)}", stamp)
        manifest = replace(
            load_manifest(job, address, folder.name, question),
            name=folder.name.removesuffix(f"-{stamp}"),
            owner=process.identity(os.getpid()),
            kind=kind,
        )
        write_manifest(folder, manifest)
    except StoreError as error:
        raise SetupError(f"{error}; nothing was measured (--runs names another folder)") from error
    return folder, manifest, job, address


def checked(job: LoadJob) -> Address | None:
    """Return where a job's server is; None for one of our own.

    Raises:
        ConnectError, UsageError: as `new_load`.
    """
    address = None if job.server.embedded else job.server.address()
    try:
        check_load(_scaled(job.spec, job.scale), asdict(address or _NOT_YET))
    except LoadError as error:
        raise UsageError(str(error)) from error
    return address


def load_manifest(job: LoadJob, address: Address | None, id: str, question: str) -> Manifest:
    """Return the manifest of a load that begins now."""
    return Manifest(
        id=id,
        name=id,
        question=question,
        status="running",
        started_at=_now(),
        seed=job.spec.seed,
        unit="",
        server="embedded" if address is None else f"existing: {place_of(address)}",
        uncork_version=__version__,
        commit=current_commit(),
        options={"command": job.command, "again": _again(job, address)},
        kind="load",
    )


class LoadSession:
    """One load. `run` carries it out; the run's folder is named from the start."""

    def __init__(self, folder: Path, manifest: Manifest, job: LoadJob, address: Address | None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.job = job
        self._address = address

    def run(self, progress: Callable[[LoadProgress], None] | None, tell: Tell) -> LoadOutcome:
        """Load the server and keep what came of it. A server that refuses us is an outcome.

        Every second a glance is kept too, so that the load can be followed, and is not lost if it is killed.
        A load that cannot begin (no tables, a statement refused, a second Ctrl-C) leaves no folder behind.

        Raises:
            SetupError: if tables are missing or cannot be made, or the server cannot be started.
            UsageError: if a statement cannot be prepared.
            StoreError: if the result cannot be written.
        """
        begun = time.monotonic_ns()
        try:
            with self.served(tell) as (address, pid):
                measured = self._measure(address, pid, progress, tell)
                with uninterrupted():
                    write_measurement(self.folder, measured)
                    forget_glances(self.folder)
                    self._close(measured.totals, time.monotonic_ns() - begun)
        except BaseException:
            if not (self.folder / "load_totals").is_dir():
                shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return measured.totals.outcome

    def _close(self, totals: LoadTotals, elapsed_ns: int) -> None:
        """Note how the load ended."""
        self.manifest = close_manifest(self.manifest, totals, elapsed_ns)
        write_manifest(self.folder, self.manifest)
        remember(self.folder)

    @contextmanager
    def served(self, tell: Tell) -> Iterator[tuple[Address, int | None]]:
        """Give the server's address, and its postmaster if it is here; one of our own is gone afterwards."""
        if self._address is not None:
            yield self._address, postmaster_of(self._address.conninfo())
            return
        settings: dict[str, object] = {"autovacuum": True}
        connections = self.job.spec.most_clients + _SPARE_CONNECTIONS
        settings |= {"max_connections": connections} if connections > 200 else {}
        server = EmbeddedServer(settings, binaries=self.job.server.binaries)
        server.start()
        try:
            if self.job.tables is not None:
                made = make_tables(server.conninfo(), self.job.tables)
                tell(f"made pgbench's tables at scale {made.scale} in {format_duration(made.elapsed_ns)}")
            yield resolve(server.conninfo()), server.pid
        finally:
            with uninterrupted():
                server.stop()

    @contextmanager
    def driven(self, tell: Tell) -> Iterator[SqlTarget]:
        """Give what sends this load at any level: see `uncork.workbench.load.targets`."""
        with self.served(tell) as (address, pid):
            load = self.prepared(address, tell)
            yield SqlTarget(load, asdict(address), pid, Components(address.conninfo(), pid, indirect=False))

    def _measure(
        self,
        address: Address,
        pid: int | None,
        progress: Callable[[LoadProgress], None] | None,
        tell: Tell,
    ) -> LoadMeasurement:
        spec, connection = self.job.spec, asdict(address)
        try:
            spec = self.prepared(address, tell)
        except ConnectError as error:
            return self._refusal(error, connection)
        plan = load_plan(spec, connection, pid=pid)
        write_plan(self.folder, without_password(plan))
        self.manifest = replace(self.manifest, started_at=_now(), options=with_time(self.manifest.options))
        try:
            return run_load(spec, connection, pid=pid, progress=noted(self.folder, progress))
        except LoadError as error:
            raise UsageError(str(error)) from error

    def prepared(self, address: Address, tell: Tell) -> LoadSpec:
        """Describe the server, vacuum, and find the scale; return the spec with it."""
        job, conninfo = self.job, address.conninfo()
        write_environment(self.folder, {**describe(conninfo), "core": build_facts()})
        scale = job.scale
        if job.needs_tables:
            scale = scale_of(conninfo)
            if job.scale not in (None, scale) and job.tables is None:
                tell(f"scale option ignored, using count from pgbench_branches table ({scale})")
        if job.vacuum != "none":
            for refused in vacuum(conninfo, accounts=job.vacuum == "all"):
                tell(f"{refused} (going on without)")
        return _scaled(job.spec, scale)

    def _refusal(self, error: ConnectError, connection: dict[str, object]) -> LoadMeasurement:
        """Return what the engine says of a server that has refused us once, code by code.

        Raises:
            ConnectError: the first refusal, if the engine is let in after all: nothing was prepared then.
        """
        spec = _scaled(self.job.spec, self.job.scale)
        write_plan(self.folder, without_password(load_plan(spec, connection, pid=None)))
        knock = LoadSpec(
            scripts=(LoadScript("knock", 1, "SELECT 1;\n"),),
            clients=spec.clients,
            threads=spec.threads,
            operations_each=1,
        )
        measured = run_load(knock, connection)
        if measured.totals.outcome is not LoadOutcome.REFUSED:
            raise ConnectError(f"{error}; a moment later it let us in: try again") from error
        return measured


def with_time(options: Mapping[str, Any], warmup_ns: int = 0) -> dict[str, Any]:
    """Return a load's options with the time when measuring begins: now, after the warm-up."""
    return {**options, "measured_us": (time.time_ns() + warmup_ns) // 1000}


def close_manifest(manifest: Manifest, totals: LoadTotals, elapsed_ns: int) -> Manifest:
    """Return the manifest of a load that has ended. A load in which nothing succeeded has failed."""
    status = _STATUS.get(totals.outcome, "failed")
    reason = totals.message or str(totals.outcome)
    if status == "complete" and not totals.succeeded:
        error = f": {totals.first_error}" if totals.first_error else ""
        status, reason = "failed", f"none of {totals.started} operations succeeded{error}"
    sitting = Sitting(manifest.started_at, elapsed_ns, 0, status, reason)
    return replace(manifest, status=status, owner=None, sittings=(sitting,))


def write_hdr_log(folder: Path, path: Path) -> None:
    """Write a stored load's histograms by interval and script, as HdrHistogram's tools read them.

    Raises:
        StoreError: if the run is damaged, or the log cannot be written.
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
"""What a run is called in the list; any other outcome is a failure."""


def place_of(address: Address) -> str:
    """Return where a server is and who connects, without secrets."""
    return f"{address.user}@{address.host}:{address.port}/{address.database}"


def _scaled(spec: LoadSpec, scale: int | None) -> LoadSpec:
    """Return the spec with the variable that pgbench's scripts expect, unless it was given by hand."""
    return replace(spec, variables={"scale": str(scale or 1), **spec.variables})


def _question(spec: LoadSpec) -> str:
    names = ", ".join(script.name for script in spec.scripts)
    clients = f"{spec.clients} client{'' if spec.clients == 1 else 's'}"
    return f"load: {names} by {clients}, {spec.protocol}" + ("" if spec.arrivals is None else ", open loop")


def _again(job: LoadJob, address: Address | None) -> dict[str, object]:
    """Return what the plan does not tell of a job, so that it can be carried out again; without secrets."""
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


def _file_word(name: str) -> str:
    stem = Path(name.partition("#")[0]).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "script"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
