"""Load a service by HTTP, and keep what came of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from uncork import __version__
from uncork.analysis.runs.figures import remember
from uncork.engines import process
from uncork.engines.checkout import current_commit
from uncork.engines.host import machine_facts
from uncork.engines.watch.connection import check_conninfo
from uncork.errors import ConnectError, LoadError, SetupError, StoreError, UsageError
from uncork.load.http import check_http, http_plan, run_http, without_secrets
from uncork.load.sql import build_facts
from uncork.model.http import HttpSpec
from uncork.model.load import LoadOutcome, LoadProgress
from uncork.model.redaction import redact
from uncork.requests.jobs import HttpJob
from uncork.store.glances import forget_glances
from uncork.store.layout import Manifest, RunKind, new_run_folder, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.store.seen import Pressed, write_pressed
from uncork.workbench.load.monitor import Components, Monitor, find_components
from uncork.workbench.load.progress_log import noted
from uncork.workbench.load.sql import Tell, close_manifest, with_time
from uncork.workbench.load.stress import seen_of
from uncork.workbench.load.targets import HttpTarget
from uncork.workbench.signals import uninterrupted

__all__ = ["HttpSession", "check_http_job", "http_manifest", "lay_out_http", "new_http_load"]


def new_http_load(root: Path, job: HttpJob) -> HttpSession:
    """Lay out the folder of a new load.

    Raises:
        SetupError: if it cannot be written.
        UsageError: if a request cannot be sent, or certificates cannot be read.
    """
    return HttpSession(*lay_out_http(root, job, "load", _question(job.spec)))


def lay_out_http(root: Path, job: HttpJob, kind: RunKind, question: str) -> tuple[Path, Manifest, HttpJob]:
    """Check a job, and lay out the folder of its run; return what a session is made of.

    Raises:
        SetupError, UsageError: as `new_http_load`.
    """
    check_http_job(job)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    try:
        folder = new_run_folder(root, f"{kind}-{job.spec.server.host}", stamp)
        manifest = replace(
            http_manifest(job, folder.name, question),
            name=f"{kind}-{job.spec.server.host}",
            owner=process.identity(os.getpid()),
            kind=kind,
        )
        write_manifest(folder, manifest)
    except StoreError as error:
        raise SetupError(f"{error}; nothing was measured (--runs names another folder)") from error
    return folder, manifest, job


def check_http_job(job: HttpJob) -> None:
    """Refuse a job that makes no sense; the service is not asked.

    Raises:
        UsageError: as `new_http_load`.
    """
    try:
        check_http(job.spec)
    except (LoadError, ConnectError) as error:
        raise UsageError(str(error)) from error
    if job.postgres is not None:
        try:
            check_conninfo(job.postgres)
        except UsageError as error:
            raise UsageError(f"--postgres: {error}") from error


def http_manifest(job: HttpJob, id: str, question: str) -> Manifest:
    """Return the manifest of a load that begins now."""
    return Manifest(
        id=id,
        name=id,
        question=question,
        status="running",
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=job.spec.seed,
        unit="",
        server=job.spec.server.place,
        uncork_version=__version__,
        commit=current_commit(),
        options={"command": job.command, "again": {"postgres": _without_password(job.postgres)}},
        kind="load",
    )


class HttpSession:
    """One load by HTTP. `run` carries it out; the run's folder is named from the start."""

    def __init__(self, folder: Path, manifest: Manifest, job: HttpJob) -> None:
        self.folder = folder
        self.manifest = manifest
        self.job = job

    @contextmanager
    def driven(self, tell: Tell) -> Iterator[HttpTarget]:
        """Give what sends this load at any level: see `uncork.workbench.load.targets`."""
        write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
        yield HttpTarget(self.job.spec, self._components(tell))

    def _components(self, tell: Tell) -> Components:
        job = self.job
        components = find_components(
            job.service_pids, job.spec.server.host, job.spec.server.port, job.postgres
        )
        for lacking in components.lacks:
            tell(lacking)
        return components

    def run(self, progress: Callable[[LoadProgress], None] | None, tell: Tell) -> LoadOutcome:
        """Load the service and keep what came of it. A service that refuses us is an outcome.

        Every second a glance is kept too, so that the load can be followed, and is not lost if it is killed.
        A load that cannot begin (a second Ctrl-C) leaves no folder behind.

        Raises:
            StoreError: if the result cannot be written.
        """
        begun = time.monotonic_ns()
        try:
            write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
            spec, components = self.job.spec, self._components(tell)
            write_plan(self.folder, without_secrets(http_plan(spec, components.watches())))
            options = with_time(self.manifest.options, spec.warmup_ns)
            self.manifest = replace(self.manifest, options=options)
            with Monitor(components) as monitor:
                measured = run_http(spec, watch=components.watches(), progress=noted(self.folder, progress))
            with uninterrupted():
                seen = seen_of(measured, monitor.noticed, spec.threads, indirect=True)
                write_pressed(self.folder, [Pressed(None, seen, monitor.noticed.lacks)])
                write_measurement(self.folder, measured)
                forget_glances(self.folder)
                elapsed = time.monotonic_ns() - begun
                self.manifest = close_manifest(self.manifest, measured.totals, elapsed)
                write_manifest(self.folder, self.manifest)
                remember(self.folder)
        except BaseException:
            if not (self.folder / "load_totals").is_dir():
                shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return measured.totals.outcome


def _without_password(conninfo: str | None) -> str | None:
    """Return the words that lead to the database; None if they hold a password."""
    return conninfo if conninfo is not None and redact(conninfo) == conninfo else None


def _question(spec: HttpSpec) -> str:
    clients = f"{spec.clients} connection{'' if spec.clients == 1 else 's'}"
    many = f" × {spec.streams}" if spec.streams > 1 else ""
    return f"load: {spec.server.place} by {clients}{many}" + (", open loop" if spec.arrivals else "")
