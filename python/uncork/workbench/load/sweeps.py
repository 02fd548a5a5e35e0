"""Sweep a load over levels: one server, one load step after another, each stored as it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final, Protocol

from uncork.engines.conninfo import resolve
from uncork.experiment.plan.sweep import findings, next_step, stress_level
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.records import build_from
from uncork.model.stored_run import RunStatus
from uncork.model.sweep import STEADY, SweepSpec, Verification
from uncork.model.system import DATABASE, SERVICE
from uncork.model.tables.load import LoadTotals
from uncork.model.tables.sweep import LoadStep
from uncork.model.units import format_duration
from uncork.profile.system import system_use
from uncork.requests.jobs import AnyLoad, HttpJob, SweepRequest
from uncork.store.loads import append_load_step, write_plan, write_sweep, write_verification
from uncork.store.run_documents import Pressed, write_pressed
from uncork.store.system import SystemWriter, system_tables
from uncork.workbench.load.monitor import stress
from uncork.workbench.load.sessions import LoadSession, Notify, new_load
from uncork.workbench.load.targets import SweepTarget
from uncork.workbench.profile.databases import watched_part
from uncork.workbench.run_record import RunRecord
from uncork.workbench.signals import uninterrupted

_STRESS_NS: Final = 4_000_000_000
"""The minimum time for which all components are watched: eighty samples of the sessions."""
_VERIFY_STEPS: Final = 5
_VERIFY_NS: Final = 3_000_000_000
"""How many load steps a verification lasts, and the minimum."""
_CONNECTIONS: Final = 64
"""The largest number of connections of a verification, unless the knee has more than half as many clients."""
_LOWER: Final = 2
"""How many lower levels are tried as well."""
_RAISED: Final = {"clients": "clients", "rate": "arrivals a second", "streams": "streams"}


class Swept(Protocol):
    """A load that can be swept. Its run has been started, and `driven` prepares the server."""

    @property
    def record(self) -> RunRecord:
        """The run."""
        ...

    @property
    def job(self) -> AnyLoad:
        """The load."""
        ...

    def driven(self, notify: Notify) -> AbstractContextManager[SweepTarget]:
        """Find or start the server, prepare it, and yield a target that sends the load; then clean up."""
        ...


def new_sweep(root: Path, job: AnyLoad, wanted: SweepRequest) -> SweepSession:
    """Start the run of a new sweep of the job's load.

    Raises:
        SetupError: if its folder cannot be written.
        ConnectError, UsageError: if the load or the connection string is wrong.
    """
    return SweepSession(wanted, started_sweep(root, job, wanted))


def started_sweep(root: Path, job: AnyLoad, wanted: SweepRequest) -> LoadSession:
    """Start the run of a sweep, and return the load that it sweeps.

    Raises SetupError, ConnectError or UsageError: see `new_sweep`.
    """
    question = f"sweep of {_RAISED[wanted.spec.axis]}: "
    if isinstance(job, HttpJob):
        names = ", ".join(request.name for request in job.spec.requests)
        return new_load(root, job, "sweep", f"{question}{names} of {job.spec.server.place}")
    names = ", ".join(script.name for script in job.spec.scripts)
    return new_load(root, job, "sweep", f"{question}{names}")


class SweepSession:
    """One sweep. `sweep` carries it out; the run's folder exists from the start."""

    def __init__(self, wanted: SweepRequest, swept: Swept) -> None:
        self._wanted = wanted
        self._swept = swept
        self.folder = swept.record.folder
        self.unit = "requests/s" if isinstance(swept.job, HttpJob) else "tps"

    def sweep(self, show: Callable[[LoadStep], None], notify: Notify) -> RunStatus:
        """Carry out load steps until the sweep is finished or the budget is used; call `show` after each.

        If the sweep cannot start, its folder is deleted.

        Raises:
            ConnectError: if the server cannot be reached, or refuses the connection.
            SetupError: if tables are missing or cannot be created, or the server cannot be started.
            UsageError: if a statement or a request cannot be sent.
            StoreError: if a load step cannot be written.
        """
        status: RunStatus = "interrupted"
        with self._swept.record as record:
            with self._swept.driven(notify) as target:
                with contextlib.suppress(KeyboardInterrupt):
                    status = self._send_all(target, show, notify)
                record.status = record.reason = status
            try:
                record.close(status, status)
            except KeyboardInterrupt:
                status = "interrupted"  # the run has ended: its result is still shown
        return status

    def _send_all(self, target: SweepTarget, show: Callable[[LoadStep], None], notify: Notify) -> RunStatus:
        write_plan(self.folder, target.plan())
        spec = self._wanted.spec
        if self._wanted.start is None:
            spec = replace(spec, start=target.first_rate())
            notify(f"starting the sweep at {spec.start:g} arrivals a second")
        write_sweep(self.folder, spec)
        steps: list[LoadStep] = []
        system = SystemWriter(self.folder)
        begun = time.monotonic_ns()
        while (place := next_step(steps, spec)) is not None:
            spent = time.monotonic_ns() - begun
            if steps and spent + self._swept.job.spec.warmup_ns + spec.step_ns > spec.budget_ns:
                notify(f"the budget of {format_duration(spec.budget_ns)} is spent; increase it with --budget")
                break
            number, (round_, level) = len(steps) + 1, place
            measured = target.send(spec.axis, level, number, spec.step_ns)
            if measured.totals.outcome is LoadOutcome.INTERRUPTED:
                return "interrupted"
            step = _load_step(number, round_, level, measured)
            with uninterrupted():
                if measured.system is not None:
                    system.append([({"round": round_, "block": number}, measured.system)])
                append_load_step(self.folder, step)
            steps.append(step)
            show(step)
        status: RunStatus = "complete"
        if self._wanted.verify:
            status = self._verify(target, spec, steps, notify)
        if target.watched and status == "complete":
            status = self._stress(target, spec, steps, notify)
        return status if status != "complete" or any(step.succeeded for step in steps) else "failed"

    def _verify(
        self, target: SweepTarget, spec: SweepSpec, steps: Sequence[LoadStep], notify: Notify
    ) -> RunStatus:
        """Send a fraction of the knee's throughput, with arrivals that do not wait for the server."""
        knee = findings(steps, spec).knee
        rates = [] if knee is None else [step.throughput for step in steps if step.level == knee.level]
        if knee is None or not any(rates):
            notify("there is nothing to verify, because the knee is not known")
            return "complete"
        rate, length = STEADY * fmean(rates), max(_VERIFY_STEPS * spec.step_ns, _VERIFY_NS)
        notify(
            f"verifying {rate:.3g} arrivals a second, {STEADY * 100:g} % of the knee, "
            f"for {format_duration(length)}"
        )
        number = len(steps) + 1
        clients = round(knee.level) if spec.axis == "clients" else 0
        measured = target.send("rate", rate, number, length, max(_CONNECTIONS, 2 * clients))
        if measured.totals.outcome is LoadOutcome.INTERRUPTED:
            return "interrupted"
        with uninterrupted():
            step = _load_step(number, 0, rate, measured)
            write_verification(self.folder, Verification(knee.level, step))
        return "complete"

    def _stress(
        self, target: SweepTarget, spec: SweepSpec, steps: Sequence[LoadStep], notify: Notify
    ) -> RunStatus:
        """Watch all components past the knee and where the load breaks, apart from the timed load steps."""
        working = sorted({step.level for step in steps if step.works})
        first = stress_level(steps, spec)
        beyond = [level for level in working if first is not None and level <= first]
        cliff = findings(steps, spec).cliff.gives_way
        pressed: list[Pressed] = []
        # Watching takes a connection too: at a connection limit, the load must be one level lower.
        for level in beyond[: -1 - _LOWER : -1]:
            notify(f"looking for the bottleneck at {level:g}")
            seen = self._stressed(target, spec, steps, level)
            if seen is None:
                return "interrupted"
            if seen.seen.load.started:
                missing = self._watch(target, spec, steps, level)
                if missing is None:
                    return "interrupted"
                pressed.append(replace(seen, missing=(*seen.missing, *missing)))
                break
        if cliff is not None:
            notify(f"looking for the limit that fails at {cliff:g}")
            seen = self._stressed(target, spec, steps, cliff)
            if seen is None:
                return "interrupted"
            pressed.append(seen)
        with uninterrupted():
            write_pressed(self.folder, pressed)
        return "complete"

    def _watch(
        self, target: SweepTarget, spec: SweepSpec, steps: Sequence[LoadStep], level: float
    ) -> list[str] | None:
        """Watch the database for findings, as a part of the run; return what is missing, None if interrupted.

        The load is sent once more for that, because the watch would disturb the search for the bottleneck.
        """
        conninfo = target.components.conninfo
        if conninfo is None:
            return []
        command = str(self._swept.record.manifest.options.get("command", ""))
        with watched_part(self.folder, conninfo, resolve(conninfo).place, command) as missing:
            seen = self._stressed(target, spec, steps, level)
        return None if seen is None else missing

    def _stressed(
        self, target: SweepTarget, spec: SweepSpec, steps: Sequence[LoadStep], level: float
    ) -> Pressed | None:
        lowest = [step for step in steps if step.works and step.mean_ns is not None]
        alone_ns = min(lowest, key=lambda step: step.level).mean_ns if lowest else None
        number, length = len(steps) + round(level), max(spec.step_ns, _STRESS_NS)
        seen = stress(
            lambda: target.send(spec.axis, level, number, length), target.components, target.threads, alone_ns
        )
        return None if seen is None else Pressed(level, *seen)


def _load_step(number: int, round_: int, level: float, measured: LoadMeasurement) -> LoadStep:
    totals = measured.totals
    server = _server_times(measured)
    times = next((row for row in measured.times if row.kind == "operation"), None)
    succeeded = totals.succeeded if times is None else times.executions - times.errors
    return build_from(
        LoadStep,
        totals,
        number=number,
        round=round_,
        level=level,
        unsent=totals.unsent + totals.skipped,
        refused=sum(totals.connect_errors.values()),
        complete=totals.outcome is LoadOutcome.COMPLETE,
        message=_message(totals),
        errors={**totals.errors, **totals.connect_errors},
        mean_ns=None if times is None or not succeeded else times.sum_ns / succeeded,
        p50_ns=None if times is None else times.p50_ns,
        p90_ns=None if times is None else times.p90_ns,
        p95_ns=None if times is None else times.p95_ns,
        p99_ns=None if times is None else times.p99_ns,
        p999_ns=None if times is None else times.p999_ns,
        max_ns=None if times is None else times.max_ns,
        client_ns=totals.client_user_ns + totals.client_system_ns,
        server_user_ns=server[0],
        server_system_ns=server[1],
    )


def _server_times(measured: LoadMeasurement) -> tuple[int | None, int | None]:
    """Return the processor time of the server; in a load by HTTP, of the service and its database."""
    totals = measured.totals
    if totals.http is None or measured.system is None:
        return totals.server_user_ns, totals.server_system_ns
    use = system_use(system_tables([({}, measured.system)]))
    found = (
        [] if use is None else [process for process in use.processes if process.role in (SERVICE, DATABASE)]
    )
    if not found:
        return None, None
    return sum(process_use.user_ns for process_use in found), sum(
        process_use.system_ns for process_use in found
    )


def _message(totals: LoadTotals) -> str | None:
    """Return why a load ended early, or its first error if that says the same in more detail."""
    ended, first = totals.message, totals.first_error
    return first if first is not None and (ended is None or first.startswith(ended)) else ended
