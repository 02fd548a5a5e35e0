"""A profile of stacks, as in the report and the JSON document.

A *stack* is the chain of calls that a process was in; a *frame* is one of them. A frame's *own* share has the
frame at the leaf of the stack; its *total* adds what it called. A *measure* is what was counted: processor
time (`cpu`), time asleep (`off-cpu`), a heap. Shares are fractions of all that was counted of a measure.
"""

from __future__ import annotations

from typing import Final, Literal

from uncork.model.records import Record
from uncork.model.stored_run import RunRecord

LEAST_SAMPLES: Final = 100
"""Samples from which on a report names hot functions and draws a flame graph."""

STACK_RESULT_VERSION = 1

ProfileFormat = Literal["perf", "pprof", "speedscope", "pyroscope", "folded"]
"""Formats of other tools' profiles: perf script, pprof, speedscope, Pyroscope, folded stacks."""


class StackRunFacts(RunRecord):
    """Which run this is and how it went. `target` is what was profiled, without passwords."""

    target: str
    reproduce: str
    uncork_version: str


class MethodFacts(Record):
    """How processes were sampled.

    `call_graph` is how stacks were unwound: by dwarf or frame pointers (fp), with the reason. `cannot_see`
    lists what this machine, this account or this server did not allow uncork to see.
    """

    tool: Literal["perf", "/proc", "import", "sessions"]
    call_graph: str
    reason: str
    rate_hz: int
    samples: int
    frames: float
    """The average number of frames of a stack."""
    watched_ns: int
    cannot_see: tuple[str, ...]


class FrameFacts(Record):
    """One frame: its own and total shares, also in the run compared with, if there is one."""

    name: str
    kernel: bool
    own: float
    total: float
    own_before: float | None
    total_before: float | None


class EntryFacts(Record):
    """A way into the kernel: the frame of the user's code that entered it, the kernel's frame, and its share.

    `caller` is the usual caller of the user's frame, which is often only a library's wrapper.
    """

    user: str
    caller: str
    kernel: str
    share: float


class LabelShare(Record):
    """A share by what a session was doing, or for whom."""

    name: str
    share: float


class RouteFrames(Record):
    """What the application spent for one route, and its hottest frames, as shares of the route's.

    Labels of the profile name the route; it is empty for stacks without such a label. `samples` is about how
    many samples the route has; None if the measure does not count samples or time.
    """

    name: str
    share: float
    frames: tuple[FrameFacts, ...]
    samples: int | None = None


class MeasureFacts(Record):
    """One measure: its total, the kernel's share (None if unknown), and its frames.

    `frames` are the hottest by own and by total share, the hottest first; `changes` are those whose share
    changed most since the run compared with. `routes` is empty if the profile has no labels of routes.
    `samples` is about how many samples it has; None if it is no sampled time. `imported_from` is the name of
    the profile that it was imported from beside recorded ones; empty for others.
    """

    name: str
    unit: str
    total: int
    stacks: int
    kernel: float | None
    frames: tuple[FrameFacts, ...]
    frames_more: int
    entries: tuple[EntryFacts, ...]
    changes: tuple[FrameFacts, ...]
    processes: tuple[LabelShare, ...]
    applications: tuple[LabelShare, ...]
    templates: tuple[LabelShare, ...]
    routes: tuple[RouteFrames, ...] = ()
    samples: int | None = None
    imported_from: str = ""


class ProcessFacts(Record):
    """One process and the processor time that the kernel counted of it."""

    pid: int
    process: str
    backend: str
    user_ns: int
    system_ns: int


class SyscallFacts(Record):
    """One system call of all processes, or of one template: `time_ns` includes waiting in it."""

    syscall: str
    process: str
    calls: int
    errors: int
    time_ns: int


class StackFinding(Record):
    """A finding from stacks: its name, and a sentence with its evidence."""

    name: Literal["system time"]
    text: str
    share: float
    frames: tuple[str, ...]


class StackResult(Record):
    """Everything in a report on a profile of stacks. `against` is the run compared with, if there is one."""

    run: StackRunFacts
    answer: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    findings: tuple[StackFinding, ...]
    method: MethodFacts
    user_ns: int | None
    system_ns: int | None
    measures: tuple[MeasureFacts, ...]
    processes: tuple[ProcessFacts, ...]
    syscalls: tuple[SyscallFacts, ...]
    syscalls_by: str
    syscalls_ns: int
    against: str

    @property
    def system_share(self) -> float | None:
        """The kernel's share of processor time, 0 to 1: from stacks if possible, else from its own count."""
        measure = next((measure for measure in self.measures if measure.name == "cpu"), None)
        if measure is not None and measure.kernel and self.method.tool == "perf":
            return measure.kernel
        if self.user_ns is None or self.system_ns is None or not self.user_ns + self.system_ns:
            return None
        return self.system_ns / (self.user_ns + self.system_ns)
