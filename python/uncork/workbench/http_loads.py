"""Load a service by HTTP, and keep what came of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from uncork import __version__
from uncork.engines import process
from uncork.engines.checkout import current_commit
from uncork.engines.host import machine_facts
from uncork.errors import ConnectError, LoadError, SetupError, StoreError, UsageError
from uncork.load.http import check_http, http_plan, run_http, without_secrets
from uncork.load.sql import build_facts
from uncork.model.http import HttpSpec
from uncork.model.load import LoadOutcome, LoadProgress
from uncork.store.layout import Manifest, new_run_folder, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.workbench.loads import close_manifest
from uncork.workbench.signals import uninterrupted

__all__ = ["HttpJob", "HttpSession", "new_http_load"]


@dataclass(frozen=True, slots=True)
class HttpJob:
    """Load a service. `command` repeats the job and holds no secret."""

    spec: HttpSpec
    command: str


def new_http_load(root: Path, job: HttpJob) -> HttpSession:
    """Lay out the folder of a new load.

    Raises:
        SetupError: if it cannot be written.
        UsageError: if a request cannot be sent, or certificates cannot be read.
    """
    try:
        check_http(job.spec)
    except (LoadError, ConnectError) as error:
        raise UsageError(str(error)) from error
    now = datetime.now(UTC)
    try:
        folder = new_run_folder(root, f"load-{job.spec.server.host}", now.strftime("%Y%m%d-%H%M%S"))
        manifest = Manifest(
            id=folder.name,
            name=f"load-{job.spec.server.host}",
            question=_question(job.spec),
            status="running",
            started_at=now.isoformat(timespec="seconds"),
            seed=job.spec.seed,
            unit="",
            server=job.spec.server.place,
            uncork_version=__version__,
            commit=current_commit(),
            options={"command": job.command},
            owner=process.identity(os.getpid()),
            kind="load",
        )
        write_manifest(folder, manifest)
    except StoreError as error:
        raise SetupError(f"{error}; nothing was measured (--runs names another folder)") from error
    return HttpSession(folder, manifest, job)


class HttpSession:
    """One load by HTTP. `run` carries it out; the run's folder is named from the start."""

    def __init__(self, folder: Path, manifest: Manifest, job: HttpJob) -> None:
        self.folder = folder
        self.manifest = manifest
        self.job = job

    def run(self, progress: Callable[[LoadProgress], None] | None) -> LoadOutcome:
        """Load the service and keep what came of it. A service that refuses us is an outcome.

        A load that cannot begin (a second Ctrl-C) leaves no folder behind.

        Raises:
            StoreError: if the result cannot be written.
        """
        begun = time.monotonic_ns()
        try:
            write_environment(self.folder, {"machine": machine_facts(), "core": build_facts()})
            write_plan(self.folder, without_secrets(http_plan(self.job.spec)))
            measured = run_http(self.job.spec, progress=progress)
            with uninterrupted():
                write_measurement(self.folder, measured)
        except BaseException:
            if not (self.folder / "load_totals").is_dir():
                shutil.rmtree(self.folder, ignore_errors=True)
            raise
        with uninterrupted():
            elapsed = time.monotonic_ns() - begun
            self.manifest = close_manifest(self.manifest, measured.totals, elapsed)
            write_manifest(self.folder, self.manifest)
        return measured.totals.outcome


def _question(spec: HttpSpec) -> str:
    clients = f"{spec.clients} connection{'' if spec.clients == 1 else 's'}"
    many = f" × {spec.streams}" if spec.streams > 1 else ""
    return f"load: {spec.server.place} by {clients}{many}" + (", open loop" if spec.arrivals else "")
