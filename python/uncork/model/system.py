"""What machine and processes did during a measurement: the samples, and their summary in a report.

A share is a fraction of 1. Times are nanoseconds, sizes bytes. None means unreadable, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from uncork.model.records import Record

SAMPLE_PERIOD_NS: Final = 100_000_000
"""Time between two readings: ten a second."""
SERVER: Final = "server"
SERVICE: Final = "service"
GENERATOR: Final = "generator"
DATABASE: Final = "database"
"""Roles of processes. A load by HTTP has a service and perhaps a database; a load by SQL has a server."""
MODES: Final = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
"""Modes of a processor, from /proc/stat; together they are all of its time."""


class Watch(Record):
    """A process to sample, with its children if asked, by its role in the measurement."""

    role: str
    pid: int
    children: bool = False


class SystemSeries(Record):
    """The result of a sampler: facts, and Arrow tables by the name of the stored table."""

    facts: Mapping[str, Any]
    tables: Mapping[str, Any]


class Strain(Record):
    """What may have disturbed a trial; None if unknown.

    `memory` is the fraction of its time in which tasks waited for memory, `others` the fraction of all
    processors' time (`processors_ns`) that other programs used.
    """

    memory: float | None
    others: float | None
    processors_ns: int


class ProcessUse(Record):
    """What the processes of one role and kind used together; `user_ns` + `system_ns` = `cpu_ns`.

    `rss_bytes` and `pss_bytes` are the maximum of any single process.
    """

    role: str
    kind: str
    processes: int
    cpu_ns: int
    user_ns: int
    system_ns: int
    voluntary_switches: int | None
    involuntary_switches: int | None
    minor_faults: int | None
    major_faults: int | None
    read_bytes: int | None
    written_bytes: int | None
    rss_bytes: int | None
    pss_bytes: int | None


class DeviceUse(Record):
    """What a disk or network interface did. `busy` is the fraction of time with anything in progress."""

    name: str
    network: bool
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    busy: float | None
    read_mean_ns: float | None
    write_mean_ns: float | None
    lost: int | None


class Bounds(Record):
    """Limits on processes: a quota of processor time, processors, memory; and how often they reached them.

    `throttled` is the fraction of the quota's periods in which it was used up. `burst_ns` may be saved for a
    burst beyond the quota; `burst_used_ns` was used, in `burst_periods`.
    """

    role: str
    cgroup: int | None
    quota_cpus: float | None
    burst_ns: int | None
    allowed_cpus: int | None
    memory_bytes: int | None
    memory_hits: int | None
    oom_kills: int | None
    periods: int = 0
    throttled_periods: int = 0
    throttled_ns: int = 0
    burst_periods: int | None = None
    burst_used_ns: int | None = None

    @property
    def throttled(self) -> float:
        """The fraction of periods in which the quota was used up."""
        return self.throttled_periods / self.periods if self.periods else 0.0


class ModeHistory(Record):
    """How many processors were in each mode, one value for each `step_s` seconds, without idle modes."""

    start_s: int
    step_s: int
    modes: Mapping[str, tuple[float, ...]]


class Slowdown(Record):
    """A machine that the hypervisor slowed down after a time at full use.

    `start_s` is when (seconds since 1970, UTC), `full_s` how long it had been at full use by then, `before`
    and `after` the hypervisor's shares of all processors until then and since.
    """

    start_s: int
    full_s: int
    before: float
    after: float


class SystemUse(Record):
    """What machine and processes did, summed over one or more samplings.

    `modes` are shares of all processors' time by mode (None if the kernel does not report it), `stalls`
    shares of time in which tasks waited, by resource and "some" (any task) or "full" (all). `own` is the
    fraction of one processor that the sampler used, `late_ns` the longest delay of a reading.
    """

    elapsed_ns: int
    cpus: int | None
    samples: int
    missed: int
    late_ns: int
    own: float
    modes: Mapping[str, float] | None
    switches: int | None
    stalls: Mapping[str, float]
    processes: tuple[ProcessUse, ...]
    devices: tuple[DeviceUse, ...]
    bounds: tuple[Bounds, ...]
    missing: tuple[tuple[str, str], ...]
    history: ModeHistory | None = field(default=None)
    slowdown: Slowdown | None = field(default=None)

    def cpu_ns(self, role: str) -> int:
        """Return the processor time of a role's processes."""
        return sum(process.cpu_ns for process in self.processes if process.role == role)

    @property
    def others(self) -> float | None:
        """The fraction of all processors' time that programs other than the watched ones used."""
        if self.modes is None or not self.cpus or not self.elapsed_ns:
            return None
        busy = self.modes["user"] + self.modes["nice"] + self.modes["system"]
        watched = sum(process.cpu_ns for process in self.processes) / (self.cpus * self.elapsed_ns)
        return max(0.0, busy - watched)
