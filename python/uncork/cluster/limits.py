"""How large a load is, whether it may be that large, and whether the nodes can send it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from uncork.cluster.ports import NodeFacts
from uncork.errors import UsageError
from uncork.model.load import ClusterRequest
from uncork.model.units import count_words, format_count, format_duration
from uncork.requests.jobs import HttpJob, LoadJob

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


def size_of(job: LoadJob | HttpJob, target: str, host: str) -> LoadSize:
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
