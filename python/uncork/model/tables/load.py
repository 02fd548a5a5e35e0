"""The stored tables of a load; `uncork.model.load` defines the terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uncork.model.tables.table import Column, StoredRow, Table, column, columns_of

if TYPE_CHECKING:
    from uncork.model.load import FailureTotals, HttpTotals, LoadOutcome, TimesKind


class LoadTotals(StoredRow):
    """The totals of a load.

    Identities: ``started = succeeded + failed``; ``failed = sum(errors.values())`` unless operations were cut
    short with the load; in an open loop ``arrivals = started + skipped + unsent``. `arrivals` is None in a
    closed loop; `http` is None except for HTTP, where the codes of errors are words. `late` counts successes
    slower than the latency limit, `retried` operations that were tried more than once, `retries` the tries
    after the first by the SQLSTATE that caused them. `connect_errors` counts connections that could not be
    opened, by SQLSTATE; ``08001`` is an unreachable server, ``08006`` a lost connection. `busiest_thread` is
    the processor time of the generator's busiest thread as a fraction of its working time. The server's
    processor time is None if its processes are not visible here. `start_late_ns` is how long after its start
    time the load started; None if it had none. `failures` divides `errors` by statement, the most frequent
    first; it has at most 100 kinds, and is empty for HTTP. `opening_wait_ns` is
    how long clients waited, added up, because the generator was opening other connections.
    """

    outcome: LoadOutcome = column(
        "complete, deadline, connection lost, refused, interrupted, nothing succeeded, client aborted, "
        "lease ended or node lost"
    )
    message: str | None = column("what went wrong", default=None)
    started: int = column("operations begun: succeeded + failed", default=0)
    succeeded: int = column("operations that succeeded", default=0)
    failed: int = column("operations with an error, or cut short with the load", default=0)
    arrivals: int | None = column("open loop: intended starts, started + skipped + unsent", default=None)
    skipped: int = column("arrivals later than the latency limit before they started", default=0)
    unsent: int = column("arrivals for which no connection became free before the end", default=0)
    late: int = column("successes slower than the latency limit", default=0)
    errors: Mapping[str, int] = column("failed operations by SQLSTATE, as JSON", default_factory=dict)
    connect_errors: Mapping[str, int] = column(
        "connections not opened, by SQLSTATE, as JSON", default_factory=dict
    )
    retried: int = column("operations tried more than once", default=0)
    retries: Mapping[str, int] = column(
        "tries after the first by the SQLSTATE that caused them, as JSON", default_factory=dict
    )
    first_error: str | None = column("message of the first error", default=None)
    rows: int = column("rows returned or changed", default=0)
    statements: int = column("statements answered", default=0)
    round_trips: int = column("round trips: times that a client waited for the server", default=0)
    elapsed_ns: int = column("wall-clock time of the measured part", "ns", default=0)
    client_user_ns: int = column("processor time of the generator in user mode", "ns", default=0)
    client_system_ns: int = column("processor time of the generator in the kernel", "ns", default=0)
    busiest_thread: float = column(
        "processor time of the busiest thread / its working time, 0 to 1", default=0.0
    )
    sent_bytes: int = column("sent to the server", "B", default=0)
    received_bytes: int = column("received from it", "B", default=0)
    connections_opened: int = column("connections opened", default=0)
    connections_lost: int = column("connections lost while in use", default=0)
    connections_most: int = column("most connections open at once", default=0)
    connect_sum_ns: int = column("total time to open connections", "ns", default=0)
    connect_max_ns: int = column("longest time to open one, authentication included", "ns", default=0)
    server_user_ns: int | None = column(
        "processor time of the server in user mode, if visible", "ns", default=None
    )
    server_system_ns: int | None = column(
        "processor time of the server in the kernel, if visible", "ns", default=None
    )
    steal_ns: int = column("time the hypervisor took from the machine", "ns", default=0)
    throttled_ns: int | None = column("time the control group was throttled", "ns", default=None)
    http: HttpTotals | None = column("HTTP: statuses, bytes and closed connections, as JSON", default=None)
    start_late_ns: int | None = column(
        "time from the start time that was given to the start", "ns", default=None
    )
    failures: tuple[FailureTotals, ...] = column(
        "failed operations by statement and SQLSTATE, with a message, as JSON", default=()
    )
    opening_wait_ns: int = column("time that clients waited for other connections to open", "ns", default=0)


class LoadTimes(StoredRow):
    """Times of one kind, in nanoseconds; of successes only, and None if there are none.

    `executions` counts what was begun, `errors` what failed of it. `line` is a statement's line in its
    script. `histogram` is an HDR histogram (V2, three significant digits).
    """

    kind: TimesKind = column(
        "statement (service time); script, operation (latency from the intended start); service (all "
        "operations from the start); lateness (open loop: how late the generator was); connect; for HTTP "
        "also tls and first byte"
    )
    script: str = column("script; empty for all")
    name: str = column("the statement's or script's name, else the kind")
    line: int | None = column("the statement's line in the script")
    executions: int = column("executions begun")
    errors: int = column("executions that failed or were cut short")
    rows: int = column("rows returned or changed")
    sum_ns: int = column("total time of successes, like all that follow", "ns")
    sum_squares_ns2: float = column("sum of their squares", "ns²")
    min_ns: int | None = column("least time", "ns")
    max_ns: int | None = column("greatest time", "ns")
    p50_ns: int | None = column("median time", "ns")
    p90_ns: int | None = column("0.9 quantile", "ns")
    p95_ns: int | None = column("0.95 quantile", "ns")
    p99_ns: int | None = column("0.99 quantile", "ns")
    p999_ns: int | None = column("0.999 quantile", "ns")
    p9999_ns: int | None = column("0.9999 quantile", "ns")
    histogram: bytes | None = column("HDR histogram (V2) of the times in ns, 3 significant digits")


class LoadInterval(StoredRow):
    """Operations of one script that ended in one interval, with their latencies from the intended start."""

    interval: int = column("interval, from 0; each lasts a second, the last one may be shorter")
    start_ns: int = column("its start, from the beginning of the measured part", "ns")
    script: str = column("script")
    started: int = column("operations begun")
    succeeded: int = column("operations that succeeded")
    failed: int = column("operations that failed")
    skipped: int = column("arrivals skipped as too late")
    retries: int = column("tries after the first")
    statements: int = column("statements answered")
    histogram: bytes | None = column("HDR histogram (V2) of latencies from the intended start in ns")


class IntervalStatus(StoredRow):
    """How many HTTP answers had one status in one interval.

    An answer counts in the interval in which its header arrives. Identity: over all intervals they add up to
    `HttpTotals.statuses`.
    """

    interval: int = column("interval, from 0, as in load_series")
    start_ns: int = column("its start, from the beginning of the measured part", "ns")
    length_ns: int = column("length: a second, the last one may be shorter", "ns")
    status: int = column("status code")
    answers: int = column("answers whose header arrived in it, of all requests together")


LOAD_TOTALS = Table("load_totals", "Totals of one load; one row a run.", ("outcome",), columns_of(LoadTotals))

LOAD_STATEMENTS = Table(
    "load_statements",
    "Times of a load: of each statement, of each script, and of all operations.",
    ("position",),
    (Column("position", "integer", "", "place in the order of the scripts, from 0"), *columns_of(LoadTimes)),
)

LOAD_SERIES = Table(
    "load_series",
    "Operations of one script that ended within one interval of a load.",
    ("interval", "script"),
    columns_of(LoadInterval),
)

LOAD_STATUSES = Table(
    "load_statuses",
    "How many answers of a load by HTTP had one status in one interval.",
    ("interval", "status"),
    columns_of(IntervalStatus),
)
