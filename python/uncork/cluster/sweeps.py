"""A sweep whose load steps are sent from the nodes of a cluster: each step is a load from all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from uncork.cluster import ray_nodes
from uncork.cluster.loads import PlannedLoad, new_cluster_load, planned_load
from uncork.cluster.ports import Nodes, Reserve
from uncork.errors import RunError, UsageError
from uncork.model.load import ClusterRequest, LoadMeasurement, LoadOutcome
from uncork.model.sweep import SweepAxis
from uncork.requests.jobs import HttpJob, LoadJob, SweepRequest
from uncork.spawn.child import scratch_folder
from uncork.store.loads import LoadReader
from uncork.workbench.load.http import HttpSession
from uncork.workbench.load.monitor import Components
from uncork.workbench.load.sql import LoadSession, Notify
from uncork.workbench.load.sweeps import SweepSession, started_sweep
from uncork.workbench.load.targets import AnySpec, HttpTarget, SqlTarget, first_rate, probe, raised


def largest_step(job: LoadJob | HttpJob, wanted: SweepRequest, request: ClusterRequest) -> PlannedLoad:
    """Check a sweep as `planned_load` does, and return its load at the highest level."""
    spec = wanted.spec
    if spec.axis == "clients" and (wanted.start or 1) < request.nodes:
        raise UsageError(
            f"--nodes {request.nodes}: each node needs a client of its own at every level: begin with at "
            f"least -c {request.nodes}"
        )
    return planned_load(_at(job, spec.axis, spec.end, 0, spec.step_ns, request.nodes), request)


def new_cluster_sweep(
    root: Path,
    job: LoadJob | HttpJob,
    wanted: SweepRequest,
    request: ClusterRequest,
    reserve: Reserve | None = None,
) -> SweepSession:
    """Start a sweep from nodes, of Ray unless `reserve` has others. Raises UsageError or SetupError."""
    if reserve is None:
        ray_nodes.check_installed()
    largest_step(job, wanted, request)
    load = started_sweep(root, job, wanted)
    load.record.change(options={**load.record.manifest.options, "nodes": request.nodes})
    return SweepSession(wanted, _Swept(load, request, reserve or ray_nodes.reserved))


class _Swept:
    """A load that is swept from nodes: this machine only prepares the server."""

    def __init__(self, load: LoadSession | HttpSession, request: ClusterRequest, reserve: Reserve) -> None:
        self.record = load.record
        self.job = load.job
        self._load = load
        self._request = request
        self._reserve = reserve

    @contextmanager
    def driven(self, notify: Notify) -> Iterator[NodeTarget]:
        """Reserve the nodes, prepare the server, and yield a target that sends the load from the nodes."""
        with self._load.driven(notify) as local, self._reserve(self._request, notify) as nodes:
            yield NodeTarget(self.job, local, self._request, nodes, notify)


class NodeTarget:
    """A load that nodes send; implements `SweepTarget`. `local` is the same load from this machine."""

    watched = False

    def __init__(
        self,
        job: LoadJob | HttpJob,
        local: SqlTarget | HttpTarget,
        request: ClusterRequest,
        nodes: Nodes,
        notify: Notify,
    ) -> None:
        # The server was prepared once, and the first part would do it again at each level.
        self._job = replace(job, vacuum="none") if isinstance(job, LoadJob) else job
        self._local = local
        self._request = request
        self._nodes = nodes
        self._notify = notify
        self.components = Components()

    @property
    def threads(self) -> int:
        """How many threads send."""
        return self._local.threads * self._request.nodes

    def plan(self) -> dict[str, Any]:
        """See `SweepTarget`."""
        return {**self._local.plan(), "threads": self.threads}

    def send(
        self, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
    ) -> LoadMeasurement:
        """See `SweepTarget`. Raises RunError too, if a node is lost."""
        return self._sent(_at(self._job, axis, level, number, duration_ns, self._request.nodes, most))

    def first_rate(self) -> float:
        """See `SweepTarget`."""
        job, least = self._job, self._request.nodes
        if isinstance(job, HttpJob):
            return first_rate(self._sent(replace(job, spec=probe(replace(job.spec, operations=None), least))))
        spec = probe(replace(job.spec, operations_each=None, log=None), least)
        return first_rate(self._sent(replace(job, spec=spec)))

    def _sent(self, job: LoadJob | HttpJob) -> LoadMeasurement:
        plan = planned_load(job, self._request)
        with scratch_folder("uncork-step-") as folder:
            load = new_cluster_load(folder, plan, lambda *_: nullcontext(self._nodes))
            outcome = load.run(None, self._notify)
            if outcome is LoadOutcome.INTERRUPTED:
                raise KeyboardInterrupt
            with closing(LoadReader(load.folder)) as reader:
                measured = reader.measurement()
        if outcome is LoadOutcome.NODE_LOST:
            raise RunError("a node was lost, so the sweep ends here; the load steps before are kept")
        return measured


def _at(
    job: LoadJob | HttpJob,
    axis: SweepAxis,
    level: float,
    number: int,
    duration_ns: int,
    nodes: int,
    most: int | None = None,
) -> LoadJob | HttpJob:
    """Return the job of one load step. No node has more threads than clients."""
    if isinstance(job, HttpJob):
        return replace(job, spec=_each(raised(job.spec, axis, level, number, duration_ns, most), nodes))
    return replace(job, spec=_each(raised(job.spec, axis, level, number, duration_ns, most), nodes))


def _each(spec: AnySpec, nodes: int) -> AnySpec:
    return replace(spec, threads=max(1, min(spec.threads, spec.clients // nodes)))
