"""The stored tables of a profiled service; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

ALL = "all"
"""The kind of the slice in which all requests are sent together."""
NONE = "none"
"""The kind of a slice in which uncork sends no request."""
APART = "apart"
"""The part with the stacks that were recorded while one kind of request was sent at a time."""

_SLICE = Column("slice", "integer", "", "slice, by number from 0 in the order of time")

SERVICE_TABLES = (
    Table(
        "service_slices",
        "One slice of a profiled service: a short time with one kind of request, with none, or with all.",
        ("slice",),
        (
            _SLICE,
            Column("kind", "text", "", "one, none or all: which requests were sent"),
            Column("request", "text", "", "the request, if it was only one"),
            Column("begun_us", "integer", "µs", "beginning, since 1970 in UTC"),
            Column("elapsed_ns", "integer", "ns", "wall-clock time between the two readings of the server"),
            Column("started", "integer", "", "requests sent"),
            Column("failed", "integer", "", "requests that failed"),
            Column("sum_ns", "integer", "ns", "sum of the latencies of successful requests"),
            Column("sessions", "integer", "", "sessions that began in the database; null if unknown"),
        ),
    ),
    Table(
        "service_counts",
        "What pg_stat_statements counted of one template in one slice.",
        ("slice", "template"),
        (
            _SLICE,
            Column("template", "integer", "", "template, by number"),
            Column("calls", "integer", "", "executions"),
            Column("execution_ns", "real", "ns", "execution time"),
            Column("rows", "integer", "", "rows returned or changed"),
        ),
    ),
    Table(
        "service_templates",
        "Templates: statements without their literals.",
        ("template",),
        (
            Column("template", "integer", "", "template, by number"),
            Column("text", "text", "", "statement in lower case, ? for each literal and parameter"),
        ),
    ),
    Table(
        "service_processes",
        "One process of the service while all requests were sent.",
        ("pid",),
        (
            Column("pid", "integer", "", "process"),
            Column("parent", "integer", "", "its parent process"),
            Column("command", "text", "", "its name"),
            Column("runtime", "text", "", "python, go, node, java, ruby, php, .net, erlang or native"),
            Column("user_ns", "integer", "ns", "processor time in user mode"),
            Column("system_ns", "integer", "ns", "processor time in the kernel"),
            Column("waited_ns", "integer", "ns", "time its threads were ready to run without a processor"),
            Column("threads", "integer", "", "its threads at the end"),
            Column("busiest", "real", "", "processor time of its busiest thread, as a fraction of the time"),
            Column("sessions", "integer", "", "its connections to the database over TCP; null if unknown"),
            Column("elapsed_ns", "integer", "ns", "how long it was watched"),
        ),
    ),
)
