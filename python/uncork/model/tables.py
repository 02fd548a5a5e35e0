"""Every stored table: its columns, their types, units and meaning.

`store` makes Parquet of it, the reference is generated from it. Types are ``text``, ``integer`` (64 bits),
``real``, ``flag`` and ``bytes``; any column but those of the key may be null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SCHEMA_VERSION", "TABLES", "Column", "Table"]

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning or goes away."""

Type = Literal["text", "integer", "real", "flag", "bytes"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `unit` is empty for names and plain counts."""

    name: str
    type: Type
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `key` names the columns that identify a row."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


_PLACE = (
    Column("round", "integer", "", "life of the server, from 1"),
    Column("block", "integer", "", "block within the round, from 1"),
    Column("position", "integer", "", "place of the trial within its block, from 0"),
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
        Column("errors", "text", "", "errors by SQLSTATE, as JSON"),
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
        Column("counted_operations", "integer", "", "operations that the counters below cover"),
        Column("shared_hit", "integer", "blocks", "buffers found in shared memory"),
        Column("shared_read", "integer", "blocks", "buffers read from outside it"),
        Column("shared_dirtied", "integer", "blocks", "buffers changed"),
        Column("temp_bytes", "integer", "B", "temporary files read and written"),
        Column("wal_bytes", "integer", "B", "write-ahead log generated"),
        Column("wal_records", "integer", "", "write-ahead log records generated"),
        Column("disturbances", "text", "", "checkpoint, autovacuum, steal, throttling; comma-separated"),
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
        Column("bytes", "integer", "B", "size on disk, a table's with its TOAST data"),
        Column("rows", "real", "", "rows as the planner estimates them"),
        Column("depth", "integer", "", "levels of a B-tree below its root"),
    ),
)

REFUSALS = Table(
    "refusals",
    "A variant that was not measured because it answers otherwise than the baseline.",
    ("cell", "workload", "variant"),
    (
        Column("cell", "text", "", "factor levels"),
        Column("workload", "text", "", "workload"),
        Column("variant", "text", "", "variant"),
        Column("reason", "text", "", "how the answer differs"),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in (TRIALS, STATEMENTS, PLANS, RELATIONS, REFUSALS)}
