"""Load a server past its knee, or where it breaks, and watch all components at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from uncork.model.bottleneck import Component, LoadUse, MachineUse, Seen
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.system import DATABASE, GENERATOR, SERVER, SERVICE, SystemUse
from uncork.model.tables.load import LoadTimes
from uncork.profile.system import system_use
from uncork.store.system import system_tables
from uncork.workbench.load.monitor import Components, Monitor, Observations, database_use

_ALIKE: Final = 0.25
"""Requests are uniform if their standard deviation is below this fraction of their mean. One request among
uniform requests is never four times as fast as the mean, unless the others waited."""
_BUSY_THREAD: Final = 0.9
"""A thread of the generator that is busier than this cannot send more. Whether the generator took processors
from the server (`stats.load.generator`) does not matter here: a rule weighs it like the other components."""


def stress(
    send: Callable[[], LoadMeasurement], components: Components, threads: int, alone_ns: float | None = None
) -> tuple[Seen, tuple[str, ...]] | None:
    """Send a load while all components are watched; return None if it was interrupted.

    `alone_ns` is how long a request takes without waiting, if known. The second result holds a sentence for
    each component that could not be watched.
    """
    with Monitor(components) as monitor:
        measured = send()
    if measured.totals.outcome is LoadOutcome.INTERRUPTED:
        return None
    noticed = monitor.noticed
    seen = seen_of(measured, noticed, threads, indirect=components.indirect, alone_ns=alone_ns)
    return seen, noticed.missing


def seen_of(
    measured: LoadMeasurement,
    noticed: Observations,
    threads: int,
    *,
    indirect: bool,
    alone_ns: float | None = None,
) -> Seen:
    """Combine what was observed of generator, machine, service and database in the same period. Pure."""
    system = None if measured.system is None else system_use(system_tables([({}, measured.system)]))
    totals = measured.totals
    times = next((row for row in measured.times if row.kind == "operation"), None)
    succeeded = 0 if times is None else times.executions - times.errors
    mean = times.sum_ns / succeeded if times is not None and succeeded else 0.0
    busy = totals.busiest_thread
    throughput = succeeded / (totals.elapsed_ns / 1e9) if totals.elapsed_ns else 0.0
    sessions = None
    if noticed.sessions is not None:
        sessions = database_use(noticed.sessions, totals.elapsed_ns)
    return Seen(
        load=LoadUse(
            in_flight=mean * throughput / 1e9,
            mean_ns=mean,
            busiest_thread=busy,
            limit="yes" if busy > _BUSY_THREAD else "no",
            limit_reason=f"the busiest of its {threads} threads works {busy * 100:.0f} % of the time"
            if threads > 1
            else f"its thread works {busy * 100:.0f} % of the time",
            errors={**totals.errors, **totals.connect_errors},
            message=totals.first_error or totals.message or "",
            started=totals.started,
            opened=max(0, totals.connections_opened - totals.connections_most),
            elapsed_ns=totals.elapsed_ns,
            alone_ns=alone_ns if times is None or alone_ns is not None else _alone(times, mean),
        ),
        machine=_machine(system, noticed),
        database=_party(system, DATABASE if indirect else SERVER, noticed, DATABASE),
        generator=_party(system, GENERATOR, noticed, GENERATOR),
        service=_party(system, SERVICE, noticed, SERVICE),
        sessions=sessions,
        indirect=indirect,
    )


def _alone(times: LoadTimes, mean: float) -> float | None:
    """Return how long a request takes without waiting: the shortest one, if requests are uniform.

    If requests vary, the shortest is only the cheapest. If it is as long as the others, it waited too.
    """
    succeeded = times.executions - times.errors
    if not mean or times.min_ns is None:
        return None
    variance = max(0.0, times.sum_squares_ns2 / succeeded - mean * mean)
    alike = variance < (_ALIKE * mean) ** 2
    return float(times.min_ns) if alike and times.min_ns < _ALIKE * mean else None


def _machine(system: SystemUse | None, noticed: Observations) -> MachineUse:
    held = noticed.service
    # The kernel counts overflows for all programs. They are this service's if its queue was seen to fill.
    mine = held is not None and bool(held.backlog)
    overflows = held.overflows if held is not None and mine else None
    backlog = held.backlog if held is not None and mine else None
    if system is None or system.cpus is None or system.modes is None:
        processors = 1 if system is None else system.cpus or 1
        return MachineUse(processors, overflows=overflows, backlog=backlog)
    modes = system.modes
    return MachineUse(
        processors=system.cpus,
        busy=1.0 - modes["idle"] - modes["iowait"],
        waiting_for_disk=modes["iowait"],
        stolen=modes["steal"],
        overflows=overflows,
        backlog=backlog,
    )


def _party(system: SystemUse | None, role: str, noticed: Observations, seen_as: str) -> Component | None:
    if system is None or not system.elapsed_ns:
        return None
    found = [process for process in system.processes if process.role == role]
    if not found:
        return None
    bounds = next((bound for bound in system.bounds if role in bound.role.split(", ")), None)
    held = noticed.service if role == SERVICE else None
    threads, waiting = noticed.threads.get(seen_as, ((), None))
    return Component(
        user=sum(process_use.user_ns for process_use in found) / system.elapsed_ns,
        system=sum(process_use.system_ns for process_use in found) / system.elapsed_ns,
        quota=None if bounds is None else bounds.quota_cpus,
        throttled=bounds.throttled if bounds is not None and bounds.periods else None,
        descriptors=None if held is None else held.descriptors,
        descriptor_limit=None if held is None else held.descriptor_limit,
        threads=threads,
        waiting=waiting,
    )
