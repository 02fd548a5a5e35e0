"""Sweep a load over levels: one server, one visit after the other, each kept as it ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from uncork.engines.conninfo import Address
from uncork.errors import LoadError, UsageError
from uncork.experiment.sweep import next_visit, pressed_level
from uncork.load.run import load_plan, run_load, without_password
from uncork.model.load import Arrivals, LoadMeasurement, LoadOutcome, LoadSpec
from uncork.model.result import RunStatus
from uncork.model.sweep import SweepSpec, Visit
from uncork.model.units import format_duration
from uncork.store.layout import Manifest, Sitting, write_manifest
from uncork.store.loads import write_plan
from uncork.store.sweeps import append_visit, write_pressed, write_sweep
from uncork.store.system import SystemWriter
from uncork.workbench.loads import LoadJob, LoadSession, Tell, lay_out
from uncork.workbench.press import press
from uncork.workbench.signals import uninterrupted

__all__ = ["SweepSession", "SweepWanted", "new_sweep"]

_PRESS_NS: Final = 4_000_000_000
"""How long all parties are looked at, at least: eighty samples of the sessions."""
_PROBE_CLIENTS: Final = 8
_FIRST_PART: Final = 1 / 8
"""A sweep of rates begins at this part of what so many clients reach in a closed loop."""


@dataclass(frozen=True, slots=True)
class SweepWanted:
    """A sweep as asked for; `start` is None for rates whose beginning a short closed loop finds."""

    spec: SweepSpec
    start: float | None


def new_sweep(root: Path, job: LoadJob, wanted: SweepWanted) -> SweepSession:
    """Lay out the folder of a new sweep of the job's load.

    Raises:
        SetupError: if it cannot be written.
        ConnectError, UsageError: if a script is wrong, or the words that name the server are.
    """
    names = ", ".join(script.name for script in job.spec.scripts)
    question = f"sweep of {'clients' if wanted.spec.axis == 'clients' else 'arrivals a second'}: {names}"
    return SweepSession(wanted, *lay_out(root, job, "sweep", question))


class SweepSession(LoadSession):
    """One sweep. `sweep` carries it out; the run's folder is named from the start."""

    def __init__(
        self, wanted: SweepWanted, folder: Path, manifest: Manifest, job: LoadJob, address: Address | None
    ) -> None:
        super().__init__(folder, manifest, job, address)
        self._wanted = wanted

    def sweep(self, told: Callable[[Visit], None], tell: Tell) -> RunStatus:
        """Visit levels until all is known or the budget is spent; `told` hears of each visit.

        A sweep that cannot begin leaves no folder behind.

        Raises:
            ConnectError: if the server cannot be reached, or refuses us.
            SetupError: if tables are missing or cannot be made, or the server cannot be started.
            UsageError: if a statement cannot be prepared.
            StoreError: if a visit cannot be written.
        """
        begun = time.monotonic_ns()
        status: RunStatus = "failed"
        try:
            with self.served(tell) as (address, pid):
                try:
                    status = self._visit_all(address, pid, told, tell)
                except KeyboardInterrupt:
                    status = "interrupted"
        finally:
            with uninterrupted():
                if (self.folder / "sweep_visits").is_dir():
                    self._end(status, time.monotonic_ns() - begun)
                else:
                    shutil.rmtree(self.folder, ignore_errors=True)
        return status

    def _end(self, status: RunStatus, elapsed_ns: int) -> None:
        sitting = Sitting(self.manifest.started_at, elapsed_ns, 0, status, status)
        self.manifest = replace(self.manifest, status=status, owner=None, sittings=(sitting,))
        write_manifest(self.folder, self.manifest)

    def _visit_all(
        self, address: Address, pid: int | None, told: Callable[[Visit], None], tell: Tell
    ) -> RunStatus:
        load, connection = self.prepared(address, tell), asdict(address)
        write_plan(self.folder, without_password(load_plan(load, connection, pid=pid)))
        spec = self._wanted.spec
        if self._wanted.start is None:
            spec = replace(spec, start=_first_rate(load, connection, pid))
            tell(f"the sweep begins at {spec.start:g} arrivals a second")
        write_sweep(self.folder, spec)
        visits: list[Visit] = []
        system = SystemWriter(self.folder)
        begun = time.monotonic_ns()
        while (place := next_visit(visits, spec)) is not None:
            spent = time.monotonic_ns() - begun
            if visits and spent + spec.visit_ns > spec.budget_ns:
                tell(f"the budget of {format_duration(spec.budget_ns)} is spent; --budget gives it more")
                break
            number, (round_, level) = len(visits) + 1, place
            measured = _loaded(_at(load, spec, level, number), connection, pid)
            if measured.totals.outcome is LoadOutcome.INTERRUPTED:
                return "interrupted"
            visit = _visit(number, round_, level, measured)
            with uninterrupted():
                if measured.system is not None:
                    system.append([({"round": round_, "block": number}, measured.system)])
                append_visit(self.folder, visit)
            visits.append(visit)
            told(visit)
        return self._press(load, spec, visits, address, pid, tell)

    def _press(
        self,
        load: LoadSpec,
        spec: SweepSpec,
        visits: Sequence[Visit],
        address: Address,
        pid: int | None,
        tell: Tell,
    ) -> RunStatus:
        """Look at all parties past the knee, apart from the visits that were timed."""
        level = pressed_level(visits, spec)
        if level is None:
            return "complete"
        tell(f"looking for what holds it up at {level:g}")
        pressed = replace(_at(load, spec, level, len(visits) + 1), duration_ns=max(spec.visit_ns, _PRESS_NS))
        seen = press(pressed, address, asdict(address), pid)
        if seen is None:
            return "interrupted"
        with uninterrupted():
            write_pressed(self.folder, level, seen)
        return "complete"


def _first_rate(load: LoadSpec, connection: Mapping[str, object], pid: int | None) -> float:
    """Find where a sweep of rates begins: at a part of what a few clients reach in a closed loop.

    Raises:
        UsageError: if nothing succeeds there.
    """
    probe = replace(
        load,
        clients=_PROBE_CLIENTS,
        max_clients=None,
        threads=min(load.threads, _PROBE_CLIENTS),
        arrivals=None,
        operations_each=None,
        duration_ns=2_000_000_000,
        progress_s=None,
    )
    totals = _loaded(probe, connection, pid).totals
    if not totals.succeeded:
        reason = totals.first_error or totals.message or str(totals.outcome)
        raise UsageError(f"{_PROBE_CLIENTS} clients completed nothing in 2 s: {reason}")
    return float(f"{_FIRST_PART * totals.succeeded / (totals.elapsed_ns / 1e9):.2g}")


def _loaded(load: LoadSpec, connection: Mapping[str, object], pid: int | None) -> LoadMeasurement:
    try:
        return run_load(load, connection, pid=pid)
    except LoadError as error:
        raise UsageError(str(error)) from error


def _at(load: LoadSpec, spec: SweepSpec, level: float, number: int) -> LoadSpec:
    """Return the load of one visit. Each draws numbers of its own."""
    changed = replace(
        load,
        duration_ns=spec.visit_ns,
        operations_each=None,
        seed=load.seed + number,
        progress_s=None,
        log=None,
    )
    if spec.axis == "rate":
        kind = "poisson" if load.arrivals is None else load.arrivals.kind
        size = None if load.arrivals is None else load.arrivals.size
        return replace(changed, arrivals=Arrivals(kind, level, size))
    clients = int(level)
    return replace(
        changed, clients=clients, max_clients=None, threads=min(load.threads, clients), arrivals=None
    )


def _visit(number: int, round_: int, level: float, measured: LoadMeasurement) -> Visit:
    totals = measured.totals
    times = next((row for row in measured.times if row.kind == "operation"), None)
    succeeded = totals.succeeded if times is None else times.executions - times.errors
    return Visit(
        number=number,
        round=round_,
        level=level,
        elapsed_ns=totals.elapsed_ns,
        started=totals.started,
        succeeded=totals.succeeded,
        failed=totals.failed,
        unsent=totals.unsent + totals.skipped,
        refused=sum(totals.connect_errors.values()),
        complete=totals.outcome is LoadOutcome.COMPLETE,
        message=totals.message or totals.first_error,
        errors={**totals.errors, **totals.connect_errors},
        mean_ns=None if times is None or not succeeded else times.sum_ns / succeeded,
        p50_ns=None if times is None else times.p50_ns,
        p90_ns=None if times is None else times.p90_ns,
        p95_ns=None if times is None else times.p95_ns,
        p99_ns=None if times is None else times.p99_ns,
        p999_ns=None if times is None else times.p999_ns,
        max_ns=None if times is None else times.max_ns,
        client_ns=totals.client_user_ns + totals.client_system_ns,
        busiest_thread=totals.busiest_thread,
        server_user_ns=totals.server_user_ns,
        server_system_ns=totals.server_system_ns,
        steal_ns=totals.steal_ns,
    )
