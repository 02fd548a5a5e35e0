"""A profiled service, as in the report and the JSON document; times are nanoseconds.

While uncork sends requests, each request in flight is at every moment in one place: in a session of the
database that works or waits, or in the service. Throughput times mean latency is the average number of
requests in flight (Little's law), so the average number of requests in a place, divided by the number in
flight, is the fraction of a request's time that passes there.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.bottleneck import Bottleneck
from uncork.model.records import Record
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadResult
from uncork.model.results.log import LogResult
from uncork.model.results.stacks import FrameFacts, StackResult
from uncork.model.stored_run import RunRecord

SERVICE_RESULT_VERSION = 1

Runtime = Literal["python", "go", "node", "java", "ruby", "php", ".net", "erlang", "native"]
FindingName = Literal[
    "n+1",
    "statement",
    "missing index",
    "connections",
    "few processes",
    "bottleneck",
    "idle processes",
    "idle in transaction",
    "service code",
    "service wait",
]
PlaceKind = Literal[
    "database parsing",
    "database planning",
    "database cpu",
    "database queue",
    "locks",
    "commit",
    "storage",
    "internal locks",
    "database other",
    "idle in transaction",
    "service cpu",
    "service queue",
    "process queue",
    "pool wait",
    "service wait",
]
"""Where a request can be. The *queues* of database and service are waits for a processor; the *process queue*
is the wait for a free process of a service whose processes answer one request at a time. *database parsing*
is known from a log of all statements, *database planning* from it (binds) or if the server counts it
(track_planning), and *pool wait* from PgBouncer's console or log. *service wait*
is everything else in the service: for a connection of its pool, an interpreter lock, another service, or the
network."""


class ServiceRunFacts(RunRecord):
    """Which run this is and how it went. `server` is the service's address."""

    server: str
    database: str
    reproduce: str
    uncork_version: str


class TimePlace(Record):
    """The average number of requests in one place; `share` is the fraction of all requests in flight.

    `ns` is the time that an average request passes there, None if uncork sent no requests.
    """

    kind: PlaceKind
    requests: float
    share: float
    ns: float | None


class SentTemplate(Record):
    """What one request sends of one template.

    `calls` is the mean number of executions for each request, with its 95 % interval if it is known.
    `rows` is the mean number of rows that one execution returns or changes (None if unknown), and `call_ns`
    its mean execution time. With `traced`, executions are counted in the log by the trace of the request that
    their comments name; else by slices of time. `ns` is the execution time for each request, while all
    requests were sent together.
    """

    template: int
    text: str
    calls: float
    calls_low: float | None
    calls_high: float | None
    rows: float | None
    call_ns: float
    ns: float
    traced: bool = False


class RequestFunctions(Record):
    """What the service computed while only one kind of request was sent.

    `hottest` is the function with the most time of its own. `mostly` is the deepest function that, with the
    functions it calls, has at least half of the time; None if there is none. Shares are of the service's time
    while it was recorded, in `samples` of stacks, with whatever else it did.
    """

    hottest: FrameFacts
    mostly: FrameFacts | None
    samples: int


class RequestFacts(Record):
    """One kind of request.

    `sent`, `failed` and the latencies are from the time in which all requests were sent together; `alone_ns`
    is its mean latency in the slices in which only it was sent. `statements`, `rows` and `database_ns` are
    for each request; None without pg_stat_statements. `templates` come with the longest time first.
    `connections` is how many connections to the database each request opens, None if unknown. `traced` is how
    many requests the log shows by their trace: exactly up to a thousand, and to 3 % beyond; None without
    traces. `functions` is None unless functions were recorded while only this request was sent.
    """

    name: str
    sent: int
    failed: int
    mean_ns: float | None
    p99_ns: int | None
    alone_ns: float | None
    statements: float | None
    rows: float | None
    database_ns: float | None
    templates: tuple[SentTemplate, ...]
    connections: float | None = None
    traced: int | None = None
    functions: RequestFunctions | None = None


class WorkerFacts(Record):
    """One process of the service, and what it used while it was watched for `elapsed_ns`.

    `waited_ns` is how long its threads were ready to run and waited for a processor. `busiest` is the
    processor time of its busiest thread as a fraction of the time. `sessions` counts its connections to the
    database over TCP; None if unknown.
    """

    pid: int
    parent: int
    command: str
    runtime: Runtime
    user_ns: int
    system_ns: int
    waited_ns: int
    threads: int
    busiest: float
    sessions: int | None
    elapsed_ns: int

    @property
    def cpus(self) -> float:
        """Return the processors that the process used on average."""
        return (self.user_ns + self.system_ns) / max(1, self.elapsed_ns)


class OriginFacts(Record):
    """Busy sessions by the route that comments in their statements name, on average, and their share."""

    origin: str
    sessions: float
    share: float


class ServiceFinding(Record):
    """What costs time, and what to do about it.

    `share` is the fraction of the requests' time that it explains, 0 to 1, or above 1 if it refuses requests.
    `request` and `template` are where it is, if they are known.
    """

    name: FindingName
    sentence: str
    remedy: str
    share: float
    request: str = ""
    template: int | None = None


class PoolUse(Record):
    """What PgBouncer's console counted while all requests were sent together, for all its clients.

    `waiting` clients waited for a connection on average. `transaction_ns` is the mean time of a transaction,
    with `wait_ns` of waiting; None without transactions.
    """

    transactions_s: float
    waiting: float
    transaction_ns: float | None
    wait_ns: float | None


class ServiceResult(Record):
    """A profiled service.

    `time` are the places where requests pass their time, the longest first. `explained` is the fraction of
    the statements seen while all requests were sent together that the requests' own statements account for;
    near 1 if the requests send the same alone and together. `missing` holds a sentence for each source that
    could not be read. `pool` is None unless the console of PgBouncer was read. `load`, `database`,
    `code` and `log` are complete reports of their own; None if not measured.
    """

    run: ServiceRunFacts
    answer: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    findings: tuple[ServiceFinding, ...]
    bottlenecks: tuple[Bottleneck, ...]
    in_flight: float | None
    mean_ns: float | None
    time: tuple[TimePlace, ...]
    requests: tuple[RequestFacts, ...]
    explained: float | None
    workers: tuple[WorkerFacts, ...]
    origins: tuple[OriginFacts, ...]
    missing: tuple[str, ...]
    load: LoadResult | None
    database: DatabaseResult | None
    code: StackResult | None
    log: LogResult | None
    pool: PoolUse | None = None
    version: int = SERVICE_RESULT_VERSION
