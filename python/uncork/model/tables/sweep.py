"""The stored table of a sweep."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

SWEEP_VISITS = Table(
    "sweep_visits",
    "One load step: a load at one level of a sweep.",
    ("number",),
    (
        Column("number", "integer", "", "load step, from 1, in the order of the sweep"),
        Column("round", "integer", "", "round, from 1; 0 while levels were explored"),
        Column("level", "real", "", "clients, or arrivals a second"),
        Column("elapsed_ns", "integer", "ns", "wall-clock time of the measured part"),
        Column("started", "integer", "", "operations started = succeeded + failed"),
        Column("succeeded", "integer", "", "operations that succeeded"),
        Column("failed", "integer", "", "operations that failed"),
        Column("unsent", "integer", "", "arrivals that were skipped or never sent"),
        Column("refused", "integer", "", "connections that could not be opened"),
        Column("complete", "flag", "", "false if the load ended early"),
        Column("message", "text", "", "why it ended early, or the first error"),
        Column("errors", "text", "", "errors and refused connections by SQLSTATE, as JSON"),
        Column("mean_ns", "real", "ns", "mean latency of successes, from the intended start, like all below"),
        Column("p50_ns", "integer", "ns", "median latency"),
        Column("p90_ns", "integer", "ns", "0.9 quantile"),
        Column("p95_ns", "integer", "ns", "0.95 quantile"),
        Column("p99_ns", "integer", "ns", "0.99 quantile"),
        Column("p999_ns", "integer", "ns", "0.999 quantile"),
        Column("max_ns", "integer", "ns", "greatest latency"),
        Column("client_ns", "integer", "ns", "processor time of the generator"),
        Column(
            "busiest_thread",
            "real",
            "",
            "processor time of the generator's busiest thread, as a fraction of the time",
        ),
        Column("server_user_ns", "integer", "ns", "processor time of the server's processes in user mode"),
        Column("server_system_ns", "integer", "ns", "processor time of the server's processes in the kernel"),
        Column("steal_ns", "integer", "ns", "processor time that the hypervisor took away"),
    ),
)
