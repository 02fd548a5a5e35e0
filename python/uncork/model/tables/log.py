"""The stored tables of a log; `register` joins them to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from uncork.model.tables.table import StoredRow, column, table_of

if TYPE_CHECKING:
    from datetime import datetime

HISTOGRAM_COLUMNS = (
    *("under_1ms", "under_5ms", "under_10ms", "under_25ms", "under_50ms", "under_100ms", "under_500ms"),
    *("under_1s", "under_10s", "over_10s"),
)
"""Columns that count executions by their duration; each begins where the previous one ends."""

_TEMPLATE = "template, by number"
_FIRST = "when the first was logged, since 1970 in UTC"
_LAST = "when the last was logged, since 1970 in UTC"
_FILE = "file, by its place in facts.json, from 0"
_OFFSET = "where the entry begins in the file, unpacked"
_SERVER = "server that logged it; empty if servers are not named (--server)"
_USER = "user; empty if the log does not say"
_HOST = "client's name or address, without port"
_REPEATED_ROWS = "rows of 10 or more executions by one session"
_REPEATED_EXECUTIONS = "executions in them"
_REPEATED_LONGEST = "executions of the longest row"
_REPEATED_ELAPSED_US = "total time from the end of a row's first execution to its last"
_REPEATED_SUM_US = "durations within that time"
_REPEATED_GROUPS = "groups of 32 executions in them whose binds are logged"
_REPEATED_AT_ONCE = "groups that the server executed without waiting for the client, as it does in a pipeline"


class _Durations:
    """Durations of a row in nanoseconds."""

    sum_us: int
    max_us: int

    @property
    def sum_ns(self) -> int:
        return self.sum_us * 1000

    @property
    def max_ns(self) -> int:
        return self.max_us * 1000


class TemplateRow(_Durations, StoredRow):
    """One template: a statement without its literals."""

    template: int = column(_TEMPLATE)
    text: str = column("statement in lower case, ? for each literal and parameter")
    identity: str | None = column(
        "libpg_query's fingerprint, and names with digits: equal in any log; null if it is not SQL"
    )
    executions: int = column("statements and executions with a duration")
    sum_us: int = column("sum of their durations", "µs")
    max_us: int = column("longest duration", "µs")
    p50_us: int | None = column("median duration, to 0.8 %", "µs")
    p95_us: int | None = column("0.95 quantile", "µs")
    p99_us: int | None = column("0.99 quantile", "µs")
    parses: int = column("parses of the extended protocol")
    parse_sum_us: int = column("sum of their durations", "µs")
    parse_max_us: int = column("longest of them", "µs")
    binds: int = column("binds of the extended protocol")
    bind_sum_us: int = column("sum of their durations", "µs")
    bind_max_us: int = column("longest of them", "µs")
    plans: int = column("plans of auto_explain")
    rows_plans: int = column("plans with actual row counts (log_analyze)")
    rows_sum: int = column("those rows, in all")
    rows_max: int = column("the most of one execution")
    cut: int = column("executions whose text the log truncates")
    first_us: int | None = column(_FIRST, "µs")
    last_us: int | None = column(_LAST, "µs")
    lists: int = column("executions with a list (IN, VALUES, ARRAY)")
    list_elements: int = column("total elements of their longest lists")
    list_max: int = column("elements of the longest list")
    # Of a template without rows of executions, all these columns are null.
    repeated_rows: int | None = column(_REPEATED_ROWS)
    repeated_executions: int = column(_REPEATED_EXECUTIONS)
    repeated_longest: int = column(_REPEATED_LONGEST)
    repeated_elapsed_us: int = column(_REPEATED_ELAPSED_US, "µs")
    repeated_sum_us: int = column(_REPEATED_SUM_US, "µs")
    repeated_groups: int = column(_REPEATED_GROUPS)
    repeated_at_once: int = column(_REPEATED_AT_ONCE)
    under_1ms: int = column("executions under 1ms")
    under_5ms: int = column("executions under 5ms")
    under_10ms: int = column("executions under 10ms")
    under_25ms: int = column("executions under 25ms")
    under_50ms: int = column("executions under 50ms")
    under_100ms: int = column("executions under 100ms")
    under_500ms: int = column("executions under 500ms")
    under_1s: int = column("executions under 1s")
    under_10s: int = column("executions under 10s")
    over_10s: int = column("executions over 10s")

    @property
    def histogram(self) -> tuple[int, ...]:
        """Executions by their duration, in the order of `HISTOGRAM_COLUMNS`."""
        return tuple(getattr(self, name) for name in HISTOGRAM_COLUMNS)


class OriginRow(_Durations, StoredRow):
    """Executions of one template by server, application, user, database and host."""

    template: int = column(_TEMPLATE)
    user: str = column(_USER)
    database: str = column("database")
    application: str = column("application_name")
    host: str = column(_HOST)
    server: str = column(_SERVER)
    executions: int = column("executions")
    sum_us: int = column("sum of their durations", "µs")
    max_us: int = column("longest duration", "µs")


class SeriesRow(StoredRow):
    """Activity in a log over time."""

    kind: str = column(
        "execution (of all), application, template, error, lock wait, temporary file, checkpoint, "
        "autovacuum or connection; of a pooler's reports pool transactions, pool queries, pool transaction "
        "time, pool query time, pool wait, pool bytes in or pool bytes out (of a second; times in µs of all "
        "clients)"
    )
    name: str = column("application, where the kind is application")
    template: int | None = column("template, where the kind is template: the 2 000 with the most time")
    server: str = column("server that logged it; empty where the kind is template")
    start_us: int = column("beginning of the interval, since 1970 in UTC", "µs")
    count: int = column("how many")
    sum: int = column("durations in µs; bytes for temporary files; all values for reports")


class ServerTemplateRow(StoredRow):
    """Executions of one template by server.

    Only if the logs are of several servers: else log_templates has the same.
    """

    template: int = column(_TEMPLATE)
    server: str = column(_SERVER)
    executions: int = column("statements and executions with a duration")
    sum_us: int = column("sum of their durations", "µs")
    max_us: int = column("longest duration", "µs")
    repeated_rows: int = column(_REPEATED_ROWS)
    repeated_executions: int = column(_REPEATED_EXECUTIONS)
    repeated_longest: int = column(_REPEATED_LONGEST)
    repeated_elapsed_us: int = column(_REPEATED_ELAPSED_US, "µs")
    repeated_sum_us: int = column(_REPEATED_SUM_US, "µs")
    repeated_groups: int = column(_REPEATED_GROUPS)
    repeated_at_once: int = column(_REPEATED_AT_ONCE)


class ExampleRow(StoredRow):
    """Single executions from the log."""

    template: int = column(_TEMPLATE)
    kind: Literal["slowest", "median", "newest", "plan"] = column(
        "slowest, median, newest (the first of the last minute), plan"
    )
    duration_us: int = column("duration", "µs")
    time_us: int | None = column("when it was logged, since 1970 in UTC", "µs")
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")
    text: str = column("its text")
    parameters: str = column("its parameters, if they are logged")


class ErrorRow(StoredRow):
    """Warnings, errors and other messages by kind."""

    error: int = column("kind, by number")
    severity: str = column("severity")
    sqlstate: str = column("SQLSTATE; empty if the log does not say")
    message: str = column("message without names and numbers")
    server: str = column(_SERVER)
    count: int = column("how many")
    first_us: int | None = column(_FIRST, "µs")
    last_us: int | None = column(_LAST, "µs")
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")
    example: str = column("message of the first occurrence")
    detail: str = column("its DETAIL")
    hint: str = column("its HINT")
    context: str = column("its CONTEXT")
    statement: str = column("its STATEMENT")


class FailedStatementRow(StoredRow):
    """Errors by template."""

    error: int = column("kind of error, by number")
    template: int = column(_TEMPLATE)
    count: int = column("how often")


class ActivityRow(StoredRow):
    """The server's messages about itself and its sessions, by name."""

    kind: str = column(
        "lock wait, waiting statement, temporary file, autovacuum, autoanalyze, connection, cancellation"
    )
    name: str = column("lock, table, host or reason")
    template: int | None = column("template of the statement, if that is the name")
    server: str = column(_SERVER)
    count: int = column("how often")
    sum: int = column("µs, bytes for temporary files")
    max: int = column("µs, bytes for temporary files")


class IncidentRow(StoredRow):
    """The longest waits for locks and the largest temporary files."""

    is_wait: bool = column("true for a wait, false for a file")
    amount: int = column("µs waited, or bytes")
    time_us: int | None = column("when it was logged, since 1970 in UTC", "µs")
    pid: int = column("process")
    server: str = column(_SERVER)
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")
    what: str = column("lock, or message")
    detail: str = column("the session that held the lock, and the sessions that waited")
    statement: str = column("statement")
    relation: str | None = column("relation that a wait is about, by name or OID")
    holder: str | None = column("last statement of the session that held the lock")


class TransactionRow(StoredRow):
    """Transactions that a log shows from BEGIN to their end, by server, application, user, database and
    host.
    """

    user: str = column(_USER)
    database: str = column("database")
    application: str = column("application_name")
    host: str = column(_HOST)
    server: str = column(_SERVER)
    transactions: int = column("transactions")
    elapsed_us: int = column("total duration", "µs")
    elapsed_max_us: int = column("longest", "µs")
    statements: int = column("statements in them")
    statements_p50: int | None = column("median of statements a transaction")
    statements_max: int = column("most statements of one")
    sum_us: int = column("total duration of their statements, with parse, bind and the end", "µs")
    pauses: int = column("pauses of over a second in which the client sent nothing")
    pause_sum_us: int = column("total duration of these pauses", "µs")
    pause_max_us: int = column("longest", "µs")
    repeated_wait_us: int = column("time before repeated executions", "µs")
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")


class BlockingRow(_Durations, StoredRow):
    """Who waited for whom: waits for locks over deadlock_timeout whose holder the log names.

    A wait for several counts for each of them.
    """

    waiting_template: int | None = column("the waiting statement's template")
    waiting_application: str = column("its application_name")
    waiting_user: str = column("its user")
    holding_template: int | None = column(
        "the last statement that had ended in the transaction that held the lock; empty if unknown"
    )
    holding_application: str = column("its application_name")
    holding_user: str = column("its user")
    server: str | None = column(_SERVER)
    waits: int = column("waits")
    sum_us: int = column("total duration of waits that ended", "µs")
    max_us: int = column("longest duration", "µs")


class LoopRow(StoredRow):
    """Templates that sessions of a server execute ten times or more in a transaction, with other statements
    in between; and outside of transactions, if another statement (the parent) runs at most a tenth as often.
    Executions in a row are columns of log_templates and log_templates_by_server.
    """

    template: int = column("the repeated template")
    parent: int | None = column("the template before the loop; empty if there is none")
    server: str = column(_SERVER)
    in_transaction: bool = column("whether it is repeated within transactions")
    stretches: int = column("transactions, or stretches of statements without a long pause")
    executions: int = column("executions of the template in them, except those in a row")
    parents: int = column("executions of the parent in them")
    squares: float = column("sum of squares of the executions after each of the parent's")
    longest: int = column("the most executions in one stretch")
    elapsed_us: int = column(
        "total time from the end of the statement before each execution to its own end", "µs"
    )
    sum_us: int = column(_REPEATED_SUM_US, "µs")
    groups: int = column("groups of 32 executions in a row whose binds are logged")
    at_once: int = column("groups that the server executed without waiting for the client")
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")


class PoolRow(_Durations, StoredRow):
    """Connections in the log of a pooler (PgBouncer)."""

    side: str = column("client: to the pooler; server: from the pooler")
    database: str = column("database")
    user: str = column(_USER)
    host: str | None = column("client's or server's name or address, without port")
    ended: str = column("reason of the end; empty for beginnings")
    server: str = column(_SERVER)
    count: int = column("how many")
    sum_us: int = column("total time open; 0 for beginnings", "µs")
    max_us: int = column("the longest", "µs")


class SlowestRow(StoredRow):
    """The 100 slowest executions of all statements."""

    duration_us: int = column("duration", "µs")
    time_us: int | None = column("when it was logged, since 1970 in UTC", "µs")
    template: int | None = column(_TEMPLATE)
    user: str = column(_USER)
    database: str = column("database")
    application: str = column("application_name")
    host: str = column(_HOST)
    server: str = column(_SERVER)
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")
    text: str = column("its text, at most 1024 bytes")
    parameters: str = column("its parameters, or the EXECUTE of a prepared statement")


class HourRow(StoredRow):
    """Durations of executions by the hour; by a longer step if the log spans more than 25 days, or if it has
    more than 12 000 hours of all servers together.
    """

    start_us: int = column("beginning of the hour, since 1970 in UTC", "µs")
    executions: int = column("executions that ended in it")
    p50_us: int = column("median duration, to 0.8 %", "µs")
    p95_us: int = column("0.95 quantile", "µs")
    p99_us: int = column("0.99 quantile", "µs")


class ServerHourRow(StoredRow):
    """Durations of executions by server and hour, in the steps of log_hours.

    Only if the logs are of several servers.
    """

    server: str = column(_SERVER)
    start_us: int = column("beginning of the hour, since 1970 in UTC", "µs")
    executions: int = column("executions that ended in it")
    p50_us: int = column("median duration, to 0.8 %", "µs")
    p95_us: int = column("0.95 quantile", "µs")
    p99_us: int = column("0.99 quantile", "µs")


class SessionRow(_Durations, StoredRow):
    """Sessions by server, user, database, application and host (log_connections, log_disconnections)."""

    user: str = column(_USER)
    database: str = column("database")
    application: str = column("application_name")
    host: str = column(_HOST)
    server: str = column(_SERVER)
    begun: int = column("sessions whose beginning is in the log")
    ended: int = column("sessions whose end is in the log")
    sum_us: int = column("total duration of sessions that ended", "µs")
    max_us: int = column("longest duration", "µs")


class VacuumRow(StoredRow):
    """Autovacuum's work by table; log_activity has the durations."""

    kind: str = column("autovacuum, or autoanalyze if it only analyzed")
    name: str = column("table, with database and schema")
    server: str = column(_SERVER)
    index_scans: int = column("passes over its indexes")
    pages_removed: int = column("pages returned to the operating system")
    tuples_removed: int = column("dead tuples removed")
    tuples_dead: int = column("dead tuples that could not be removed yet")
    buffer_hits: int = column("buffers found in shared buffers")
    buffer_misses: int = column("buffers that had to be read")
    buffers_dirtied: int = column("buffers dirtied")
    wal_records: int = column("WAL records")
    wal_images: int = column("full page images in WAL")
    wal_bytes: int = column("size of the WAL", "B")


class RouteRow(StoredRow):
    """Executions of one template by who sent them, as comments in statements name it (sqlcommenter,
    Marginalia, Rails). Statements without such a comment have no row.
    """

    route: str = column(
        "route, else controller#action, else job, else the request's path with ? for numbers and "
        "identifiers; empty if the comment names none"
    )
    tagged_application: str = column("application that the comment names")
    application: str = column("the session's application_name")
    server: str = column(_SERVER)
    trace: str = column(
        "first half of the trace's ID if `uncork load http --traceparent` sent the request: 756e636b, six "
        "digits of the load, two of the request by its place; else empty"
    )
    template: int = column(_TEMPLATE)
    executions: int = column("executions")
    sum_us: int = column("sum of their durations", "µs")
    max_us: int = column("longest duration", "µs")
    rows_plans: int = column("plans with actual row counts (log_analyze)")
    rows_sum: int = column("those rows, in all")
    requests: int | None = column(
        "different traces (traceparent) of this sender over all templates: exactly up to 1 024, to 3 % "
        "beyond; empty if comments name none"
    )


class QueryIdRow(StoredRow):
    """The server's query ids of a template: query_id is pg_stat_statements.queryid."""

    template: int = column(_TEMPLATE)
    query_id: int = column("query id, from %Q, csvlog or jsonlog")
    executions: int = column("executions with it")


class RepeatedUpdatesRow(StoredRow):
    """Updates at the beginning of a log, of templates that take a tenth of its time."""

    template: int = column(_TEMPLATE)
    updates: int = column("updates that choose a row by its key")
    followed: int = column("updates of a row that had been updated before")
    unchanged: int = column("of these, updates that assigned the same values again")


class EventRow(StoredRow):
    """All entries of a log, one a row: only with `--events DIR`, and in that folder (events-*.parquet;
    `template` comes from statements.parquet by `statement_id`, a file's name from files.parquet).
    """

    time: datetime | None = column("when it was logged, in UTC")
    file: int = column(_FILE)
    offset: int = column(_OFFSET, "B")
    pid: int | None = column("process")
    duration_us: int | None = column("duration of a statement, wait, session, checkpoint or vacuum", "µs")
    bytes: int | None = column("size of a temporary file", "B")
    statement_id: int | None = column("stands for the statement without its literals")
    template: int | None = column("template, by number; empty if there is none, or if it is rare")
    severity: str | None = column("LOG, ERROR, …; DETAIL, STATEMENT, … for an addition on its own")
    sqlstate: str | None = column("SQLSTATE")
    kind: str | None = column(
        "duration, statement, error (and warnings), lock waits, lock acquired, lock deadlocked, deadlock, "
        "temporary file, checkpoint begins, checkpoint, autovacuum, autoanalyze, connection, disconnection, "
        "cancellation, addition, pooler, other"
    )
    step: str | None = column("statement, parse, bind, execute, fetch, plan, function; untold")
    session: str | None = column("session")
    user: str | None = column(_USER)
    database: str | None = column("database")
    application: str | None = column("application_name")
    host: str | None = column(_HOST)
    server: str | None = column(_SERVER)
    statement: str | None = column("the statement, or the one during which it was written")
    parameters: str | None = column("its parameters")
    message: str | None = column("the message, unless the other columns contain all of it")
    detail: str | None = column("DETAIL")
    hint: str | None = column("HINT")
    context: str | None = column("CONTEXT")
    plan: str | None = column("plan of auto_explain")


LOG_TABLES = (
    table_of("log_templates", TemplateRow, "template"),
    table_of("log_origins", OriginRow, "template", "server", "user", "database", "application", "host"),
    table_of("log_series", SeriesRow, "kind", "server", "start_us"),
    table_of("log_templates_by_server", ServerTemplateRow, "template", "server"),
    table_of("log_examples", ExampleRow, "template", "kind"),
    table_of("log_errors", ErrorRow, "error"),
    table_of("log_failed_statements", FailedStatementRow, "error", "template"),
    table_of("log_activity", ActivityRow, "kind", "name", "server"),
    table_of("log_incidents", IncidentRow, "file", "offset"),
    table_of("log_transactions", TransactionRow, "server", "user", "database", "application", "host"),
    table_of("log_blocking", BlockingRow),
    table_of("log_loops", LoopRow),
    table_of("log_pool", PoolRow, "server", "side", "database", "user", "host", "ended"),
    table_of("log_slowest", SlowestRow, "file", "offset"),
    table_of("log_hours", HourRow, "start_us"),
    table_of("log_hours_by_server", ServerHourRow, "server", "start_us"),
    table_of("log_sessions", SessionRow, "server", "user", "database", "application", "host"),
    table_of("log_vacuums", VacuumRow, "kind", "name", "server"),
    table_of(
        "log_routes", RouteRow, "template", "route", "tagged_application", "application", "server", "trace"
    ),
    table_of("log_query_ids", QueryIdRow, "template", "query_id"),
    table_of("log_repeated_updates", RepeatedUpdatesRow, "template"),
)

LOG_EVENTS = table_of("log_events", EventRow, "file", "offset")
