"""Load a service by HTTP, and store the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from uncork.engines.conninfo import resolve
from uncork.engines.host import machine_facts
from uncork.engines.services.inspection import listening_program
from uncork.engines.watch.connection import check_conninfo
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.load.http import check_http, http_plan, run_http, without_secrets
from uncork.load.parts import PartControl, held_lease
from uncork.load.sql import build_facts
from uncork.model.http import HttpSpec
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadProgress
from uncork.model.redaction import redact
from uncork.requests.jobs import HttpJob
from uncork.store.layout import Manifest, RunKind
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.store.pressed import Pressed, write_pressed
from uncork.store.programs import LoadedService, write_service
from uncork.store.snapshots import delete_snapshots
from uncork.workbench.load.advising import watch_again
from uncork.workbench.load.monitor import Components, Monitor, find_components, seen_of
from uncork.workbench.load.progress_log import logged
from uncork.workbench.load.sql import (
    Notify,
    check_start,
    kept_part,
    load_ending,
    note_warm_up,
    part_facts,
    started_part,
    with_time,
)
from uncork.workbench.load.targets import HttpTarget
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted


def new_http_load(root: Path, job: HttpJob) -> HttpSession:
    """Start the run of a new load.

    Raises:
        SetupError: if its folder cannot be written.
        UsageError: if a request cannot be sent, or certificates cannot be read.
    """
    return start_http_load(root, job, "load", http_question(job.spec))


def start_http_load(root: Path, job: HttpJob, kind: RunKind, question: str) -> HttpSession:
    """Check a job, and start the run of a load or of a sweep.

    Raises SetupError or UsageError: see `new_http_load`.
    """
    check_http_job(job)
    check_start(job.spec.part)
    manifest = http_manifest(job, kind, f"{kind}-{job.spec.server.host}", question)
    return HttpSession(start_run(root, manifest), job)


def check_http_job(job: HttpJob) -> None:
    """Check a job without contacting the service. Raises UsageError: see `new_http_load`."""
    try:
        check_http(job.spec)
    except (LoadError, ConnectError) as error:
        raise UsageError(str(error)) from error
    if job.postgres is not None:
        try:
            check_conninfo(job.postgres)
        except UsageError as error:
            raise UsageError(f"--postgres: {error}") from error


def http_manifest(job: HttpJob, kind: RunKind, name: str, question: str) -> Manifest:
    """Return the manifest of a load that starts now."""
    secret = job.postgres is not None and redact(job.postgres) != job.postgres
    return draft(
        kind=kind,
        name=name,
        question=question,
        seed=job.spec.seed,
        server=job.spec.server.place,
        options={
            "command": job.command,
            "again": {"postgres": None if secret else job.postgres},
            **part_facts(job.spec.part),
        },
    )


class HttpSession:
    """One load by HTTP. `run` carries it out; the run's folder exists from the start.

    Afterwards, `measured` is what was measured; None before.
    """

    def __init__(self, record: RunRecord, job: HttpJob) -> None:
        self.record = record
        self.folder = record.folder
        self.job = job
        self.measured: LoadMeasurement | None = None

    @contextmanager
    def driven(self, notify: Notify) -> Iterator[HttpTarget]:
        """Yield a target that sends this load at any level: see `uncork.workbench.load.targets`."""
        write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
        yield HttpTarget(self.job.spec, self._components(notify))

    def _components(self, notify: Notify) -> Components:
        job = self.job
        components = find_components(
            job.service_pids, job.spec.server.host, job.spec.server.port, job.postgres
        )
        for sentence in components.missing:
            notify(sentence)
        server = job.spec.server
        program = listening_program(server.host, server.port, job.service_pids)
        postgres = None if job.postgres is None else redact(job.postgres)
        write_service(self.folder, LoadedService(program, postgres))
        return components

    def run(
        self,
        progress: Callable[[LoadProgress], None] | None,
        notify: Notify,
        control: PartControl | None = None,
    ) -> LoadOutcome:
        """Load the service, and store the result. A service that refuses connections is an outcome too.

        Each second is also stored as a snapshot, so that others can follow the load and a killed
        load is not lost. If the load cannot start, its folder is deleted. `control` steers a part
        of a load. Raises StoreError if the result cannot be written.
        """
        with self.record as record:
            write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
            components = self._components(notify)
            part = started_part(self.job.spec.part, control)
            spec = replace(self.job.spec, part=kept_part(part, self.folder))
            options = {**record.manifest.options, **part_facts(spec.part)}
            record.change(options=with_time(options, spec.warmup_ns, spec.part))
            write_plan(self.folder, without_secrets(http_plan(spec, components.watches())))
            note_warm_up(spec.warmup_ns, notify)
            lease_source = None if spec.part is None else spec.part.lease
            with held_lease(lease_source, control) as lease, Monitor(components) as monitor:
                measured = run_http(
                    spec,
                    watch=components.watches(),
                    progress=logged(self.folder, progress),
                    lease=lease,
                    stopped=None if control is None else control.stopped,
                )
                self.measured = measured
            with uninterrupted():
                seen = seen_of(measured, monitor.noticed, spec.threads, indirect=True)
                write_pressed(self.folder, [Pressed(None, seen, monitor.noticed.missing)])
                write_measurement(self.folder, measured)
                delete_snapshots(self.folder)
            if self.job.advise and components.conninfo is not None:
                place = resolve(components.conninfo).place
                watch_again(record, HttpTarget(spec, components), measured, place, notify)
            record.end(*load_ending(measured.totals))
        return measured.totals.outcome


def http_question(spec: HttpSpec) -> str:
    """Return in a few words what a load does."""
    clients = f"{spec.clients} connection{'' if spec.clients == 1 else 's'}"
    many = f" × {spec.streams}" if spec.streams > 1 else ""
    return f"load: {spec.server.place} by {clients}{many}" + (", open loop" if spec.arrivals else "")
