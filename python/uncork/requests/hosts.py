"""The hosts of an experiment: how many, of which cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Protocol

from uncork.errors import UsageError
from uncork.model.load import ClusterRequest
from uncork.requests.option import Opt, whole
from uncork.requests.part import cluster_place

__all__ = ["Confirmed", "HostCluster", "HostCount", "host_request"]

HOSTS: Final = "Measure on several hosts"

HostCount = Annotated[
    int | None,
    Opt(
        "--hosts NUM",
        "Measure on NUM machines of a Ray cluster, drawn by lot, each with a server of its own. With five or "
        "more, the verdicts are about hosts like these.",
        whole(2, 100),
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
Confirmed = Annotated[
    bool, Opt("--yes", "Start on the hosts of a cluster without asking first.", None, HOSTS)
]


class HostOptions(Protocol):
    """The options of a verb that can measure on several hosts."""

    @property
    def hosts(self) -> int | None: ...
    @property
    def cluster(self) -> str | None: ...
    @property
    def yes(self) -> bool: ...
    @property
    def dsn(self) -> str | None: ...
    @property
    def port(self) -> int | None: ...
    @property
    def seed(self) -> int | None: ...


def host_request(options: HostOptions, seed: int) -> ClusterRequest | None:
    """Return the hosts that the options ask for, drawn with a seed; None for this machine alone.

    Raises:
        UsageError: if the options do not fit together.
    """
    if options.hosts is None:
        for name in _given(options):
            raise UsageError(f"{name} requires --hosts NUM, the number of hosts to measure on")
        return None
    if options.dsn is not None:
        raise UsageError(
            "--hosts starts a server on each host, and --dsn names one server: leave out one of them"
        )
    if options.port is not None:
        raise UsageError("--port is of one server: leave it out with --hosts")
    return ClusterRequest(nodes=options.hosts, place=cluster_place(options.cluster or "auto"), lot=seed)


def _given(options: HostOptions) -> Iterator[str]:
    if options.cluster is not None:
        yield "--cluster"
    if options.yes:
        yield "--yes"
