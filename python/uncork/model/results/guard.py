"""The request of a guard and its result: gates, the two sides, and the outcome of each gate.

A *gate* is a requirement on the candidate, such as ``latency_p99 < +5%``: kept, broken, or undecided. For
gates on numbers, *broken* means that the candidate is shown to be worse than the baseline and that the
estimate lies beyond the gate's bound; *kept* means that its whole interval lies within the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Literal

from uncork.model.records import Record
from uncork.model.results.gate_metrics import GATE_METRICS, OWN_METRIC, GateMetric, own_metric
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.variant_evidence import Levels

GUARD_VERSION = 1

Bound = Literal["ratio", "difference", "value", "unchanged"]
Relation = Literal["<", "<=", ">", ">=", "="]


class GateOutcome(StrEnum):
    """The outcome of a gate."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "not decided"
    ACKNOWLEDGED = "acknowledged"
    """Broken, but by a change that somebody acknowledged, with a reason."""


class Gate(Record):
    """A requirement as it was written (`text`), and its meaning.

    `metric` is the name of a metric or cost (``latency_p99``, ``throughput``, ``success``, ``queries``, ...)
    or ``plan``. `bound` says what is compared with `limit`: the candidate's ratio to the baseline (1.05 is +5
    %), for shares its difference (-0.01 is one percentage point less), its value in the base unit, or whether
    it is unchanged. `workload` is the only one that the gate covers; empty for all.
    """

    text: str
    metric: str
    bound: Bound
    relation: Relation
    limit: float
    workload: str = ""


def metric_of(gate: Gate) -> GateMetric:
    """Return the metric of a gate. Raises KeyError if there is no such metric, as for the same answer."""
    if gate.metric.startswith(OWN_METRIC):
        better: Literal["lower", "higher"] = "lower" if gate.relation in ("<", "<=") else "higher"
        return own_metric(gate.metric.removeprefix(OWN_METRIC), better)
    return GATE_METRICS[gate.metric]


def known_metric(gate: Gate) -> GateMetric | None:
    """Return the metric of a gate; None if it has none, as the gate on the same answer."""
    known = gate.metric in GATE_METRICS or gate.metric.startswith(OWN_METRIC)
    return metric_of(gate) if known else None


class Acknowledgement(Record):
    """An accepted change: which gate, where, why, since when (ISO date), and by whom if given.

    `until` is the last day on which it is valid; empty means no end. `limit` is how far the change may go: a
    broken gate whose estimate lies beyond it stays broken; None means no limit.
    """

    gate: str
    workload: str
    reason: str
    date: str
    by: str = ""
    until: str = ""
    limit: float | None = None


class GateCheck(Record):
    """One gate on one workload in one cell: the measurement, and the outcome.

    `baseline` and `candidate` are values in the base unit (nanoseconds, bytes, a share, a number); `ratio`,
    `low` and `high` the effect with its interval, for shares of success the difference; None if there is
    none. `confirmed` says whether a second measurement found it broken too; None if none was needed. `reason`
    is a clause without full stop. `by_round` holds each round: its number, the baseline's value and the
    candidate's, None if a side has none.
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
    warnings: tuple[str, ...] = ()
    by_round: tuple[tuple[int, float | None, float | None], ...] = ()


class GuardSide(Record):
    """One of the two sides. `what` lists what defines it: ``commit 1a2b3c4``, ``work_mem = 4MB``."""

    role: Literal["baseline", "candidate"]
    title: str
    what: tuple[str, ...] = ()
    commit: str | None = None


class PlanDifference(Record):
    """How the plan of a statement differs between the sides.

    `kind` distinguishes a changed plan (another shape) from the same plan with other estimates (other
    statistics). `text` is a unified diff of shapes, or the nodes with both estimates.
    """

    cell: Levels
    workload: str
    statement: str
    kind: Literal["changed", "statistics"]
    text: str


class SideDifference(Record):
    """What an operation uses on either side: it may explain a gate, and is not a gate itself.

    `kind` is a cost (processor time, buffers, WAL, ...), a wait of sessions, a system call (how many), or a
    frame's share of the server's processor time. None if a side was not observed.
    """

    cell: Levels
    workload: str
    kind: Literal["cost", "wait", "call", "frame"]
    name: str
    unit: Literal["ns", "B", "share", ""]
    before: float | None
    after: float | None


class GuardResult(Record):
    """The result of a guard. `status` is its exit status: 0 all kept, 3 one broken, 4 one undecided.

    `against` says whether the sides were measured side by side, or only the candidate, compared with earlier
    comparable runs. `runs` are the stored runs that it rests on, the confirmation's last. `unused` are
    acknowledgements that nothing needed. The `baseline` of a guard against history describes those runs.

    `name` is that of the experiment or load, the same for repeated guards. `differences` may explain the
    gates; `settings` lists what else differs between the sides. `hosts` is on how many hosts of a cluster
    each side was measured, in so many `waves`; 0 on this machine alone.
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
    hosts: int = 0
    waves: int = 0
    version: int = field(default=GUARD_VERSION)


def guard_status(checks: Iterable[GateCheck]) -> Literal[0, 3, 4]:
    """Return the exit status of a guard: 0 all kept, 3 one broken, 4 one undecided."""
    outcomes = {check.outcome for check in checks}
    return 3 if GateOutcome.BROKEN in outcomes else 4 if GateOutcome.UNDECIDED in outcomes else 0
