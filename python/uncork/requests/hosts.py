"""The hosts of an experiment: how many, of which cluster, on which servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final

from uncork.errors import UsageError
from uncork.model.load import ClusterRequest
from uncork.model.units import count_words
from uncork.requests.option import Opt, whole
from uncork.requests.part import cluster_place
from uncork.requests.shared_options import MeasuredServer

HOSTS: Final = "Measure on several hosts"
_LEAST: Final = 2

HostCount = Annotated[
    int | None,
    Opt(
        "--hosts NUM",
        "Measure on NUM machines of a Ray cluster, drawn by lot, each with a server of its own. With five or "
        "more, the verdicts are about hosts like these.",
        whole(_LEAST, 100),
        HOSTS,
        python="Measure on this many machines of a Ray cluster, drawn by lot, each with a server of its own.",
    ),
]
HostCluster = Annotated[
    str | None,
    Opt(
        "--cluster local|auto|ADDRESS",
        "The Ray cluster: auto is the one to which this machine belongs, else HOST:PORT or ray://HOST:PORT; "
        "local tries it out on this machine alone. Default: auto.",
        None,
        HOSTS,
        python="The Ray cluster: ``auto``, ``HOST:PORT``, ``ray://HOST:PORT`` or ``local``. Default: auto.",
    ),
]
HostServers = Annotated[
    list[str] | None,
    Opt(
        "--host-dsn CONNINFO",
        "The running server of one host, in place of one that uncork starts there; repeat it for each host.",
        None,
        HOSTS,
        python="Connection strings of running servers, one for each host. Default: each host starts one.",
    ),
]
Confirmed = Annotated[
    bool, Opt("--yes", "Start on the hosts of a cluster without asking first.", None, HOSTS)
]


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The hosts to measure on. `dsns` are running servers, one for each; none if hosts start their own."""

    cluster: ClusterRequest
    dsns: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class HostOptions(MeasuredServer):
    """The options of a verb that can measure on several hosts."""

    hosts: HostCount = None
    cluster: HostCluster = None
    host_dsn: HostServers = None
    yes: Confirmed = False


def host_request(options: HostOptions) -> HostRequest | None:
    """Return the hosts that the options ask for; None for this machine alone.

    Raises UsageError if the options do not fit together.
    """
    dsns = tuple(options.host_dsn or ())
    hosts = len(dsns) if options.hosts is None and dsns else options.hosts
    if hosts is None:
        for name in _given(options):
            raise UsageError(f"{name} requires --hosts NUM, the number of hosts to measure on")
        return None
    if options.dsn is not None:
        raise UsageError(
            "--hosts starts a server on each host, and --dsn names one server: name a server for each host "
            "with --host-dsn, or leave out one of them"
        )
    if options.port is not None:
        raise UsageError("--port is of one server: leave it out with --hosts")
    if dsns and len(dsns) != hosts:
        raise UsageError(
            f"--hosts {hosts} needs a server for each host, but --host-dsn names "
            f"{count_words(len(dsns), 'server')}"
        )
    if dsns and hosts < _LEAST:
        raise UsageError("--host-dsn names one server: name at least two, or use --dsn")
    if len(set(dsns)) < len(dsns):
        raise UsageError("--host-dsn names a server twice, whose rounds would disturb each other")
    cluster = ClusterRequest(nodes=hosts, place=cluster_place(options.cluster or "auto"))
    return HostRequest(cluster, dsns)


def _given(options: HostOptions) -> Iterator[str]:
    if options.cluster is not None:
        yield "--cluster"
    if options.yes:
        yield "--yes"
