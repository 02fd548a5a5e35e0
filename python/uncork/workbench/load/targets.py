"""What sweeps and guards send: a load by SQL or by HTTP, at any level, for any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self, TypeVar

from uncork.errors import LoadError, UsageError
from uncork.load.http import http_plan, run_http, without_secrets
from uncork.load.run import load_plan, run_load, without_password
from uncork.model.http import HttpSpec
from uncork.model.load import ArrivalKind, Arrivals, LoadMeasurement, LoadSpec
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

        Each `number` has its own random numbers. At a rate, `most` is the largest number of connections if
        the load sets none.

        Raises:
            UsageError: if a statement or a request cannot be sent; nothing was sent then.
        """
        ...

    def first_rate(self) -> float:
        """Find the first rate of a sweep: a fraction of what a few clients reach in a closed loop.

        Raises:
            UsageError: if no operation succeeds.
        """
        ...


class LoadTarget(SweepTarget, Protocol):
    """A load that can also be sent unchanged, or for another time: what guards repeat."""

    def turn(self, number: int, duration_ns: int) -> Self:
        """Return the same load without a warm-up, limited to `duration_ns` unless it is a trace.

        For `number`, see `send`.
        """
        ...

    def carry_out(self) -> LoadMeasurement:
        """Send the load unchanged.

        Raises:
            UsageError: see `send`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SqlTarget:
    """A load by SQL. `connection` is the plan's; `pid` is the postmaster's, if it runs on this machine."""

    load: LoadSpec
    connection: Mapping[str, Any]
    pid: int | None
    components: Components
    watched: bool = True

    @property
    def threads(self) -> int:
        """How many threads send."""
        return self.load.threads

    def plan(self) -> dict[str, Any]:
        """See `LoadTarget`."""
        return without_password(load_plan(self.load, self.connection, pid=self.pid))

    def send(
        self, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
    ) -> LoadMeasurement:
        """See `LoadTarget`."""
        return self._run(raised(self.load, axis, level, number, duration_ns, most))

    def turn(self, number: int, duration_ns: int) -> Self:
        """See `LoadTarget`."""
        load = replace(self.load, log=None)
        return replace(self, load=_turn(load, "operations_each", number, duration_ns))

    def carry_out(self) -> LoadMeasurement:
        """See `LoadTarget`."""
        return self._run(self.load)

    def first_rate(self) -> float:
        """See `LoadTarget`."""
        return first_rate(self._run(probe(replace(self.load, operations_each=None, log=None))))

    def _run(self, load: LoadSpec) -> LoadMeasurement:
        try:
            return run_load(load, self.connection, pid=self.pid)
        except LoadError as error:
            raise UsageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A load by HTTP."""

    spec: HttpSpec
    components: Components
    watched: bool = True

    @property
    def threads(self) -> int:
        """How many threads send."""
        return self.spec.threads

    def plan(self) -> dict[str, Any]:
        """See `LoadTarget`."""
        return without_secrets(http_plan(self.spec, self.components.watches()))

    def send(
        self, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
    ) -> LoadMeasurement:
        """See `LoadTarget`."""
        return self._run(raised(self.spec, axis, level, number, duration_ns, most))

    def turn(self, number: int, duration_ns: int) -> Self:
        """See `LoadTarget`."""
        return replace(self, spec=_turn(self.spec, "operations", number, duration_ns))

    def carry_out(self) -> LoadMeasurement:
        """See `LoadTarget`."""
        return self._run(self.spec)

    def first_rate(self) -> float:
        """See `LoadTarget`."""
        return first_rate(self._run(probe(replace(self.spec, operations=None))))

    def _run(self, spec: HttpSpec) -> LoadMeasurement:
        try:
            return run_http(spec, watch=self.components.watches())
        except LoadError as error:
            raise UsageError(str(error)) from error


def raised(
    load: AnySpec, axis: SweepAxis, level: float, number: int, duration_ns: int, most: int | None = None
) -> AnySpec:
    """Return the load of one load step. Rates use the arrivals of the load, or else the kind's usual ones.

    For `most`, see `SweepTarget.send`.
    """
    kind: ArrivalKind = "poisson"
    changed = replace(load, duration_ns=duration_ns, seed=load.seed + number, progress_s=None)
    if isinstance(changed, HttpSpec):
        kind = "constant"
        changed = replace(changed, operations=None)
        if axis == "streams":
            changed = replace(changed, streams=int(level))
    else:
        changed = replace(changed, operations_each=None, log=None)
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


def _turn(load: AnySpec, count: str, number: int, duration_ns: int) -> AnySpec:
    """Return the load of one turn; `count` names the field that limits the number of operations."""
    changed = replace(load, seed=load.seed + number, progress_s=None, warmup_ns=0)
    if load.arrivals is not None and load.arrivals.kind == "trace":
        return changed
    ended: dict[str, Any] = {count: None, "duration_ns": duration_ns}
    return replace(changed, **ended)


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
