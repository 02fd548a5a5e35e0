"""Resources that hold requests up: each claims the requests in flight that queue for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from uncork.model.bottleneck import Bottleneck, DatabaseUse, Party, Resource, Seen
from uncork.model.units import format_duration

__all__ = ["commit", "generator", "internal_locks", "locks", "pool", "processors", "quota", "storage"]

_QUEUE: Final = 1.0
"""Fewer requests than this waiting on average are no queue: one at a time is being served."""
_SHARE: Final = 0.25
"""A wait that holds up a smaller part of the requests in flight is not what bounds them."""
_BUSY: Final = 0.85
"""Processors in use, as a part of those there are, from which on requests queue for them."""
_THROTTLED: Final = 0.1
"""Share of periods in which a control group was stopped, from which on its quota is what bounds it."""
_ALL_TAKEN: Final = 0.9
"""A pool is full when this part of its connections is at work."""
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
CPU: Final = "CPU"
IDLE: Final = "idle in transaction"


def generator(seen: Seen) -> Bottleneck | None:
    """The generator itself is what is full."""
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
        if party is None or party.throttled is None or party.throttled < _THROTTLED:
            continue
        allowed = "" if party.quota is None else f" of {party.quota:.2g} processors"
        return Bottleneck(
            "cpu quota",
            f"the {name} is throttled in {party.throttled * 100:.0f} % of periods by its quota{allowed}, "
            f"while it uses {party.cpus:.2f}",
            f"raise the {name}'s processor limit (cpu.max, resources.limits.cpu), or make it use less",
            1.2 + party.throttled,
        )
    return None


def pool(seen: Seen) -> Bottleneck | None:
    """All connections of the service are at work, and requests wait for one of them."""
    sessions = seen.sessions
    if sessions is None or seen.service is None or not sessions.sessions:
        return None
    outside = seen.load.in_flight - sessions.busy
    taken = sessions.busy / sessions.sessions
    small = sessions.sessions < _SMALL_POOL * seen.load.in_flight
    if taken < _ALL_TAKEN or not small or outside < _QUEUE or _served_out(seen.service, seen):
        return None
    wait = outside / seen.load.in_flight * seen.load.mean_ns
    working = "" if seen.database is None else f"; the database uses {seen.database.cpus:.1f} processors"
    return Bottleneck(
        "pool",
        f"the pool of {sessions.sessions:.0f} connections is full: {outside:.0f} of "
        f"{seen.load.in_flight:.0f} requests in flight wait for one, {format_duration(wait)} each{working}",
        "make what holds a connection shorter, or enlarge the pool if the database has processors to spare",
        outside / seen.load.in_flight,
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
    parties = {"database": seen.database, "service": seen.service, "generator": seen.generator}
    used = {name: party.cpus for name, party in parties.items() if party is not None}
    busy = machine.busy if machine.busy is not None else sum(used.values()) / machine.processors
    waiting = seen.load.in_flight - _waits(seen)
    if busy < _BUSY or waiting < _QUEUE * machine.processors or not used:
        return None
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
    party = parties[name]
    modes = "" if party is None else f" ({_modes(party)})"
    return Bottleneck(
        resource,
        f"{full}: {shares}; {what}{modes}{_template(seen) if name == 'database' else ''}",
        remedy,
        waiting / flying,
    )


def _held_up(seen: Seen, resource: Resource, waiting: float, what: str, remedy: str) -> Bottleneck | None:
    flying = max(seen.load.in_flight, 1.0)
    if waiting < _QUEUE or waiting < _SHARE * flying:
        return None
    share = min(waiting / flying, 1.0)
    return Bottleneck(
        resource,
        f"{waiting:.1f} of {flying:.1f} requests in flight {what}{_used(seen)}",
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


def _waits(seen: Seen) -> float:
    """Return how many requests wait for something that is no processor."""
    if seen.sessions is None:
        return 0.0
    return sum(many for (name, _), many in seen.sessions.waits.items() if name not in (CPU, IDLE))


def _most(seen: Seen, classes: Iterable[str]) -> str:
    waits = {} if seen.sessions is None else seen.sessions.waits
    found = {event: many for (name, event), many in waits.items() if name in classes}
    return max(found, key=found.__getitem__, default="none")


def _served_out(party: Party, seen: Seen) -> bool:
    """Say whether a party uses all the processors that it can have."""
    room = seen.machine.processors if party.quota is None else min(party.quota, seen.machine.processors)
    return party.cpus >= _BUSY * room


def _modes(party: Party) -> str:
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
