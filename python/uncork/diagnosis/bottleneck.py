"""Name the bottleneck of a load, from what was seen of all components at the same time. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from uncork.model.bottleneck import COMMIT_EVENTS, Bottleneck, Component, DatabaseUse, Resource, Seen
from uncork.model.units import format_duration
from uncork.stats.load.queue import mean_waiting

# ---- limits that refuse requests or connections. Each shows as an error of its own kind ----


_REFUSAL_WEIGHT: Final = 2.0
"""Weight of a limit: above every saturated resource. The share of errors is added."""
_NEAR: Final = 0.98
"""Fraction of the limit of open files that counts as reached: a few files are always being opened
or closed."""
_OVERFLOWS: Final = 0.01
"""Fraction of connections that must overflow the backlog. Below it, the backlog overflows only
occasionally."""
_SHARE_CONNECTIONS: Final = (
    "share connections through a pool (PgBouncer, or the service's own); raise max_connections "
    "only if memory and processors can serve that many active sessions"
)


def _ephemeral_ports(seen: Seen) -> Iterator[Bottleneck]:
    """Report that the generator's machine has no port left to connect from."""
    failed = _errors(seen, ("EADDRNOTAVAIL", "no local port"), "cannot assign requested address")
    if failed:
        yield Bottleneck(
            "ephemeral ports",
            f"the generator's machine ran out of local ports to connect from ({failed} times): a "
            "closed connection occupies its port for a minute",
            "keep connections open, or widen net.ipv4.ip_local_port_range",
            _refusing(seen, failed),
        )


def _file_descriptors(seen: Seen) -> Iterator[Bottleneck]:
    """Report that a component reached its limit of open files. Each connection takes one."""
    failed = _errors(seen, ("too many files",))
    found = ""
    if failed:
        found = f"the generator reached its limit of open files, and each connection takes one: {failed} "
        found += "could not be opened"
        remedy = "raise the generator's limit of open files (ulimit -n)"
    else:
        failed = _errors(seen, ("EMFILE", "ENFILE", "53000"), "too many open files")
        if failed:
            found = f"{failed} requests failed at a limit of open files, and each connection takes one"
        remedy = (
            "raise the limit of open files (ulimit -n, LimitNOFILE) of the process that reported the error"
        )
        for name, component in (("service", seen.service), ("database", seen.database)):
            used, most = (component.descriptors, component.descriptor_limit) if component else (None, None)
            if used is not None and most and used >= _NEAR * most:
                found = f"a process of the {name} has {used} of at most {most} files open, and each "
                found += "connection takes one"
                remedy = f"raise the {name}'s limit of open files (ulimit -n, LimitNOFILE)"
                break
    if found:
        yield Bottleneck("file descriptors", found, remedy, _refusing(seen, failed))


def _connection_limit(seen: Seen) -> Iterator[Bottleneck]:
    """Report that the database accepts no more connections.

    The evidence is the database's own error, or failures of the service while all connections are
    taken, except one that may be changing clients.
    """
    words = ("too many clients", "too many connections", "remaining connection slots")
    failed, sessions = _errors(seen, ("53300",), *words), seen.sessions
    opened, limit = (None, None) if sessions is None else (sessions.connections, sessions.max_connections)
    most = f" (max_connections = {limit})" if limit else ""
    found = f"the database accepts no more connections{most}: it refused {failed}"
    full = sessions and opened is not None and limit is not None and opened >= limit - sessions.reserved - 1
    if not failed and sessions is not None and full:
        failed = sum(many for code, many in seen.load.errors.items() if code.startswith("status 5"))
        kept = f" ({sessions.reserved} of them reserved for administrators)" if sessions.reserved else ""
        found = f"the database has no connection left: {opened} of {limit} were open{kept}, and the service "
        found += f"failed {failed} requests meanwhile"
    if failed:
        yield Bottleneck("connection limit", found, _SHARE_CONNECTIONS, _refusing(seen, failed))


def _listen_backlog(seen: Seen) -> Iterator[Bottleneck]:
    """Report that connections arrive faster than the service accepts them."""
    overflows, refused = seen.machine.overflows or 0, ("connect timeout", "refused")
    came = seen.load.opened + sum(seen.load.errors.get(code, 0) for code in refused)
    if overflows and came and overflows >= _OVERFLOWS * came:
        most = "" if seen.machine.backlog is None else f" (at most {seen.machine.backlog} waited in it)"
        yield Bottleneck(
            "listen backlog",
            f"the queue of connections waiting to be accepted overflowed {overflows} times{most}: "
            "each client turned away waits a second or more before it retries",
            "raise the service's backlog and net.core.somaxconn, accept faster, or keep connections open",
            _REFUSAL_WEIGHT,
        )


def _errors(seen: Seen, codes: Iterable[str], *words: str) -> int:
    """Count the errors with one of the codes; without any, all errors if the first message has the words."""
    found = sum(seen.load.errors.get(code, 0) for code in codes)
    if not found and any(word in seen.load.message.lower() for word in words):
        return max(1, sum(seen.load.errors.values()))
    return found


def _refusing(seen: Seen, failed: int) -> float:
    total = sum(seen.load.errors.values())
    return _REFUSAL_WEIGHT + (failed / total if total else 0.0)


# ---- saturated resources. Each claims the requests in flight that queue for it ----


_QUEUE: Final = 1.0
"""Requests that must wait on average to form a queue. With fewer, requests are served one at a time."""
_SHARE: Final = 0.25
"""Fraction of the requests in flight that must wait for a resource before it is the bottleneck."""
_BUSY: Final = 0.85
"""Fraction of the processors in use from which on requests queue for them."""
_THROTTLED: Final = 0.1
"""Fraction of periods in which a control group was throttled from which on its quota is the limit."""
_FULL_THREAD: Final = 0.85
"""Fraction of the time from which on a thread is full: others sometimes wait for it."""
_DONE_THERE: Final = 0.75
"""Fraction of a component's work that its full threads must do before they are its limit."""
_ALL_TAKEN: Final = 0.8
"""Fraction of a pool's connections that must be busy before the pool is full. It is not closer to
1, because without free processors a connection changes hands slowly: 3.3 of 4 were seen busy."""
_SMALL_POOL: Final = 0.8
"""A full pool must also have fewer connections than this fraction of the requests in flight."""
_READS: Final = frozenset({"BufferIO", "BufferIo"})
"""Waits for a page that another session reads at this moment: LWLock until PostgreSQL 13, IPC since then."""
_CPU_OF: Final[Mapping[str, tuple[Resource, str, str]]] = {
    "database": (
        "database cpu",
        "the database uses most",
        "make the costliest statement cheaper (uncork profile db), or give the server more processors",
    ),
    "service": (
        "service cpu",
        "the service uses most",
        "find what it computes (uncork profile cpu), or give it more processors",
    ),
    "generator": (
        "generator",
        "the generator uses most",
        "run the generator on a machine of its own; this load did not test the server",
    ),
}
_QUEUES: Final = ("Lock", "IO", "LWLock", "BufferPin", "IPC")
"""Wait classes in which sessions queue for something that a larger pool cannot provide."""
CPU: Final = "CPU"
IDLE: Final = "idle in transaction"


def _generator(seen: Seen) -> Iterator[Bottleneck]:
    """Report that the generator itself is saturated, or throttled by its CPU quota."""
    own, most = seen.generator, "its threads are busy all the time"
    if own is not None and _throttled(own) and not any(map(_throttled, (seen.service, seen.database))):
        reason, more = _quota_words("it", own), "more processors (cpu.max, resources.limits.cpu)"
    elif seen.load.limit == "yes":
        reason, more = seen.load.limit_reason or most, "more threads, or a machine of its own"
    else:
        return
    yield Bottleneck(
        "generator",
        f"the generator itself is the limit: {reason}",
        f"give the generator {more}; this load did not test the server",
        1.5,
    )


def _quota(seen: Seen) -> Iterator[Bottleneck]:
    """Report that a control group is throttled by its CPU quota, even if the machine has processors left."""
    for name, component in (("service", seen.service), ("database", seen.database)):
        if component is not None and component.throttled is not None and _throttled(component):
            yield Bottleneck(
                "cpu quota",
                _quota_words(f"the {name}", component),
                f"raise the {name}'s CPU quota (cpu.max, resources.limits.cpu), or make it use less",
                1.2 + component.throttled,
            )
            return


def _pool(seen: Seen) -> Iterator[Bottleneck]:
    """Report that all connections of the service are taken, and requests wait for one of them.

    If the pool's own sessions wait (for locks, the log, storage), that wait is the cause behind the full
    pool. A larger pool would only lengthen the queue there, so these requests count for that resource.
    """
    sessions = seen.sessions
    if sessions is None or not _pool_is_full(seen):
        return
    waiting = _wait_for_pool(seen, sessions)
    share = waiting / seen.load.in_flight
    queueing = sum(many for (of_class, _), many in sessions.waits.items() if of_class in _QUEUES)
    if share >= _SHARE:
        yield Bottleneck(
            "pool",
            f"the pool of {sessions.sessions:.0f} connections is full: {waiting:.0f} of "
            f"{seen.load.in_flight:.0f} requests in flight wait for one, "
            f"{format_duration(share * seen.load.mean_ns)} each{_used(seen)}",
            "hold each connection for less time, or enlarge the pool if the database has processors to spare",
            share * (1.0 - min(1.0, queueing / sessions.busy)),
        )


def _queues(seen: Seen) -> Iterator[Bottleneck]:
    """Report what sessions wait for: locks, commits, storage, or each other inside the server."""
    flying, whose = max(seen.load.in_flight, 1.0), "requests in flight"
    if seen.sessions is not None and _pool_is_full(seen):
        flying, whose = max(seen.sessions.busy, 1.0), "sessions of the service"
    waits = {} if seen.sessions is None else seen.sessions.waits

    def waiting(*classes: str, besides: Container[str] = ()) -> float:
        return sum(many for (name, event), many in waits.items() if name in classes and event not in besides)

    inside = {
        event: many
        for (name, event), many in waits.items()
        if name in ("LWLock", "BufferPin", "IPC") and event not in COMMIT_EVENTS | _READS
    }
    most = max(inside, key=inside.__getitem__, default="none")
    claims: tuple[tuple[Resource, float, str, str], ...] = (
        (
            "locks",
            waiting("Lock"),
            "wait for locks that other transactions hold",
            "find who holds them (uncork profile db lists the chains), then shorten those "
            "transactions, or spread the rows that they change",
        ),
        (
            "commit",
            sum(many for (_, event), many in waits.items() if event in COMMIT_EVENTS),
            "wait for the write-ahead log to be safe on disk",
            "commit less often (more rows per transaction), consider synchronous_commit = off, or "
            "use a faster log device",
        ),
        (
            "storage",
            waiting("IO", besides=COMMIT_EVENTS)
            + sum(many for (_, event), many in waits.items() if event in _READS),
            "wait for data to be read or written",
            "read less (an index, fewer columns), add memory, or use faster storage",
        ),
        (
            "internal locks",
            sum(inside.values()),
            f"wait for each other inside the server ({most})",
            "run fewer sessions at once, or spread the data that they all touch",
        ),
    )
    for resource, many, what, remedy in claims:
        if many >= _QUEUE and many >= _SHARE * flying:
            sentence = f"{many:.1f} of {flying:.1f} {whose} {what}{_used(seen)}"
            yield Bottleneck(resource, sentence, remedy, min(many / flying, 1.0))


def _processors(seen: Seen) -> Iterator[Bottleneck]:
    """Report that the machine's processors are all busy, and name the component that uses most of them."""
    machine, flying = seen.machine, max(seen.load.in_flight, 1.0)
    named = {"database": seen.database, "service": seen.service, "generator": seen.generator}
    components = {name: component for name, component in named.items() if component is not None}
    used = {name: component.cpus for name, component in components.items()}
    busy = machine.busy if machine.busy is not None else sum(used.values()) / machine.processors
    waits = {} if seen.sessions is None else seen.sessions.waits
    asleep = sum(many for (of_class, _), many in waits.items() if of_class not in (CPU, IDLE))
    waiting = seen.load.in_flight - asleep
    if busy < _BUSY or waiting < _QUEUE * machine.processors or not used:
        return
    delays = [component.waiting for component in components.values() if component.waiting is not None]
    if len(delays) == len(used) and sum(delays) < _QUEUE:
        return  # the machine is full, but these components hardly wait for a processor
    others = max(0.0, busy * machine.processors - sum(used.values()))
    full = f"the machine's {machine.processors} processors are {busy * 100:.0f} % busy: "
    full += ", ".join(f"the {name} uses {cpus:.1f}" for name, cpus in used.items())
    name = max(used, key=used.__getitem__)
    resource, what, remedy = _CPU_OF[name]
    sentence = f"{full}; {what} ({_modes(components[name])}){_template(seen) if name == 'database' else ''}"
    if others > used[name]:
        resource, sentence = "machine cpu", f"{full}, and other programs {others:.1f}"
        remedy = "find what else runs there and stop it: until then this load does not test the server"
    yield Bottleneck(resource, sentence, remedy, waiting / flying)


def _threads(seen: Seen) -> Iterator[Bottleneck]:
    """Report that all threads in which the service computes are busy, while other processors are free.

    On a full machine they weigh less, so that the machine is named instead.
    """
    component, outside = seen.service, _outside(seen)
    full = [] if component is None else _full_threads(component)
    if component is None or not full or outside - len(full) < _QUEUE:
        return
    which = "one thread" if len(full) == 1 else f"{len(full)} threads"
    share = sum(full) / len(full) * 100
    yield Bottleneck(
        "service cpu",
        f"the service computes in {which}, busy {share:.0f} % of the time, and uses "
        f"{component.cpus:.1f} of the machine's {seen.machine.processors} processors "
        f"({_modes(component)}); {outside:.1f} requests are in it",
        "find what it computes (uncork profile cpu), or run more of its processes or threads",
        outside / max(seen.load.in_flight, 1.0) * (0.9 if (seen.machine.busy or 0.0) >= _BUSY else 1.0),
    )


def _used(seen: Seen) -> str:
    if seen.database is None:
        return ""
    share = seen.database.cpus / seen.machine.processors
    return f"; the database uses {share * 100:.0f} % of the processors"


def _outside(seen: Seen) -> float:
    """Return how many requests in flight hold no database session."""
    return seen.load.in_flight - (0.0 if seen.sessions is None else seen.sessions.busy)


def _wait_for_pool(seen: Seen, sessions: DatabaseUse) -> float:
    """Return how many requests in flight wait for a connection; at most the requests outside the database.

    With the latency of a request that runs alone, the waiting requests are those beyond what that
    latency explains. Without it, queueing theory gives the number for connections as busy as these:
    a request outside the database may also wait for something else.
    """
    load = seen.load
    if load.alone_ns is not None and load.mean_ns:
        waiting = load.in_flight * max(0.0, 1.0 - load.alone_ns / load.mean_ns)
    else:
        many = max(1, round(sessions.sessions))
        waiting = mean_waiting(many, min(1.0, sessions.busy / sessions.sessions))
    return min(_outside(seen), waiting)


def _pool_is_full(seen: Seen) -> bool:
    """Return whether all sessions of a service are taken, and requests wait outside for one."""
    sessions = seen.sessions
    if sessions is None or not sessions.sessions or not (seen.indirect or seen.service is not None):
        return False
    if seen.service is not None and _served_out(seen.service, seen):
        return False
    small = sessions.sessions < _SMALL_POOL * seen.load.in_flight
    return small and sessions.busy >= _ALL_TAKEN * sessions.sessions and _outside(seen) >= _QUEUE


def _full_threads(component: Component) -> list[float]:
    """Return the load of the full threads, if the component does most of its work in them."""
    full = [busy for busy in component.threads if busy >= _FULL_THREAD]
    return full if sum(full) >= _DONE_THERE * component.cpus else []


def _throttled(component: Component | None) -> bool:
    return component is not None and component.throttled is not None and component.throttled >= _THROTTLED


def _quota_words(who: str, component: Component) -> str:
    allowed = "" if component.quota is None else f" of {component.quota:.2g} processors"
    return (
        f"{who} is throttled in {(component.throttled or 0.0) * 100:.0f} % of periods by the CPU "
        f"quota{allowed}, while it uses {component.cpus:.2f}"
    )


def _served_out(component: Component, seen: Seen) -> bool:
    """Return whether a component uses all processors that its quota, the machine and its threads allow."""
    if _full_threads(component):
        return True
    room = (
        seen.machine.processors if component.quota is None else min(component.quota, seen.machine.processors)
    )
    return component.cpus >= _BUSY * room


def _modes(component: Component) -> str:
    share = component.system / component.cpus if component.cpus else 0.0
    return f"{(1 - share) * 100:.0f} % user and {share * 100:.0f} % system"


def _template(seen: Seen) -> str:
    templates = {} if seen.sessions is None else seen.sessions.templates
    if not templates:
        return ""
    text, share = max(templates.items(), key=lambda item: item[1])
    short = " ".join(text.split())
    short = short if len(short) <= 60 else short[:57] + "..."
    return f"; {share * 100:.0f} % of the sessions' time is in `{short}`"


# ---- name the bottleneck of a load, from what was seen of all components at the same time ----
#
# Limits that refuse requests (of connections, files, ports) come first: they show as errors.
# Saturated resources follow. Each saturated resource claims the requests in flight that wait for
# it, and the largest claim is named. A claim needs a queue: requests that are being served wait for
# nothing, so a healthy run has no bottleneck.


_RULES: Final = (
    *(_ephemeral_ports, _file_descriptors, _connection_limit, _listen_backlog),
    *(_generator, _quota, _pool, _queues, _threads, _processors),
)


def find_bottlenecks(seen: Seen) -> tuple[Bottleneck, ...]:
    """Return the bottlenecks, the gravest first. A healthy run has none."""
    found = (bottleneck for rule in _RULES for bottleneck in rule(seen))
    return tuple(sorted(found, key=lambda bottleneck: -bottleneck.weight))
