"""The stored tables of a profiled service; `register` joins them to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncork.model.tables.table import StoredRow, column, table_of

if TYPE_CHECKING:
    from uncork.model.results.service import Runtime

ALL = "all"
"""The kind of the slice in which all requests are sent together."""
NONE = "none"
"""The kind of a slice in which uncork sends no request."""
APART = "apart"
"""The part with the stacks that were recorded while one kind of request was sent at a time."""

_SLICE = "slice, by number from 0 in the order of time"


class SliceRow(StoredRow):
    """One slice of a profiled service: a short time with one kind of request, with none, or with all."""

    slice: int = column(_SLICE)
    kind: str = column("one, none or all: which requests were sent")
    request: str = column("the request, if it was only one")
    begun_us: int = column("beginning, since 1970 in UTC", "µs")
    elapsed_ns: int = column("wall-clock time between the two readings of the server", "ns")
    started: int = column("requests sent")
    failed: int = column("requests that failed")
    sum_ns: int = column("sum of the latencies of successful requests", "ns")
    sessions: int | None = column("sessions that began in the database; null if unknown")


class CountRow(StoredRow):
    """What pg_stat_statements counted of one template in one slice."""

    slice: int = column(_SLICE)
    template: int = column("template, by number")
    calls: int = column("executions")
    execution_ns: float = column("execution time", "ns")
    rows: int = column("rows returned or changed")


class ServiceTemplateRow(StoredRow):
    """Templates: statements without their literals."""

    template: int = column("template, by number")
    text: str = column("statement in lower case, ? for each literal and parameter")


class ProcessRow(StoredRow):
    """One process of the service while all requests were sent."""

    pid: int = column("process")
    parent: int = column("its parent process")
    command: str = column("its name")
    runtime: Runtime = column("python, go, node, java, ruby, php, .net, erlang or native")
    user_ns: int = column("processor time in user mode", "ns")
    system_ns: int = column("processor time in the kernel", "ns")
    waited_ns: int = column("time its threads were ready to run without a processor", "ns")
    threads: int = column("its threads at the end")
    busiest: float = column("processor time of its busiest thread, as a fraction of the time")
    sessions: int | None = column("its connections to the database over TCP; null if unknown")
    elapsed_ns: int = column("how long it was watched", "ns")


SERVICE_TABLES = (
    table_of("service_slices", SliceRow, "slice"),
    table_of("service_counts", CountRow, "slice", "template"),
    table_of("service_templates", ServiceTemplateRow, "template"),
    table_of("service_processes", ProcessRow, "pid"),
)
