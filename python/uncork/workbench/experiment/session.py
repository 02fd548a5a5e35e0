"""Measure: bring server, load, store and runner together, and keep the manifest true throughout."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from uncork import __version__
from uncork.analysis.experiment.stored import stored_ledger
from uncork.analysis.runs.figures import remember
from uncork.engines import process
from uncork.engines.checkout import current_commit
from uncork.engines.postgres import embedded_server, existing_server
from uncork.engines.services.local import LocalServices
from uncork.errors import SetupError, StoreError, UncorkError, UsageError
from uncork.experiment.plan.order import plan_document
from uncork.experiment.ports import Load, Server, Until
from uncork.experiment.run.events import Event, Finished, RoundEnded
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.model.engine import POSTGRESQL
from uncork.model.results.experiment import RunStatus
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source
from uncork.store.layout import (
    Manifest,
    Sitting,
    new_run_folder,
    stored_file,
    write_atomically,
    write_manifest,
)
from uncork.store.query import RunReader
from uncork.store.write import RunWriter
from uncork.workbench.experiment.engines import engines_for
from uncork.workbench.experiment.evidence import LocalEvidence
from uncork.workbench.guard.asked import refuse_guard
from uncork.workbench.overhead.observers import LocalObservers
from uncork.workbench.signals import uninterrupted

__all__ = ["RunSession", "choose_server", "new_run", "resume_run"]


def choose_server(
    dsn: str | None = None, binaries: Path | None = None, port: int | None = None
) -> ServerChoice:
    """Return where to measure.

    Raises:
        UsageError: if the words contradict each other, or the folder of binaries does not exist.
    """
    if dsn is not None and (binaries is not None or port is not None):
        raise UsageError("--dsn names a server that runs already: leave out --pg-bin and --port")
    if binaries is not None and not binaries.is_dir():
        raise UsageError(f"--pg-bin {binaries}: there is no such folder")
    return ServerChoice(dsn=dsn, binaries=binaries, port=port)


class MonotonicClock:
    """The runner's `Clock` port."""

    def monotonic_ns(self) -> int:
        """Return the system's monotonic clock."""
        return time.monotonic_ns()


class RunSession:
    """One sitting of a run. `events()` measures; the run's folder is named from the start."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        source: Source,
        server: Server,
        load: Load,
        *,
        resumed: bool,
        until: Until | None = None,
        spent_ns: int = 0,
    ) -> None:
        self.folder = folder
        self._until = until
        self._spent_ns = spent_ns
        self.manifest = manifest
        self.source = source
        self._server = server
        self._load = load
        self._services = LocalServices(folder / "services")
        self._resumed = resumed
        self.refused = False
        """Whether every comparison was refused or skipped, so that nothing was measured."""

    def events(self) -> Generator[Event]:
        """Measure, telling each step. Whatever ends it, the server is gone afterwards and the manifest true.

        Raises:
            UncorkError: see the errors of `Runner.events`.
        """
        started, begun = _now(), time.monotonic_ns()
        rounds = 0
        status: RunStatus = "interrupted"
        reason = "interrupted"
        self._set_status("running")
        try:
            for event in self._runner().events():
                if isinstance(event, RoundEnded):
                    rounds += 1
                if isinstance(event, Finished):
                    status, reason = "failed" if event.is_empty else "complete", event.reason
                    self.refused = event.is_empty
                yield event
        except UncorkError as error:
            status, reason = "failed", str(error)
            raise
        except Exception as error:
            status, reason = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            with uninterrupted():
                self._services.stop()
                self._server.stop()
                self._close(Sitting(started, time.monotonic_ns() - begun, rounds, status, reason))

    def measured(self) -> bool:
        """Say whether any trial is stored."""
        return any((self.folder / "trials").glob("*.parquet"))

    def _close(self, sitting: Sitting) -> None:
        """Note how a sitting ended; a new run that found nothing out leaves nothing behind."""
        keep = self._resumed or self.refused or self.measured()
        if sitting.outcome != "complete" and not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        self.manifest = replace(self.manifest, sittings=(*self.manifest.sittings, sitting))
        self._set_status(sitting.outcome)
        if sitting.outcome == "complete":
            remember(self.folder)

    def _runner(self) -> Runner:
        spec = self.source.spec
        ledger, first_round = Ledger(spec, "round" if self._server.restartable else "block"), 1
        if self._resumed:
            with closing(RunReader(self.folder)) as reader:
                ledger, first_round = stored_ledger(reader, spec), reader.last_round() + 1
        metrics = {name: workload.metric for name, workload in spec.workloads.items()}
        return Runner(
            spec,
            self._server,
            self._load,
            RunWriter(self.folder, metrics),
            MonotonicClock(),
            ledger,
            first_round=first_round,
            spent_ns=self._spent_ns,
            observers=LocalObservers(),
            evidence=LocalEvidence(self.folder),
            services=self._services,
            until=self._until,
        )

    def _set_status(self, status: RunStatus) -> None:
        owner = process.identity(os.getpid()) if status == "running" else None
        self.manifest = replace(self.manifest, status=status, owner=owner)
        write_manifest(self.folder, self.manifest)


def new_run(
    root: Path, source: Source, choice: ServerChoice, until: Callable[[Path], Until] | None = None
) -> RunSession:
    """Lay out a new run's folder.

    `until` makes of the folder what says when enough was measured, in place of the precision asked for.

    Raises:
        SetupError: if it cannot be written.
        UsageError: if the experiment cannot run on the chosen server.
    """
    server, load = _engines(source, choice)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    try:
        folder = new_run_folder(root, source.spec.experiment.name, stamp)
        manifest = _lay_out(folder, source, choice, "round" if server.restartable else "block")
    except StoreError as error:
        raise SetupError(f"{error}; nothing was measured (--runs names another folder)") from error
    wanted = None if until is None else until(folder)
    return RunSession(folder, manifest, source, server, load, resumed=False, until=wanted)


def _engines(source: Source, choice: ServerChoice) -> tuple[Server, Load]:
    spec = source.spec
    if choice.dsn is not None and POSTGRESQL not in spec.engines:
        raise UsageError("--dsn: no variant of this experiment runs on PostgreSQL")
    if choice.apart and spec.server.settings:
        choice.server(spec.server.settings)
    apart = {name: partial(existing_server, dsn) for name, dsn in choice.apart.items()}
    apart |= {
        name: partial(embedded_server, {**spec.server.settings, **settings}, binaries=choice.binaries)
        for name, settings in choice.own.items()
    }
    return engines_for(spec, lambda: choice.server(spec.server.settings), apart)


def _lay_out(folder: Path, source: Source, choice: ServerChoice, unit: str) -> Manifest:
    spec = source.spec
    manifest = Manifest(
        id=folder.name,
        name=spec.experiment.name,
        question=spec.experiment.question,
        status="running",
        started_at=_now(),
        seed=spec.experiment.seed,
        unit=unit,
        server=choice.description(),
        uncork_version=__version__,
        commit=current_commit(),
        case=source.case,
        options=source.options.stored(),
    )
    write_atomically(folder / "experiment.toml", source.text)
    for name, text in source.files.items():
        write_atomically(stored_file(folder, name), text)
    write_atomically(folder / "plan.json", json.dumps(asdict(plan_document(spec)), indent=2) + "\n")
    write_manifest(folder, manifest)
    return manifest


def resume_run(
    folder: Path,
    source: Source,
    choice: ServerChoice,
    until: Callable[[Path], Until] | None = None,
    *,
    spent_ns: int = 0,
) -> RunSession:
    """Go on with a run that was interrupted, failed, or wants more rounds.

    `until` is as of `new_run`; `spent_ns` are so much of the budget gone already.

    Raises:
        SetupError: if it is on another kind of server than before.
        UsageError: if it is a guard's, which `until` goes on with.
    """
    if until is None:
        refuse_guard(folder)
    manifest = RunReader(folder).manifest
    server, load = _engines(source, choice)
    unit = "round" if server.restartable else "block"
    if unit != manifest.unit:
        raise SetupError(
            f"run {manifest.id} was measured on {manifest.server}; it can only go on there"
            + (" (give --dsn again)" if manifest.unit == "block" else "")
        )
    manifest = replace(manifest, options=source.options.stored())
    wanted = None if until is None else until(folder)
    return RunSession(folder, manifest, source, server, load, resumed=True, until=wanted, spent_ns=spent_ns)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
