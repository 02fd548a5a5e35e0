"""The stored tables of a profile of stacks; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

__all__ = ["EVIDENCE", "STACK_TABLES"]

_PID = Column("pid", "integer", "", "process; null if the profiler does not tell it")
_PROCESS = Column("process", "text", "", "its name; empty if the profiler does not tell it")

EVIDENCE = Table(
    "evidence",
    "What was looked at beside a variant's load, after an experiment's timed trials. In its run the tables "
    "stacks, stack_processes and stack_syscalls have the columns evidence, cell, workload and variant too.",
    ("evidence",),
    (
        Column("evidence", "integer", "", "number of the look, from 1"),
        Column("cell", "text", "", "factor levels, as factor=level"),
        Column("workload", "text", "", "workload"),
        Column("variant", "text", "", "variant"),
        Column("operations", "integer", "", "operations that succeeded meanwhile"),
        Column("elapsed_ns", "integer", "ns", "how long they were sent"),
        Column("watched_ns", "integer", "ns", "how long stacks and sessions were looked at"),
        Column("tool", "text", "", "what found the stacks: perf, or /proc without frames of code"),
        Column("user_ns", "integer", "ns", "processor time of the server in user mode; null if not told"),
        Column("system_ns", "integer", "ns", "and in the kernel"),
        Column("syscalls_by", "text", "", "what counted system calls; empty if nothing did"),
        Column("syscalls_ns", "integer", "ns", "for how long, in a load of its own"),
        Column("lacks", "text", "", "what could not be seen, and why, as JSON"),
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
            Column("backend", "text", "", "of a server's process: its kind, such as client backend"),
            Column("application", "text", "", "of a session: application_name at that moment"),
            Column("template", "text", "", "of a session: the statement at that moment, without literals"),
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
            Column("backend", "text", "", "of a server's process: its kind, such as client backend"),
            Column("user_ns", "integer", "ns", "processor time in user mode"),
            Column("system_ns", "integer", "ns", "processor time in the kernel"),
        ),
    ),
    Table(
        "stack_syscalls",
        "System calls of one process in the time that they were counted.",
        ("pid", "syscall", "template"),
        (
            Column("pid", "integer", "", "process"),
            _PROCESS,
            Column("template", "text", "", "of a session: the statement at that moment, without literals"),
            Column("syscall", "text", "", "system call"),
            Column("calls", "integer", "", "calls that ended"),
            Column("errors", "integer", "", "those of them that failed"),
            Column("time_ns", "integer", "ns", "time in them, waiting included"),
        ),
    ),
)
