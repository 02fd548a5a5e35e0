"""What a guard asks, and what it finds: gates, the two sides, and what became of each gate.

A *gate* is a demand on the candidate, such as ``latency_p99 < +5%``: kept, broken, or not decided. Wherever a
number is asked about, *broken* means that the candidate is shown to be worse than the baseline and that the
estimate lies beyond the gate's bound; *kept* means that its whole interval lies within the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from uncork.model.evidence import Levels
from uncork.model.results.run_comparison import EnvironmentDifference

__all__ = [
    "GUARD_VERSION",
    "Acknowledgement",
    "Bound",
    "Gate",
    "GateCheck",
    "GateOutcome",
    "GuardResult",
    "GuardSide",
    "PlanDifference",
    "Relation",
    "SideDifference",
    "guard_status",
]

GUARD_VERSION = 1
"""Raised whenever a field of the JSON form changes its meaning or goes away."""

Bound = Literal["ratio", "difference", "value", "unchanged"]
Relation = Literal["<", "<=", ">", ">=", "="]


class GateOutcome(StrEnum):
    """What became of a gate."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "not decided"
    ACKNOWLEDGED = "acknowledged"
    """Broken, but a change that somebody wrote down as known, with a reason."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A demand as it was written (`text`), and what it says.

    `metric` is the name of a metric or cost (``latency_p99``, ``throughput``, ``success``, ``queries``, ...)
    or ``plan``. `bound` says what is compared with `limit`: the candidate's ratio to the baseline (1.05 is
    +5 %), of shares its difference from it (-0.01 is one percentage point less), its value in the base unit;
    or whether it is unchanged at all. `workload` is the only one it speaks of; empty for all.
    """

    text: str
    metric: str
    bound: Bound
    relation: Relation
    limit: float
    workload: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A change that is known and accepted: which gate, where, why, since when (ISO date), by whom if told.

    `until` is the last day on which it holds; empty for ever. `limit` is how far it may go: a broken gate
    whose estimate lies beyond is broken all the same; None for no bound.
    """

    gate: str
    workload: str
    reason: str
    date: str
    by: str = ""
    until: str = ""
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One gate on one workload in one cell: what was found, and what became of it.

    `baseline` and `candidate` are values in the base unit (nanoseconds, bytes, a share, a number); `ratio`,
    `low` and `high` the effect with its interval, of shares of success the difference. None where there is
    none. `confirmed` says whether a second measurement, made for that, found it broken too; None where none
    was needed. `reason` is a clause without full stop. `by_round` holds what each round measured: its number,
    the baseline's value and the candidate's, None where a side has none.
    """

    gate: Gate
    cell: Levels
    workload: str
    outcome: GateOutcome
    reason: str
    baseline: float | None = None
    candidate: float | None = None
    unit: Literal["ns", "B", "/s", "share", ""] = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    confirmed: bool | None = None
    acknowledgement: Acknowledgement | None = None
    doubts: tuple[str, ...] = ()
    by_round: tuple[tuple[int, float | None, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class GuardSide:
    """One of the two things compared. `what` lists what makes it: ``commit 1a2b3c4``, ``work_mem = 4MB``."""

    role: Literal["baseline", "candidate"]
    title: str
    what: tuple[str, ...] = ()
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """How the plan of a statement differs between the sides.

    `kind` tells a changed plan (another shape) from an unchanged one for which the planner only expects other
    numbers (other statistics). `text` is a unified diff of shapes, or the nodes with both estimates.
    """

    cell: Levels
    workload: str
    statement: str
    kind: Literal["changed", "statistics"]
    text: str


@dataclass(frozen=True, slots=True)
class SideDifference:
    """What an operation takes of something on either side: it may explain a gate, and is none itself.

    `kind` says of what: a cost (processor time, buffers, WAL, ...), what sessions wait for, system calls (how
    many), or a frame's share of the server's processor time. None where a side was not seen.
    """

    cell: Levels
    workload: str
    kind: Literal["cost", "wait", "call", "frame"]
    name: str
    unit: Literal["ns", "B", "share", ""]
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class GuardResult:
    """Everything a guard says. `status` is its exit status: 0 all kept, 3 one broken, 4 one not decided.

    `against` says whether the sides were measured side by side, or the candidate alone and compared with
    comparable runs of before. `runs` are the stored runs that it rests on, the confirmation's last. `unused`
    are acknowledgements that nothing needed. `baseline` of a guard against history is what stands for it.

    `name` is the experiment's or load's, the same whenever the same is guarded. `differences` hold what may
    explain the gates, `settings` what else differs between the sides, besides what the sides are made of.
    """

    id: str
    question: str
    against: Literal["side by side", "history"]
    baseline: GuardSide
    candidate: GuardSide
    status: Literal[0, 3, 4]
    answer: str
    reasons: tuple[str, ...]
    checks: tuple[GateCheck, ...]
    plans: tuple[PlanDifference, ...]
    runs: tuple[str, ...]
    confidence: float
    elapsed_ns: int
    reproduce: str
    uncork_version: str
    started_at: str
    warnings: tuple[str, ...] = ()
    unused: tuple[Acknowledgement, ...] = ()
    name: str = ""
    differences: tuple[SideDifference, ...] = ()
    settings: tuple[EnvironmentDifference, ...] = ()
    version: int = field(default=GUARD_VERSION)


def guard_status(checks: Iterable[GateCheck]) -> Literal[0, 3, 4]:
    """Return the exit status of a guard: 0 all kept, 3 one broken, 4 one not decided."""
    outcomes = {one.outcome for one in checks}
    return 3 if GateOutcome.BROKEN in outcomes else 4 if GateOutcome.UNDECIDED in outcomes else 0
