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
from uncork.model.bottleneck import DatabaseUse
from uncork.model.database.missing import grant
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.records import build_from
from uncork.model.system import DATABASE, GENERATOR, SERVICE, Watch
from uncork.profile.activity import CLIENT, wait_class
from uncork.workbench.profile.database_watch import Samples, next_tick

_RATE_HZ: Final = 20.0
_SERVICE_HZ: Final = 5.0
_THREADS_EVERY: Final = 2
"""Threads are read in every second reading, because each is a file."""
_LATE_NS: Final = 4_000_000
_MOST_LATE: Final = 3
"""A sample later than `_LATE_NS` was descheduled, probably like the service, and would find sessions idle for
that reason. It is skipped, unless this many in a row are late."""


@dataclass(frozen=True, slots=True)
class Components:
    """The components that are watched besides the generator.

    `conninfo` is the database's, and `postmaster` its process if it runs on this machine. `missing` holds a
    sentence for each component that cannot be watched. `indirect` means that requests reach the database
    through a service.
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

    `time_us` is since 1970. `waits` counts busy sessions by class and event, `templates` by text. `idle`
    counts sessions that were idle in this sample, and busy at another time of the watch.
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

    Raises:
        ServerCrash: if the server goes away before the first sample.
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
