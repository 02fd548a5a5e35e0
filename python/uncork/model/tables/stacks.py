"""The stored tables of a profile of stacks; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

_PID = Column("pid", "integer", "", "process; null if the profiler does not report it")
_PROCESS = Column("process", "text", "", "its name; empty if the profiler does not report it")

EVIDENCE = Table(
    "evidence",
    "Evidence gathered under a variant's load, after an experiment's timed trials. In its run the tables "
    "stacks, stack_processes and stack_syscalls have the columns evidence, cell, workload and variant too.",
    ("evidence",),
    (
        Column("evidence", "integer", "", "number of the evidence, from 1"),
        Column("cell", "text", "", "factor levels, as factor=level"),
        Column("workload", "text", "", "workload"),
        Column("variant", "text", "", "variant"),
        Column("operations", "integer", "", "operations that succeeded meanwhile"),
        Column("elapsed_ns", "integer", "ns", "how long the load lasted"),
        Column("watched_ns", "integer", "ns", "how long stacks and sessions were sampled"),
        Column("tool", "text", "", "what found the stacks: perf, or /proc without frames of code"),
        Column("user_ns", "integer", "ns", "processor time of the server in user mode; null if unknown"),
        Column("system_ns", "integer", "ns", "processor time of the server in the kernel; null if unknown"),
        Column("syscalls_by", "text", "", "what counted system calls; empty if nothing did"),
        Column("syscalls_ns", "integer", "ns", "how long, in a separate load"),
        Column("lacks", "text", "", "what could not be observed, and why, as JSON"),
    ),
)

STACK_TABLES = (
    Table(
        "stacks",
        "One stack of calls of one process, and how much was spent in it.",
        ("measure", "stack"),
        (
            Column("measure", "text", "", "what was counted, such as cpu, off-cpu or inuse_space"),
            Column("unit", "text", "", "unit of the value: samples, nanoseconds, bytes or another"),
            _PID,
            _PROCESS,
            Column("backend", "text", "", "for a server's process: its kind, such as client backend"),
            Column("application", "text", "", "for a session: application_name at that moment"),
            Column("template", "text", "", "for a session: the statement at that moment, without literals"),
            Column(
                "route",
                "text",
                "",
                "route of the application, from labels of a pprof profile (http.route, route, endpoint, "
                "handler, or controller and action), or for a session from its statement's comment; empty if "
                "unknown",
            ),
            Column("stack", "text", "", "frames from the root on, ; in between, _[k] behind the kernel's"),
            Column("value", "integer", "", "how much of the measure, in its unit"),
        ),
    ),
    Table(
        "stack_processes",
        "One process that was profiled, and what the kernel counted of it meanwhile.",
        ("pid",),
        (
            Column("pid", "integer", "", "process"),
            Column("process", "text", "", "its name"),
            Column("backend", "text", "", "for a server's process: its kind, such as client backend"),
            Column("user_ns", "integer", "ns", "processor time in user mode"),
            Column("system_ns", "integer", "ns", "processor time in the kernel"),
        ),
    ),
    Table(
        "stack_syscalls",
        "System calls of one process while they were counted.",
        ("pid", "syscall", "template"),
        (
            Column("pid", "integer", "", "process"),
            _PROCESS,
            Column("template", "text", "", "for a session: the statement at that moment, without literals"),
            Column("syscall", "text", "", "system call"),
            Column("calls", "integer", "", "calls that ended"),
            Column("errors", "integer", "", "calls that failed"),
            Column("time_ns", "integer", "ns", "time in them, waiting included"),
        ),
    ),
)
