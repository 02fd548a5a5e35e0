"""What sweeps and guards send: a load by SQL or by HTTP, at any level, for any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from uncork.errors import LoadError, UsageError
from uncork.load.http import http_plan, run_http, without_secrets
from uncork.load.run import load_plan, run_load, without_password
from uncork.model.http import HttpSpec
from uncork.model.load import ArrivalKind, Arrivals, LoadMeasurement, LoadPart, LoadSpec
from uncork.model.sweep import SweepAxis
from uncork.workbench.load.monitor import Components

_PROBE_CLIENTS: Final = 8
_PROBE_NS: Final = 2_000_000_000
_FIRST_PART: Final = 1 / 8
"""A sweep of rates begins at this fraction of the throughput that `_PROBE_CLIENTS` reach in a closed loop."""

AnySpec = TypeVar("AnySpec", LoadSpec, HttpSpec)


class SweepTarget(Protocol):
    """A load on a server that is running, at any level."""

    @property
    def components(self) -> Components:
        """The components that are watched besides the generator."""
        ...

    @property
    def threads(self) -> int:
        """The number of threads that send."""
        ...

    @property
    def watched(self) -> bool:
        """Whether the machine that sends can be watched for a bottleneck: whether it is this one."""
        ...

    def plan(self) -> dict[str, Any]:
        """Return the plan of the load as requested, without secrets."""
        ...

    def send(
        self, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
    ) -> LoadMeasurement:
        """Send the load at a level for `duration_ns`, after its warm-up.

        Each `number` has its own random numbers. At a rate, `most` is the largest number of
        connections if the load sets none. Raises UsageError if a statement or a request cannot be
        sent; nothing was sent then.
        """
        ...

    def first_rate(self) -> float:
        """Find the first rate of a sweep: a fraction of what a few clients reach in a closed loop.

        Raises UsageError if no operation succeeds.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Target(ABC, Generic[AnySpec]):
    """A load from this machine. It can also be sent unchanged, or for another time: what guards repeat."""

    spec: AnySpec
    components: Components
    watched: ClassVar[bool] = True

    @property
    def threads(self) -> int:
        """How many threads send."""
        return self.spec.threads

    def send(
        self, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
    ) -> LoadMeasurement:
        """See `SweepTarget`."""
        return self._run(raised(self.spec, axis, level, number, duration_ns, most))

    def turn(self, number: int, duration_ns: int) -> Self:
        """Return the same load without a warm-up, limited to `duration_ns` unless it is a trace.

        For `number`, see `SweepTarget.send`.
        """
        changed = replace(self.spec, seed=self.spec.seed + number, progress_s=None, warmup_ns=0)
        if changed.arrivals is None or changed.arrivals.kind != "trace":
            changed = replace(endless(changed), duration_ns=duration_ns)
        elif isinstance(changed, LoadSpec):
            changed = replace(changed, log=None)
        return replace(self, spec=changed)

    def with_part(self, part: LoadPart | None) -> Self:
        """Return a part of the same load."""
        return replace(self, spec=replace(self.spec, part=part))

    def carry_out(self, **how: Any) -> LoadMeasurement:
        """Send the load unchanged; `how` has arguments of `run_load`. Raises UsageError as `send` does."""
        return self._run(self.spec, **how)

    def first_rate(self) -> float:
        """See `SweepTarget`."""
        return first_rate(self._run(probe(endless(self.spec))))

    def _run(self, spec: AnySpec, **how: Any) -> LoadMeasurement:
        try:
            return self._sent(spec, **how)
        except LoadError as error:
            raise UsageError(str(error)) from error

    @abstractmethod
    def _sent(self, spec: AnySpec, **how: Any) -> LoadMeasurement:
        """Send a load. Raises LoadError if a statement or a request cannot be sent."""


@dataclass(frozen=True, slots=True)
class SqlTarget(_Target[LoadSpec]):
    """A load by SQL. `connection` is the plan's; `pid` is the postmaster's, if it runs on this machine."""

    connection: Mapping[str, Any]
    pid: int | None

    def plan(self) -> dict[str, Any]:
        """See `SweepTarget`."""
        return without_password(load_plan(self.spec, self.connection, pid=self.pid))

    def _sent(self, spec: LoadSpec, **how: Any) -> LoadMeasurement:
        return run_load(spec, self.connection, pid=self.pid, **how)


@dataclass(frozen=True, slots=True)
class HttpTarget(_Target[HttpSpec]):
    """A load by HTTP."""

    def plan(self) -> dict[str, Any]:
        """See `SweepTarget`."""
        return without_secrets(http_plan(self.spec, self.components.watches()))

    def _sent(self, spec: HttpSpec, **how: Any) -> LoadMeasurement:
        return run_http(spec, watch=self.components.watches(), **how)


LoadTarget = SqlTarget | HttpTarget


def endless(load: AnySpec) -> AnySpec:
    """Return a load that no number of operations ends, and that writes no log."""
    if isinstance(load, HttpSpec):
        return replace(load, operations=None)
    return replace(load, operations_each=None, log=None)


def raised(
    load: AnySpec, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
) -> AnySpec:
    """Return the load of one load step. Rates use the arrivals of the load, or else the kind's usual ones.

    For `most`, see `SweepTarget.send`.
    """
    kind: ArrivalKind = "poisson"
    changed = replace(endless(load), duration_ns=duration_ns, seed=load.seed + number, progress_s=None)
    if isinstance(changed, HttpSpec):
        kind = "constant"
        if axis == "streams":
            changed = replace(changed, streams=int(level))
    if axis == "rate":
        if most is not None and changed.max_clients is None:
            changed = replace(changed, max_clients=max(most, changed.clients))
        if load.arrivals is not None:
            return replace(changed, arrivals=Arrivals(load.arrivals.kind, level, load.arrivals.size))
        return replace(changed, arrivals=Arrivals(kind, level))
    clients = int(level) if axis == "clients" else load.clients
    return replace(
        changed, clients=clients, max_clients=None, threads=min(load.threads, clients), arrivals=None
    )


def probe(load: AnySpec, least: int = 1) -> AnySpec:
    """Return a short closed loop of a few clients, at least `least`; see `first_rate`."""
    clients = max(_PROBE_CLIENTS, least)
    return replace(
        load,
        clients=clients,
        max_clients=None,
        threads=max(1, min(load.threads, clients // least)),
        arrivals=None,
        duration_ns=_PROBE_NS,
        warmup_ns=0,
        progress_s=None,
    )


def first_rate(measured: LoadMeasurement) -> float:
    """Return the first rate of a sweep from what `probe` measured. Raises UsageError if nothing succeeded."""
    totals = measured.totals
    if not totals.succeeded:
        reason = totals.first_error or totals.message or str(totals.outcome)
        raise UsageError(f"{_PROBE_CLIENTS} clients completed nothing in 2 s: {reason}")
    return float(f"{_FIRST_PART * totals.succeeded / (totals.elapsed_ns / 1e9):.2g}")
