"""Measure an experiment: connect server, load, runner and store in one run."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from uncork.analysis.experiment.stored import stored_ledger
from uncork.engines import process
from uncork.engines.conninfo import resolve
from uncork.engines.drivers.dbapi import DbapiEngine
from uncork.engines.postgres import PostgresServer, existing_server
from uncork.engines.router import EngineRouter
from uncork.engines.services.local import LocalServices
from uncork.errors import SetupError, UsageError
from uncork.experiment.plan.order import plan_document
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.ports import Load, Server, Until
from uncork.experiment.run.events import Event, Finished, RoundEnded
from uncork.experiment.run.ledger import Compared, Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import Spec
from uncork.load.trials import ask, run_block, run_trial
from uncork.model.block import BlockMeasurement, BlockRequest
from uncork.model.engine import POSTGRESQL, engine_kind
from uncork.model.http_trial import AskedRequest, HttpAnswer, HttpTrial, TrialRequest
from uncork.model.measurement import Measurement
from uncork.model.server import is_local
from uncork.model.service import Served
from uncork.model.stored_run import RunHost
from uncork.profile.plans.tree import plan_hash
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source
from uncork.stats.sample import UnitKind
from uncork.store.layout import stored_file
from uncork.store.query import RunReader
from uncork.store.run_documents import HOST, host_text, read_hosts
from uncork.store.write import RunWriter
from uncork.workbench.experiment.evidence_collection import LocalEvidence
from uncork.workbench.guard.store import refuse_guard
from uncork.workbench.overhead.observers import LocalObservers
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted


class Start(Protocol):
    """Starts the run of an experiment: `new_run` on this machine, or what measures on several hosts."""

    def __call__(
        self,
        root: Path,
        source: Source,
        choice: ServerChoice,
        until: Callable[[Path], Until] | None = None,
    ) -> ExperimentSession:
        """Return the run, of which nothing is measured yet."""


Needless = Callable[[Ledger], Collection[Compared]]
"""Returns comparisons that need no more trials, given the trials so far."""


def choose_server(
    dsn: str | None = None, binaries: Path | None = None, port: int | None = None
) -> ServerChoice:
    """Return where to measure.

    Raises:
        UsageError: if the options contradict each other, or the folder of binaries does not exist.
    """
    if dsn is not None and (binaries is not None or port is not None):
        raise UsageError("--dsn names a running server: leave out --pg-bin and --port")
    if binaries is not None and not binaries.is_dir():
        raise UsageError(f"--pg-bin {binaries}: no such folder")
    return ServerChoice(dsn=dsn, binaries=binaries, port=port)


class MonotonicClock:
    """Implements the runner's `Clock` port."""

    def monotonic_ns(self) -> int:
        """Return the system's monotonic clock."""
        return time.monotonic_ns()


class ExperimentSession(Protocol):
    """A run of an experiment that measures while its events are taken: on this machine, or on several hosts.

    `refused` says whether nothing was measured because every comparison was refused or skipped. `then` is
    the advice for a run that breaks off; empty for a run that can be resumed.
    """

    folder: Path
    source: Source
    refused: bool
    then: str

    def events(self) -> Generator[Event]:
        """Measure, and yield each step."""

    def measured(self) -> bool:
        """Say whether any trial is stored."""


class RunSession:
    """One attempt at a run. `events()` measures; the run's folder exists from the start."""

    def __init__(
        self,
        run: RunRecord,
        source: Source,
        server: Server,
        load: Load,
        *,
        until: Until | None = None,
        needless: Needless | None = None,
        spent_ns: int = 0,
    ) -> None:
        self._run = run
        self.folder = run.folder
        self._until = until
        self._needless = needless
        self._spent_ns = spent_ns
        self.source = source
        self._server = server
        self._load = load
        self._services = LocalServices(run.folder / "services")
        self.refused = False
        """Whether nothing was measured, because every comparison was refused or skipped."""
        self.then = ""

    def events(self) -> Generator[Event]:
        """Measure, and yield each step. Always stop the server, and record how the run ended.

        Raises:
            UncorkError: see the errors of `Runner.events`.
        """
        with self._run as run:
            try:
                for event in self._runner().events():
                    if isinstance(event, RoundEnded):
                        run.rounds += 1
                    if isinstance(event, Finished):
                        note_finished(run, event)
                        self.refused = event.is_empty
                    yield event
            finally:
                with uninterrupted():
                    self._services.stop()
                    self._server.stop()

    def measured(self) -> bool:
        """Say whether any trial is stored."""
        return self._run.has_results()

    def _runner(self) -> Runner:
        spec = self.source.spec
        ledger, first_round = Ledger(spec, "round" if self._server.restartable else "block"), 1
        if self._run.resumed:
            with closing(RunReader(self.folder)) as reader:
                ledger, first_round = stored_ledger(reader, spec), reader.last_round() + 1
        if self._needless is not None:
            ledger.stop_early(self._needless)
        metrics = {name: workload.metric for name, workload in spec.workloads.items()}
        return Runner(
            spec,
            self._server,
            self._load,
            RunWriter(self.folder, metrics, plan_hash),
            MonotonicClock(),
            ledger,
            first_round=first_round,
            spent_ns=self._spent_ns,
            observers=LocalObservers(),
            evidence=LocalEvidence(self.folder),
            services=self._services,
            until=self._until,
        )


def new_run(
    root: Path,
    source: Source,
    choice: ServerChoice,
    until: Callable[[Path], Until] | None = None,
    needless: Needless | None = None,
) -> RunSession:
    """Start a new run of an experiment.

    `until`, given the folder, returns a rule for when enough was measured; it replaces the precision.
    `needless` names comparisons that need no more trials although they are not precise.

    Raises:
        SetupError: if the run's folder cannot be written.
        UsageError: if the experiment cannot run on the chosen server.
    """
    server, load = _engines(source, choice)
    unit: UnitKind = "round" if server.restartable else "block"
    run = start_experiment(root, source, choice.description(), unit, {HOST: host_text(_host(choice))})
    wanted = None if until is None else until(run.folder)
    return RunSession(run, source, server, load, until=wanted, needless=needless)


def _host(choice: ServerChoice) -> RunHost:
    """Return the host that is measured: this machine, or that of a running server elsewhere."""
    if choice.dsn is not None:
        address = resolve(choice.dsn)
        if not is_local(address.hostaddr or address.host):
            return RunHost(f"{address.host}:{address.port}", 0)
    return RunHost(platform.node(), (process.identity(os.getpid()) or {}).get("machine", 0))


def start_experiment(
    root: Path, source: Source, server: str, unit: UnitKind, files: Mapping[str, str] | None = None
) -> RunRecord:
    """Start the run of an experiment, which keeps the texts of its files; `files` are others to keep.

    Raises:
        SetupError: if the run's folder cannot be written.
    """
    spec = source.spec
    manifest = draft(
        kind="experiment",
        name=spec.experiment.name,
        question=spec.experiment.question,
        server=server,
        options=source.options.stored(),
        seed=spec.experiment.seed,
        unit=unit,
        case=source.case,
    )
    kept = {
        **(files or {}),
        "experiment.toml": source.text,
        **{str(stored_file(Path(), name)): text for name, text in source.files.items()},
        "plan.json": json.dumps(asdict(plan_document(spec)), indent=2) + "\n",
    }
    return start_run(root, manifest, files=kept)


def note_finished(run: RunRecord, event: Finished) -> None:
    """Record how an experiment ended. One whose comparisons were all refused or skipped is kept as failed."""
    run.status, run.reason = "failed" if event.is_empty else "complete", event.reason
    run.keep |= event.is_empty


def _engines(source: Source, choice: ServerChoice) -> tuple[Server, Load]:
    spec = source.spec
    if choice.dsn is not None and POSTGRESQL not in spec.engines:
        raise UsageError("--dsn: no variant of this experiment runs on PostgreSQL")
    if choice.apart and spec.server.settings:
        choice.server(spec.server.settings)
    apart = {name: partial(existing_server, dsn) for name, dsn in choice.apart.items()}
    _refuse_servers(spec, choice)
    return engines_for(spec, lambda own: choice.server({**spec.server.settings, **own}), apart)


def _refuse_servers(spec: Spec, choice: ServerChoice) -> None:
    """Refuse settings of a whole server, and cold caches, if uncork does not start the server.

    Servers with settings of their own cannot have a given port, either.
    """
    if spec.setup.cache == "cold" and (choice.dsn is not None or choice.apart):
        raise UsageError(
            'setup.cache = "cold": uncork cannot empty the caches of an existing server (--dsn); leave out '
            '--dsn, or set cache = "as-is"'
        )
    for variant in spec.variants:
        for name in server_settings(spec, variant):
            where = f"variants.{variant}.settings.{name}: it applies to a whole server, "
            if choice.dsn is not None or choice.apart:
                raise UsageError(
                    f"{where}and uncork does not configure existing servers (--dsn); leave out --dsn, or set "
                    "it on that server for all variants"
                )
            if choice.port is not None:
                raise UsageError(f"{where}so the variant has a server of its own; leave out --port")


def resume_run(
    folder: Path,
    source: Source,
    choice: ServerChoice,
    until: Callable[[Path], Until] | None = None,
    needless: Needless | None = None,
    *,
    spent_ns: int = 0,
) -> RunSession:
    """Resume a run that was interrupted, failed, or needs more rounds.

    `until` and `needless`: see `new_run`. `spent_ns`: budget already used.

    Raises:
        SetupError: if the server is of another kind than before.
        UsageError: if the run belongs to a guard and `until` is missing.
    """
    if until is None:
        refuse_guard(folder)
    manifest = RunReader(folder).manifest
    if read_hosts(folder):
        raise UsageError(
            f"{manifest.id} has the rounds of several hosts, so it cannot be resumed: resume the runs from "
            "which it was merged and merge again, or run the experiment again with --hosts"
        )
    server, load = _engines(source, choice)
    unit = "round" if server.restartable else "block"
    if unit != manifest.unit:
        raise SetupError(
            f"run {manifest.id} was measured on {manifest.server}; resume it there"
            + (" (give --dsn again)" if manifest.unit == "block" else "")
        )
    manifest = replace(manifest, options=source.options.stored())
    run = RunRecord(folder, manifest, keep=True, resumed=True)
    wanted = None if until is None else until(folder)
    return RunSession(run, source, server, load, until=wanted, needless=needless, spent_ns=spent_ns)


# ---- build the server and the load of an experiment from the engines of its variants ----


class TrialLoad:
    """Implements the runner's `Load` port: the Rust core for PostgreSQL and HTTP, else Python drivers."""

    def __init__(self, router: EngineRouter | None = None, *, sample: bool = True) -> None:
        self._router = router
        self._sample = sample

    def run(self, request: TrialRequest) -> Measurement:
        """Carry out one trial. Raises LoadError."""
        if self._router is None or isinstance(request, HttpTrial) or request.target.engine == POSTGRESQL:
            return run_trial(request, sample=self._sample)
        return self._router.run(request)

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Carry out a block whose arms all use PostgreSQL, or all HTTP. Raises LoadError."""
        return run_block(block, sample=self._sample)

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        """Send requests to a service one by one; return the answers. Raises LoadError if one is missing."""
        return ask(served, requests, timeout_s=timeout_ns / 1e9)


def engines_for(
    spec: Spec,
    postgres: Callable[[Mapping[str, object]], PostgresServer],
    apart: Mapping[str, Callable[[], PostgresServer]] | None = None,
) -> tuple[Server, Load]:
    """Return the server and the load of an experiment.

    `postgres` creates a server with settings of a variant that apply to a whole server; variants with the
    same ones share it. `apart` creates the existing servers that variants name.

    Raises:
        UsageError: if an option of `connect` names an environment variable that is not set, or a variant
            names an unknown server.
    """
    servers = _servers(spec, postgres, apart or {})
    if spec.engines == (POSTGRESQL,) and len(set(map(id, servers.values()))) == 1:
        return servers[spec.baseline], TrialLoad(sample=not spec.observes)
    known: dict[tuple[str, str], DbapiEngine] = {}
    driven = {}
    for name, variant in spec.variants.items():
        engine = spec.engine(name)
        if engine != POSTGRESQL:
            key = (engine, repr(variant.connect))
            if key not in known:
                known[key] = DbapiEngine(engine_kind(engine), _options(name, variant.connect))
            driven[name] = known[key]
    router = EngineRouter(servers, driven)
    return router, TrialLoad(router, sample=not spec.observes)


def _servers(
    spec: Spec,
    postgres: Callable[[Mapping[str, object]], PostgresServer],
    apart: Mapping[str, Callable[[], PostgresServer]],
) -> dict[str, PostgresServer]:
    """Return the server of each variant on PostgreSQL; each server is created once."""
    made: dict[tuple[str | None, str], PostgresServer] = {}
    found = {}
    for name, variant in spec.variants.items():
        if spec.engine(name) != POSTGRESQL:
            continue
        if variant.server is not None and variant.server not in apart:
            raise UsageError(
                f'variants.{name}.server: there is no server "{variant.server}"; name it with `uncork guard '
                f"--{variant.server} dsn=...`"
            )
        own = server_settings(spec, name)
        key = (variant.server, repr(sorted(own.items())))
        if key not in made:
            made[key] = postgres(own) if variant.server is None else apart[variant.server]()
        found[name] = made[key]
    return found


def _options(variant: str, connect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a driver's `connect`, with environment variables replaced by their values."""
    options = dict(connect)
    for name, value in connect.items():
        if isinstance(value, str) and value.startswith("$"):
            if value[1:] not in os.environ:
                raise UsageError(
                    f"variants.{variant}.connect.{name}: environment variable {value[1:]} is not set"
                )
            options[name] = os.environ[value[1:]]
    return options
