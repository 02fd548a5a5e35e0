"""The contents of logs, as in the report and the JSON document; times are nanoseconds, sizes bytes.

An *entry* is one message of the log with all lines that belong to it. A *template* is a statement without its
literals: statements that differ only in them, or in the length of a list, share one. An *execution* is one
run of a statement; the parse and bind of the extended protocol are counted separately. A *row of executions*
is a template that one session ran again and again with no other statement in between.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.database.finding import Finding
from uncork.model.database.missing import Missing
from uncork.model.records import Record
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.stored_run import RunRecord

LOG_RESULT_VERSION = 1

OTHERS = "(others)"
"""The name for applications, hosts and others that are grouped together."""

DURATION_PARTS = (
    *("0-1 ms", "1-5 ms", "5-10 ms", "10-25 ms", "25-50 ms", "50-100 ms", "100-500 ms", "0.5-1 s", "1-10 s"),
    "over 10 s",
)
"""The bins of a histogram of durations; a duration on a bound belongs to the later bin."""


class LogTimes(Record):
    """How often something happened; `sum_ns` and `max_ns` are its total and longest duration."""

    count: int
    sum_ns: int
    max_ns: int


class FileFacts(Record):
    """One log file. `dialect` is None if it is unknown; `prefix` is log_line_prefix.

    `bytes` counts those of the log itself, not of its archive. `trouble` says why it could not be read to its
    end. lines = heads + continuations + foreign + rejected: the first lines of entries and of their
    additions, lines that continue one (and empty ones), records of other programs, and lines that belong to
    no entry. Lines are counted without what wraps them. `server` wrote it; it is empty if servers are not
    named. `first_us` and `last_us` are when the first and the last entry of a PostgreSQL server were logged
    that count; None if there are none, or if they have no time.
    """

    name: str
    bytes: int
    dialect: str | None
    prefix: str | None
    entries: int
    rejected: int
    trouble: str | None
    lines: int = 0
    heads: int = 0
    continuations: int = 0
    foreign: int = 0
    server: str = ""
    first_us: int | None = None
    last_us: int | None = None


class RejectedLine(Record):
    """A line that belongs to no entry: its file's name, its number from 1, its beginning."""

    file: str
    line: int | None
    text: str


class LogRunFacts(RunRecord):
    """Which run this is and how it went. `elapsed_ns` is the time of reading, `bytes` the amount read."""

    bytes: int
    reproduce: str
    uncork_version: str


class Point(Record):
    """What fell into one bucket of time, which begins at `start_us` (microseconds since 1970 in UTC)."""

    start_us: int
    count: int
    sum_ns: int


class NamedSeries(Record):
    """The contribution of one name, such as an application, over time."""

    name: str
    points: tuple[Point, ...]


class Contribution(Record):
    """The contribution of one name (an application, a user, a kind); `share` is of all time, 0 to 1.

    Names beyond the first hundred by time (of a template: ten) are grouped as `OTHERS`.
    """

    name: str
    executions: int
    sum_ns: int
    max_ns: int
    share: float


class Lists(Record):
    """The length of the longest list (IN, VALUES, ARRAY) in a template's executions: the size of a batch."""

    executions: int
    mean: float
    max: int


class Repetition(Record):
    """Rows of executions: at least ten in a row.

    `waiting_ns` is the time between the executions of a row, in which the server waited for the client.
    `sum_ns` is the time of the executions, with their parse and bind. With `pipelined`, the client sent
    further statements without waiting for each answer.
    """

    rows: int
    executions: int
    longest: int
    sum_ns: int
    waiting_ns: int
    pipelined: bool = False


class Updates(Record):
    """Updates of a template at the beginning of a log, in their order: see `log_repeated_updates`."""

    updates: int
    followed: int
    unchanged: int


class Example(Record):
    """One execution from the log; `kind` says which one. For a plan, `text` is the plan."""

    kind: Literal["slowest", "median", "newest", "plan"]
    duration_ns: int
    time_us: int | None
    file: str
    offset: int
    text: str
    parameters: str


class TemplateFacts(Record):
    """One template. `share` is of the time of all executions; `histogram` counts `DURATION_PARTS`.

    `identity` is the same in any log; None if the server's grammar rejects it. `failed` counts errors during
    its statements. `cut` counts executions whose text the log truncates. `timeline` counts executions in each
    bucket of `template_bucket_s` from `LogResult.timeline_us` on; `series` adds their time, but only for the
    first hundred templates. `query_ids` are the server's, if the log has them (`%Q`, csvlog, jsonlog).
    `servers` is empty unless the logs are of several servers.
    `repeated` is known of updates that take a tenth of the time.
    """

    number: int
    text: str
    identity: str | None
    kind: str
    executions: int
    sum_ns: int
    mean_ns: float
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int
    share: float
    histogram: tuple[int, ...]
    parse: LogTimes
    bind: LogTimes
    first_us: int | None
    last_us: int | None
    cut: int
    failed: int
    lists: Lists | None
    rows: float | None
    repetition: Repetition | None
    applications: tuple[Contribution, ...]
    users: tuple[Contribution, ...]
    databases: tuple[Contribution, ...]
    hosts: tuple[Contribution, ...]
    examples: tuple[Example, ...]
    series: tuple[Point, ...]
    timeline: tuple[int, ...]
    query_ids: tuple[QueryId, ...] = ()
    repeated: Updates | None = None
    servers: tuple[Contribution, ...] = ()


class ErrorFacts(Record):
    """Messages of one kind, which may differ in names and numbers. `example` is the first one.

    `servers` counts them by server, most first; it is empty unless the logs are of several servers.
    """

    severity: str
    sqlstate: str
    message: str
    count: int
    first_us: int | None
    last_us: int | None
    example: str
    detail: str
    hint: str
    context: str
    statement: str
    servers: tuple[NameCount, ...] = ()


class Incident(Record):
    """One wait for a lock (`amount` in nanoseconds) or one temporary file (in bytes).

    `relation` is what a wait is about, by name or OID; `holder` is the last statement of the session that
    held the lock. Either is empty if the log does not show it. `server` is empty if servers are not named.
    """

    amount: int
    time_us: int | None
    pid: int
    what: str
    detail: str
    statement: str
    relation: str = ""
    holder: str = ""
    server: str = ""


class Tally(Record):
    """How often something happened under a name; `sum` and `max` are nanoseconds or bytes."""

    name: str
    count: int
    sum: int
    max: int


class TransactionFacts(Record):
    """Transactions of one application that the log shows from BEGIN to their end.

    `working_ns` is the time of their statements, with parse, bind and the end of the transaction; for the
    rest of `elapsed_ns` they waited for the client. Of that rest, `repeated_wait_ns` lies within rows of
    executions and within loops. In each of `pauses`, `pause_ns` in all, the client sent nothing for over a
    second. `server` is empty if servers are not named.
    """

    application: str
    user: str
    database: str
    count: int
    elapsed_ns: int
    working_ns: int
    statements: int
    statements_p50: int | None
    statements_max: int
    pauses: int = 0
    pause_ns: int = 0
    pause_max_ns: int = 0
    repeated_wait_ns: int = 0
    server: str = ""


class ServerFacts(Record):
    """What the servers log about themselves and their sessions, in all."""

    connections: int
    sessions: LogTimes
    lock_waits: tuple[Tally, ...]
    still_waiting: int
    deadlocks: int
    longest_waits: tuple[Incident, ...]
    temporary_files: tuple[Tally, ...]
    largest_files: tuple[Incident, ...]
    checkpoints: LogTimes
    checkpoint_reasons: tuple[Tally, ...]
    vacuums: tuple[Tally, ...]
    analyzes: tuple[Tally, ...]
    cancellations: tuple[Tally, ...]
    checkpoint_work: CheckpointWork | None = None
    vacuum_work: tuple[VacuumWork, ...] = ()


class Blocking(Record):
    """Waits of one template for a lock that another session held; "" or None if the log does not show it.

    `holding_text` is the last statement that had ended in the transaction that held the lock. `sum_ns` and
    `max_ns` cover waits that ended. `server` is empty if servers are not named.
    """

    waiting_number: int | None
    waiting_text: str
    waiting_application: str
    holding_number: int | None
    holding_text: str
    holding_application: str
    waits: int
    sum_ns: int
    max_ns: int
    server: str = ""


class PoolConnections(Record):
    """Connections of a pooler, by `side` (clients, servers) and reason of their end ("": beginnings)."""

    side: str
    database: str
    user: str
    ended: str
    count: int
    mean_ns: float
    max_ns: int
    host: str = ""


class PoolFacts(Record):
    """The periodic reports of a pooler (PgBouncer), usually one a minute.

    `working` is the average number of clients with a transaction in progress, `waiting` of them waited for a
    server's connection, `waiting_max` in the worst period. The times of a transaction and of a query include
    that wait. `bytes_in_s` come from clients, `bytes_out_s` go to them, per second.
    """

    reports: int
    transactions_s: float
    queries_s: float
    transaction_ns: float
    query_ns: float
    working: float
    waiting: float
    waiting_max: float
    connections: tuple[PoolConnections, ...]
    bytes_in_s: float = 0.0
    bytes_out_s: float = 0.0


class LogResult(Record):
    """The contents of logs.

    `templates` are in descending order of time; `templates_more` counts those left out, `rare` those that are
    grouped as "(rare statements)", so that memory is bounded. `histogram` counts all executions by
    `DURATION_PARTS`. `outside` counts entries outside the requested range, `foreign` records of other
    programs, `rejected` lines that belong to no entry, `own` entries of uncork's own watching sessions, which
    are left out, `untimed` entries without a time, left out because a range is requested. `bucket_s` is the
    length of the buckets of `series`, `hour_s` that of `hours` and of each server's hours,
    `template_bucket_s` that of templates, whose timelines begin at `timeline_us`, and of applications.
    `application_series` is empty if the log names no application; the largest comes first. `anonymous` means
    that data was removed, `events` where every entry was written. `untold` are durations without their
    statement in the log. `p50_ns`, `p95_ns` and `p99_ns` are of all executions. Entries that `filters` left
    out appear nowhere else. `loops` repeat templates with other statements in between. `skipped` are files of
    folders that were not read because they cannot be logs. `servers` are those whose logs were read, the one
    with most time first; both it and `server_series` are empty unless they are several. `other_servers` were
    left out by --only-server. `routes` are who sent statements, the one with most time first; empty if
    neither comments nor application_name say it. `findings` are worth changing, the costliest first;
    `missing` is the evidence that rules lack. `withheld` are servers whose files overlap in time: nothing is
    known that follows from the order of entries (transactions, repeated statements, loops, who waited for
    whom, open sessions). `costliest` are the three costliest statements, and what is known of each.
    """

    run: LogRunFacts
    answer: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    files: tuple[FileFacts, ...]
    first_us: int | None
    last_us: int | None
    bucket_s: int
    template_bucket_s: int
    timeline_us: int | None
    entries: int
    outside: int
    foreign: int
    rejected: int
    rejected_lines: tuple[RejectedLine, ...]
    executions: LogTimes
    parse: LogTimes
    bind: LogTimes
    untold: LogTimes
    histogram: tuple[int, ...]
    series: tuple[Point, ...]
    application_series: tuple[NamedSeries, ...]
    templates: tuple[TemplateFacts, ...]
    templates_more: int
    rare: int
    applications: tuple[Contribution, ...]
    users: tuple[Contribution, ...]
    databases: tuple[Contribution, ...]
    hosts: tuple[Contribution, ...]
    kinds: tuple[Contribution, ...]
    transactions: tuple[TransactionFacts, ...]
    errors: tuple[ErrorFacts, ...]
    notices: tuple[ErrorFacts, ...]
    server: ServerFacts
    blocking: tuple[Blocking, ...]
    pool: PoolFacts | None
    anonymous: bool
    events: str | None
    own: int = 0
    untimed: int = 0
    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    peak: Peak | None = None
    slowest: tuple[SlowStatement, ...] = ()
    hours: tuple[HourFacts, ...] = ()
    hour_s: int = 3600
    sessions: SessionFacts | None = None
    filters: LogFilter | None = None
    loops: tuple[LogLoop, ...] = ()
    skipped: tuple[str, ...] = ()
    servers: tuple[LogServer, ...] = ()
    server_series: tuple[NamedSeries, ...] = ()
    other_servers: tuple[str, ...] = ()
    routes: tuple[RouteFacts, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()
    withheld: tuple[str, ...] = ()
    costliest: tuple[CostlyPart, ...] = ()
    version: int = LOG_RESULT_VERSION


class NameCount(Record):
    """How often something happened under a name."""

    name: str
    count: int


class LeftOut(Record):
    """Entries that a filter left out.

    `by` is the first test that they fail: database, user, application, host or time of day. `name` is their
    name there; empty if they have none.
    """

    by: str
    name: str
    entries: int


class LogFilter(Record):
    """Which entries count, and which entries were left out, most first.

    Names are patterns: `*` stands for any text, and `!` before a pattern excludes names. `times_of_day` are
    ranges in UTC such as 08:00-17:00. An empty tuple means that there is no such test. `entries` counts all
    that were left out, of which `left_out` lists the names with most entries.
    """

    databases: tuple[str, ...]
    users: tuple[str, ...]
    applications: tuple[str, ...]
    hosts: tuple[str, ...]
    times_of_day: tuple[str, ...]
    entries: int
    left_out: tuple[LeftOut, ...]


class Peak(Record):
    """The second in which most statements of one server ended.

    It began at `start_us`, since 1970 in UTC. `server` is empty if servers are not named.
    """

    start_us: int
    executions: int
    server: str = ""


class SlowStatement(Record):
    """One of the slowest executions. `template` is the number of its template; `time_us` is when it ended.

    `server` is empty if servers are not named.
    """

    duration_ns: int
    time_us: int | None
    template: int | None
    user: str
    database: str
    application: str
    host: str
    file: str
    offset: int
    text: str
    parameters: str
    server: str = ""


class HourFacts(Record):
    """What happened in one hour, or in a longer step of a long log, from `start_us` on."""

    start_us: int
    executions: int
    sum_ns: int
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    errors: int


class SessionTally(Record):
    """Sessions of one name: how many began and ended in the log, and how long the ended ones lasted."""

    name: str
    begun: int
    ended: int
    sum_ns: int
    max_ns: int


class SessionFacts(Record):
    """Sessions in a log, from log_connections and log_disconnections.

    `most` is the largest number of sessions of one server that were open at once, as far as the log shows it;
    None if the log has no ends of sessions. `most_us` is when it was reached; None if it was before the log
    began. `most_server` is the server, empty if servers are not named. Names with most session time come
    first.
    """

    begun: int
    ended: int
    sum_ns: int
    max_ns: int
    p50_ns: int | None
    p95_ns: int | None
    most: int | None
    most_us: int | None
    users: tuple[SessionTally, ...]
    databases: tuple[SessionTally, ...]
    applications: tuple[SessionTally, ...]
    hosts: tuple[SessionTally, ...]
    most_server: str = ""


class CheckpointWork(Record):
    """The work of completed checkpoints, summed up.

    `timed` counts checkpoints that checkpoint_timeout started, `wal` checkpoints that max_wal_size started,
    and `requested` all others. `buffers_share` is the mean share of shared buffers that a checkpoint wrote;
    None if the log does not show it. Distance is the WAL from one checkpoint to the next, `estimate` the
    server's estimate of it; both are means in bytes.
    """

    completed: int
    timed: int
    wal: int
    requested: int
    buffers: int
    buffers_share: float | None
    wal_files_added: int
    wal_files_removed: int
    wal_files_recycled: int
    distance_bytes: float
    distance_max_bytes: int
    estimate_bytes: float
    write_ns: int
    sync_ns: int
    longest_sync_ns: int
    synced_files: int


class VacuumWork(Record):
    """Autovacuum's work on one table. `analyze` marks runs that only analyzed it.

    `tuples_dead` counts dead tuples that could not be removed yet. `buffer_misses` are buffers that had to be
    read.
    """

    table: str
    analyze: bool
    runs: int
    sum_ns: int
    max_ns: int
    index_scans: int
    pages_removed: int
    tuples_removed: int
    tuples_dead: int
    buffer_hits: int
    buffer_misses: int
    buffers_dirtied: int
    wal_records: int
    wal_images: int
    wal_bytes: int


RouteKind = Literal["route", "application", "session"]
"""What is known of a sender: its route (or controller and action, job, path), the application that a comment
names, or only the application_name of its session."""


class RouteStatement(Record):
    """A template that a route sends. `rows` is the mean for each execution, None if no plan shows it."""

    number: int
    text: str
    executions: int
    sum_ns: int
    max_ns: int
    rows: float | None


class RouteFacts(Record):
    """What one sender sent, as comments in statements name it. `share` is of the time of all statements.

    `requests` counts different traces (traceparent): exactly up to a thousand, and to 3 % beyond; None if
    comments name none. `rows` is the mean for each execution, None if no plan shows it. `statements` are
    those with the most time.
    """

    kind: RouteKind
    name: str
    application: str
    requests: int | None
    executions: int
    sum_ns: int
    max_ns: int
    share: float
    rows: float | None
    statements: tuple[RouteStatement, ...]


class QueryId(Record):
    """The server's identifier of a statement, as in pg_stat_statements.queryid, and its executions.

    It is a text, because JSON's numbers are not precise enough.
    """

    id: str
    executions: int


class LogServer(Record):
    """What one of several servers logged. `share` is of the time of all statements, 0 to 1.

    `errors` counts errors, not warnings. The template is the one with most time on this server; its number is
    None if the server logged no durations. `most_sessions` is the largest number of sessions that were open
    at once, as far as its log shows it. `p50_ns`, `p95_ns` and `p99_ns` are of its executions that have a
    time.
    """

    name: str
    files: int
    entries: int
    executions: int
    sum_ns: int
    share: float
    errors: int
    template_number: int | None
    template_text: str
    template_share: float
    peak: Peak | None
    most_sessions: int | None
    checkpoint_work: CheckpointWork | None
    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    hours: tuple[HourFacts, ...] = ()


class LoopTemplate(Record):
    """A template that a loop repeats.

    `executions` counts those in the loop, `longest` the most in one transaction or session. `waiting_ns` is
    the time between the end of the statement before each execution and its beginning, in which the server
    waited for the client. `sum_ns` is the time of the executions, with their parse and bind. `servers` has
    the executions of each server, most first; it is empty unless the logs are of several servers.
    """

    number: int
    text: str
    executions: int
    longest: int
    sum_ns: int
    waiting_ns: int
    servers: tuple[NameCount, ...] = ()


class LogLoop(Record):
    """Templates that sessions repeat with other statements in between, the one with the most time first.

    `stretches` is the number of transactions that did so; outside of transactions (`in_transaction` is
    false), of stretches of statements without a long pause. The parent is the statement before the loop; each
    of its `parents` executions has ten or more of each template. If there is none, `parent_text` is empty.
    `ratio` is the number of executions of the first template for each execution of the parent, or, without a
    parent, for each transaction. With `pipelined`, the client sent further statements without waiting for
    each answer.
    """

    in_transaction: bool
    parent_number: int | None
    parent_text: str
    parents: int
    stretches: int
    ratio: float
    templates: tuple[LoopTemplate, ...]
    pipelined: bool = False
