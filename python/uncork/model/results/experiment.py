"""A finished experiment, as in the report, the JSON document and notebooks.

`RunResult` is built from stored trials and their judgement. It is the JSON report, so each field here is
public: times are nanoseconds, sizes bytes, ratios to the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final, Literal

from uncork.model.records import Record
from uncork.model.stored_run import RunStatus
from uncork.model.system import SystemUse
from uncork.model.variant_evidence import EvidenceFacts, Levels, VariantRecord
from uncork.model.verdict import Direction, Verdict

__all__ = [
    "RESULT_VERSION",
    "AnswerDifference",
    "ArmMetric",
    "ArmSystem",
    "BatchFacts",
    "Comparison",
    "Cost",
    "CrossoverPoint",
    "DataCheckFacts",
    "EngineFacts",
    "FactorFacts",
    "LatencyCurve",
    "Levels",
    "NoiseFloor",
    "OwnMetricFacts",
    "PlanFacts",
    "PublishedFigure",
    "RequestCounts",
    "RunFacts",
    "RunResult",
    "SizeFacts",
    "SliceCheckFacts",
    "VariantFacts",
    "WorkloadFacts",
]

RESULT_VERSION = 1


class RunFacts(Record):
    """Which run this is and how it went.

    `elapsed_ns` is wall-clock time over all attempts (a resumed run has several). `stopped_because` is a
    sentence. `reproduce` is the command that repeats the measurement. `setup_ns` is the time until the first
    trial; None if it is unknown, or the run was resumed.
    """

    id: str
    name: str
    question: str
    status: RunStatus
    started_at: str
    elapsed_ns: int
    seed: int
    rounds: int
    trials: int
    failed_trials: int
    stopped_because: str
    reproduce: str
    uncork_version: str
    setup_ns: int | None = None


class VariantFacts(Record):
    """One answer to the question. `values` are its texts substituted into the SQL.

    `services` lists what it changes in services and in how requests are sent, without secrets.
    """

    name: str
    title: str
    baseline: bool
    values: dict[str, str]
    settings: dict[str, str]
    engine: str = "postgresql"
    services: tuple[str, ...] = ()


class EngineFacts(Record):
    """One of several engines that variants ran on, and the overhead of its client.

    `overhead_p50_ns` and `overhead_p99_ns` are the latency of a statement that does nothing, sent by the
    client of the trials. The client adds less than that to an operation, apart from converting rows to
    values. None if it was not measured. `client_cpu_ns` is the client's processor time for it; None if engine
    and client share a process, whose whole time then counts as the server's.
    """

    name: str
    title: str
    version: str
    variants: tuple[str, ...]
    shares_process: bool
    overhead_p50_ns: int | None
    overhead_p99_ns: int | None
    client_cpu_ns: float | None


class FactorFacts(Record):
    """A factor of the experiment. `numeric` means that its levels are numbers, so they fit on an axis."""

    name: str
    levels: tuple[str, ...]
    numeric: bool


class WorkloadFacts(Record):
    """A workload. `sql` is the text as written, before substitution; `clients` is a number, or a factor.

    For a workload by HTTP, `requests` are method and path of each kind, as written, and `protocol` gives the
    version. `practical` is the difference that matters for it, if it sets one. `cache` says what is in memory
    when a trial begins: warm, cold, or as-is.
    """

    name: str
    title: str
    sql: tuple[str, ...]
    metric: str
    better: Literal["lower", "higher"]
    clients: int | str
    protocol: str
    state: str
    answer: str
    stop: str
    requests: tuple[str, ...] = ()
    practical: float | None = None
    cache: str = "warm"


class RankEffect(Record):
    """The ratio of a variant's metric to the baseline's by Hodges and Lehmann, with its interval."""

    ratio: float
    low: float
    high: float


class Comparison(VariantRecord):
    """A variant against the baseline in one cell under one workload.

    `ratio`, `low` and `high` are the effect and its interval; None if there is none (refused, skipped,
    nothing measured; an infinite bound is None too). `published_ratio` is the number of the source that a
    case reproduces. `value` and `baseline_value` are geometric means of the metric over rounds.

    `direction` says which is faster as soon as the data show it, and is None before. "not enough evidence"
    with a direction means that the direction is known but the size is not; without one, neither is known.

    Shares of success are compared by their `difference`, the variant's minus the baseline's (0.011 is 1.1
    percentage points more), with `difference_low` and `difference_high`; `ratio`, `low` and `high` are then
    None, and the values are the shares.

    `scopes` is set in a run that was merged from several hosts; `rounds` counts hosts if the interval is the
    one about hosts like these. `ranks` is the same effect by ranks, a check of the interval; None with too
    few rounds, for shares of success, and over several hosts. In `agreeing` of the `rounds` the variant was
    on the estimate's side of no effect; None for shares of success. `rounds_needed` is how many rounds in all
    will probably decide an open comparison; None if it is decided, for shares of success, over several hosts,
    and if that cannot be said.
    """

    verdict: Verdict
    reason: str
    ratio: float | None
    low: float | None
    high: float | None
    rounds: int
    std_dev: float | None
    e_value: float | None
    value: float | None
    baseline_value: float | None
    published_ratio: float | None = None
    published_value: float | None = None
    warnings: tuple[str, ...] = ()
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    direction: Direction | None = None
    scopes: HostScopes | None = None
    ranks: RankEffect | None = None
    agreeing: int | None = None
    rounds_needed: int | None = None


class NoiseFloor(Record):
    """What the A/A arms showed: the baseline against itself, in every block.

    `floor` is the relative difference that noise alone can produce in this run (0.03 is 3 %); `comparisons`
    holds the A/A effects, with the baseline's name as the variant.
    """

    floor: float | None
    sentence: str
    false_alarms: int
    comparisons: tuple[Comparison, ...]


class SliceCheckFacts(VariantRecord):
    """Whether a comparison gives the same effect with short slices and with slices five times as long.

    `ratio` is the effect by short slices over the effect by long ones, with its interval from `low` to
    `high`: 1 if the length does not matter; None if unknown, or for an infinite bound. `rounds` counts the
    rounds of long slices. `disturbed` means that short slices disturbed each other, so that only long ones
    count.
    """

    rounds: int
    ratio: float | None
    low: float | None
    high: float | None
    disturbed: bool


class ArmMetric(VariantRecord):
    """The measured trials of one arm in one cell under one workload."""

    again: bool
    trials: int
    failed: int
    value: float | None
    by_round: tuple[tuple[int, float], ...]


class Cost(VariantRecord):
    """Resources an operation, averaged over the trials of one variant in one cell under one workload.

    None if neither the server nor the machine reports it. `hot_share` is the fraction of updated rows whose
    indexes stayed as they were (HOT).
    """

    operations: int
    server_user_ns: float | None
    server_system_ns: float | None
    client_user_ns: float | None
    client_system_ns: float | None
    shared_hit: float | None
    shared_read: float | None
    shared_dirtied: float | None
    temp_bytes: float | None
    wal_bytes: float | None
    wal_records: float | None
    rows: float | None
    sent_bytes: float | None
    received_bytes: float | None
    service_user_ns: float | None = None
    service_system_ns: float | None = None
    queries: float | None = None
    hot_share: float | None = None

    @property
    def kernel_share(self) -> float | None:
        """The kernel's part of the server's processor time, 0 to 1; None if unknown."""
        user_ns, system_ns = self.server_user_ns, self.server_system_ns
        if user_ns is None or system_ns is None or user_ns + system_ns == 0:
            return None
        return system_ns / (user_ns + system_ns)


class CostEffect(VariantRecord):
    """How a variant changes one cost of an operation; `cost` is its name in `COSTS`.

    Costs have a `ratio` to the baseline's, shares a `difference` in [-1, 1]; the other is None. The intervals
    are those of effects: by the same units, valid at every look, each on its own at the run's confidence.
    Missing bounds are None. `exact` costs are equal in all trials of each side, so they have no noise.
    """

    cost: str
    rounds: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    exact: bool = False


class RequestCounts(VariantRecord):
    """How the requests of one variant in one cell under one workload ended, over its complete trials.

    ``started = succeeded + failed``. `low` and `high` are an interval for the share that succeeds, valid at
    any look. It treats requests as independent and is too narrow if they fail together (the comparison's is
    not). `statuses` counts answers by status, `errors` failures by kind; `timed_out` of them were too late.
    `throughput` is requests a second over all its trials, `mean_ns` and `longest_ns` are times of received
    answers; None if there were none.
    """

    started: int
    succeeded: int
    failed: int
    timed_out: int
    low: float
    high: float
    statuses: dict[str, int]
    errors: dict[str, int]
    throughput: float | None = None
    mean_ns: float | None = None
    longest_ns: int | None = None

    @property
    def share(self) -> float:
        """The share that succeeded."""
        return self.succeeded / self.started if self.started else 0.0


class AnswerDifference(VariantRecord):
    """Where a variant's answers first differ from the baseline's, in a workload that allows it."""

    difference: str


class ArmSystem(VariantRecord):
    """What machine and processes did in the trials of one variant in one cell under one workload.

    `operations` counts those begun in these trials.
    """

    operations: int
    use: SystemUse


class BatchFacts(VariantRecord):
    """How one variant sends the rows of a batch; one operation is a batch.

    `rows` are those of a batch, `chunk` those of one statement. `executions` counts the statements that the
    server executes for a batch, `round_trips` how often the client waits (BEGIN and COMMIT included),
    `commits` its transactions. `implicit` means that the batch is one transaction although nothing says
    BEGIN.
    """

    strategy: str
    rows: int
    chunk: int
    executions: int
    round_trips: int
    commits: int
    implicit: bool


class PublishedFigure(Record):
    """A published number, before and after or alone, and what corresponds to it in this run.

    `published_ratio` is after / before. `cost` names what corresponds (empty: nothing): a cost, or the
    workload's metric. `variants` names the variants before and after, or the only one, and `measured` gives
    their values a row of a batch, else an operation, in `unit`; None if it was not measured. `note` says what
    differs, and why.
    """

    name: str
    before: str
    after: str
    published_ratio: float | None
    cost: str
    unit: Literal["ns", "B", "share", "/s", ""]
    cell: Levels
    workload: str
    variants: tuple[str, ...]
    measured: tuple[float, ...] | None
    note: str


class DataCheckFacts(Record):
    """The answer of a variant's data to a question, as text; None if its query returned no row."""

    cell: Levels
    variant: str
    name: str
    title: str
    value: str | None


class OwnMetricFacts(Record):
    """A metric of the experiment file over the complete trials of a variant on a workload in a cell."""

    name: str
    workload: str
    cell: Levels
    variant: str
    better: Literal["lower", "higher"]
    mean: float
    least: float
    most: float
    trials: int


class SizeFacts(Record):
    """One table or index of a variant in a cell. `depth` is a B-tree's levels below the root, if known."""

    cell: Levels
    variant: str
    relation: str
    kind: Literal["table", "index"]
    table: str
    bytes: int
    rows: float | None
    depth: int | None


class PlanFacts(VariantRecord):
    """The executed plan of one statement, outside the timed trials.

    `text` is EXPLAIN's own text form. `difference` is a unified diff of the plan's shape against the
    baseline's; empty if they are alike or if this is the baseline. `plan_hash` is equal for plans with the
    same nodes, tables and indexes, whatever their numbers; None if the engine is not PostgreSQL.
    """

    statement: str
    text: str
    shape: str
    difference: str
    buffers: int | None
    execution_ns: float | None
    plan_hash: str | None = None


class LatencyCurve(VariantRecord):
    """The latency distribution of one variant's operations, all trials merged without loss.

    `points` are (quantile, nanoseconds) in ascending order.
    """

    executions: int
    points: tuple[tuple[float, float], ...]


class CrossoverPoint(Record):
    """Where along a numeric factor the best variant changes.

    `fixed` holds the levels of the other factors. `estimate` lies between `low` and `high`; `supported`
    says that the verdicts on both sides are clear.
    """

    factor: str
    fixed: Levels
    workload: str
    below: str
    above: str
    low: float
    high: float
    estimate: float
    supported: bool


class RunResult(Record):
    """Everything in a report on an experiment.

    `answer` is the first sentence a reader sees, `reasons` the sentences that support it. `disturbances`
    counts trials by what disturbed them. `correction` states how many comparisons share the error rate.
    """

    run: RunFacts
    answer: str
    reasons: tuple[str, ...]
    correction: str
    confidence: float
    practical: float
    precision: float
    variants: tuple[VariantFacts, ...]
    factors: tuple[FactorFacts, ...]
    workloads: tuple[WorkloadFacts, ...]
    comparisons: tuple[Comparison, ...]
    noise: NoiseFloor
    metrics: tuple[ArmMetric, ...]
    costs: tuple[Cost, ...]
    sizes: tuple[SizeFacts, ...]
    plans: tuple[PlanFacts, ...]
    latencies: tuple[LatencyCurve, ...]
    crossovers: tuple[CrossoverPoint, ...]
    disturbances: dict[str, int]
    environment: dict[str, dict[str, str]]
    source: str | None = None
    warnings: tuple[str, ...] = ()
    batches: tuple[BatchFacts, ...] = ()
    figures: tuple[PublishedFigure, ...] = ()
    systems: tuple[ArmSystem, ...] = ()
    engines: tuple[EngineFacts, ...] = ()
    evidence: tuple[EvidenceFacts, ...] = ()
    requests: tuple[RequestCounts, ...] = ()
    answers: tuple[AnswerDifference, ...] = ()
    growth: GrowthFacts | None = None
    data_checks: tuple[DataCheckFacts, ...] = ()
    own_metrics: tuple[OwnMetricFacts, ...] = ()
    cost_effects: tuple[CostEffect, ...] = ()
    slice_checks: tuple[SliceCheckFacts, ...] = ()
    hosts: tuple[HostFacts, ...] = ()
    version: int = field(default=RESULT_VERSION)


# ---- several hosts ----


class ScopeEffect(Record):
    """An effect from `count` observations, with its interval; an infinite bound is None."""

    count: int
    ratio: float | None
    low: float | None
    high: float | None


class HostScopes(Record):
    """What a comparison shows in two or three scopes; its own interval is the widest.

    `these_hosts` is the effect on the hosts that were measured, from their rounds. `hosts_like_these` is that
    on other hosts of the same kind, from one mean per host; None with too few hosts. `other_times` is that at
    other times, from one mean per wave; None with too few waves, or if hosts did not measure together.
    """

    these_hosts: ScopeEffect
    hosts_like_these: ScopeEffect | None
    other_times: ScopeEffect | None = None


class HostFacts(Record):
    """A host of an experiment that several measured, and its runs.

    `itself` is the effect of the baseline on itself in its rounds, in the cell and workload in which they
    differ most; None if nothing complete was measured. `odd` means that they differ by more than chance, at
    the error rate of the experiment for all hosts together. `lost` says why the host did not measure until
    the end, with the round that it measured then; empty if it did. `waves` is in how many waves it measured;
    0 if the runs were merged afterwards.
    """

    number: int
    name: str
    processor: str
    rounds: int
    runs: tuple[str, ...]
    itself: ScopeEffect | None
    odd: bool
    lost: str = ""
    waves: int = 0


# ---- growth along a factor ----


class GrowthLine(Record):
    """How the time of an operation grows for one variant under one workload.

    `fixed` holds the levels of the other factors. `sizes` rise; `times_ns` are geometric means over rounds of
    the mean time of an operation. `exponent` is the power of the size that time grows by, with its interval.
    `shapes` are the shapes that the times allow: logarithmic, power, linear. `expected_ns` is what they say
    of a round at the size asked for, `low_ns` and `high_ns` its interval; None where no shape is allowed.
    """

    fixed: Levels
    workload: str
    variant: str
    sizes: tuple[float, ...]
    times_ns: tuple[float, ...]
    rounds: int
    exponent: float
    exponent_low: float
    exponent_high: float
    shapes: tuple[str, ...]
    expected_ns: float | None
    low_ns: float | None
    high_ns: float | None


class GrowthFacts(Record):
    """What a run says of sizes that it did not measure: an extrapolation along `factor` to the size `to`.

    `lines` are empty where too few sizes or rounds were measured.
    """

    factor: str
    to: float
    confidence: float
    lines: tuple[GrowthLine, ...]


# ---- the costs of an operation that reports list, in their order ----

CostUnit = Literal["ns", "B", "", "share"]
HOT_UPDATES: Final = "HOT updates"
"""The cost that is a share: of updated rows, those whose indexes stayed as they were."""


class CostItem(Record):
    """One cost: its name, its base unit, and how to read it from a `Cost` (None if unknown).

    In a stored trial it is the sum of `columns`, divided by the column `over`.
    """

    name: str
    unit: CostUnit
    read: Callable[[Cost], float | None]
    columns: tuple[str, ...]
    over: Literal["started", "counted_operations", "updated"] = "counted_operations"


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _processor(who: Literal["server", "service", "client"]) -> tuple[str, str]:
    return f"{who}_user_ns", f"{who}_system_ns"


COSTS: Final = (
    CostItem(
        *("server CPU", "ns", lambda cost: _sum(cost.server_user_ns, cost.server_system_ns)),
        *(_processor("server"), "started"),
    ),
    CostItem(
        "server CPU in the kernel", "ns", lambda cost: cost.server_system_ns, ("server_system_ns",), "started"
    ),
    CostItem(
        *("service CPU", "ns", lambda cost: _sum(cost.service_user_ns, cost.service_system_ns)),
        _processor("service"),
    ),
    CostItem("service CPU in the kernel", "ns", lambda cost: cost.service_system_ns, ("service_system_ns",)),
    CostItem(
        *("client CPU", "ns", lambda cost: _sum(cost.client_user_ns, cost.client_system_ns)),
        *(_processor("client"), "started"),
    ),
    CostItem("buffers hit", "", lambda cost: cost.shared_hit, ("shared_hit",)),
    CostItem("buffers read", "", lambda cost: cost.shared_read, ("shared_read",)),
    CostItem("buffers dirtied", "", lambda cost: cost.shared_dirtied, ("shared_dirtied",)),
    CostItem("WAL", "B", lambda cost: cost.wal_bytes, ("wal_bytes",)),
    CostItem("WAL records", "", lambda cost: cost.wal_records, ("wal_records",)),
    CostItem(HOT_UPDATES, "share", lambda cost: cost.hot_share, ("hot_updated",), "updated"),
    CostItem("temporary files", "B", lambda cost: cost.temp_bytes, ("temp_bytes",)),
    CostItem("queries", "", lambda cost: cost.queries, ("queries",)),
    CostItem("rows", "", lambda cost: cost.rows, ("rows",), "started"),
    CostItem("sent", "B", lambda cost: cost.sent_bytes, ("sent_bytes",), "started"),
    CostItem("received", "B", lambda cost: cost.received_bytes, ("received_bytes",), "started"),
)
