"""The load of one trial: which statements, with which parameters, by how many clients, for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from uncork.model.server import Target

__all__ = ["LoadRequest", "Statement"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an operation: SQL with ``$1``... and the parameter column that each takes."""

    name: str
    sql: str
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """One trial's load. Exactly one of `operations` and `duration_ns` is given.

    `pin_cpu` is the processor that the generator's threads and their backends share; None leaves placement to
    the kernel.
    """

    target: Target
    statements: tuple[Statement, ...]
    parameters: Sequence[Sequence[str | None]]
    transaction: bool
    clients: int
    threads: int
    protocol: Literal["simple", "extended", "prepared"]
    warmup_operations: int
    operations: int | None
    duration_ns: int | None
    deadline_ns: int
    digest: Literal["none", "multiset", "ordered"] = "none"
    pin_cpu: int | None = None
