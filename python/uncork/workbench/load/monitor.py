"""Watch the components behind a load while it runs: database sessions, and the service's resources."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from uncork.engines.services.inspection import Held, Service, ServiceWatch, ThreadTimes, find_service
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import ConnectError, ServerCrash, UncorkError, UsageError
from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.database.missing import grant
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.records import build_from
from uncork.model.system import DATABASE, GENERATOR, SERVER, SERVICE, SystemUse, Watch
from uncork.model.tables.load import LoadTimes
from uncork.profile.activity import CLIENT, wait_class
from uncork.profile.system import system_use
from uncork.store.system import system_tables
from uncork.workbench.profile.database_watch import Samples, next_tick

_RATE_HZ: Final = 20.0
_SERVICE_HZ: Final = 5.0
_THREADS_EVERY: Final = 2
"""Threads are read in every second reading, because each is a file."""
_LATE_NS: Final = 4_000_000
_MOST_LATE: Final = 3
"""A sample later than `_LATE_NS` was descheduled, probably like the service, and would find
sessions idle for that reason. It is skipped, unless this many in a row are late."""


@dataclass(frozen=True, slots=True)
class Components:
    """The components that are watched besides the generator.

    `conninfo` is the database's, and `postmaster` its process if it runs on this machine. `missing`
    holds a sentence for each component that cannot be watched. `indirect` means that requests reach
    the database through a service.
    """

    conninfo: str | None = None
    postmaster: int | None = None
    service: Service | None = None
    missing: tuple[str, ...] = ()
    indirect: bool = True

    def watches(self) -> list[Watch]:
        """Return the processes to sample, with their roles in a load by HTTP."""
        pids = () if self.service is None else self.service.pids
        database = [] if self.postmaster is None else [Watch(DATABASE, self.postmaster, children=True)]
        return [*(Watch(SERVICE, pid, children=True) for pid in pids), *database]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a database's client sessions.

    `time_us` is since 1970. `waits` counts busy sessions by class and event, `templates` by text.
    `idle` counts sessions that were idle in this sample, and busy at another time of the watch.
    """

    time_us: int
    waits: Mapping[tuple[str, str], int]
    templates: Mapping[str, int]
    idle: int

    @property
    def used(self) -> int:
        """Count sessions that were busy at any time of the watch."""
        return sum(self.waits.values()) + self.idle


@dataclass(frozen=True, slots=True)
class SessionsSeen:
    """What the sessions of a database did; `database_use` summarizes it once the load has ended.

    `ended_us` is when the load ended. `connections` is the maximum of open connections.
    """

    samples: tuple[Sample, ...]
    ended_us: int
    connections: int
    max_connections: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Observations:
    """What was observed of the components; None for components that could not be watched.

    `threads` holds by role how busy each thread was, and how many waited for a processor on average.
    """

    sessions: SessionsSeen | None = None
    service: Held | None = None
    threads: Mapping[str, tuple[tuple[float, ...], float]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def find_components(wanted: Sequence[int], host: str, port: int, conninfo: str | None) -> Components:
    """Find the service and the database of a load by HTTP; `missing` says what could not be found."""
    service, missing = find_service(wanted, host, port)
    if conninfo is None:
        return Components(None, None, service, missing)
    try:
        server = ServerWatch(conninfo)
    except (ConnectError, UsageError) as error:
        return Components(None, None, service, (*missing, _without_database(error)))
    try:
        facts = server.facts()
        hidden = "" if facts["sees_all"] else _hidden(facts["role"])
        return Components(conninfo, server.postmaster(), service, (*missing, *([hidden] if hidden else [])))
    except ServerCrash as error:
        return Components(None, None, service, (*missing, _without_database(error)))
    finally:
        server.close()


def _without_database(error: UncorkError) -> str:
    return (
        f"--postgres: {' '.join(str(error).split())}: the load continues without watching the database's "
        "sessions"
    )


def _hidden(role: str) -> str:
    wait = "sees only its own sessions; to see what others wait for"
    return f'--postgres: role "{role}" {wait}: {grant("pg_read_all_stats", role)}'


class Monitor:
    """A context manager that watches the components in threads; afterwards `noticed` holds what they saw."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ready: list[threading.Event] = []
        self.noticed = Observations(missing=components.missing)
        self._sessions: SessionsSeen | None = None
        self._held: Held | None = None
        self._missing: list[str] = []
        self._processes: dict[str, tuple[tuple[float, ...], float]] = {}

    def __enter__(self) -> Monitor:
        if self._components.conninfo is not None:
            self._start(self._watch_database)
        self._start(self._watch_processes)
        for ready in self._ready:
            ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)
        missing = (*self._components.missing, *self._missing)
        self.noticed = Observations(self._sessions, self._held, self._processes, missing)

    def _start(self, watch: Callable[[threading.Event], None]) -> None:
        ready = threading.Event()
        thread = threading.Thread(target=watch, args=(ready,), name="uncork-monitor", daemon=True)
        self._ready.append(ready)
        self._threads.append(thread)
        thread.start()

    def _watch_processes(self, ready: threading.Event) -> None:
        pids: dict[str, tuple[int, ...]] = {GENERATOR: (os.getpid(),)}
        service = None
        if self._components.service is not None:
            pids[SERVICE] = self._components.service.pids
            service = ServiceWatch(self._components.service)
            service.look()
        if self._components.postmaster is not None:
            pids[DATABASE] = (self._components.postmaster,)
        times = {role: ThreadTimes(of) for role, of in pids.items()}
        ready.set()
        looks = 0
        while not self._over.wait(1 / _SERVICE_HZ):
            looks += 1
            if service is not None:
                service.look()
            if looks % _THREADS_EVERY == 0:
                for one in times.values():
                    one.look()
        self._processes = {role: one.end() for role, one in times.items()}
        if service is not None:
            self._held = service.end()

    def _watch_database(self, ready: threading.Event) -> None:
        try:
            server = ServerWatch(self._components.conninfo or "")
        except UncorkError as error:
            self._missing.append(_without_database(error))
            ready.set()
            return
        try:
            self._sessions = _sessions(server, ready, self._over)
        except UncorkError as error:
            self._missing.append(_without_database(error))
        finally:
            ready.set()
            server.close()


def _sessions(server: ServerWatch, ready: threading.Event, over: threading.Event) -> SessionsSeen | None:
    """Sample sessions until `over` is set; return None if there was no time for any sample.

    Raises ServerCrash if the server goes away before the first sample.
    """
    most, reserved = server.connection_limits()
    server.facts()  # finds out where statement texts are stored
    server.begin_sampling()
    samples = Samples(time.monotonic_ns(), time.time_ns() // 1000)
    period_ns, tick = round(1e9 / _RATE_HZ), 0
    idle: list[int] = []
    connections, ended_us, late = 0, 0, 0
    texts: dict[int, str] = {}
    ready.set()
    with suppress(ServerCrash):  # the samples so far are kept
        while not over.wait(max(0.0, (tick * period_ns - _since(samples)) / 1e9)):
            if _since(samples) - tick * period_ns > _LATE_NS and late < _MOST_LATE:
                late += 1
                tick = next_tick(tick, _since(samples), period_ns)
                continue
            late = 0
            look, open_now = server.look(samples.texts.keys(), blockers=False), server.connections()
            if look is not None and open_now is not None:
                samples.add(look, False)
                since_us = samples.now_us() - samples.begun_us
                idle.append(sum(age < since_us for age in open_now.idle_us))
                connections = max(connections, open_now.many)
            tick = next_tick(tick, _since(samples), period_ns)
        ended_us = samples.now_us()
        texts = server.texts(samples.texts)
    if not samples.samples:
        return None
    ended_us = ended_us or samples.samples[-1]["time_us"]
    for query_id, text in {**samples.texts, **texts}.items():
        samples.book.number(query_id, text)
    return SessionsSeen(tuple(_samples(samples, idle)), ended_us, connections, most, reserved)


def _since(samples: Samples) -> int:
    return time.monotonic_ns() - samples.begun_ns


def _samples(samples: Samples, idle: Sequence[int]) -> Iterator[Sample]:
    waits: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    templates: dict[int, Counter[str]] = defaultdict(Counter)
    for row in samples.activity().to_pylist():
        if row["backend"] == CLIENT:
            name = wait_class(row)
            event = "" if name in (CPU, IDLE) else str(row["wait_event"] or "")
            waits[row["sample"]][name, event] += 1
            if row["template"] is not None:
                templates[row["sample"]][samples.book.texts[row["template"]]] += 1
    for row, many in zip(samples.samples, idle, strict=True):
        number = row["sample"]
        yield Sample(row["time_us"], waits[number], templates[number], many)


def database_use(sessions_seen: SessionsSeen, elapsed_ns: int) -> DatabaseUse:
    """Summarize what sessions did during a load of `elapsed_ns`. Pure.

    Samples from before the load, while connections were opened, are left out.
    """
    begun_us = sessions_seen.ended_us - elapsed_ns // 1000
    samples = [
        sample for sample in sessions_seen.samples if sample.time_us >= begun_us
    ] or sessions_seen.samples
    many = len(samples)
    waits: Counter[tuple[str, str]] = Counter()
    templates: Counter[str] = Counter()
    for sample in samples:
        waits.update(sample.waits)
        templates.update(sample.templates)
    # Early samples do not know yet which sessions are used, so only the second half counts.
    used = float(median(sample.used for sample in samples[many // 2 :]))
    busy = waits.total()
    return build_from(
        DatabaseUse,
        sessions_seen,
        waits={key: number / many for key, number in waits.items()},
        sessions=max(used, busy / many),
        templates={text: number / busy for text, number in templates.items() if busy},
    )


# ---- all components at once ----


_ALIKE: Final = 0.25
"""Requests are uniform if their standard deviation is below this fraction of their mean. One
request among uniform requests is never four times as fast as the mean, unless the others waited."""
_BUSY_THREAD: Final = 0.9
"""A thread of the generator that is busier than this cannot send more. Whether the generator took processors
from the server (`stats.load.generator`) does not matter here: a rule weighs it like the other components."""


def stress(
    send: Callable[[], LoadMeasurement], components: Components, threads: int, alone_ns: float | None = None
) -> tuple[Seen, tuple[str, ...]] | None:
    """Send a load while all components are watched; return None if it was interrupted.

    `alone_ns` is how long a request takes without waiting, if known. The second result holds a
    sentence for each component that could not be watched.
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
