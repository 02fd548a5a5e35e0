"""The stored tables of a watched server; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import PLAN_HASH, StoredRow, column, table_of

DROPPED_DATABASE = "(dropped database)"
DROPPED_ROLE = "(dropped role)"
"""The name of a role that was dropped while the server still counts its statements."""

HIDDEN_STATEMENTS = "hidden statements"
"""The view, among the counters, of statements of the watched database that are hidden from the role."""

_SAMPLE = "sample, by number from 0"
_TEMPLATE = "template, by number"
_MOMENT = "before or after: which of the two snapshots"
_USER_OID = "the server's number of the role"
_DATABASE_OID = "the server's number of the database"
_QUERY_ID = "the server's number of the statement"
_TOPLEVEL = "false if it ran within a function"
_SPENT = "time spent on it"
_OID = "the server's number of it"
_PAGES = "pages at its last VACUUM or ANALYZE"


class SampleRow(StoredRow):
    """One sample of the sessions."""

    sample: int = column(_SAMPLE)
    time_us: int | None = column("when it was taken, since 1970 in UTC", "µs")
    query_ns: int | None = column("time until the server answered", "ns")
    hidden: int | None = column("sessions of other roles whose state this role may not see")
    asked: int | None = column("waiting sessions whose blockers uncork asked for")
    blockers: bool | None = column("true if uncork asked for blockers in this sample")


class ActivityRow(StoredRow):
    """One session in one sample; idle ones are left out, and so is uncork's own."""

    sample: int = column(_SAMPLE)
    pid: int = column("process")
    backend: str | None = column("kind of process, such as client backend or checkpointer")
    state: str | None = column("state; null for processes that serve no client")
    wait_class: str | None = column("class of its wait event; null if it does not wait")
    wait_event: str | None = column("wait event")
    query_id: int | None = column("the server's number of its statement, if it computes one")
    template: int | None = column(_TEMPLATE)
    application: str | None = column("application_name")
    user: str | None = column("role")
    database: str | None = column("database")
    leader_pid: int | None = column("for a parallel worker: its leader process")
    transaction_us: int | None = column("age of its transaction", "µs")
    state_us: int | None = column("time since it entered its state", "µs")
    held_age: int | None = column(
        "transactions begun since the oldest whose dead rows VACUUM must keep for it"
    )
    blocked_by: str | None = column("processes that block it, comma-separated; null if not asked")
    origin: str | None = column("the route or action that its statement's comment names, if any")


class TemplateRow(StoredRow):
    """Templates: statements without their literals."""

    template: int = column(_TEMPLATE)
    text: str | None = column("statement in lower case, ? for each literal and parameter")
    identity: str | None = column(
        "libpg_query's fingerprint, and names with digits: equal in any log; null if it is not SQL"
    )
    sql: str | None = column("the statement in pg_stat_statements, with $1 for values; null if unknown")


class TextRow(StoredRow):
    """Statements with their values, as samples saw them in sessions; none if the run is anonymised."""

    template: int = column(_TEMPLATE)
    number: int = column("texts of one template by number from 0")
    text: str | None = column("statement as the session sent it, unless the server cut it")


class StatementRow(StoredRow):
    """Entries of pg_stat_statements whose statements ran between the snapshots."""

    moment: str = column(_MOMENT)
    user_oid: int = column(_USER_OID)
    database_oid: int = column(_DATABASE_OID)
    user: str | None = column(f"role; {DROPPED_ROLE} if it was dropped")
    database: str | None = column(f"database; {DROPPED_DATABASE} if it was dropped")
    query_id: int = column(_QUERY_ID)
    toplevel: bool = column(_TOPLEVEL)
    template: int | None = column(_TEMPLATE)
    calls: int | None = column("executions")
    execution_ns: float | None = column("execution time", "ns")
    plans: int | None = column("times it was planned, if the server tracks planning")
    planning_ns: float | None = column(_SPENT, "ns")
    rows: int | None = column("rows returned or changed")
    shared_hit: int | None = column("buffers found in shared memory", "blocks")
    shared_read: int | None = column("buffers read from outside it", "blocks")
    shared_dirtied: int | None = column("buffers changed", "blocks")
    shared_written: int | None = column("buffers written by it", "blocks")
    temp_read: int | None = column("blocks read from temporary files", "blocks")
    temp_written: int | None = column("blocks written to temporary files", "blocks")
    read_ns: float | None = column("time of reading blocks, if track_io_timing is on", "ns")
    write_ns: float | None = column("time of writing blocks, if track_io_timing is on", "ns")
    wal_records: int | None = column("write-ahead log records generated")
    wal_fpi: int | None = column("full pages in them")
    wal_bytes: int | None = column("write-ahead log generated", "B")
    jit_functions: int | None = column("functions compiled just in time")
    jit_ns: float | None = column(_SPENT, "ns")
    since_us: int | None = column("start of counting, since 1970 in UTC (PostgreSQL 17 and later)", "µs")
    squares_ns2: float | None = column("sum of the squares of the execution times", "ns²")


class KernelRow(StoredRow):
    """What the kernel counted for statements that ran between the snapshots, from pg_stat_kcache."""

    moment: str = column(_MOMENT)
    user_oid: int = column(_USER_OID)
    database_oid: int = column(_DATABASE_OID)
    query_id: int = column(_QUERY_ID)
    toplevel: bool = column(_TOPLEVEL)
    user_ns: float | None = column("processor time in user mode, with that of parallel workers", "ns")
    system_ns: float | None = column("processor time in the kernel", "ns")
    read_bytes: int | None = column("read from disks, not from the page cache", "B")
    written_bytes: int | None = column("written to the page cache", "B")


class PlanRow(StoredRow):
    """Plans of the statements that took the most time; the server did not execute them."""

    query_id: int = column(_QUERY_ID)
    template: int | None = column(_TEMPLATE)
    source: str = column(
        "values of its parameters: generic (none), seen (of a session) or drawn (from the columns' "
        "statistics)"
    )
    number: int = column("plans of one source by number from 0")
    plan: str | None = column("EXPLAIN's text; null if the server did not plan the statement")
    json: str | None = column("the same plan by EXPLAIN (FORMAT JSON, VERBOSE)")
    plan_hash: str | None = column(PLAN_HASH.meaning)
    jit: bool | None = column("true if it costs more than jit_above_cost, so that the server compiles it")
    reason: str | None = column("the server's reason why there is no plan")
    denied: bool | None = column("true if this role lacks a privilege on a table of the statement")
    sqlstate: str | None = column("SQLSTATE of that reason, if the server gave one")


class CounterRow(StoredRow):
    """The server's own counters, from its statistics views."""

    moment: str = column(_MOMENT)
    view: str = column(f"view, such as pg_stat_database; {HIDDEN_STATEMENTS} sums up those of other roles")
    object: str = column("subject: a database; backend, object and context; empty for all")
    oid: int | None = column("the server's number of that database; null for other views")
    counter: str = column("column of the view")
    value: float | None = column("its value; times in milliseconds, as the server reports them")


class RelationRow(StoredRow):
    """Tables of the watched database; before the watch only their counters."""

    moment: str = column(_MOMENT)
    oid: int = column(_OID)
    schema: str | None = column("schema")
    name: str | None = column("table")
    kind: str | None = column("table, partitioned table or materialized view")
    partition_of: int | None = column("the table that it is a partition of")
    rows: float | None = column("the planner's estimate of its rows; null if never analysed")
    pages: int | None = column(_PAGES, "blocks")
    bytes: int | None = column(
        "size with TOAST data, without indexes; of small tables that no statement used in a database with "
        "more than 1000 tables and indexes, at the last VACUUM or ANALYZE",
        "B",
    )
    main_bytes: int | None = column("size of its main file: where the rows are", "B")
    index_bytes: int | None = column("size of its indexes", "B")
    fillfactor: int | None = column("percentage of a page that rows may fill at first")
    row_width: float | None = column("mean width of a row's data; null if unknown", "B")
    live: int | None = column("live rows, estimated")
    dead: int | None = column("dead rows, estimated")
    seq_scans: int | None = column("sequential scans")
    seq_rows: int | None = column("rows read by them")
    index_scans: int | None = column("index scans")
    index_rows: int | None = column("rows fetched by them")
    inserted: int | None = column("rows inserted")
    updated: int | None = column("rows updated")
    hot_updated: int | None = column("of them without a new index entry (HOT)")
    deleted: int | None = column("rows deleted")
    heap_read: int | None = column("blocks of its rows read from outside shared memory", "blocks")
    heap_hit: int | None = column("blocks of its rows found in shared memory", "blocks")
    vacuumed_us: int | None = column("when it was last vacuumed, since 1970 in UTC", "µs")
    analysed_us: int | None = column("when it was last analysed, since 1970 in UTC", "µs")
    frozen_age: int | None = column("transactions since its oldest row that is not frozen")
    modified: int | None = column("rows changed since it was last analysed")
    autovacuum: bool | None = column("false if the table's own settings turn autovacuum off")


class IndexRow(StoredRow):
    """Indexes of the watched database; before the watch only their counters."""

    moment: str = column(_MOMENT)
    oid: int = column(_OID)
    table_oid: int | None = column("the table it is on")
    schema: str | None = column("schema")
    name: str | None = column("index")
    method: str | None = column("access method")
    definition: str | None = column(
        "the statement that creates it; empty if it was not read, as the exact size of its table"
    )
    keys: str | None = column("each key column's number:class:collation:option, comma-separated")
    included: str | None = column("numbers of included columns (INCLUDE), comma-separated")
    expressions: str | None = column("expressions among its keys")
    predicate: str | None = column("condition of a partial index")
    unique: bool | None = column("true if it enforces uniqueness")
    constraint: bool | None = column("true if a constraint depends on it, also of another table")
    valid: bool | None = column("false if its build failed")
    pages: int | None = column(_PAGES, "blocks")
    rows: float | None = column("the planner's estimate of its entries")
    bytes: int | None = column("size", "B")
    fillfactor: int | None = column("percentage of a page that entries may fill at first")
    key_width: float | None = column("mean width of an entry's data; null if unknown", "B")
    scans: int | None = column("index scans")
    rows_read: int | None = column("entries read by them")
    scanned_us: int | None = column("when it was last scanned, since 1970 in UTC (16 and later)", "µs")


class ForeignKeyRow(StoredRow):
    """Foreign keys of the watched database."""

    oid: int = column(_OID)
    name: str | None = column("constraint")
    table_oid: int | None = column("the table that refers")
    referred_oid: int | None = column("the table that it refers to")
    columns: str | None = column("columns that refer")
    numbers: str | None = column("their numbers, comma-separated")
    null_share: float | None = column("fraction of nulls in its only column, by ANALYZE")
    distinct_values: float | None = column("distinct values as in pg_stats: negative is a fraction")
    top_share: float | None = column("fraction of rows with the most common value")


class HorizonRow(StoredRow):
    """What keeps dead rows from VACUUM besides sessions: prepared transactions and replication slots."""

    kind: str = column("prepared transaction or replication slot")
    name: str = column("its name")
    user: str | None = column("role that prepared it; null for a slot")
    database: str | None = column("database; null for a physical slot, which affects all")
    active: bool | None = column("false for a slot that nobody reads from")
    held_age: int | None = column("transactions begun since the oldest whose dead rows it keeps")
    since_us: int | None = column("when it was prepared, since 1970 in UTC; null for a slot", "µs")


class SettingRow(StoredRow):
    """Settings that differ from PostgreSQL's defaults."""

    name: str = column("setting")
    value: str = column("its value")
    default: str = column("PostgreSQL's own")
    source: str = column("where it was set")


DATABASE_TABLES = (
    table_of("database_samples", SampleRow, "sample"),
    table_of("database_activity", ActivityRow, "sample", "pid"),
    table_of("database_templates", TemplateRow, "template"),
    table_of("database_texts", TextRow, "template", "number"),
    table_of(
        "database_statements", StatementRow, "moment", "user_oid", "database_oid", "query_id", "toplevel"
    ),
    table_of("database_kernel", KernelRow, "moment", "user_oid", "database_oid", "query_id", "toplevel"),
    table_of("database_plans", PlanRow, "query_id", "source", "number"),
    table_of("database_counters", CounterRow, "moment", "view", "object", "counter"),
    table_of("database_relations", RelationRow, "moment", "oid"),
    table_of("database_indexes", IndexRow, "moment", "oid"),
    table_of("database_foreign_keys", ForeignKeyRow, "oid"),
    table_of("database_horizons", HorizonRow, "kind", "name"),
    table_of("database_settings", SettingRow, "name"),
)
