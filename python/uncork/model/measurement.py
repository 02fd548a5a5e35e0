"""The measurement of one trial, with the identities that its counts obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from uncork.model.records import Record
from uncork.model.system import Strain, SystemSeries


class Outcome(StrEnum):
    """How a trial ended. Only complete trials enter the statistics."""

    COMPLETE = "complete"
    DEADLINE = "deadline"
    """It reached its time limit and was stopped."""
    CONNECTION_LOST = "connection lost"
    """The server went away during the trial."""
    ERRORS = "errors"
    """The server answered, but some operations failed."""


class Disturbance(StrEnum):
    """What else happened on the machine during a trial. Disturbed trials are kept, counted and shown."""

    CHECKPOINT = "checkpoint"
    AUTOVACUUM = "autovacuum"
    STEAL = "steal"
    THROTTLING = "throttling"
    MEMORY = "memory pressure"
    """Tasks waited for memory."""
    OTHERS = "work of others"
    """Processes other than the server and the generator used processors."""


class Latency(Record):
    """Service times of one statement, or of the operation as a whole, in nanoseconds; successes only.

    `histogram` is an HDR histogram in its V2 serialised form (three significant digits).
    """

    name: str
    executions: int
    sum_ns: int
    min_ns: int
    max_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    histogram: bytes


class Slice(Record):
    """The measurement of one slice of a block: `arm` is its place in the block, `cycle` counts from 0.

    `begun_ns` counts from the block's first slice. `sum_ns` adds up the latencies of the operations that
    succeeded. `waited_ns` adds up how long the generator and the arm's backends were ready to run but had no
    processor; None if the kernel does not report it. `aside`: other programs disturbed its cycle, so that it
    does not count towards the mean and the throughput (see `stats.bursts`).
    """

    arm: int
    cycle: int
    begun_ns: int
    elapsed_ns: int
    started: int
    succeeded: int
    sum_ns: int
    waited_ns: int | None
    aside: bool = False


class Counters(Record):
    """What the server did during a trial, from snapshots before and after it.

    Counters cover the trial's measured and warm-up operations together: divide by `operations`, not by the
    measured ones. None means that the server does not report it. `service_user_ns` and `service_system_ns`
    are the processor time of the services beside it, if there are any; `queries` counts the statements that
    clients sent and the server executed, BEGIN and COMMIT included. `updated` counts updated rows,
    `hot_updated` those of them whose indexes stayed as they were (HOT).
    """

    operations: int
    shared_hit: int | None = None
    shared_read: int | None = None
    shared_dirtied: int | None = None
    temp_bytes: int | None = None
    wal_bytes: int | None = None
    wal_records: int | None = None
    service_user_ns: int | None = None
    service_system_ns: int | None = None
    queries: int | None = None
    updated: int | None = None
    hot_updated: int | None = None


class Measurement(Record):
    """The result of one trial.

    Identities: ``started = succeeded + failed``; ``failed = sum(errors.values())`` unless the connection was
    lost. `rows` counts rows returned or changed by the measured operations, `round_trips` how often a client
    waited for the server in them. `settling` operations were sent besides, unmeasured, so that caches are
    as in a long trial. `statuses` counts answers by HTTP, where failures are data: they do not make a trial
    end with ERRORS.

    CPU times cover the measured operations only; the server's are None if its processes are not visible. If
    client and engine share a process, its time counts as the server's, and the client's is None; bytes are
    None if a driver does not count them. `slices` belong to a trial that took turns with others: their
    operations and times add up to the trial's. `long_slices` says whether they were long ones, which check
    the short ones; None if slices have only one length. `own` holds the metrics of the experiment file by
    name.
    """

    outcome: Outcome
    message: str | None
    started: int
    succeeded: int
    failed: int
    errors: Mapping[str, int]
    rows: int
    elapsed_ns: int
    latencies: tuple[Latency, ...]
    operation: Latency | None
    client_user_ns: int | None
    client_system_ns: int | None
    server_user_ns: int | None
    server_system_ns: int | None
    sent_bytes: int | None
    received_bytes: int | None
    steal_ns: int
    throttled_ns: int | None
    digest: str | None
    round_trips: int = 0
    settling: int = 0
    counters: Counters | None = None
    disturbances: frozenset[Disturbance] = field(default_factory=frozenset)
    system: SystemSeries | None = field(default=None, compare=False, repr=False)
    strain: Strain | None = None
    observer_ns: int | None = None
    statuses: Mapping[int, int] = field(default_factory=dict)
    slices: tuple[Slice, ...] = ()
    long_slices: bool | None = None
    own: Mapping[str, float | None] = field(default_factory=dict)

    def metric(self, name: str) -> float | None:
        """Return the trial's value of a metric, or None if there is none (nothing was executed).

        `latency_mean`, `latency_p50`, `latency_p90`, `latency_p95` and `latency_p99` are nanoseconds an
        operation; `throughput` is operations a second; `success` is the fraction of operations that
        succeeded. Raises KeyError if there is no such metric.
        """
        if name == "success":
            return self.succeeded / self.started if self.started else None
        if self.operation is None or self.operation.executions == 0 or self.elapsed_ns == 0:
            return None
        operation, (succeeded, sum_ns, elapsed_ns) = self.operation, self._counting()
        return {
            "latency_mean": sum_ns / succeeded,
            "latency_p50": float(operation.p50_ns),
            "latency_p90": float(operation.p90_ns),
            "latency_p95": float(operation.p95_ns),
            "latency_p99": float(operation.p99_ns),
            "throughput": succeeded / (elapsed_ns / 1e9),
        }[name]

    def _counting(self) -> tuple[int, int, int]:
        """Return successes, the sum of their times and the elapsed time, without the cycles set aside."""
        counting = [piece for piece in self.slices if not piece.aside]
        if self.operation is None:
            return 0, 0, self.elapsed_ns
        if len(counting) == len(self.slices):
            return self.operation.executions, self.operation.sum_ns, self.elapsed_ns
        return (
            sum(piece.succeeded for piece in counting),
            sum(piece.sum_ns for piece in counting),
            sum(piece.elapsed_ns for piece in counting),
        )
