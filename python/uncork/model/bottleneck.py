"""What is seen of all components while a load runs, and the resource that gave out.

*Requests in flight* are those begun and not yet answered: throughput times mean latency (Little's law). Each
is somewhere at every moment: in a session of the database that works or waits, or outside it, in the service,
in its queue for a connection, or on the way. Where most of them are is where the time goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Bottleneck", "Component", "DatabaseUse", "LoadUse", "MachineUse", "Resource", "Seen"]

Resource = Literal[
    "generator",
    "ephemeral ports",
    "file descriptors",
    "listen backlog",
    "connection limit",
    "cpu quota",
    "pool",
    "locks",
    "commit",
    "storage",
    "internal locks",
    "database cpu",
    "service cpu",
    "machine cpu",
]


@dataclass(frozen=True, slots=True)
class LoadUse:
    """What the generator saw and used.

    `in_flight` are requests in flight on average. `busiest_thread` is its busiest thread's processor time as
    a part of the time. `limit` is the generator's verdict on itself. `errors` counts what failed by code
    (SQLSTATE, or of HTTP a word), connections that could not be opened among it; `message` is the first of
    them in words. `started` counts requests, `opened` the connections opened after the first of each client;
    `elapsed_ns` is how long all of it took. `alone_ns` is how long a request takes that waits for nothing,
    None where that is not known.
    """

    in_flight: float
    mean_ns: float
    busiest_thread: float = 0.0
    limit: Literal["no", "perhaps", "yes"] = "no"
    limit_reason: str = ""
    errors: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    started: int = 0
    opened: int = 0
    elapsed_ns: int = 0
    alone_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """What one party used: processors on average in user mode and in the kernel.

    `quota` is how many processors its control group may use, `throttled` the share of periods in which it was
    stopped for that; None where unknown. `descriptors` are open files, of the process that is nearest to
    `descriptor_limit`, how many it may have. `threads` are its busiest threads' processor time, each as a
    part of the time, the greatest first; `waiting` is how many threads were ready to run and had to wait for
    a processor, on average, None where unknown.
    """

    user: float
    system: float
    quota: float | None = None
    throttled: float | None = None
    descriptors: int | None = None
    descriptor_limit: int | None = None
    threads: tuple[float, ...] = ()
    waiting: float | None = None

    @property
    def cpus(self) -> float:
        """Return the processors used."""
        return self.user + self.system


@dataclass(frozen=True, slots=True)
class MachineUse:
    """The machine on which the components run: processors, the part of them that was busy, from 0 to 1.

    `waiting_for_disk` is the part that was idle while something waited for a disk, `stolen` what the
    hypervisor took. `overflows` counts connections that a listen backlog had no room for; the kernel counts
    them for all programs together, so they are told only where the service's own queue was seen to hold
    some: `backlog` is the most that waited in it to be accepted.
    """

    processors: int
    busy: float | None = None
    waiting_for_disk: float | None = None
    stolen: float | None = None
    overflows: int | None = None
    backlog: int | None = None


@dataclass(frozen=True, slots=True)
class DatabaseUse:
    """What sessions of the database did, on average over samples.

    `waits` are busy sessions by (class, event); on a processor the class is ``CPU``. `sessions` are those
    open for the load: that were busy at any time of it. `connections` is the most that were open, of
    `max_connections`, of which `reserved` are kept for administrators. `templates` are shares of busy
    sessions by text.
    """

    waits: Mapping[tuple[str, str], float]
    sessions: float
    connections: int | None = None
    max_connections: int | None = None
    reserved: int = 0
    templates: Mapping[str, float] = field(default_factory=dict)

    @property
    def busy(self) -> float:
        """Return how many sessions worked or waited within a statement or transaction."""
        return sum(self.waits.values())


@dataclass(frozen=True, slots=True)
class Seen:
    """All components over the same time; None where one is not there or cannot be seen.

    `indirect` says that requests reach the database through a service, be that in sight or not.
    """

    load: LoadUse
    machine: MachineUse
    database: Component | None = None
    sessions: DatabaseUse | None = None
    service: Component | None = None
    generator: Component | None = None
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that gave out: `sentence` says so with the evidence, `remedy` what would raise it.

    `weight` ranks it: the share of requests in flight that it holds up, or above 1 where it refuses them.
    """

    resource: Resource
    sentence: str
    remedy: str
    weight: float
