"""Resources that hold requests up: each claims the requests in flight that queue for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from uncork.model.bottleneck import Bottleneck, Component, DatabaseUse, Resource, Seen
from uncork.model.units import format_duration
from uncork.stats.load.queue import mean_waiting

__all__ = [
    "commit",
    "generator",
    "internal_locks",
    "locks",
    "pool",
    "processors",
    "quota",
    "storage",
    "threads",
]

_QUEUE: Final = 1.0
"""Fewer requests than this waiting on average are no queue: one at a time is being served."""
_SHARE: Final = 0.25
"""A wait that holds up a smaller part of the requests in flight is not what bounds them."""
_BUSY: Final = 0.85
"""Processors in use, as a part of those there are, from which on requests queue for them."""
_THROTTLED: Final = 0.1
"""Share of periods in which a control group was stopped, from which on its quota is what bounds it."""
_FULL_THREAD: Final = 0.85
"""A thread that works for this part of the time has hardly any left: others wait for it now and then."""
_DONE_THERE: Final = 0.75
"""Threads that are full are what bounds a party that does this part of its work in them."""
_ALL_TAKEN: Final = 0.8
"""A pool is full when this part of its connections is at work, and more requests are there. It is not more,
for on a machine without free processors a connection changes hands slowly: 3.3 of 4 were seen at work."""
_SMALL_POOL: Final = 0.8
"""And when it has fewer connections than this part of the requests in flight."""
_COMMIT: Final = frozenset({"WALSync", "WalSync", "WALWrite", "WalWrite", "SyncRep", "WALSyncMethodAssign"})
_CPU_OF: Final[Mapping[str, tuple[Resource, str, str]]] = {
    "database": (
        "database cpu",
        "it is the database that needs them",
        "make the costliest statement cheaper (uncork profile db), or give the server more processors",
    ),
    "service": (
        "service cpu",
        "it is the service that needs them",
        "find what it computes (uncork profile cpu), or give it more processors",
    ),
    "generator": (
        "generator",
        "it is the generator that needs them",
        "give the generator a machine of its own; the server was not tested",
    ),
}
_QUEUES: Final = ("Lock", "IO", "LWLock", "BufferPin", "IPC")
"""Classes of waits in which sessions queue for something that a larger pool has no more of."""
CPU: Final = "CPU"
IDLE: Final = "idle in transaction"


def generator(seen: Seen) -> Bottleneck | None:
    """The generator itself is what is full, or is stopped for what it may use of processors."""
    own = seen.generator
    if own is not None and _throttled(own) and not any(map(_throttled, (seen.service, seen.database))):
        return Bottleneck(
            "generator",
            f"the generator itself is the limit: {_quota_words('it', own)}",
            "give the generator more processors (cpu.max, resources.limits.cpu); the server was not tested",
            1.5,
        )
    if seen.load.limit != "yes":
        return None
    return Bottleneck(
        "generator",
        f"the generator itself is the limit: {seen.load.limit_reason or 'its threads are busy all the time'}",
        "give it more threads, or a machine of its own; the server was not tested",
        1.5,
    )


def quota(seen: Seen) -> Bottleneck | None:
    """A control group is stopped for what it may use of processors, though the machine may have some left."""
    for name, party in (("service", seen.service), ("database", seen.database)):
        if party is None or party.throttled is None or not _throttled(party):
            continue
        return Bottleneck(
            "cpu quota",
            _quota_words(f"the {name}", party),
            f"raise the {name}'s processor limit (cpu.max, resources.limits.cpu), or make it use less",
            1.2 + party.throttled,
        )
    return None


def pool(seen: Seen) -> Bottleneck | None:
    """All connections of the service are taken, and requests wait for one of them.

    What its sessions wait for in their turn (locks, the log, storage) is a cause behind it: for those
    requests a larger pool is only a longer queue elsewhere, and they count there.
    """
    sessions = seen.sessions
    if sessions is None or not _pool_is_full(seen):
        return None
    waiting = _wait_for_pool(seen, sessions)
    share = waiting / seen.load.in_flight
    if share < _SHARE:
        return None
    return Bottleneck(
        "pool",
        f"the pool of {sessions.sessions:.0f} connections is full: {waiting:.0f} of "
        f"{seen.load.in_flight:.0f} requests in flight wait for one, "
        f"{format_duration(share * seen.load.mean_ns)} each{_used(seen)}",
        "make what holds a connection shorter, or enlarge the pool if the database has processors to spare",
        share * (1.0 - min(1.0, _waits(seen, _QUEUES) / sessions.busy)),
    )


def locks(seen: Seen) -> Bottleneck | None:
    """Sessions wait for rows or tables that others hold."""
    waiting = _waiting(seen, "Lock")
    return _held_up(
        seen,
        "locks",
        waiting,
        "wait for locks that other transactions hold",
        "find who holds them (uncork profile db draws the chains): shorten those transactions, or spread "
        "what they touch",
    )


def commit(seen: Seen) -> Bottleneck | None:
    """Sessions wait until what they wrote is safe."""
    sessions = seen.sessions
    waiting = 0.0 if sessions is None else _of_events(sessions, _COMMIT)
    return _held_up(
        seen,
        "commit",
        waiting,
        "wait for the write-ahead log to be safe on disk",
        "commit less often (more rows a transaction), weigh synchronous_commit = off, or a faster log device",
    )


def storage(seen: Seen) -> Bottleneck | None:
    """Sessions wait for pages to be read or written."""
    sessions = seen.sessions
    waiting = 0.0
    if sessions is not None:
        waiting = _waiting(seen, "IO") - _of_events(sessions, _COMMIT, "IO")
    return _held_up(
        seen,
        "storage",
        waiting,
        "wait for data to be read or written",
        "read less (an index, fewer columns), give it more memory, or faster storage",
    )


def internal_locks(seen: Seen) -> Bottleneck | None:
    """Sessions wait for each other inside the server."""
    sessions = seen.sessions
    waiting = 0.0
    if sessions is not None:
        waiting = _waiting(seen, "LWLock") - _of_events(sessions, _COMMIT, "LWLock")
        waiting += _waiting(seen, "BufferPin") + _waiting(seen, "IPC")
    return _held_up(
        seen,
        "internal locks",
        waiting,
        f"wait for each other inside the server ({_most(seen, ('LWLock', 'BufferPin', 'IPC'))})",
        "fewer connections at work at once, or spread what they all touch",
    )


def processors(seen: Seen) -> Bottleneck | None:
    """The machine's processors are all busy; whoever uses most of them is named."""
    machine, flying = seen.machine, max(seen.load.in_flight, 1.0)
    components = {"database": seen.database, "service": seen.service, "generator": seen.generator}
    used = {name: party.cpus for name, party in components.items() if party is not None}
    busy = machine.busy if machine.busy is not None else sum(used.values()) / machine.processors
    waiting = seen.load.in_flight - _waits(seen)
    if busy < _BUSY or waiting < _QUEUE * machine.processors or not used:
        return None
    delays = [
        party.waiting for party in components.values() if party is not None and party.waiting is not None
    ]
    if delays and sum(used.values()) + sum(delays) < _QUEUE:
        return None  # others fill the machine, and the requests hardly need it
    others = max(0.0, busy * machine.processors - sum(used.values()))
    full = f"the machine's {machine.processors} processors are {busy * 100:.0f} % busy"
    shares = ", ".join(f"the {name} uses {cpus:.1f}" for name, cpus in used.items())
    name = max(used, key=used.__getitem__)
    if others > used[name]:
        return Bottleneck(
            "machine cpu",
            f"{full}: {shares}, and other programs {others:.1f}",
            "find what else runs there: nothing can be said of the server while it does",
            waiting / flying,
        )
    resource, what, remedy = _CPU_OF[name]
    party = components[name]
    modes = "" if party is None else f" ({_modes(party)})"
    return Bottleneck(
        resource,
        f"{full}: {shares}; {what}{modes}{_template(seen) if name == 'database' else ''}",
        remedy,
        waiting / flying,
    )


def threads(seen: Seen) -> Bottleneck | None:
    """The service computes in threads that are all busy, and does not use the other processors."""
    party, outside = seen.service, _outside(seen)
    if party is None:
        return None
    full = _full_threads(party)
    if not full or outside - len(full) < _QUEUE:
        return None
    which = "one thread" if len(full) == 1 else f"{len(full)} threads"
    share = sum(full) / len(full) * 100
    return Bottleneck(
        "service cpu",
        f"the service computes in {which}, busy {share:.0f} % of the time, and uses {party.cpus:.1f} of the "
        f"machine's {seen.machine.processors} processors ({_modes(party)}); {outside:.1f} requests are there",
        "find what it computes (uncork profile cpu), or start more of its processes or threads",
        outside / max(seen.load.in_flight, 1.0) * _full_share(seen),
    )


def _held_up(seen: Seen, resource: Resource, waiting: float, what: str, remedy: str) -> Bottleneck | None:
    flying, whose = max(seen.load.in_flight, 1.0), "requests in flight"
    if seen.sessions is not None and _pool_is_full(seen):
        flying, whose = max(seen.sessions.busy, 1.0), "sessions that the service holds"
    if waiting < _QUEUE or waiting < _SHARE * flying:
        return None
    share = min(waiting / flying, 1.0)
    return Bottleneck(
        resource,
        f"{waiting:.1f} of {flying:.1f} {whose} {what}{_used(seen)}",
        remedy,
        share,
    )


def _used(seen: Seen) -> str:
    if seen.database is None:
        return ""
    share = seen.database.cpus / seen.machine.processors
    return f"; the database uses {share * 100:.0f} % of the processors"


def _waiting(seen: Seen, of_class: str) -> float:
    if seen.sessions is None:
        return 0.0
    return sum(many for (name, _), many in seen.sessions.waits.items() if name == of_class)


def _of_events(sessions: DatabaseUse, events: Iterable[str], of_class: str | None = None) -> float:
    return sum(
        many
        for (name, event), many in sessions.waits.items()
        if event in events and (of_class is None or name == of_class)
    )


def _waits(seen: Seen, classes: Iterable[str] | None = None) -> float:
    """Return how many sessions wait for something that is no processor; of some classes only, if given."""
    if seen.sessions is None:
        return 0.0
    told = seen.sessions.waits.items()
    if classes is None:
        return sum(many for (name, _), many in told if name not in (CPU, IDLE))
    return sum(many for (name, _), many in told if name in classes)


def _outside(seen: Seen) -> float:
    """Return how many requests in flight have no session of the database."""
    return seen.load.in_flight - (0.0 if seen.sessions is None else seen.sessions.busy)


def _wait_for_pool(seen: Seen, sessions: DatabaseUse) -> float:
    """Return how many requests in flight wait for a connection, at most those outside the database.

    All wait that are there beyond those that a request alone would make. Where that is not known, as many as
    would wait at random for connections that are used so much: a request outside may wait for another thing.
    """
    load = seen.load
    if load.alone_ns is not None and load.mean_ns:
        waiting = load.in_flight * max(0.0, 1.0 - load.alone_ns / load.mean_ns)
    else:
        many = max(1, round(sessions.sessions))
        waiting = mean_waiting(many, min(1.0, sessions.busy / sessions.sessions))
    return min(_outside(seen), waiting)


def _pool_is_full(seen: Seen) -> bool:
    """Say whether a service's sessions are all taken, fewer than the requests, and requests wait outside."""
    sessions = seen.sessions
    if sessions is None or not sessions.sessions or not (seen.indirect or seen.service is not None):
        return False
    if seen.service is not None and _served_out(seen.service, seen):
        return False
    small = sessions.sessions < _SMALL_POOL * seen.load.in_flight
    return small and sessions.busy >= _ALL_TAKEN * sessions.sessions and _outside(seen) >= _QUEUE


def _full_threads(party: Component) -> list[float]:
    """Return the threads that are full, where the party does most of its work in them."""
    full = [busy for busy in party.threads if busy >= _FULL_THREAD]
    return full if sum(full) >= _DONE_THERE * party.cpus else []


def _throttled(party: Component | None) -> bool:
    return party is not None and party.throttled is not None and party.throttled >= _THROTTLED


def _quota_words(who: str, party: Component) -> str:
    allowed = "" if party.quota is None else f" of {party.quota:.2g} processors"
    return (
        f"{who} is throttled in {(party.throttled or 0.0) * 100:.0f} % of periods by the CPU quota{allowed}, "
        f"while it uses {party.cpus:.2f}"
    )


def _full_share(seen: Seen) -> float:
    """Return how much a full thread weighs: less where the machine is as full, which then is named."""
    return 0.9 if seen.machine.busy is not None and seen.machine.busy >= _BUSY else 1.0


def _most(seen: Seen, classes: Iterable[str]) -> str:
    waits = {} if seen.sessions is None else seen.sessions.waits
    found = {event: many for (name, event), many in waits.items() if name in classes}
    return max(found, key=found.__getitem__, default="none")


def _served_out(party: Component, seen: Seen) -> bool:
    """Say whether a party uses all the processors that it can have, or that its threads can use."""
    if _full_threads(party):
        return True
    room = seen.machine.processors if party.quota is None else min(party.quota, seen.machine.processors)
    return party.cpus >= _BUSY * room


def _modes(party: Component) -> str:
    share = party.system / party.cpus if party.cpus else 0.0
    return f"{(1 - share) * 100:.0f} % user and {share * 100:.0f} % system"


def _template(seen: Seen) -> str:
    templates = {} if seen.sessions is None else seen.sessions.templates
    if not templates:
        return ""
    text, share = max(templates.items(), key=lambda item: item[1])
    short = " ".join(text.split())
    short = short if len(short) <= 60 else short[:57] + "..."
    return f"; {share * 100:.0f} % of the sessions' time is in `{short}`"
