"""What machine and processes did while something was measured: as sampled, and as a report says it.

A share is a part of 1. Times are nanoseconds, sizes bytes. None is what could not be read, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "DATABASE",
    "GENERATOR",
    "MODES",
    "SAMPLE_PERIOD_NS",
    "SERVER",
    "SERVICE",
    "Bounds",
    "DeviceUse",
    "ModeHistory",
    "ProcessUse",
    "Slowdown",
    "Strain",
    "SystemSeries",
    "SystemUse",
    "Watch",
]

SAMPLE_PERIOD_NS: Final = 100_000_000
"""Time between two readings: ten a second."""
SERVER: Final = "server"
SERVICE: Final = "service"
GENERATOR: Final = "generator"
DATABASE: Final = "database"
"""Roles of processes. A load by HTTP has a service and perhaps a database where one by SQL has a server."""
MODES: Final = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
"""What a processor does, by /proc/stat; together they are all of its time."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A process to sample, with its children if asked, by the role that it has in what is measured."""

    role: str
    pid: int
    children: bool = False


@dataclass(frozen=True, slots=True)
class SystemSeries:
    """What a sampler told: facts, and Arrow tables by the name of the stored table, without the sampling."""

    facts: Mapping[str, Any]
    tables: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Strain:
    """What may have disturbed a trial; None where it could not be told.

    `memory` is the share of its time in which tasks waited for memory, `others` the share of all processors'
    time (`processors_ns`) that other programs took.
    """

    memory: float | None
    others: float | None
    processors_ns: int


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What the processes of one role and kind used together; `user_ns` + `system_ns` = `cpu_ns`.

    `rss_bytes` and `pss_bytes` are the most that any one of them had.
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


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a disk or network interface did. `busy` is the share of time with anything under way."""

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


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds processes: a quota of processor time, processors, memory; how often they came up to it.

    `throttled` is the share of the quota's periods in which it was used up. `burst_ns` may be saved for a
    burst beyond it; `burst_used_ns` was, in `burst_periods`.
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
        """The share of periods in which the quota was used up."""
        return self.throttled_periods / self.periods if self.periods else 0.0


@dataclass(frozen=True, slots=True)
class ModeHistory:
    """How many processors were in each mode, a value a step of `step_s` seconds; idle modes are left out."""

    start_s: int
    step_s: int
    modes: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A machine that the hypervisor held back once it had been at full use for a while.

    `start_s` is when (seconds since 1970, UTC), `full_s` for how long it was at full use by then, `before`
    and `after` the hypervisor's shares of all processors until then and since.
    """

    start_s: int
    full_s: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class SystemUse:
    """What machine and processes did, summed over one or more samplings.

    `modes` are shares of all processors' time by mode (None if the kernel does not tell), `stalls` shares of
    time in which tasks waited, by resource and "some" (any task) or "full" (all). `own` is the share of one
    processor that the sampler took, `late_ns` the longest that a reading was late.
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
    lacks: tuple[tuple[str, str], ...]
    history: ModeHistory | None = field(default=None)
    slowdown: Slowdown | None = field(default=None)

    def cpu_ns(self, role: str) -> int:
        """Return the processor time of a role's processes."""
        return sum(one.cpu_ns for one in self.processes if one.role == role)

    @property
    def others(self) -> float | None:
        """The share of all processors' time that programs used other than the watched ones."""
        if self.modes is None or not self.cpus or not self.elapsed_ns:
            return None
        busy = self.modes["user"] + self.modes["nice"] + self.modes["system"]
        watched = sum(one.cpu_ns for one in self.processes) / (self.cpus * self.elapsed_ns)
        return max(0.0, busy - watched)
