"""A finished load, as in the report and the JSON document; times are nanoseconds, sizes bytes.

`uncork.model.load` defines the terms.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from uncork.model.bottleneck import Bottleneck
from uncork.model.database.finding import Finding
from uncork.model.load import ArrivalKind, LoadOutcome, Protocol, Stalls
from uncork.model.records import Record
from uncork.model.system import SystemUse

HttpProtocol = Literal["HTTP/1.1", "HTTP/2", "HTTP/3", "HTTP/2 or HTTP/1.1"]
LOAD_RESULT_VERSION = 1


class Distribution(Record):
    """Times in nanoseconds; of successes only. All but `count` are None if there are none.

    `points` are (quantile, nanoseconds) in ascending order, from an HDR histogram of three significant
    digits.
    """

    count: int
    mean_ns: float | None = None
    stddev_ns: float | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    p9999_ns: int | None = None
    points: tuple[tuple[float, float], ...] = ()


class LoadRunFacts(Record):
    """Which run this is and how it went.

    `elapsed_ns` is the measured part. `reproduce` is the command that repeats the load. `start_late_ns` is
    how long after its start time the load started; None if it had none.
    """

    id: str
    status: str
    outcome: LoadOutcome
    message: str | None
    started_at: str
    elapsed_ns: int
    server: str
    reproduce: str
    uncork_version: str
    start_late_ns: int | None = None


class LoadSettings(Record):
    """How the load was sent: see `LoadSpec` and `HttpSpec`. `operations` counts those of all clients.

    `warmup_ns` is how long the load was sent before it was measured; nothing of that is counted. `recorded`
    says how the transactions of a recording were sent: as their sessions did (replay), or in random order.
    """

    clients: int
    max_clients: int
    threads: int
    protocol: Protocol | HttpProtocol
    pipeline_depth: int
    arrivals: ArrivalKind | None
    rate: float | None
    burst_size: int | None
    latency_limit_ns: int | None
    max_tries: int
    connect_each: bool
    operations_each: int | None
    duration_ns: int | None
    seed: int
    variables: dict[str, str]
    operations: int | None = None
    request_timeout_ns: int | None = None
    on_close: Literal["reconnect", "stop"] | None = None
    warmup_ns: int = 0
    recorded: Literal["replay", "mix"] | None = None

    @property
    def open_loop(self) -> bool:
        """Whether operations arrive at times of their own (an open loop)."""
        return self.arrivals is not None


class FailureFacts(Record):
    """Transactions that failed in the same statement with the same SQLSTATE; see `FailureTotals`."""

    code: str
    number: int
    script: str
    line: int | None
    statement: str | None
    message: str


class LoadCounts(Record):
    """Counts, with the identities of `uncork.model.load.LoadTotals`.

    `failures` divides `errors` by statement, the most frequent first; at most 100 kinds, and none for HTTP.
    """

    started: int
    succeeded: int
    failed: int
    arrivals: int | None
    skipped: int
    unsent: int
    late: int
    retried: int
    errors: dict[str, int]
    connect_errors: dict[str, int]
    retries: dict[str, int]
    first_error: str | None
    rows: int
    statements: int
    round_trips: int
    sent_bytes: int
    received_bytes: int
    failures: tuple[FailureFacts, ...] = ()


class Connections(Record):
    """Connections of a load. The times include authentication; None if none was opened."""

    opened: int
    lost: int
    most: int
    mean_ns: float | None
    max_ns: int | None


class GeneratorFacts(Record):
    """What the generator and the server used, and whether the generator was the bottleneck.

    `busiest_thread` is the processor time of its busiest thread as a fraction of its working time, 0 to 1.
    The server's processor time is None if its processes are not visible here. `limit` says whether the
    generator was the bottleneck, `sentence` explains it; None and empty if nothing was measured.
    """

    user_ns: int
    system_ns: int
    busiest_thread: float
    steal_ns: int
    throttled_ns: int | None
    server_user_ns: int | None
    server_system_ns: int | None
    limit: Literal["no", "perhaps", "yes"] | None
    sentence: str


class HttpFacts(Record):
    """Details of an HTTP load; see `uncork.model.load.HttpTotals`.

    Identities: ``planned = counts.started + not_started`` if `planned` is known; ``counts.started =
    counts.succeeded + failed + errored + timed_out + cut_short``. `failed` answers had a wrong status or
    failed a check, `errored` requests received no complete answer, `timed_out` ones none in time, `cut_short`
    ones were in flight when the load ended. Of the last three, `unprocessed` were certainly not processed by
    the server; the others may have been. `tls` is None without encryption. `logins` are the steps that each
    client carried out before its first request; `counts` does not include them.
    """

    planned: int | None
    not_started: int
    failed: int
    errored: int
    timed_out: int
    cut_short: int
    unprocessed: int
    statuses: dict[str, int]
    header_bytes: int
    header_plain_bytes: int
    body_bytes: int
    stalls: Stalls
    closed: int
    closed_least: int
    closed_most: int
    goaways: int
    udp_dropped: int
    first_byte: Distribution
    tls: Distribution | None
    logins: tuple[LoginFacts, ...] = ()


class LoginFacts(Record):
    """One step of the login of an HTTP load, over all clients."""

    name: str
    executions: int
    errors: int
    latency: Distribution


class ScriptFacts(Record):
    """One script: its text, its weight as a share (0 to 1), and its operations' latencies.

    The rest is for requests of HTTP only: bytes before encryption,
    failures by kind, and the first message of each kind.
    """

    name: str
    weight: int
    share: float
    text: str
    executions: int
    errors: int
    latency: Distribution
    sent_bytes: int | None = None
    received_bytes: int | None = None
    errors_by_kind: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)


class StatementFacts(Record):
    """One statement of a script and its service times. `line` is its line in the script's text."""

    script: str
    line: int | None
    name: str
    executions: int
    errors: int
    rows: int
    latency: Distribution


class SecondFacts(Record):
    """One interval of the series, over all scripts; there is one for each second of the load.

    Latencies are None if nothing succeeded in it. `statuses` counts the answers of HTTP whose header arrived
    in it, by status; over all intervals they add up to `HttpFacts.statuses`.
    """

    start_ns: int
    length_ns: int
    started: int
    succeeded: int
    failed: int
    skipped: int
    retries: int
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    statuses: dict[str, int] = field(default_factory=dict)


class SteadyFacts(Record):
    """Whether a load was steady, judged by a metric of each of its whole seconds (`uncork.stats.steady`).

    ``steady``: from its start. ``warm-up``: from `start_ns` on; throughput, p50 and p99 are of that part, and
    None otherwise. ``not steady``: `start_ns` is where a warm-up seems to end, if too few seconds followed to
    be sure.
    """

    verdict: Literal["steady", "warm-up", "not steady"]
    metric: Literal["throughput", "p50"]
    seconds: int
    start_ns: int | None
    operations_per_second: float | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None


class PartFacts(Record):
    """One part of a load that several processes sent; None where it is not known.

    Identity: ``planned = started + not_started + unknown`` if `planned` is known. `unknown` operations were
    perhaps begun, by a part that was killed, lost or is missing. `ended` says how the part ended, `seconds`
    after how many seconds. `start_late_ns` is how long after the start time it started, `began_after_ns` how
    long after the first part, by the wall clocks. `limit` says whether its generator was the bottleneck.
    `disagrees` has the factors by which its quantiles and throughput differ from those of the other parts, if
    they do.

    Only a part from a node of a cluster has what follows. The node's clock was ahead by `clock_offset_ns`,
    within ±`clock_bound_ns`, and at the end by `clock_drift_ns` more. If the node was lost, `lost` is the
    reason, and `lost_s` the second at which this was noticed.
    """

    number: int
    run: str | None
    host: str
    ended: str
    seconds: float
    planned: int | None
    started: int
    not_started: int | None
    unknown: int | None
    start_late_ns: int | None
    began_after_ns: int | None
    limit: Literal["no", "perhaps", "yes"] | None
    operations_per_second: float
    p50_ns: int | None
    p99_ns: int | None
    disagrees: dict[str, float]
    clock_offset_ns: int | None = None
    clock_bound_ns: int | None = None
    clock_drift_ns: int | None = None
    lost: str | None = None
    lost_s: float | None = None


class PartsFacts(Record):
    """The parts of a merged load. `without` is the load without the parts whose generators were the limit.

    `without` has operations a second, and p50 and p99 in nanoseconds; None if there are no such parts, or
    only such.
    """

    count: int
    parts: tuple[PartFacts, ...]
    without: tuple[float, int | None, int | None] | None


LoadStepName = Literal[
    "generator",
    "pool",
    "network",
    "commit",
    "parse",
    "bind",
    "plan",
    "locks",
    "storage",
    "execute",
    "server",
    "unknown",
]


class LoadStep(Record):
    """How long a transaction spent in one step on average, and which share of its time that is.

    `generator` is the time between its statements, in the generator. `pool` is the wait for a connection of
    PgBouncer, which its console counts. `network` is the time that its round trips take at least: that of
    empty statements on an idle connection. `commit` is the wait for the write-ahead log, from samples.
    `parse` and `bind` are durations in the server's log; `bind` is without `plan`, if that is known. `plan`
    is counted by pg_stat_statements, and so is what `locks` and `storage` (waits of statements, from samples)
    and `execute` add up to. `server` is what samples see beyond that: sending results, waiting for a
    processor, and parsing unless it is a step. `unknown` is the rest.
    """

    name: LoadStepName
    ns: float
    share: float


class StepGap(Record):
    """A step that no source counted, and why: its time is in other steps.

    A step `pool` is missing if the load goes through a pooler whose console was not read (*no source*), did
    not count all statements of the load (*incomplete*), or also counted those of other clients (*others*). A
    step `parse` is missing without logs (*no source*), if the logs lack statements (*incomplete*) or have
    those of others (*others*), if their lines do not say what took the time (*unlabelled*), or with the
    simple protocol (*simple protocol*), whose durations contain everything. `seen` of `sent` statements are
    in the source; both are None unless the source was read.
    """

    name: Literal["pool", "parse"]
    reason: Literal["no source", "incomplete", "others", "unlabelled", "simple protocol"]
    seen: int | None = None
    sent: int | None = None


class LoadResult(Record):
    """Everything in a report on a load.

    `answer` is the first sentence a reader sees; `warnings` are one sentence each. `operation` is latency
    from the intended start, `service` from the actual start; in a closed loop both are the same. `lateness`
    is None in a closed loop. `bottlenecks` are the resources that limited the load, the gravest first, if the
    components behind the load were observed; `missing` lists the others. `parts` is None unless the load was
    merged from its parts. `findings` are about `database`, the server that was watched as
    ``user@host:port/database``, the costliest first; both are None if none was watched. `steady` is None if
    the load was too short to judge. `steps` are those of a transaction while the load was watched, and add up
    to its mean time; empty unless their sources could be read. `step_gaps` are steps that no source counted.
    """

    run: LoadRunFacts
    answer: str
    warnings: tuple[str, ...]
    settings: LoadSettings
    operations_per_second: float
    counts: LoadCounts
    operation: Distribution
    service: Distribution
    lateness: Distribution | None
    connect: Distribution
    connections: Connections
    generator: GeneratorFacts
    scripts: tuple[ScriptFacts, ...]
    statements: tuple[StatementFacts, ...]
    series: tuple[SecondFacts, ...]
    environment: dict[str, dict[str, str]]
    system: SystemUse | None = None
    http: HttpFacts | None = None
    bottlenecks: tuple[Bottleneck, ...] = ()
    missing: tuple[str, ...] = ()
    parts: PartsFacts | None = None
    findings: tuple[Finding, ...] | None = None
    database: str | None = None
    steady: SteadyFacts | None = None
    steps: tuple[LoadStep, ...] = ()
    step_gaps: tuple[StepGap, ...] = ()
    kind: Literal["load"] = "load"
    version: int = LOAD_RESULT_VERSION


TOGETHER_VERSION = 1


class TogetherRunFacts(Record):
    """Which run this is and how it went; `reproduce` is the command that repeats it."""

    id: str
    status: str
    started_at: str
    reproduce: str
    uncork_version: str


class LoadOfTogether(Record):
    """One of the loads, with the report that it would have alone. `name` is ``sql``, ``http-2``, ..."""

    name: str
    load: LoadResult


class TogetherResult(Record):
    """Everything in a report on loads that started together.

    All seconds count from the same instant. `apart_ns` is how long after the first load the last one started.
    `answer` is the first sentence a reader sees; `warnings` are one sentence each.
    """

    run: TogetherRunFacts
    answer: str
    warnings: tuple[str, ...]
    apart_ns: int
    loads: tuple[LoadOfTogether, ...]
    kind: Literal["together"] = "together"
    version: int = TOGETHER_VERSION
