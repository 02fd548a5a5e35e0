"""A load: what to send (`LoadSpec`), and what was measured (`LoadMeasurement`).

An *operation* is one run through one script, like pgbench's transaction. In a *closed loop* a client starts
the next operation when the previous one ends. In an *open loop* operations *arrive* at their own times,
whatever the server does, and latency counts from the *intended start*, not from the actual start. *Lateness*
is how long after its intended start an operation began although a connection was free: the generator's fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from uncork.model.records import Record
from uncork.model.system import SystemSeries
from uncork.model.tables.load import IntervalStatus, LoadInterval, LoadTimes, LoadTotals

Protocol = Literal["simple", "extended", "prepared"]
ArrivalKind = Literal["poisson", "constant", "bursts", "trace"]
OnLost = Literal["stop", "continue"]
"""What to do when a node of a cluster is lost."""
Verbosity = Literal["quiet", "errors", "steps"]
"""Which lines a load writes: none, one for each error, or also one for each step of a transaction."""


# ---- what is asked for ----


class LoadScript(Record):
    """A script in pgbench's language, chosen with the probability `weight` / sum of all weights.

    `name` is unique within a load. `builtin` means that it came with uncork, not from a file.
    """

    name: str
    weight: int
    text: str
    builtin: bool = False


class Arrivals(Record):
    """When operations start in an open loop.

    `rate` is arrivals a second, for all kinds except a trace; `size` is how many arrive at once, for bursts;
    `offsets_ns` are times from the beginning in ascending order, for a trace.
    """

    kind: ArrivalKind
    rate: float | None = None
    size: int | None = None
    offsets_ns: tuple[int, ...] = ()


class Recorded(Record):
    """Recorded operations: operation i has script `scripts[i]`, over and over, and the values of its row.

    `values` has a value for each operation by the names of script variables; None leaves a variable
    undefined. In a replay, `clients` has the client that sends each operation of a trace, `sessions` is how
    many recorded sessions these stand for, and `speed` how many times as fast as recorded they send.
    """

    scripts: tuple[int, ...]
    values: Mapping[str, tuple[str | None, ...]]
    clients: tuple[int, ...] = ()
    sessions: int = 0
    speed: float = 1.0


class LoadLog(Record):
    """Where to write a line for each operation, or with `aggregate_ns` for each such interval.

    `path` is the first thread's file; `sample` is the fraction of operations written, above 0 to 1.
    """

    path: str
    sample: float = 1.0
    aggregate_ns: int | None = None


class LoadPart(Record):
    """One part of a load that several processes, usually on several machines, send together.

    It is part `number` of `count`, from 1. `start_at_ns` is when all parts start, in Unix time; None is as
    soon as possible. `end_after_ns` ends the part that long after its start, whatever is still in flight.
    With a `lease`, the part ends unless the lease is renewed: by changes of this file, or by lines from
    standard input (``-``). `reservations` is a file for counts that outlive a killed process.
    `clock_offset_ns` is by how much the wall clock is ahead of the monotonic one; None is as it is when the
    load begins.
    """

    number: int = 1
    count: int = 1
    start_at_ns: int | None = None
    end_after_ns: int | None = None
    lease: str | None = None
    reservations: str | None = None
    clock_offset_ns: int | None = None

    @property
    def name(self) -> str:
        """The part as on the command line, such as ``2/4``."""
        return f"{self.number}/{self.count}"


class ClusterRequest(Record):
    """Nodes that send a load together, or hosts that measure an experiment.

    `place` is ``local`` for a cluster of its own on this machine, ``auto`` for the cluster to which this
    machine belongs, or an address. `uncapped` allows more than the usual rate, connections and nodes. With
    `lot`, a seed, the machines are drawn by lot, and each is reserved as a whole.
    """

    nodes: int
    place: str = "local"
    on_lost: OnLost = "stop"
    uncapped: bool = False
    lot: int | None = None

    @property
    def own(self) -> bool:
        """Whether the cluster is started for this load, on this machine."""
        return self.place == "local"


class PartNode(Record):
    """What the coordinator of a load knows about the node that sends a part.

    The node's wall clock was ahead of the coordinator's by `offset_ns`, within ±`bound_ns`; `drift_ns` is by
    how much more at the end, None if it could not be measured again. A lost node has the reason in `lost`,
    and in `lost_ns` when this was noticed, from the start of the load. Its part may have sent until
    `sent_until_ns`, from the start; None means that its own counts are known.
    """

    host: str
    offset_ns: int = 0
    bound_ns: int = 0
    drift_ns: int | None = None
    lost: str | None = None
    lost_ns: int = 0
    sent_until_ns: int | None = None


class LoadSpec(Record):
    """A load to send. `recorded` gives the operations their scripts and values.

    `operations_each` (of each client) and `duration_ns` exclude each other; one of them is given, except for
    a trace, which may end with its last arrival. For `warmup_ns` before that, the load is sent but not
    counted. `arrivals` of None is a closed loop. `max_tries` of 0 means no limit. `progress_s` of None means
    no progress. With a `part`, this process sends only that part: clients, counts and rates are of the whole
    load, threads of this process. With `exit_on_abort`, the load ends at the first client that aborts: its
    transaction fails except by a serialization failure or a deadlock, or its connection is lost or cannot be
    opened.
    """

    scripts: tuple[LoadScript, ...]
    clients: int = 1
    max_clients: int | None = None
    threads: int = 1
    protocol: Protocol = "simple"
    pipeline_depth: int = 1
    variables: Mapping[str, str] = field(default_factory=dict)
    seed: int = 1
    arrivals: Arrivals | None = None
    latency_limit_ns: int | None = None
    max_tries: int = 1
    connect_each: bool = False
    operations_each: int | None = None
    duration_ns: int | None = None
    warmup_ns: int = 0
    log: LoadLog | None = None
    progress_s: int | None = None
    part: LoadPart | None = None
    recorded: Recorded | None = field(default=None, repr=False)
    exit_on_abort: bool = False
    verbosity: Verbosity = "quiet"

    @property
    def most_clients(self) -> int:
        """The most connections that may be open at once."""
        return self.clients if self.max_clients is None else self.max_clients


class LoadProgress(Record):
    """Progress of a load over the last `seconds`; times in nanoseconds, 0 if nothing succeeded.

    `backlog` counts arrivals that wait for a connection, `clients` the connections open, both at this moment.
    `series` holds the intervals of these seconds; only of a part of a load.
    """

    elapsed_ns: int
    seconds: float
    succeeded: int
    failed: int
    skipped: int
    retries: int
    backlog: int
    clients: int
    mean_ns: float
    stddev_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int
    lateness_p99_ns: int
    series: tuple[LoadInterval, ...] = ()


# ---- what was measured ----


class LoadOutcome(StrEnum):
    """How a load ended."""

    COMPLETE = "complete"
    DEADLINE = "deadline"
    """It reached its time limit and was stopped."""
    CONNECTION_LOST = "connection lost"
    """The server went away and accepted no new connections."""
    REFUSED = "refused"
    """The server could not be reached, or refused the connection, before anything was measured."""
    INTERRUPTED = "interrupted"
    """Ctrl-C or a signal."""
    NOTHING_SUCCEEDED = "nothing succeeded"
    """Every operation failed, so the load ended early."""
    CLIENT_ABORTED = "client aborted"
    """A client aborted, and the load was to end then (--exit-on-abort)."""
    LEASE_ENDED = "lease ended"
    """A part of a load whose lease was not renewed."""
    NODE_LOST = "node lost"
    """A part of a load whose node no longer answered."""


TimesKind = Literal[
    "statement", "script", "operation", "service", "lateness", "connect", "tls", "first byte", "login"
]
"""What a row of times is about.

``statement``: one statement, its service times. ``script``: the operations of one script, and ``operation``:
all operations, both from the intended start. ``service``: all operations, from the start; in a closed loop
the same. ``lateness``: open loop only, see above. ``connect``: opening a connection, authentication included;
``tls``: of which, agreeing on keys. ``first byte``: HTTP, from the start to the head of the answer.
"""


class Stalls(Record):
    """Answers that stalled half-way, and a small trial that finds out why.

    `answers` counts those in which nothing arrived for 35 to 50 ms in the middle, as happens when the
    receiver delays its acknowledgement. If there are any, a few silences of over 10 ms are drawn at random:
    in `hastened` ones, the generator acknowledged the data after 10 ms; `kept` ones were left alone. Of
    each, the `…_short` ones ended within 35 ms.
    """

    answers: int = 0
    kept: int = 0
    kept_short: int = 0
    hastened: int = 0
    hastened_short: int = 0


class RequestTotals(Record):
    """Counts of one kind of request: bytes before encryption, and failed requests by kind.

    `received_bytes` are headers as received and bodies without framing. `examples` has the first message of
    each kind of failure, without secrets.
    """

    name: str
    sent_bytes: int = 0
    received_bytes: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)


class HttpTotals(Record):
    """Counts of an HTTP load beyond `LoadTotals`; sizes are bytes.

    `planned` is how many requests were to be started, None if time ends the load. `statuses` counts final
    answers by status. `unprocessed` counts failed requests that the server certainly did not process.
    `header_bytes` counts the headers of answers as received, `header_plain_bytes` after decompression in
    HTTP/2 and HTTP/3. `closed` counts connections that the server closed in order, each after between
    `closed_least` and `closed_most` answers; `goaways` counts how many of these it announced by GOAWAY.
    `udp_dropped` counts datagrams that this machine dropped during a load by HTTP/3, because the buffer of a
    socket was full. The socket may belong to a server on this machine.
    """

    planned: int | None = None
    statuses: Mapping[str, int] = field(default_factory=dict)
    unprocessed: int = 0
    header_bytes: int = 0
    header_plain_bytes: int = 0
    body_bytes: int = 0
    stalls: Stalls = Stalls()
    closed: int = 0
    closed_least: int = 0
    closed_most: int = 0
    goaways: int = 0
    udp_dropped: int = 0
    requests: tuple[RequestTotals, ...] = ()


class FailureTotals(Record):
    """How many transactions failed in the same statement with the same SQLSTATE.

    `line` and `statement` are None if no statement failed, as when a connection is lost. `message` is that of
    the first.
    """

    code: str
    number: int
    script: str
    line: int | None
    statement: str | None
    message: str


def http_totals(found: Mapping[str, Any]) -> HttpTotals:
    """Build the totals of an HTTP load from what the core, or a stored run, reports."""
    requests = tuple(RequestTotals(**request) for request in found["requests"])
    return HttpTotals(**{**found, "stalls": Stalls(**found["stalls"]), "requests": requests})


class LoadMeasurement(Record):
    """Everything that the load engine reports on one load.

    Only loads by HTTP have `statuses`.
    """

    totals: LoadTotals
    times: tuple[LoadTimes, ...] = ()
    series: tuple[LoadInterval, ...] = ()
    statuses: tuple[IntervalStatus, ...] = ()
    system: SystemSeries | None = field(default=None, compare=False, repr=False)
