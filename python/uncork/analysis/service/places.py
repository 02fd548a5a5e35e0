"""Divide the requests in flight among the places where they pass their time. Pure.

The generator knows how many requests are in flight; the database's sessions show how many of them are there
and what they wait for; the processor times of both show how many compute. What is left waits in the service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from uncork.advise.service_processes import one_at_a_time
from uncork.model.bottleneck import COMMIT_EVENTS, Component, Seen
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.service import PlaceKind, TimePlace, WorkerFacts

_READS: Final = frozenset({"BufferIO", "BufferIo"})
"""Waits for a page that another session reads at this moment."""
_KINDS: Final[Mapping[str, PlaceKind]] = {
    "Lock": "locks",
    "IO": "storage",
    "LWLock": "internal locks",
    "BufferPin": "internal locks",
    "IPC": "internal locks",
    IDLE: "idle in transaction",
}
_ALL_BUSY: Final = 0.7
"""Requests in progress for each process from which on all processes are busy."""
_MORE: Final = 2.0
"""Requests in progress for each process from which on processes answer several at a time."""
_QUEUED: Final = 0.25
"""Fraction of the requests in flight that must wait for a process before they form a queue."""


def _kind_of_wait(of_class: str, event: str) -> PlaceKind:
    """Return the place of a busy session by its wait, `of_class` as in `profile.activity.wait_class`."""
    if event in COMMIT_EVENTS:
        return "commit"
    if event in _READS:
        return "storage"
    return _KINDS.get(of_class, "database other")


def time_places(seen: Seen, workers: Sequence[WorkerFacts] = ()) -> tuple[TimePlace, ...]:
    """Return where the requests in flight are, the most frequent place first.

    Without a load of uncork's own, the requests are the busy sessions. `workers` are the service's processes.
    """
    found = dict(_places(seen, one_at_a_time(workers)))
    flying = seen.load.in_flight or sum(found.values())
    mean = seen.load.mean_ns
    places = [
        TimePlace(kind, many, many / flying, mean * many / flying if mean else None)
        for kind, many in found.items()
        if many > 0 and flying
    ]
    return tuple(sorted(places, key=lambda one: -one.requests))


def _places(seen: Seen, processes: int) -> Iterator[tuple[PlaceKind, float]]:
    sessions = seen.sessions
    sums: dict[PlaceKind, float] = {}
    computing = 0.0
    for (of_class, event), many in ({} if sessions is None else sessions.waits).items():
        if of_class == CPU:
            computing += many
        else:
            kind = _kind_of_wait(of_class, event)
            sums[kind] = sums.get(kind, 0.0) + many
    flying = seen.load.in_flight
    busy = computing + sum(sums.values())
    if flying and busy > flying:  # other clients' sessions are not this load's requests
        scale = flying / busy
        computing *= scale
        sums = {kind: many * scale for kind, many in sums.items()}
        busy = flying
    running = computing if seen.database is None else min(computing, seen.database.cpus)
    yield "database cpu", running
    yield "database queue", computing - running
    held = sums.pop("idle in transaction", 0.0)
    yield from sums.items()
    yield from _service(seen.service, held, max(0.0, flying - busy), busy - held, processes)


def _service(
    service: Component | None, held: float, outside: float, inside: float, processes: int
) -> Iterator[tuple[PlaceKind, float]]:
    """Divide the requests that are in the service. `held` of them keep a transaction open meanwhile.

    `inside` is the number of those in the database. If `processes` answer one request at a time and are all
    busy, the other requests queue for them: so whatever computes does so for the requests in progress.
    Otherwise computing and waiting for processors take their parts of both groups alike.
    """
    whole = held + outside
    if not whole:
        return
    running = 0.0 if service is None else min(service.cpus, whole)
    queued = 0.0 if service is None or service.waiting is None else min(service.waiting, whole - running)
    working = max(held, running + queued)
    if processes and _ALL_BUSY <= (inside + working) / processes <= _MORE:
        queue = whole - working
        if queue >= _QUEUED * (whole + inside):
            yield "service cpu", running
            yield "service queue", queued
            yield "idle in transaction", working - running - queued
            yield "process queue", queue
            return
    rest = whole - running - queued
    yield "service cpu", running
    yield "service queue", queued
    yield "idle in transaction", rest * held / whole
    yield "service wait", rest * outside / whole


def with_branches(
    time: Sequence[TimePlace], parsing: float, planning: float, waiting_for_pool: float
) -> tuple[TimePlace, ...]:
    """Take the time of parsing, planning, and waiting for a pooler, out of the places that contain them.

    `parsing` and `planning` are how many sessions parse and plan on average: they compute, or wait for a
    processor. `waiting_for_pool` is how many clients of a pooler wait for a connection: to the service, that
    is a wait.
    """
    found = {place.kind: place for place in time}
    branches: tuple[tuple[PlaceKind, float, tuple[PlaceKind, ...]], ...] = (
        ("database parsing", parsing, ("database cpu", "database queue")),
        ("database planning", planning, ("database cpu", "database queue")),
        ("pool wait", waiting_for_pool, ("service wait", "process queue")),
    )
    for kind, many, sources in branches:
        parts = [found[source] for source in sources if source in found]
        whole = sum(part.requests for part in parts)
        part = min(1.0, many / whole) if whole else 0.0
        if not part:
            continue
        taken = [_scaled(place, part) for place in parts]
        found.update({place.kind: _scaled(place, 1.0 - part) for place in parts})
        found[kind] = TimePlace(
            kind,
            sum(place.requests for place in taken),
            sum(place.share for place in taken),
            None if taken[0].ns is None else sum(place.ns or 0.0 for place in taken),
        )
    return tuple(sorted((place for place in found.values() if place.requests), key=lambda one: -one.requests))


def _scaled(place: TimePlace, part: float) -> TimePlace:
    ns = None if place.ns is None else place.ns * part
    return TimePlace(place.kind, place.requests * part, place.share * part, ns)


def foreign_share(seen: Seen) -> float:
    """Return the fraction of the machine's busy processors that programs other than these components use."""
    busy = (seen.machine.busy or 0.0) * seen.machine.processors
    components = (seen.database, seen.service, seen.generator)
    used = sum(component.cpus for component in components if component is not None)
    return max(0.0, busy - used) / busy if busy else 0.0
