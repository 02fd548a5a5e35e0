"""Observations of a server under a variant's load, in a separate trial that is not timed."""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record

Levels = tuple[tuple[str, str], ...]
"""A cell, as (factor, level) pairs."""

EvidenceKind = Literal["waits", "cpu", "stacks", "syscalls", "plans"]
"""Kinds of evidence: waits of sessions, processor time in user mode and in the kernel, stacks of calls,
system calls; plans are always kept."""


class Sampling(Record):
    """How long a variant is sampled: its stacks and sessions, and its system calls (0 if not requested)."""

    watch_ns: int
    syscalls_ns: int


class WaitShare(Record):
    """What sessions did for an average operation: ran on a processor (CPU), or waited, by class and event."""

    name: str
    operation_ns: float
    share: float


class CallShare(Record):
    """A system call: calls an operation, and the time in them, waiting included."""

    name: str
    operation_calls: float
    operation_ns: float


class VariantRecord(Record):
    """What concerns one variant in one cell under one workload."""

    cell: Levels
    workload: str
    variant: str


class EvidenceFacts(VariantRecord):
    """One variant's evidence in one cell.

    `operations` succeeded in `elapsed_ns`. `user_ns` and `system_ns` are the processor time of all the
    server's processes an operation; None if unknown. `system_share` is the kernel's fraction of it. `stacks`
    counts samples of stacks. `entered` lists the system calls that the kernel's time goes into, and who made
    them, the most expensive first. `findings` are sentences; `missing` lists what could not be observed.
    """

    operations: int
    elapsed_ns: int
    user_ns: float | None
    system_ns: float | None
    system_share: float | None
    waits: tuple[WaitShare, ...]
    calls: tuple[CallShare, ...]
    stacks: int
    entered: tuple[str, ...]
    findings: tuple[str, ...]
    missing: tuple[str, ...]
