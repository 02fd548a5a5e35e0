"""All stored tables: their columns, types, units and meaning.

`store` derives the Parquet schemas from it, and the reference is generated from it. Types are ``text``,
``integer`` (64 bits), ``real``, ``flag`` and ``bytes``; all columns except those of the key may be null.
"""

from __future__ import annotations

from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.load import LOAD_SERIES, LOAD_STATEMENTS, LOAD_STATUSES, LOAD_TOTALS
from uncork.model.tables.log import HISTOGRAM_COLUMNS, LOG_EVENTS, LOG_TABLES
from uncork.model.tables.service import SERVICE_TABLES
from uncork.model.tables.stacks import EVIDENCE, STACK_TABLES
from uncork.model.tables.sweep import SWEEP_VISITS
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.model.tables.table import PLAN_HASH, Column, StoredRow, Table, column, table_of

__all__ = ["HISTOGRAM_COLUMNS", "SCHEMA_VERSION", "TABLES", "Column", "Table"]

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning or is removed."""

_PLACE = (
    Column("round", "integer", "", "round, from 1: one lifetime of the server"),
    Column("block", "integer", "", "block within the round, from 1"),
    Column("position", "integer", "", "position of the trial within its block, from 0"),
    Column("cell", "text", "", "factor levels, such as rows=1000,index=none"),
    Column("workload", "text", "", "workload"),
    Column("variant", "text", "", "variant"),
    Column("again", "flag", "", "true for the baseline's second trial in a block (A/A)"),
)

_LATENCY = (
    Column("executions", "integer", "", "executions measured"),
    Column("sum_ns", "integer", "ns", "sum of their service times"),
    Column("min_ns", "integer", "ns", "least service time"),
    Column("max_ns", "integer", "ns", "greatest service time"),
    Column("p50_ns", "integer", "ns", "median service time"),
    Column("p90_ns", "integer", "ns", "0.9 quantile of service times"),
    Column("p95_ns", "integer", "ns", "0.95 quantile of service times"),
    Column("p99_ns", "integer", "ns", "0.99 quantile of service times"),
    Column("p999_ns", "integer", "ns", "0.999 quantile of service times"),
    Column("histogram", "bytes", "", "HDR histogram (V2) of service times in ns, 3 significant digits"),
)

TRIALS = Table(
    "trials",
    "One trial: one workload against one arm in one cell.",
    ("round", "block", "cell", "workload", "variant", "again"),
    (
        *_PLACE,
        Column("outcome", "text", "", "complete, deadline, connection lost or errors"),
        Column("message", "text", "", "what went wrong"),
        Column("value", "real", "metric", "the workload's metric; only complete trials have one"),
        Column("started", "integer", "", "operations started = succeeded + failed"),
        Column("succeeded", "integer", "", "operations that succeeded"),
        Column("failed", "integer", "", "operations that failed"),
        Column("errors", "text", "", "errors by SQLSTATE, or by kind for HTTP, as JSON"),
        Column("statuses", "text", "", "HTTP: answers by status, as JSON"),
        Column("rows", "integer", "", "rows returned or changed"),
        Column("elapsed_ns", "integer", "ns", "wall-clock time of the measured part"),
        *_LATENCY,
        Column("client_user_ns", "integer", "ns", "processor time of the generator in user mode"),
        Column("client_system_ns", "integer", "ns", "processor time of the generator in the kernel"),
        Column("server_user_ns", "integer", "ns", "processor time of the server's processes in user mode"),
        Column("server_system_ns", "integer", "ns", "processor time of the server's processes in the kernel"),
        Column("sent_bytes", "integer", "B", "bytes sent to the server"),
        Column("received_bytes", "integer", "B", "bytes received from it"),
        Column("steal_ns", "integer", "ns", "processor time that the hypervisor took from the machine"),
        Column("throttled_ns", "integer", "ns", "time the control group was throttled"),
        Column("observer_ns", "integer", "ns", "processor time of its observer, if it has one"),
        Column("counted_operations", "integer", "", "operations that the counters below cover"),
        Column("shared_hit", "integer", "blocks", "buffers found in shared memory"),
        Column("shared_read", "integer", "blocks", "buffers read from outside it"),
        Column("shared_dirtied", "integer", "blocks", "buffers changed"),
        Column("temp_bytes", "integer", "B", "temporary files read and written"),
        Column("wal_bytes", "integer", "B", "write-ahead log generated"),
        Column("wal_records", "integer", "", "write-ahead log records generated"),
        Column("queries", "integer", "", "statements the server executed, BEGIN and COMMIT included"),
        Column("updated", "integer", "", "rows updated"),
        Column("hot_updated", "integer", "", "of them, by HOT: no index had to change"),
        Column("service_user_ns", "integer", "ns", "processor time of services in user mode"),
        Column("service_system_ns", "integer", "ns", "processor time of services in the kernel"),
        Column("disturbances", "text", "", "such as checkpoint or steal; comma-separated"),
        Column("long_slices", "flag", "", "true if its slices were long, to check the short ones"),
        Column("own", "text", "", "metrics of the experiment file, as JSON: the number by name"),
    ),
)

SLICES = Table(
    "slices",
    "One slice of a trial that took turns with the other trials of its block.",
    ("round", "block", "cell", "workload", "variant", "again", "cycle"),
    (
        *_PLACE,
        Column("cycle", "integer", "", "cycle of the block, from 0: one slice of each arm"),
        Column("begun_ns", "integer", "ns", "beginning, since the block's first slice"),
        Column("elapsed_ns", "integer", "ns", "wall-clock time of the measured part"),
        Column("started", "integer", "", "operations started"),
        Column("succeeded", "integer", "", "operations that succeeded"),
        Column("sum_ns", "integer", "ns", "sum of their latencies"),
        Column("waited_ns", "integer", "ns", "time its processes were ready to run without a processor"),
        Column(
            "aside",
            "flag",
            "",
            "true if other programs disturbed the cycle: excluded from mean and throughput",
        ),
    ),
)

STATEMENTS = Table(
    "statements",
    "Service times of one statement in one trial.",
    ("round", "block", "cell", "workload", "variant", "again", "statement"),
    (*_PLACE, Column("statement", "text", "", "statement within the workload"), *_LATENCY),
)

PLANS = Table(
    "plans",
    "The executed plan of one statement, outside the timed trials.",
    ("cell", "workload", "variant", "statement"),
    (
        Column("cell", "text", "", "factor levels"),
        Column("workload", "text", "", "workload"),
        Column("variant", "text", "", "variant"),
        Column("statement", "text", "", "statement within the workload"),
        Column("text", "text", "", "EXPLAIN (ANALYZE, BUFFERS) as the server prints it"),
        Column("shape", "text", "", "nodes, relations and conditions without numbers"),
        PLAN_HASH,
        Column("buffers", "integer", "blocks", "shared buffers touched"),
        Column("execution_ns", "real", "ns", "execution time under EXPLAIN"),
    ),
)

RELATIONS = Table(
    "relations",
    "Size of one table or index.",
    ("cell", "variant", "relation"),
    (
        Column("cell", "text", "", "factor levels"),
        Column("variant", "text", "", "variant"),
        Column("relation", "text", "", "table or index"),
        Column("kind", "text", "", "table or index"),
        Column("table", "text", "", "the table it belongs to"),
        Column("bytes", "integer", "B", "size on disk; for a table with its TOAST data"),
        Column("rows", "real", "", "rows as the planner estimates them"),
        Column("depth", "integer", "", "levels of a B-tree below its root"),
    ),
)


class RefusalRow(StoredRow):
    """A variant that was not measured: its answers differ from the baseline's, or it was skipped."""

    cell: str = column("factor levels")
    workload: str = column("workload")
    variant: str = column("variant")
    reason: str = column("how the answer differs, or why it was skipped")


class AnswerRow(StoredRow):
    """Where a variant's answers to requests differ from the baseline's, if the experiment allows it."""

    cell: str = column("factor levels")
    workload: str = column("workload")
    variant: str = column("variant")
    difference: str = column("the first request that differs, and the first difference in it")


class DataCheckRow(StoredRow):
    """Answers to the experiment's questions about each variant's data."""

    cell: str = column("factor levels")
    variant: str = column("variant")
    name: str = column("question")
    value: str | None = column("its answer as text; absent if the query returns no row, or null")


REFUSALS = table_of("refusals", RefusalRow, "cell", "workload", "variant")
ANSWERS = table_of("answers", AnswerRow, "cell", "workload", "variant")
DATA_CHECKS = table_of("data_checks", DataCheckRow, "cell", "variant", "name")

OVERHEADS = Table(
    "overheads",
    "Overhead of an engine's client: the time of a statement that does nothing.",
    ("engine",),
    (
        Column("engine", "text", "", "engine"),
        Column("shares_process", "flag", "", "engine and client share a process"),
        Column("operations", "integer", "", "operations measured"),
        Column("p50_ns", "integer", "ns", "median latency"),
        Column("p99_ns", "integer", "ns", "0.99 quantile of latencies"),
        Column(
            "client_cpu_ns",
            "real",
            "ns",
            "processor time of the client an operation, if it is a process of its own",
        ),
    ),
)

FIGURES = Table(
    "figures",
    "One metric of a result that was imported from another tool.",
    ("subject", "name"),
    (
        Column("subject", "text", "", "subject: a statement, a command, a benchmark; empty for the whole"),
        Column("name", "text", "", "name of the metric: throughput, mean, p99, ..."),
        Column("position", "integer", "", "position in the tool's order, from 0"),
        Column("value", "real", "unit", "its value in the base unit"),
        Column("unit", "text", "", "ns, B, /s, share, or empty for a plain number"),
        Column("better", "text", "", "lower, higher, or empty if neither is"),
        Column("scale", "text", "", "how two are compared: ratio, share or exact"),
        Column("count", "integer", "", "for a share: how many"),
        Column("of", "integer", "", "for a share: of how many"),
        Column("within", "real", "", "standard error of the value's logarithm from the tool's own samples"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *(TRIALS, SLICES, STATEMENTS, PLANS, RELATIONS, REFUSALS, ANSWERS, DATA_CHECKS, OVERHEADS),
        *(LOAD_TOTALS, LOAD_STATEMENTS, LOAD_SERIES, LOAD_STATUSES),
        FIGURES,
        SWEEP_VISITS,
        *LOG_TABLES,
        LOG_EVENTS,
        *DATABASE_TABLES,
        *CATALOGUE_TABLES,
        *SYSTEM_TABLES,
        *STACK_TABLES,
        *SERVICE_TABLES,
        EVIDENCE,
    )
}
