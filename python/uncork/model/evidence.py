"""What was seen of a server while a variant's load ran, in a trial of its own that is not timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Levels = tuple[tuple[str, str], ...]
"""A cell, as (factor, level) pairs."""

__all__ = ["CallShare", "EvidenceFacts", "EvidenceKind", "Levels", "WaitShare"]

EvidenceKind = Literal["waits", "cpu", "stacks", "syscalls", "plans"]
"""What may be asked for: what sessions wait for, processor time in user mode and in the kernel, stacks of
calls, system calls; plans are always kept."""


@dataclass(frozen=True, slots=True)
class WaitShare:
    """What sessions did for an operation on average: on a processor (CPU), or a wait by class and event."""

    name: str
    operation_ns: float
    share: float


@dataclass(frozen=True, slots=True)
class CallShare:
    """A system call: calls an operation, and the time in them, waiting included."""

    name: str
    operation_calls: float
    operation_ns: float


@dataclass(frozen=True, slots=True)
class EvidenceFacts:
    """One variant's evidence in one cell.

    `operations` succeeded in `elapsed_ns`. `user_ns` and `system_ns` are the server's processor time an
    operation, of all its processes; None where not known. `system_share` is the kernel's part of it. `stacks`
    counts samples of stacks. `entered` says where the kernel's part goes and who asked for it, most first.
    `findings` are sentences; `lacks` say what could not be seen.
    """

    cell: Levels
    workload: str
    variant: str
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
    lacks: tuple[str, ...]
