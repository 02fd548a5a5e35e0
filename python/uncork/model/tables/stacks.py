"""The stored tables of a profile of stacks; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import StoredRow, column, table_of

_PROCESS = "its name; empty if the profiler does not report it"
_BACKEND = "for a server's process: its kind, such as client backend"
_TEMPLATE = "for a session: the statement at that moment, without literals"


class EvidenceRow(StoredRow):
    """Evidence gathered under a variant's load, after an experiment's timed trials. In its run the tables
    stacks, stack_processes and stack_syscalls have the columns evidence, cell, workload and variant too.
    """

    evidence: int = column("number of the evidence, from 1")
    cell: str | None = column("factor levels, as factor=level")
    workload: str | None = column("workload")
    variant: str | None = column("variant")
    operations: int | None = column("operations that succeeded meanwhile")
    elapsed_ns: int | None = column("how long the load lasted", "ns")
    watched_ns: int | None = column("how long stacks and sessions were sampled", "ns")
    tool: str | None = column("what found the stacks: perf, or /proc without frames of code")
    user_ns: int | None = column("processor time of the server in user mode; null if unknown", "ns")
    system_ns: int | None = column("processor time of the server in the kernel; null if unknown", "ns")
    syscalls_by: str | None = column("what counted system calls; empty if nothing did")
    syscalls_ns: int | None = column("how long, in a separate load", "ns")
    lacks: str | None = column("what could not be observed, and why, as JSON")


class StackRow(StoredRow):
    """One stack of calls of one process, and how much was spent in it."""

    measure: str = column("what was counted, such as cpu, off-cpu or inuse_space")
    unit: str = column("unit of the value: samples, nanoseconds, bytes or another")
    pid: int | None = column("process; null if the profiler does not report it")
    process: str | None = column(_PROCESS)
    backend: str | None = column(_BACKEND)
    application: str | None = column("for a session: application_name at that moment")
    template: str | None = column(_TEMPLATE)
    route: str | None = column(
        "route of the application, from labels of a pprof profile (http.route, route, endpoint, handler, "
        "or controller and action), or for a session from its statement's comment; empty if unknown"
    )
    stack: str = column("frames from the root on, ; in between, _[k] behind the kernel's")
    value: int = column("how much of the measure, in its unit")


class StackProcessRow(StoredRow):
    """One process that was profiled, and what the kernel counted of it meanwhile."""

    pid: int = column("process")
    process: str = column("its name")
    backend: str = column(_BACKEND)
    user_ns: int = column("processor time in user mode", "ns")
    system_ns: int = column("processor time in the kernel", "ns")


class SyscallRow(StoredRow):
    """System calls of one process while they were counted."""

    pid: int = column("process")
    process: str = column(_PROCESS)
    template: str = column(_TEMPLATE)
    syscall: str = column("system call")
    calls: int = column("calls that ended")
    errors: int = column("calls that failed")
    time_ns: int = column("time in them, waiting included", "ns")


EVIDENCE = table_of("evidence", EvidenceRow, "evidence")
STACK_TABLES = (
    table_of("stacks", StackRow, "measure", "stack"),
    table_of("stack_processes", StackProcessRow, "pid"),
    table_of("stack_syscalls", SyscallRow, "pid", "syscall", "template"),
)
