"""A load from the nodes of a cluster, as one run.

The story: reserve the nodes, check them, prepare the parts, compare clocks, start together, watch, collect,
merge. The nodes measure; this process only conducts (`uncork.cluster.conductor`).
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from uncork.cluster import ray_nodes
from uncork.cluster.agent import own_facts
from uncork.cluster.conductor import Conductor, Lost, NodeClock
from uncork.cluster.jobs import PartJob, portable_http, portable_sql
from uncork.cluster.kept_parts import KeptPart
from uncork.cluster.ports import News, NodeFacts, Nodes, Reserve
from uncork.errors import RunError, UsageError
from uncork.load.merging import merged_progress
from uncork.model.load import ClusterRequest, LoadMeasurement, LoadOutcome, LoadProgress, PartNode
from uncork.model.sweep import SweepAxis
from uncork.model.units import count_words, format_count, format_duration
from uncork.requests.jobs import AnyLoad, LoadJob, SweepRequest
from uncork.spawn.child import scratch_folder
from uncork.store.loads import LoadReader
from uncork.store.snapshots import delete_snapshots
from uncork.workbench.clock import now_text
from uncork.workbench.load.merging import merge_nodes
from uncork.workbench.load.monitor import Components
from uncork.workbench.load.progress_log import logged
from uncork.workbench.load.sessions import LoadSession, Notify, SqlSession, checked
from uncork.workbench.load.sweeps import SweepSession, started_sweep
from uncork.workbench.load.targets import LoadTarget, endless, first_rate, probe, raised
from uncork.workbench.run_record import RunRecord, start_run
from uncork.workbench.signals import uninterrupted

# ---- how large a load is, whether it may be that large, and whether the nodes can send it ----


_MOST_RATE: Final = 100_000
_MOST_CONNECTIONS: Final = 20_000
_MOST_NODES: Final = 100
_OTHER_FILES: Final = 64
"""Files that a part opens besides its connections: libraries, pipes, its run."""
_LOOPBACK: Final = ("localhost", "::1")


@dataclass(frozen=True, slots=True)
class LoadSize:
    """A load from nodes in figures.

    `rate` is operations a second, None in a closed loop; `duration_ns` is None if a count ends the load.
    `loopback` means that each node finds the target on its own machine, `over_tcp` that each connection takes
    a port.
    """

    operation: str
    target: str
    connections: int
    rate: float | None
    duration_ns: int | None
    loopback: bool
    over_tcp: bool = True


def size_of(job: AnyLoad, target: str, host: str) -> LoadSize:
    """Return the size of a job; `target` names what it is sent to, on `host`."""
    spec, sql = job.spec, isinstance(job, LoadJob)
    arrivals = spec.arrivals
    return LoadSize(
        operation="transaction" if sql else "request",
        target=target,
        connections=spec.clients if spec.max_clients is None else spec.max_clients,
        rate=None if arrivals is None else arrivals.rate or _mean_rate(arrivals.offsets_ns),
        duration_ns=spec.duration_ns,
        loopback=host.startswith(("/", "@", "127.")) or host in _LOOPBACK,
        over_tcp=not host.startswith(("/", "@")),
    )


def _mean_rate(offsets_ns: tuple[int, ...]) -> float:
    return len(offsets_ns) * 1e9 / max(1, offsets_ns[-1]) if offsets_ns else 0.0


def statement(size: LoadSize, request: ClusterRequest) -> str:
    """Return in one sentence what will be sent from where to where."""
    rate = (
        f"{size.operation}s as fast as it answers"
        if size.rate is None
        else f"{format_count(round(size.rate))} {size.operation}s a second"
    )
    time = "" if size.duration_ns is None else f" for {format_duration(size.duration_ns)}"
    connections = count_words(size.connections, "connection")
    nodes = count_words(request.nodes, "node")
    place = {"local": "on this machine", "auto": "of this machine's cluster"}
    where = " (each node's own machine)" if size.loopback and not request.own else ""
    return (
        f"{nodes} {place.get(request.place, f'of {request.place}')} will send {rate} over {connections} in "
        f"total{time}, to {size.target}{where}"
    )


def check_cap(size: LoadSize, request: ClusterRequest) -> None:
    """Raise UsageError if a load is larger than a cluster sends unless told so."""
    if request.uncapped or request.own:
        return
    for found, most, unit in (
        (size.rate or 0, _MOST_RATE, f"{size.operation}s a second"),
        (size.connections, _MOST_CONNECTIONS, "connections"),
        (request.nodes, _MOST_NODES, "nodes"),
    ):
        if found > most:
            raise UsageError(
                f"the load has {format_count(round(found))} {unit}; a cluster sends {format_count(most)} at "
                "most unless you allow more: check the figure, and add --uncapped"
            )


def refusals(
    facts: Mapping[int, NodeFacts], own: NodeFacts, size: LoadSize, request: ClusterRequest
) -> Iterator[str]:
    """Yield why nodes cannot send their parts, each with what to do; `own` are the coordinator's facts."""
    yield from unusable(facts, own)
    each = -(-size.connections // request.nodes)
    beside = Counter(fact.machine for fact in facts.values())
    for number, fact in sorted(facts.items()):
        name = f"node {number} ({fact.host})"
        if fact.open_files < each + _OTHER_FILES:
            yield (
                f"{name} may open {format_count(fact.open_files)} files, but its part needs "
                f"{format_count(each + _OTHER_FILES)}: raise its limit (`ulimit -n`) where Ray is started, "
                "or use more nodes"
            )
        elif size.over_tcp and fact.ports < each * beside[fact.machine]:
            nodes = -(-size.connections // fact.ports)
            yield (
                f"{name} has {format_count(fact.ports)} ports for connections to one address, but its "
                f"machine's parts need {format_count(each * beside[fact.machine])}: use at least "
                f"{count_words(nodes, 'machine')}, or widen net.ipv4.ip_local_port_range"
            )


def unusable(facts: Mapping[int, NodeFacts], own: NodeFacts) -> Iterator[str]:
    """Yield which nodes cannot be used at all, each with what to do; `own` are the coordinator's facts."""
    for number, fact in sorted(facts.items()):
        name = f"node {number} ({fact.host})"
        if fact.authenticated is False:
            yield (
                f"{name} belongs to a Ray cluster that requires no token: everyone who reaches it can run "
                "programs there. Restart Ray on all nodes with RAY_AUTH_MODE=token and one token "
                "(`ray get-auth-token --generate` writes ~/.ray/auth_token)"
            )
        elif (fact.version, fact.core) != (own.version, own.core):
            yield (
                f"{name} has uncork {fact.version} (core {fact.core}), this machine has {own.version} (core "
                f"{own.core}): install the same build on all nodes"
            )


_END_S: Final = 5.0
"""How long to wait until nodes have removed what they stored; what is left, their reapers remove."""


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """A load from nodes that was checked, but not started: `size` says how large it is."""

    job: AnyLoad
    request: ClusterRequest
    size: LoadSize
    session: LoadSession


def planned_load(job: AnyLoad, request: ClusterRequest) -> PlannedLoad:
    """Check a load without contacting anything; remove secrets. Raises UsageError, ConnectError."""
    session = checked(job)
    if isinstance(session, SqlSession):
        address = session.address
        if address is None:
            raise UsageError("--nodes needs a server that all nodes can reach: name one")
        size = size_of(job, address.place, address.hostaddr or address.host)
        job = portable_sql(session.job, address, request)
    else:
        size = size_of(job, session.place, session.name)
        job = portable_http(session.job, request)
    check_cap(size, request)
    return PlannedLoad(job, request, size, session)


def new_cluster_load(root: Path, plan: PlannedLoad, reserve: Reserve | None = None) -> ClusterLoad:
    """Start a load from nodes; `reserve`: not those of Ray. Raises UsageError, SetupError."""
    if reserve is None:
        ray_nodes.check_installed()
    session, nodes = plan.session, count_words(plan.request.nodes, "node")
    manifest = session.manifest("load", f"load-{session.name}", f"{session.question}, from {nodes}")
    options = {"command": plan.job.command, "nodes": plan.request.nodes}
    manifest = replace(manifest, options=options)
    return ClusterLoad(start_run(root, manifest), plan, reserve or ray_nodes.reserved)


class ClusterLoad:
    """One load from nodes, which `run` carries out; `start_ns` is its start, or None."""

    def __init__(self, record: RunRecord, plan: PlannedLoad, reserve: Reserve) -> None:
        self.record = record
        self.folder = record.folder
        self.job = plan.job
        self.start_ns: int | None = None
        self._plan = plan
        self._reserve = reserve
        self._facts: dict[int, NodeFacts] = {}
        self._parts: dict[int, KeptPart] = {}
        self._whole = WholeProgress(logged(self.folder, None), None)

    def run(self, progress: Callable[[LoadProgress], None] | None, notify: Notify) -> LoadOutcome:
        """Send the load, and store the result of the whole, with its parts.

        The run gets snapshots of the whole each second, as any load. If the load cannot start, its folder is
        deleted. If this process is killed, the nodes stop, and the run keeps what they have reported. Raises
        UsageError if the nodes cannot send the load, or a part cannot be prepared. Raises RunError if a node
        is lost before the start, or all nodes before they sent anything. Raises StoreError if the result
        cannot be written.
        """
        request = self._plan.request
        with self.record, self._reserve(request, notify) as nodes:
            conductor = Conductor(nodes, notify, self._keep)
            try:
                self._check(conductor)
                self._parts = {number: KeptPart(self.folder, number) for number in conductor.numbers}
                job, count = self._plan.job, len(self._parts)
                conductor.each("begin", lambda number: [pickle.dumps(PartJob(job, number, count))])
                conductor.prepare()
                conductor.clocks = before = conductor.probe_clocks()  # a load may have been long in preparing
                self._start(conductor)
                interrupted = self._watch(conductor, progress, notify)
                with uninterrupted():
                    conductor.collect(lambda number, files: self._parts[number].finish(files))
                    after = conductor.probe_clocks()
                    totals = merge_nodes(self.record, self._known(conductor, before, after))
                    delete_snapshots(self.folder)
                conductor.await_leases()
            finally:
                conductor.end(_END_S)
        if interrupted:
            return LoadOutcome.INTERRUPTED
        # Nobody has interrupted this load.
        return LoadOutcome.NODE_LOST if totals.outcome is LoadOutcome.INTERRUPTED else totals.outcome

    def _check(self, conductor: Conductor) -> None:
        self._facts = conductor.meet()
        for problem in refusals(self._facts, own_facts(), self._plan.size, self._plan.request):
            raise UsageError(problem)
        conductor.clocks = conductor.probe_clocks()

    def _start(self, conductor: Conductor) -> None:
        job = self._plan.job
        self.start_ns = conductor.start(self._plan.size.connections, job.spec.warmup_ns)
        self.record.keep = True
        options = {**self.record.manifest.options, "measured_us": self.start_ns // 1000}
        self.record.change(started_at=now_text(), options=options)

    def _watch(
        self, conductor: Conductor, progress: Callable[[LoadProgress], None] | None, notify: Notify
    ) -> bool:
        self._whole = whole = WholeProgress(
            logged(self.folder, None), progress, self._plan.job.spec.progress_s or 1
        )
        duration_ns = self._plan.job.spec.duration_ns
        end_ns = None if duration_ns is None or self.start_ns is None else self.start_ns + duration_ns

        def lose(number: int, lost: Lost) -> None:
            second = max(0, lost.noticed_ns - (self.start_ns or 0)) / 1e9
            stopping = self._plan.request.on_lost == "stop"
            left = len(conductor.sending)
            rest = "the load stops" if stopping else f"{count_words(left, 'node')} continue"
            notify(f"{conductor.name(number)} is lost at second {second:.0f} ({lost.reason}): {rest}")
            if stopping:
                conductor.stop()

        def follow() -> None:
            whole.follow(conductor.sending)

        try:
            conductor.watch(end_ns, lose, follow)
        except KeyboardInterrupt:
            notify("stopping the nodes; interrupt once more to leave at once")
            conductor.stop()
            conductor.watch(end_ns, lose, follow)
            return True
        return False

    def _keep(self, number: int, news: News) -> None:
        part = self._parts[number]
        part.begin(news.files)
        self._whole.add(number, part.add(news.snapshots, news.reserved))

    def _known(
        self, conductor: Conductor, before: Mapping[int, NodeClock], after: Mapping[int, NodeClock]
    ) -> dict[int, PartNode]:
        start_ns = self.start_ns or 0
        found = {}
        for number, facts in self._facts.items():
            clock, later, lost = before[number], after.get(number), conductor.lost.get(number)
            until_ns = None if lost is None or lost.until_ns is None else lost.until_ns - start_ns
            found[number] = PartNode(
                host=facts.host,
                offset_ns=clock.offset_ns,
                bound_ns=clock.bound_ns,
                drift_ns=None if later is None else later.offset_ns - clock.offset_ns,
                lost=None if lost is None else lost.reason,
                lost_ns=0 if lost is None else max(0, lost.noticed_ns - start_ns),
                sent_until_ns=until_ns,
            )
        return found


# ---- the progress of a whole load, from the snapshots of its nodes, which arrive at different times ----


Snapshots = defaultdict[int, list[LoadProgress]]
"""Each node's snapshots, in order."""


class WholeProgress:
    """Joins snapshots of the same second, which is complete when every node that still sends reported it.

    `store` gets each complete second, and `show` each `every` seconds.
    """

    def __init__(
        self,
        store: Callable[[LoadProgress], None],
        show: Callable[[LoadProgress], None] | None,
        every: int = 1,
    ) -> None:
        self._store = store
        self._show = show
        self._every = every
        self._by_second: defaultdict[int, Snapshots] = defaultdict(_no_snapshots)
        self._reached: dict[int, LoadProgress] = {}
        self._followed: dict[int, LoadProgress] = {}
        self._last = 0
        self._unshown = _no_snapshots()

    def add(self, number: int, snapshots: Sequence[LoadProgress]) -> None:
        """Add the new snapshots of a node, about one a second."""
        for snapshot in snapshots:
            self._reached[number] = snapshot
            if _second(snapshot) > self._last:
                self._by_second[_second(snapshot)][number].append(snapshot)

    def follow(self, sending: Collection[int]) -> None:
        """Store and show the seconds that are complete now; `sending` are the nodes that still send."""
        reached = [self._reached.get(number) for number in sending]
        until = min((0 if progress is None else _second(progress) for progress in reached), default=0)
        for second in sorted(number for number in self._by_second if number <= until):
            found = self._by_second.pop(second)
            self._last = second
            self._store(self._joined(found, sending))
            for number, several in found.items():
                self._unshown[number] += several
                self._followed[number] = several[-1]
            if self._show is not None and second % self._every == 0:
                self._show(self._joined(self._unshown, sending))
                self._unshown.clear()

    def _joined(self, found: Snapshots, sending: Collection[int]) -> LoadProgress:
        whole = merged_progress(list(found.values()))
        late = [
            self._followed[number] for number in sending if number not in found and number in self._followed
        ]
        return replace(
            whole,
            clients=whole.clients + sum(progress.clients for progress in late),
            backlog=whole.backlog + sum(progress.backlog for progress in late),
        )


def _second(one: LoadProgress) -> int:
    return max(1, round(one.elapsed_ns / 1e9))


def _no_snapshots() -> Snapshots:
    return defaultdict(list)


# ---- a sweep whose load steps are sent from nodes: each step is a load from all of them ----


def largest_step(job: AnyLoad, wanted: SweepRequest, request: ClusterRequest) -> PlannedLoad:
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
    job: AnyLoad,
    wanted: SweepRequest,
    request: ClusterRequest,
    reserve: Reserve | None = None,
) -> SweepSession:
    """Start a sweep from nodes; `reserve`: not those of Ray. Raises UsageError, SetupError."""
    if reserve is None:
        ray_nodes.check_installed()
    largest_step(job, wanted, request)
    load = started_sweep(root, job, wanted)
    load.record.change(options={**load.record.manifest.options, "nodes": request.nodes})
    return SweepSession(wanted, _Swept(load, request, reserve or ray_nodes.reserved))


class _Swept:
    """A load that is swept from nodes: this machine only prepares the server."""

    def __init__(self, load: LoadSession, request: ClusterRequest, reserve: Reserve) -> None:
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
        job: AnyLoad,
        local: LoadTarget,
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
        spec: Any = self._job.spec
        spec = probe(endless(spec), self._request.nodes)
        return first_rate(self._sent(replace(self._job, spec=spec)))

    def _sent(self, job: AnyLoad) -> LoadMeasurement:
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
    job: AnyLoad,
    axis: SweepAxis,
    level: float,
    number: int,
    duration_ns: int,
    nodes: int,
    most: int | None = None,
) -> AnyLoad:
    """Return the job of one load step. No node has more threads than clients."""
    spec: Any = job.spec
    spec = raised(spec, axis, level, number, duration_ns, most)
    return replace(job, spec=replace(spec, threads=max(1, min(spec.threads, spec.clients // nodes))))
