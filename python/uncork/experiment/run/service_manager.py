"""Manage the services of a run for the runner and the preparation: which run when, and on which data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uncork.experiment.plan.order import Visit, cells
from uncork.experiment.plan.placement import Placement, Placements, session_settings
from uncork.experiment.ports import Server, Services
from uncork.experiment.run.http_request import service_jobs
from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Counters, Measurement, Outcome
from uncork.model.server import Target
from uncork.model.service import Served, ServiceJob
from uncork.model.trial import Arm, Cell


class ServiceManager:
    """Starts services before they get requests, and ends them before their data changes.

    If workloads send requests, services run only for these; otherwise they run beside every trial. They live
    while a cell is measured: each round starts new ones.
    """

    def __init__(self, spec: Spec, server: Server, services: Services | None, placements: Placements) -> None:
        self._spec = spec
        self._server = server
        self._services = services
        self._placements = placements
        self._databases: dict[Placement, str] = {}
        self._jobs: dict[tuple[Cell, str], tuple[ServiceJob, ...]] = {}

    def lacking(self, variant: str) -> str | None:
        """Return what a variant's services need that is missing; None if nothing."""
        names = self._spec.services_of(variant)
        if self._services is None or not names:
            return None
        requires = [require for name in names for require in self._spec.services[name].requires]
        return self._services.lacking(service_jobs(self._spec, cells(self._spec)[0], variant), requires)

    def build(self, name: str) -> None:
        """Create a database beside the variants' own. Raises SetupError."""
        database = self._spec.databases[name]
        self._server.build_beside(name, database.sql or "", database.timeout)

    def runs_for(self, workload: str) -> bool:
        """Return whether services run while a workload is measured."""
        if self._services is None or not self._spec.services:
            return False
        return not self._spec.http_workloads or workload in self._spec.http_workloads

    @property
    def has_services(self) -> bool:
        """Whether the experiment has services at all."""
        return self._services is not None and bool(self._spec.services)

    def start(self, visit: Visit) -> None:
        """Start the services that a visit needs, so that no trial waits for them. Raises ServiceCrash."""
        trials = [trial for block in visit.blocks for trial in block if self.runs_for(trial.workload)]
        if not trials or self._services is None:
            return
        self._server.warm_beside()
        present = sorted({trial.arm for trial in trials})
        for arm in present:
            self._services.begin(*self._request(visit.cell, arm))
        for arm in present:
            self.served(visit.cell, arm)

    def served(self, cell: Cell, arm: Arm) -> Served:
        """Return the address for an arm's requests, starting its services if needed. Raises ServiceCrash."""
        assert self._services is not None  # noqa: S101 -- called only if services run
        return self._services.serve(*self._request(cell, arm))

    def _request(self, cell: Cell, arm: Arm) -> tuple[str, tuple[ServiceJob, ...], Target, dict[str, Target]]:
        """Return the arguments for starting an arm's services, and note that they use its database."""
        home = self._placements.of(cell, arm)
        target = self._server.target(*home)
        self._databases[home] = target.database
        beside = {name: self._server.beside(name, arm.variant) for name in self._spec.databases}
        key = (cell, arm.variant)
        if key not in self._jobs:
            self._jobs[key] = service_jobs(self._spec, *key)
        jobs = self._jobs[key]
        return arm.name, jobs, self._with_settings(target, arm.variant), beside

    def restore(self, home: Placement) -> None:
        """Restore data, after ending the services that are connected to it."""
        self._release(home)
        self._server.restore(*home)

    def restore_all(self, placements: Sequence[Placement]) -> None:
        """Restore and warm the data of several placements, after ending the services connected to it."""
        for home in placements:
            self._release(home)
        self._server.restore_all(placements)

    def _release(self, home: Placement) -> None:
        if self._services is not None and home in self._databases:
            self._services.release(self._databases.pop(home))

    def end(self) -> None:
        """End all services."""
        if self._services is not None:
            self._services.release()
            self._databases.clear()

    def cpu_ns(self, served: Served | None) -> tuple[int, int] | None:
        """Return the processor time that services have used so far."""
        return None if served is None or self._services is None else self._services.cpu_ns(served)

    def examined(self, measurement: Measurement, served: Served | None) -> Measurement:
        """Return a trial's measurement; if its service has ended, the outcome is a lost connection."""
        gone = None if served is None or self._services is None else self._services.exit_reason(served)
        if gone is None:
            return measurement
        return replace(measurement, outcome=Outcome.CONNECTION_LOST, message=gone)

    def _with_settings(self, target: Target, variant: str) -> Target:
        """If variants share their data, put the settings of each on its service's connections."""
        settings = session_settings(self._spec, variant)
        if not settings:
            return target
        escaped = str.maketrans({"\\": "\\\\", " ": "\\ "})
        options = " ".join(f"-c {name}={value.translate(escaped)}" for name, value in settings.items())
        before = str(target.connection.get("options", ""))
        return replace(target, connection={**target.connection, "options": f"{before} {options}".strip()})


def with_service_cost(
    counters: Counters, before: tuple[int, int] | None, after: tuple[int, int] | None
) -> Counters:
    """Return the server's counters, with the processor time of the services beside it."""
    if before is None or after is None:
        return counters
    user_ns, system_ns = (max(0, end - begin) for begin, end in zip(before, after, strict=True))
    return replace(counters, service_user_ns=user_ns, service_system_ns=system_ns)
