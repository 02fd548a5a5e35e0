"""Observations of all components while a load runs, and the resource that became the bottleneck.

*Requests in flight* have begun and are not answered yet: throughput times mean latency (Little's law). At
every moment each of them is either in a database session that works or waits, or outside the database: in the
service, in its queue for a connection, or on the network. Where most of them are is where the time goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from uncork.model.records import Record

COMMIT_EVENTS: Final = frozenset(
    {"WALSync", "WalSync", "WALWrite", "WalWrite", "SyncRep", "WALSyncMethodAssign"}
)
"""Waits of sessions for the write-ahead log to be written, here or on a standby: mostly those of commits."""

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


class LoadUse(Record):
    """What the generator saw and used.

    `in_flight` is the average number of requests in flight. `busiest_thread` is the processor time of its
    busiest thread as a fraction of the elapsed time. `limit` is the generator's verdict on itself. `errors`
    counts failures by code (SQLSTATE, or a word for HTTP), failed connections included; `message` describes
    the first of them. `started` counts requests, `opened` the connections opened after the first of each
    client; `elapsed_ns` is the duration. `alone_ns` is how long a request takes that waits for nothing, None
    if unknown.
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


class Component(Record):
    """Resources that one component used: average processors in user mode and in the kernel.

    `quota` is how many processors its control group may use, `throttled` the fraction of periods in which the
    quota stopped it; None if unknown. `descriptors` counts open files of the process that is closest to its
    limit, `descriptor_limit`. `threads` are the processor times of its busiest threads, each as a fraction of
    the elapsed time, the greatest first; `waiting` is how many threads were ready to run and waited for a
    processor, on average, None if unknown.
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
        """Return the processors used, on average."""
        return self.user + self.system


class MachineUse(Record):
    """The machine of the components: its processors, and the fraction of them that was busy, 0 to 1.

    `waiting_for_disk` is the fraction that was idle while something waited for a disk, `stolen` what the
    hypervisor took. `overflows` counts connections for which a listen backlog had no room. The kernel counts
    them for all programs together, so they are reported only if the service's own queue was seen to hold
    some: `backlog` is the longest that queue was.
    """

    processors: int
    busy: float | None = None
    waiting_for_disk: float | None = None
    stolen: float | None = None
    overflows: int | None = None
    backlog: int | None = None


class DatabaseUse(Record):
    """What the sessions of the database did, on average over samples.

    `waits` counts busy sessions by (class, event); a session on a processor has the class ``CPU``. `sessions`
    counts the load's sessions that were busy at any time. `connections` is the most that were open, of
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


class Seen(Record):
    """Observations of all components over the same time; None for a component that is absent or not visible.

    `indirect` means that requests reach the database through a service, visible or not.
    """

    load: LoadUse
    machine: MachineUse
    database: Component | None = None
    sessions: DatabaseUse | None = None
    service: Component | None = None
    generator: Component | None = None
    indirect: bool = False


class Bottleneck(Record):
    """A resource that became the bottleneck: `sentence` gives the evidence, `remedy` what would raise it.

    `weight` ranks it: the fraction of requests in flight that it delays, or above 1 if it refuses them.
    """

    resource: Resource
    sentence: str
    remedy: str
    weight: float
