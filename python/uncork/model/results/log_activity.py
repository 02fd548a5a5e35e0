"""Parts of a log's result: filters, single statements, hours, sessions, and the server's background work."""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record


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
