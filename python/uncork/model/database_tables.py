"""The stored tables of a watched server: see `uncork.model.tables`, which joins them to the others."""

from __future__ import annotations

from uncork.model.table import Column, Table

__all__ = ["DATABASE_TABLES", "DROPPED_DATABASE", "DROPPED_ROLE"]

DROPPED_DATABASE = "(dropped database)"
DROPPED_ROLE = "(dropped role)"
"""Names of what the server still counts statements of, though it is gone."""

_SAMPLE = Column("sample", "integer", "", "sample, by number from 0")
_TEMPLATE = Column("template", "integer", "", "template, by number")
_MOMENT = Column("moment", "text", "", "before or after: which of the two snapshots")
_OID = Column("oid", "integer", "", "the server's number of it")
_PAGES = Column("pages", "integer", "blocks", "pages at its last VACUUM or ANALYZE")

DATABASE_TABLES = (
    Table(
        "database_samples",
        "One look at who works and who waits.",
        ("sample",),
        (
            _SAMPLE,
            Column("time_us", "integer", "µs", "when it was taken, since 1970 in UTC"),
            Column("query_ns", "integer", "ns", "how long the server's answer took to come"),
            Column("hidden", "integer", "", "sessions of other roles whose state this role may not see"),
            Column("asked", "integer", "", "waiting sessions that the server was asked the blockers of"),
            Column("blockers", "flag", "", "true if blockers were asked for in this sample"),
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
            Column("state", "text", "", "state; null of processes that serve no client"),
            Column("wait_class", "text", "", "class of what it waits for; null if it waits for nothing"),
            Column("wait_event", "text", "", "what it waits for"),
            Column("query_id", "integer", "", "the server's number of its statement, if it computes one"),
            _TEMPLATE,
            Column("application", "text", "", "application_name"),
            Column("user", "text", "", "role"),
            Column("database", "text", "", "database"),
            Column("leader_pid", "integer", "", "of a parallel worker: the process it works for"),
            Column("transaction_us", "integer", "µs", "how long its transaction has been open"),
            Column("blocked_by", "text", "", "processes that hold it up, comma-separated; null if not asked"),
        ),
    ),
    Table(
        "database_templates",
        "Statements without their literals.",
        ("template",),
        (
            _TEMPLATE,
            Column("text", "text", "", "statement in lower case, ? for each literal and parameter"),
            Column(
                "identity",
                "text",
                "",
                "libpg_query's fingerprint, and names with digits: the same in any log; null if it is no SQL",
            ),
        ),
    ),
    Table(
        "database_statements",
        "What pg_stat_statements counts, of the statements that ran between the snapshots.",
        ("moment", "user_oid", "database_oid", "query_id", "toplevel"),
        (
            _MOMENT,
            Column("user_oid", "integer", "", "the server's number of the role"),
            Column("database_oid", "integer", "", "the server's number of the database"),
            Column("user", "text", "", f"role; {DROPPED_ROLE} if it is gone"),
            Column("database", "text", "", f"database; {DROPPED_DATABASE} if it is gone"),
            Column("query_id", "integer", "", "the server's number of the statement"),
            Column("toplevel", "flag", "", "false if it ran within a function"),
            _TEMPLATE,
            Column("calls", "integer", "", "executions"),
            Column("execution_ns", "real", "ns", "time they took"),
            Column("plans", "integer", "", "times it was planned, if the server tracks planning"),
            Column("planning_ns", "real", "ns", "time that took"),
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
            Column("jit_ns", "real", "ns", "time that took"),
            Column("since_us", "integer", "µs", "since when it is counted, since 1970 in UTC (17 and later)"),
        ),
    ),
    Table(
        "database_counters",
        "The server's own counters, as its views tell them.",
        ("moment", "view", "object", "counter"),
        (
            _MOMENT,
            Column("view", "text", "", "view, such as pg_stat_database"),
            Column("object", "text", "", "what of: a database; backend, object and context; empty for all"),
            Column("oid", "integer", "", "the server's number of that database; null for other views"),
            Column("counter", "text", "", "column of the view"),
            Column("value", "real", "", "its value; times in milliseconds, as the server tells them"),
        ),
    ),
    Table(
        "database_relations",
        "Tables of the database that was connected to.",
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
            Column("bytes", "integer", "B", "size with TOAST data, without indexes"),
            Column("main_bytes", "integer", "B", "size of its main file: where the rows are"),
            Column("index_bytes", "integer", "B", "size of its indexes"),
            Column("fillfactor", "integer", "", "part of a page that rows may fill at first, in percent"),
            Column("row_width", "real", "B", "mean width of a row's data; null where it is not known"),
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
        ),
    ),
    Table(
        "database_indexes",
        "Indexes of the database that was connected to.",
        ("moment", "oid"),
        (
            _MOMENT,
            _OID,
            Column("table_oid", "integer", "", "the table it is on"),
            Column("schema", "text", "", "schema"),
            Column("name", "text", "", "index"),
            Column("method", "text", "", "access method"),
            Column("definition", "text", "", "the statement that makes it"),
            Column("keys", "text", "", "each key column's number:class:collation:option, comma-separated"),
            Column("included", "text", "", "numbers of columns it only carries (INCLUDE), comma-separated"),
            Column("expressions", "text", "", "expressions among its keys"),
            Column("predicate", "text", "", "condition of a partial index"),
            Column("unique", "flag", "", "true if it holds uniqueness up"),
            Column("constraint", "flag", "", "true if a constraint, also another table's, rests on it"),
            Column("valid", "flag", "", "false if it was left behind half built"),
            _PAGES,
            Column("rows", "real", "", "the planner's estimate of its entries"),
            Column("bytes", "integer", "B", "size"),
            Column("fillfactor", "integer", "", "part of a page that entries may fill at first, in percent"),
            Column("key_width", "real", "B", "mean width of an entry's data; null where it is not known"),
            Column("scans", "integer", "", "scans of it"),
            Column("rows_read", "integer", "", "entries read by them"),
            Column(
                "scanned_us", "integer", "µs", "when it was last scanned, since 1970 in UTC (16 and later)"
            ),
        ),
    ),
    Table(
        "database_foreign_keys",
        "Foreign keys of the database that was connected to.",
        ("oid",),
        (
            _OID,
            Column("name", "text", "", "constraint"),
            Column("table_oid", "integer", "", "the table that refers"),
            Column("referred_oid", "integer", "", "the table that it refers to"),
            Column("columns", "text", "", "columns that refer"),
            Column("numbers", "text", "", "their numbers, comma-separated"),
        ),
    ),
    Table(
        "database_settings",
        "Settings that differ from PostgreSQL's.",
        ("name",),
        (
            Column("name", "text", "", "setting"),
            Column("value", "text", "", "its value"),
            Column("default", "text", "", "PostgreSQL's own"),
            Column("source", "text", "", "where it was set"),
        ),
    ),
)
