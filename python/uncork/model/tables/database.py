"""The stored tables of a watched server; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import PLAN_HASH, Column, Table

DROPPED_DATABASE = "(dropped database)"
DROPPED_ROLE = "(dropped role)"
"""The name of a role that was dropped while the server still counts its statements."""

HIDDEN_STATEMENTS = "hidden statements"
"""The view, among the counters, of statements of the watched database that are hidden from the role."""

_SAMPLE = Column("sample", "integer", "", "sample, by number from 0")
_TEMPLATE = Column("template", "integer", "", "template, by number")
_MOMENT = Column("moment", "text", "", "before or after: which of the two snapshots")
_OID = Column("oid", "integer", "", "the server's number of it")
_PAGES = Column("pages", "integer", "blocks", "pages at its last VACUUM or ANALYZE")

DATABASE_TABLES = (
    Table(
        "database_samples",
        "One sample of the sessions.",
        ("sample",),
        (
            _SAMPLE,
            Column("time_us", "integer", "µs", "when it was taken, since 1970 in UTC"),
            Column("query_ns", "integer", "ns", "time until the server answered"),
            Column("hidden", "integer", "", "sessions of other roles whose state this role may not see"),
            Column("asked", "integer", "", "waiting sessions whose blockers uncork asked for"),
            Column("blockers", "flag", "", "true if uncork asked for blockers in this sample"),
        ),
    ),
    Table(
        "database_activity",
        "One session in one sample; idle ones are left out, and so is uncork's own.",
        ("sample", "pid"),
        (
            _SAMPLE,
            Column("pid", "integer", "", "process"),
            Column("backend", "text", "", "kind of process, such as client backend or checkpointer"),
            Column("state", "text", "", "state; null for processes that serve no client"),
            Column("wait_class", "text", "", "class of its wait event; null if it does not wait"),
            Column("wait_event", "text", "", "wait event"),
            Column("query_id", "integer", "", "the server's number of its statement, if it computes one"),
            _TEMPLATE,
            Column("application", "text", "", "application_name"),
            Column("user", "text", "", "role"),
            Column("database", "text", "", "database"),
            Column("leader_pid", "integer", "", "for a parallel worker: its leader process"),
            Column("transaction_us", "integer", "µs", "age of its transaction"),
            Column("state_us", "integer", "µs", "time since it entered its state"),
            Column(
                "held_age",
                "integer",
                "",
                "transactions begun since the oldest whose dead rows VACUUM must keep for it",
            ),
            Column("blocked_by", "text", "", "processes that block it, comma-separated; null if not asked"),
            Column("origin", "text", "", "the route or action that its statement's comment names, if any"),
        ),
    ),
    Table(
        "database_templates",
        "Templates: statements without their literals.",
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
            Column(
                "sql",
                "text",
                "",
                "the statement in pg_stat_statements, with $1 for values; null if unknown",
            ),
        ),
    ),
    Table(
        "database_texts",
        "Statements with their values, as samples saw them in sessions; none if the run is anonymised.",
        ("template", "number"),
        (
            _TEMPLATE,
            Column("number", "integer", "", "texts of one template by number from 0"),
            Column("text", "text", "", "statement as the session sent it, unless the server cut it"),
        ),
    ),
    Table(
        "database_statements",
        "Entries of pg_stat_statements whose statements ran between the snapshots.",
        ("moment", "user_oid", "database_oid", "query_id", "toplevel"),
        (
            _MOMENT,
            Column("user_oid", "integer", "", "the server's number of the role"),
            Column("database_oid", "integer", "", "the server's number of the database"),
            Column("user", "text", "", f"role; {DROPPED_ROLE} if it was dropped"),
            Column("database", "text", "", f"database; {DROPPED_DATABASE} if it was dropped"),
            Column("query_id", "integer", "", "the server's number of the statement"),
            Column("toplevel", "flag", "", "false if it ran within a function"),
            _TEMPLATE,
            Column("calls", "integer", "", "executions"),
            Column("execution_ns", "real", "ns", "execution time"),
            Column("plans", "integer", "", "times it was planned, if the server tracks planning"),
            Column("planning_ns", "real", "ns", "time spent on it"),
            Column("rows", "integer", "", "rows returned or changed"),
            Column("shared_hit", "integer", "blocks", "buffers found in shared memory"),
            Column("shared_read", "integer", "blocks", "buffers read from outside it"),
            Column("shared_dirtied", "integer", "blocks", "buffers changed"),
            Column("shared_written", "integer", "blocks", "buffers written by it"),
            Column("temp_read", "integer", "blocks", "blocks read from temporary files"),
            Column("temp_written", "integer", "blocks", "blocks written to temporary files"),
            Column("read_ns", "real", "ns", "time of reading blocks, if track_io_timing is on"),
            Column("write_ns", "real", "ns", "time of writing blocks, if track_io_timing is on"),
            Column("wal_records", "integer", "", "write-ahead log records generated"),
            Column("wal_fpi", "integer", "", "full pages in them"),
            Column("wal_bytes", "integer", "B", "write-ahead log generated"),
            Column("jit_functions", "integer", "", "functions compiled just in time"),
            Column("jit_ns", "real", "ns", "time spent on it"),
            Column(
                "since_us", "integer", "µs", "start of counting, since 1970 in UTC (PostgreSQL 17 and later)"
            ),
            Column("squares_ns2", "real", "ns²", "sum of the squares of the execution times"),
        ),
    ),
    Table(
        "database_kernel",
        "What the kernel counted for statements that ran between the snapshots, from pg_stat_kcache.",
        ("moment", "user_oid", "database_oid", "query_id", "toplevel"),
        (
            _MOMENT,
            Column("user_oid", "integer", "", "the server's number of the role"),
            Column("database_oid", "integer", "", "the server's number of the database"),
            Column("query_id", "integer", "", "the server's number of the statement"),
            Column("toplevel", "flag", "", "false if it ran within a function"),
            Column("user_ns", "real", "ns", "processor time in user mode, with that of parallel workers"),
            Column("system_ns", "real", "ns", "processor time in the kernel"),
            Column("read_bytes", "integer", "B", "read from disks, not from the page cache"),
            Column("written_bytes", "integer", "B", "written to the page cache"),
        ),
    ),
    Table(
        "database_plans",
        "Plans of the statements that took the most time; the server did not execute them.",
        ("query_id", "source", "number"),
        (
            Column("query_id", "integer", "", "the server's number of the statement"),
            _TEMPLATE,
            Column(
                "source",
                "text",
                "",
                "values of its parameters: generic (none), seen (of a session) or drawn (from the columns' "
                "statistics)",
            ),
            Column("number", "integer", "", "plans of one source by number from 0"),
            Column("plan", "text", "", "EXPLAIN's text; null if the server did not plan the statement"),
            Column("json", "text", "", "the same plan by EXPLAIN (FORMAT JSON, VERBOSE)"),
            PLAN_HASH,
            Column(
                "jit", "flag", "", "true if it costs more than jit_above_cost, so that the server compiles it"
            ),
            Column("reason", "text", "", "the server's reason why there is no plan"),
            Column("denied", "flag", "", "true if this role lacks a privilege on a table of the statement"),
            Column("sqlstate", "text", "", "SQLSTATE of that reason, if the server gave one"),
        ),
    ),
    Table(
        "database_counters",
        "The server's own counters, from its statistics views.",
        ("moment", "view", "object", "counter"),
        (
            _MOMENT,
            Column(
                "view",
                "text",
                "",
                f"view, such as pg_stat_database; {HIDDEN_STATEMENTS} sums up those of other roles",
            ),
            Column("object", "text", "", "subject: a database; backend, object and context; empty for all"),
            Column("oid", "integer", "", "the server's number of that database; null for other views"),
            Column("counter", "text", "", "column of the view"),
            Column("value", "real", "", "its value; times in milliseconds, as the server reports them"),
        ),
    ),
    Table(
        "database_relations",
        "Tables of the watched database; before the watch only their counters.",
        ("moment", "oid"),
        (
            _MOMENT,
            _OID,
            Column("schema", "text", "", "schema"),
            Column("name", "text", "", "table"),
            Column("kind", "text", "", "table, partitioned table or materialized view"),
            Column("partition_of", "integer", "", "the table that it is a partition of"),
            Column("rows", "real", "", "the planner's estimate of its rows; null if never analysed"),
            _PAGES,
            Column(
                "bytes",
                "integer",
                "B",
                "size with TOAST data, without indexes; of small tables that no statement used in a database "
                "with more than 1000 tables and indexes, at the last VACUUM or ANALYZE",
            ),
            Column("main_bytes", "integer", "B", "size of its main file: where the rows are"),
            Column("index_bytes", "integer", "B", "size of its indexes"),
            Column("fillfactor", "integer", "", "percentage of a page that rows may fill at first"),
            Column("row_width", "real", "B", "mean width of a row's data; null if unknown"),
            Column("live", "integer", "", "live rows, estimated"),
            Column("dead", "integer", "", "dead rows, estimated"),
            Column("seq_scans", "integer", "", "sequential scans"),
            Column("seq_rows", "integer", "", "rows read by them"),
            Column("index_scans", "integer", "", "index scans"),
            Column("index_rows", "integer", "", "rows fetched by them"),
            Column("inserted", "integer", "", "rows inserted"),
            Column("updated", "integer", "", "rows updated"),
            Column("hot_updated", "integer", "", "of them without a new index entry (HOT)"),
            Column("deleted", "integer", "", "rows deleted"),
            Column("heap_read", "integer", "blocks", "blocks of its rows read from outside shared memory"),
            Column("heap_hit", "integer", "blocks", "blocks of its rows found in shared memory"),
            Column("vacuumed_us", "integer", "µs", "when it was last vacuumed, since 1970 in UTC"),
            Column("analysed_us", "integer", "µs", "when it was last analysed, since 1970 in UTC"),
            Column("frozen_age", "integer", "", "transactions since its oldest row that is not frozen"),
            Column("modified", "integer", "", "rows changed since it was last analysed"),
            Column("autovacuum", "flag", "", "false if the table's own settings turn autovacuum off"),
        ),
    ),
    Table(
        "database_indexes",
        "Indexes of the watched database; before the watch only their counters.",
        ("moment", "oid"),
        (
            _MOMENT,
            _OID,
            Column("table_oid", "integer", "", "the table it is on"),
            Column("schema", "text", "", "schema"),
            Column("name", "text", "", "index"),
            Column("method", "text", "", "access method"),
            Column(
                "definition",
                "text",
                "",
                "the statement that creates it; empty if it was not read, as the exact size of its table",
            ),
            Column("keys", "text", "", "each key column's number:class:collation:option, comma-separated"),
            Column("included", "text", "", "numbers of included columns (INCLUDE), comma-separated"),
            Column("expressions", "text", "", "expressions among its keys"),
            Column("predicate", "text", "", "condition of a partial index"),
            Column("unique", "flag", "", "true if it enforces uniqueness"),
            Column("constraint", "flag", "", "true if a constraint depends on it, also of another table"),
            Column("valid", "flag", "", "false if its build failed"),
            _PAGES,
            Column("rows", "real", "", "the planner's estimate of its entries"),
            Column("bytes", "integer", "B", "size"),
            Column("fillfactor", "integer", "", "percentage of a page that entries may fill at first"),
            Column("key_width", "real", "B", "mean width of an entry's data; null if unknown"),
            Column("scans", "integer", "", "index scans"),
            Column("rows_read", "integer", "", "entries read by them"),
            Column(
                "scanned_us", "integer", "µs", "when it was last scanned, since 1970 in UTC (16 and later)"
            ),
        ),
    ),
    Table(
        "database_foreign_keys",
        "Foreign keys of the watched database.",
        ("oid",),
        (
            _OID,
            Column("name", "text", "", "constraint"),
            Column("table_oid", "integer", "", "the table that refers"),
            Column("referred_oid", "integer", "", "the table that it refers to"),
            Column("columns", "text", "", "columns that refer"),
            Column("numbers", "text", "", "their numbers, comma-separated"),
            Column("null_share", "real", "", "fraction of nulls in its only column, by ANALYZE"),
            Column("distinct_values", "real", "", "distinct values as in pg_stats: negative is a fraction"),
            Column("top_share", "real", "", "fraction of rows with the most common value"),
        ),
    ),
    Table(
        "database_horizons",
        "What keeps dead rows from VACUUM besides sessions: prepared transactions and replication slots.",
        ("kind", "name"),
        (
            Column("kind", "text", "", "prepared transaction or replication slot"),
            Column("name", "text", "", "its name"),
            Column("user", "text", "", "role that prepared it; null for a slot"),
            Column("database", "text", "", "database; null for a physical slot, which affects all"),
            Column("active", "flag", "", "false for a slot that nobody reads from"),
            Column("held_age", "integer", "", "transactions begun since the oldest whose dead rows it keeps"),
            Column("since_us", "integer", "µs", "when it was prepared, since 1970 in UTC; null for a slot"),
        ),
    ),
    Table(
        "database_settings",
        "Settings that differ from PostgreSQL's defaults.",
        ("name",),
        (
            Column("name", "text", "", "setting"),
            Column("value", "text", "", "its value"),
            Column("default", "text", "", "PostgreSQL's own"),
            Column("source", "text", "", "where it was set"),
        ),
    ),
)
