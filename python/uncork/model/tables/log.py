"""The stored tables of a log; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

HISTOGRAM_COLUMNS = (
    *("under_1ms", "under_5ms", "under_10ms", "under_25ms", "under_50ms", "under_100ms", "under_500ms"),
    *("under_1s", "under_10s", "over_10s"),
)
"""Columns that count executions by their duration; each begins where the previous one ends."""

_TEMPLATE = Column("template", "integer", "", "template, by number")
_FIRST = Column("first_us", "integer", "µs", "when the first was logged, since 1970 in UTC")
_LAST = Column("last_us", "integer", "µs", "when the last was logged, since 1970 in UTC")
_FILE = Column("file", "integer", "", "file, by its place in facts.json, from 0")
_OFFSET = Column("offset", "integer", "B", "where the entry begins in the file, unpacked")
_SERVER = Column("server", "text", "", "server that logged it; empty if servers are not named (--server)")
_ORIGIN = (
    Column("user", "text", "", "user; empty if the log does not say"),
    Column("database", "text", "", "database"),
    Column("application", "text", "", "application_name"),
    Column("host", "text", "", "client's name or address, without port"),
)
_REPEATED = (
    Column("repeated_rows", "integer", "", "rows of 10 or more executions by one session"),
    Column("repeated_executions", "integer", "", "executions in them"),
    Column("repeated_longest", "integer", "", "executions of the longest row"),
    Column(
        "repeated_elapsed_us",
        "integer",
        "µs",
        "total time from the end of a row's first execution to its last",
    ),
    Column("repeated_sum_us", "integer", "µs", "durations within that time"),
    Column(
        "repeated_groups",
        "integer",
        "",
        "groups of 32 executions in them whose binds are logged",
    ),
    Column(
        "repeated_at_once",
        "integer",
        "",
        "groups that the server executed without waiting for the client, as it does in a pipeline",
    ),
)
_QUANTILES = (
    Column("executions", "integer", "", "executions that ended in it"),
    Column("p50_us", "integer", "µs", "median duration, to 0.8 %"),
    Column("p95_us", "integer", "µs", "0.95 quantile"),
    Column("p99_us", "integer", "µs", "0.99 quantile"),
)

LOG_TABLES = (
    Table(
        "log_templates",
        "One template: a statement without its literals.",
        ("template",),
        (
            _TEMPLATE,
            Column("text", "text", "", "statement in lower case, ? for each literal and parameter"),
            Column(
                "identity",
                "text",
                "",
                "libpg_query's fingerprint, and names with digits: equal in any log; null if it is not SQL",
            ),
            Column("executions", "integer", "", "statements and executions with a duration"),
            Column("sum_us", "integer", "µs", "sum of their durations"),
            Column("max_us", "integer", "µs", "longest duration"),
            Column("p50_us", "integer", "µs", "median duration, to 0.8 %"),
            Column("p95_us", "integer", "µs", "0.95 quantile"),
            Column("p99_us", "integer", "µs", "0.99 quantile"),
            Column("parses", "integer", "", "parses of the extended protocol"),
            Column("parse_sum_us", "integer", "µs", "sum of their durations"),
            Column("parse_max_us", "integer", "µs", "longest of them"),
            Column("binds", "integer", "", "binds of the extended protocol"),
            Column("bind_sum_us", "integer", "µs", "sum of their durations"),
            Column("bind_max_us", "integer", "µs", "longest of them"),
            Column("plans", "integer", "", "plans of auto_explain"),
            Column("rows_plans", "integer", "", "plans with actual row counts (log_analyze)"),
            Column("rows_sum", "integer", "", "those rows, in all"),
            Column("rows_max", "integer", "", "the most of one execution"),
            Column("cut", "integer", "", "executions whose text the log truncates"),
            _FIRST,
            _LAST,
            Column("lists", "integer", "", "executions with a list (IN, VALUES, ARRAY)"),
            Column("list_elements", "integer", "", "total elements of their longest lists"),
            Column("list_max", "integer", "", "elements of the longest list"),
            *_REPEATED,
            *(
                Column(name, "integer", "", f"executions {name.replace('_', ' ')}")
                for name in HISTOGRAM_COLUMNS
            ),
        ),
    ),
    Table(
        "log_origins",
        "Executions of one template by server, application, user, database and host.",
        ("template", "server", "user", "database", "application", "host"),
        (
            _TEMPLATE,
            *_ORIGIN,
            _SERVER,
            Column("executions", "integer", "", "executions"),
            Column("sum_us", "integer", "µs", "sum of their durations"),
            Column("max_us", "integer", "µs", "longest duration"),
        ),
    ),
    Table(
        "log_series",
        "Activity in a log over time.",
        ("kind", "server", "start_us"),
        (
            Column(
                "kind",
                "text",
                "",
                "execution (of all), application, template, error, lock wait, temporary file, checkpoint, "
                "autovacuum or connection; of a pooler's reports pool transactions, pool queries, pool "
                "transaction time, pool query time, pool wait, pool bytes in or pool bytes out (of a second; "
                "times in µs of all clients)",
            ),
            Column("name", "text", "", "application, where the kind is application"),
            Column(
                "template",
                "integer",
                "",
                "template, where the kind is template: the 2 000 with the most time",
            ),
            Column("server", "text", "", "server that logged it; empty where the kind is template"),
            Column("start_us", "integer", "µs", "beginning of the interval, since 1970 in UTC"),
            Column("count", "integer", "", "how many"),
            Column(
                "sum", "integer", "", "durations in µs; bytes for temporary files; all values for reports"
            ),
        ),
    ),
    Table(
        "log_templates_by_server",
        "Executions of one template by server. Only if the logs are of several servers: else log_templates "
        "has the same.",
        ("template", "server"),
        (
            _TEMPLATE,
            _SERVER,
            Column("executions", "integer", "", "statements and executions with a duration"),
            Column("sum_us", "integer", "µs", "sum of their durations"),
            Column("max_us", "integer", "µs", "longest duration"),
            *_REPEATED,
        ),
    ),
    Table(
        "log_examples",
        "Single executions from the log.",
        ("template", "kind"),
        (
            _TEMPLATE,
            Column("kind", "text", "", "slowest, median, newest (the first of the last minute), plan"),
            Column("duration_us", "integer", "µs", "duration"),
            Column("time_us", "integer", "µs", "when it was logged, since 1970 in UTC"),
            _FILE,
            _OFFSET,
            Column("text", "text", "", "its text"),
            Column("parameters", "text", "", "its parameters, if they are logged"),
        ),
    ),
    Table(
        "log_errors",
        "Warnings, errors and other messages by kind.",
        ("error",),
        (
            Column("error", "integer", "", "kind, by number"),
            Column("severity", "text", "", "severity"),
            Column("sqlstate", "text", "", "SQLSTATE; empty if the log does not say"),
            Column("message", "text", "", "message without names and numbers"),
            _SERVER,
            Column("count", "integer", "", "how many"),
            _FIRST,
            _LAST,
            _FILE,
            _OFFSET,
            Column("example", "text", "", "message of the first occurrence"),
            Column("detail", "text", "", "its DETAIL"),
            Column("hint", "text", "", "its HINT"),
            Column("context", "text", "", "its CONTEXT"),
            Column("statement", "text", "", "its STATEMENT"),
        ),
    ),
    Table(
        "log_failed_statements",
        "Errors by template.",
        ("error", "template"),
        (
            Column("error", "integer", "", "kind of error, by number"),
            _TEMPLATE,
            Column("count", "integer", "", "how often"),
        ),
    ),
    Table(
        "log_activity",
        "The server's messages about itself and its sessions, by name.",
        ("kind", "name", "server"),
        (
            Column(
                "kind",
                "text",
                "",
                "lock wait, waiting statement, temporary file, autovacuum, autoanalyze, connection, "
                "cancellation",
            ),
            Column("name", "text", "", "lock, table, host or reason"),
            Column("template", "integer", "", "template of the statement, if that is the name"),
            _SERVER,
            Column("count", "integer", "", "how often"),
            Column("sum", "integer", "", "µs, bytes for temporary files"),
            Column("max", "integer", "", "µs, bytes for temporary files"),
        ),
    ),
    Table(
        "log_incidents",
        "The longest waits for locks and the largest temporary files.",
        ("file", "offset"),
        (
            Column("is_wait", "flag", "", "true for a wait, false for a file"),
            Column("amount", "integer", "", "µs waited, or bytes"),
            Column("time_us", "integer", "µs", "when it was logged, since 1970 in UTC"),
            Column("pid", "integer", "", "process"),
            _SERVER,
            _FILE,
            _OFFSET,
            Column("what", "text", "", "lock, or message"),
            Column("detail", "text", "", "the session that held the lock and those that waited"),
            Column("statement", "text", "", "statement"),
            Column("relation", "text", "", "relation that a wait is about, by name or OID"),
            Column("holder", "text", "", "last statement of the session that held the lock"),
        ),
    ),
    Table(
        "log_transactions",
        "Transactions that a log shows from BEGIN to their end, by server, application, user, database and "
        "host.",
        ("server", "user", "database", "application", "host"),
        (
            *_ORIGIN,
            _SERVER,
            Column("transactions", "integer", "", "transactions"),
            Column("elapsed_us", "integer", "µs", "total duration"),
            Column("elapsed_max_us", "integer", "µs", "longest"),
            Column("statements", "integer", "", "statements in them"),
            Column("statements_p50", "integer", "", "median of statements a transaction"),
            Column("statements_max", "integer", "", "most statements of one"),
            Column(
                "sum_us", "integer", "µs", "total duration of their statements, with parse, bind and the end"
            ),
            Column("pauses", "integer", "", "pauses of over a second in which the client sent nothing"),
            Column("pause_sum_us", "integer", "µs", "total duration of these pauses"),
            Column("pause_max_us", "integer", "µs", "longest"),
            Column("repeated_wait_us", "integer", "µs", "time before repeated executions"),
            _FILE,
            _OFFSET,
        ),
    ),
    Table(
        "log_blocking",
        "Who waited for whom: waits for locks over deadlock_timeout whose holder the log names. A wait for "
        "several counts for each of them.",
        (),
        (
            Column("waiting_template", "integer", "", "the waiting statement's template"),
            Column("waiting_application", "text", "", "its application_name"),
            Column("waiting_user", "text", "", "its user"),
            Column(
                "holding_template",
                "integer",
                "",
                "the last statement that had ended in the transaction that held the lock; empty if unknown",
            ),
            Column("holding_application", "text", "", "its application_name"),
            Column("holding_user", "text", "", "its user"),
            _SERVER,
            Column("waits", "integer", "", "waits"),
            Column("sum_us", "integer", "µs", "total duration of waits that ended"),
            Column("max_us", "integer", "µs", "longest duration"),
        ),
    ),
    Table(
        "log_loops",
        "Templates that sessions of a server execute ten times or more in a transaction, with other "
        "statements in between; and outside of transactions, if another statement (the parent) runs at most "
        "a tenth as often. Executions in a row are columns of log_templates and log_templates_by_server.",
        (),
        (
            Column("template", "integer", "", "the repeated template"),
            Column("parent", "integer", "", "the template before the loop; empty if there is none"),
            _SERVER,
            Column("in_transaction", "flag", "", "whether it is repeated within transactions"),
            Column(
                "stretches", "integer", "", "transactions, or stretches of statements without a long pause"
            ),
            Column("executions", "integer", "", "executions of the template in them, except those in a row"),
            Column("parents", "integer", "", "executions of the parent in them"),
            Column("squares", "real", "", "sum of squares of the executions after each of the parent's"),
            Column("longest", "integer", "", "the most executions in one stretch"),
            Column(
                "elapsed_us",
                "integer",
                "µs",
                "total time from the end of the statement before each execution to its own end",
            ),
            Column("sum_us", "integer", "µs", "durations within that time"),
            Column("groups", "integer", "", "groups of 32 executions in a row whose binds are logged"),
            Column(
                "at_once", "integer", "", "groups that the server executed without waiting for the client"
            ),
            _FILE,
            _OFFSET,
        ),
    ),
    Table(
        "log_pool",
        "Connections in the log of a pooler (PgBouncer).",
        ("server", "side", "database", "user", "host", "ended"),
        (
            Column("side", "text", "", "client: to the pooler; server: from the pooler"),
            _ORIGIN[1],
            _ORIGIN[0],
            Column("host", "text", "", "client's or server's name or address, without port"),
            Column("ended", "text", "", "reason of the end; empty for beginnings"),
            _SERVER,
            Column("count", "integer", "", "how many"),
            Column("sum_us", "integer", "µs", "total time open; 0 for beginnings"),
            Column("max_us", "integer", "µs", "the longest"),
        ),
    ),
    Table(
        "log_slowest",
        "The 100 slowest executions of all statements.",
        ("file", "offset"),
        (
            Column("duration_us", "integer", "µs", "duration"),
            Column("time_us", "integer", "µs", "when it was logged, since 1970 in UTC"),
            _TEMPLATE,
            *_ORIGIN,
            _SERVER,
            _FILE,
            _OFFSET,
            Column("text", "text", "", "its text, at most 1024 bytes"),
            Column("parameters", "text", "", "its parameters, or the EXECUTE of a prepared statement"),
        ),
    ),
    Table(
        "log_hours",
        "Durations of executions by the hour; by a longer step if the log spans more than 25 days, or if it "
        "has more than 12 000 hours of all servers together.",
        ("start_us",),
        (Column("start_us", "integer", "µs", "beginning of the hour, since 1970 in UTC"), *_QUANTILES),
    ),
    Table(
        "log_hours_by_server",
        "Durations of executions by server and hour, in the steps of log_hours. Only if the logs are of "
        "several servers.",
        ("server", "start_us"),
        (
            _SERVER,
            Column("start_us", "integer", "µs", "beginning of the hour, since 1970 in UTC"),
            *_QUANTILES,
        ),
    ),
    Table(
        "log_sessions",
        "Sessions by server, user, database, application and host (log_connections, log_disconnections).",
        ("server", "user", "database", "application", "host"),
        (
            *_ORIGIN,
            _SERVER,
            Column("begun", "integer", "", "sessions whose beginning is in the log"),
            Column("ended", "integer", "", "sessions whose end is in the log"),
            Column("sum_us", "integer", "µs", "total duration of sessions that ended"),
            Column("max_us", "integer", "µs", "longest duration"),
        ),
    ),
    Table(
        "log_vacuums",
        "Autovacuum's work by table; log_activity has the durations.",
        ("kind", "name", "server"),
        (
            Column("kind", "text", "", "autovacuum, or autoanalyze if it only analyzed"),
            Column("name", "text", "", "table, with database and schema"),
            _SERVER,
            Column("index_scans", "integer", "", "passes over its indexes"),
            Column("pages_removed", "integer", "", "pages returned to the operating system"),
            Column("tuples_removed", "integer", "", "dead tuples removed"),
            Column("tuples_dead", "integer", "", "dead tuples that could not be removed yet"),
            Column("buffer_hits", "integer", "", "buffers found in shared buffers"),
            Column("buffer_misses", "integer", "", "buffers that had to be read"),
            Column("buffers_dirtied", "integer", "", "buffers dirtied"),
            Column("wal_records", "integer", "", "WAL records"),
            Column("wal_images", "integer", "", "full page images in WAL"),
            Column("wal_bytes", "integer", "B", "size of the WAL"),
        ),
    ),
    Table(
        "log_routes",
        "Executions of one template by who sent them, as comments in statements name it (sqlcommenter, "
        "Marginalia, Rails). Statements without such a comment have no row.",
        ("template", "route", "tagged_application", "application", "server", "trace"),
        (
            Column(
                "route",
                "text",
                "",
                "route, else controller#action, else job, else the request's path with ? for numbers and "
                "identifiers; empty if the comment names none",
            ),
            Column("tagged_application", "text", "", "application that the comment names"),
            Column("application", "text", "", "the session's application_name"),
            _SERVER,
            Column(
                "trace",
                "text",
                "",
                "first half of the trace's ID if `uncork load http --traceparent` sent the request: "
                "756e636b, six digits of the load, two of the request by its place; else empty",
            ),
            _TEMPLATE,
            Column("executions", "integer", "", "executions"),
            Column("sum_us", "integer", "µs", "sum of their durations"),
            Column("max_us", "integer", "µs", "longest duration"),
            Column("rows_plans", "integer", "", "plans with actual row counts (log_analyze)"),
            Column("rows_sum", "integer", "", "those rows, in all"),
            Column(
                "requests",
                "integer",
                "",
                "different traces (traceparent) of this sender over all templates: exactly up to 1 024, to "
                "3 % beyond; empty if comments name none",
            ),
        ),
    ),
    Table(
        "log_query_ids",
        "The server's query ids of a template: query_id is pg_stat_statements.queryid.",
        ("template", "query_id"),
        (
            _TEMPLATE,
            Column("query_id", "integer", "", "query id, from %Q, csvlog or jsonlog"),
            Column("executions", "integer", "", "executions with it"),
        ),
    ),
    Table(
        "log_repeated_updates",
        "Updates at the beginning of a log, of templates that take a tenth of its time.",
        ("template",),
        (
            _TEMPLATE,
            Column("updates", "integer", "", "updates that choose a row by its key"),
            Column("followed", "integer", "", "updates of a row that had been updated before"),
            Column("unchanged", "integer", "", "of these, updates that assigned the same values again"),
        ),
    ),
)

LOG_EVENTS = Table(
    "log_events",
    "All entries of a log, one a row: only with `--events DIR`, and in that folder (events-*.parquet; "
    "`template` comes from statements.parquet by `statement_id`, a file's name from files.parquet).",
    ("file", "offset"),
    (
        Column("time", "time", "", "when it was logged, in UTC"),
        _FILE,
        _OFFSET,
        Column("pid", "integer", "", "process"),
        Column(
            "duration_us", "integer", "µs", "duration of a statement, wait, session, checkpoint or vacuum"
        ),
        Column("bytes", "integer", "B", "size of a temporary file"),
        Column("statement_id", "integer", "", "stands for the statement without its literals"),
        Column("template", "integer", "", "template, by number; empty if there is none, or if it is rare"),
        Column("severity", "text", "", "LOG, ERROR, …; DETAIL, STATEMENT, … for an addition on its own"),
        Column("sqlstate", "text", "", "SQLSTATE"),
        Column(
            "kind",
            "text",
            "",
            "duration, statement, error (and warnings), lock waits, lock acquired, lock deadlocked, "
            "deadlock, temporary file, checkpoint begins, checkpoint, autovacuum, autoanalyze, connection, "
            "disconnection, cancellation, addition, pooler, other",
        ),
        Column("step", "text", "", "statement, parse, bind, execute, fetch, plan, function; untold"),
        Column("session", "text", "", "session"),
        *_ORIGIN,
        _SERVER,
        Column("statement", "text", "", "the statement, or the one during which it was written"),
        Column("parameters", "text", "", "its parameters"),
        Column("message", "text", "", "the message, unless the other columns contain all of it"),
        Column("detail", "text", "", "DETAIL"),
        Column("hint", "text", "", "HINT"),
        Column("context", "text", "", "CONTEXT"),
        Column("plan", "text", "", "plan of auto_explain"),
    ),
)
