"""Run an SQL load outside of an experiment, with one call of the Rust core."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.load.parts import Lease, part_deadline_ns, part_plan
from uncork.load.sampler import sampler_plan, system_series, trial_watch
from uncork.model.http import HttpSpec
from uncork.model.load import (
    Arrivals,
    FailureTotals,
    LoadMeasurement,
    LoadOutcome,
    LoadProgress,
    LoadSpec,
    http_totals,
)
from uncork.model.tables.load import IntervalStatus, LoadInterval, LoadTimes, LoadTotals

INTERVAL_NS = 1_000_000_000
"""The length of an interval of the time series."""
GRACE_NS = 60 * 10**9
"""How long to wait for the last operations at the end; those that have not ended by then count as failed."""
UNBOUNDED_NS = 10 * 365 * 86_400 * 10**9
"""The time limit of a load that ends after a count of operations. Ctrl-C ends it early and keeps its result.
"""

Messages = Callable[[list[str], int], None]
"""Receives lines about single errors and statements, and how many lines were left out since the last call."""
Connection = Mapping[str, Any]
"""The part ``connection`` of the plan: the server's address, the user, and encryption."""

# Arrow imports pandas, if it is installed, with its first table. That takes 0.3 s of a processor, which must
# not be taken from a load that is measured. The command line hides pandas (`uncork.cli.profile.hidden`).
pa.table({"value": [0]})


def check_load(spec: LoadSpec, connection: Connection) -> None:
    """Check without connecting that scripts are valid. Raises LoadError with script and line."""
    _native.check_load(json.dumps(load_plan(spec, connection, pid=None)).encode(), _values(spec))


def run_load(
    spec: LoadSpec,
    connection: Connection,
    *,
    pid: int | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
    lease: Lease | None = None,
    messages: Messages | None = None,
    stopped: Callable[[], bool] | None = None,
) -> LoadMeasurement:
    """Run a load. A server that refuses connections or goes away, and Ctrl-C, are outcomes, not errors.

    `pid` is the postmaster's, if its processor time can be read here. `progress` is called in its own
    thread, every `spec.progress_s` seconds, by default every second, but not during the warm-up. A part of a
    load with a lease ends unless `lease` is renewed. `messages` receives the lines that `spec.verbosity`
    asks for. Once `stopped` returns true, the load ends as by Ctrl-C, which only the main thread receives.
    Raises LoadError if a script is invalid; then nothing was sent.
    """
    return run_plan(
        load_plan(spec, connection, pid=pid), progress, lease, messages, stopped, values=_values(spec)
    )


def run_plan(
    plan: Mapping[str, Any],
    progress: Callable[[LoadProgress], None] | None,
    lease: Lease | None = None,
    messages: Messages | None = None,
    stopped: Callable[[], bool] | None = None,
    values: pa.Table | None = None,
) -> LoadMeasurement:
    """Run a plan in the core's format; see `run_load`. `values` are those of recorded operations."""
    report = None if progress is None else lambda data, series: progress(_progress(data, series))
    if report is not None and not plan["progress_intervals"]:
        plan = {**plan, "progress_intervals": 1}
    totals, times, series, statuses, system = _native.run_load(
        json.dumps(plan).encode(),
        pa.table({}) if values is None else values,
        report,
        lease,
        messages,
        stopped,
    )
    tables = (pa.table(table).to_pylist() for table in (times, series, statuses))
    measured = measurement(json.loads(totals), *tables)
    return replace(measured, system=system_series(system))


def _progress(data: bytes, series: Any) -> LoadProgress:
    rows = () if series is None else tuple(LoadInterval(**row) for row in pa.table(series).to_pylist())
    return LoadProgress(**json.loads(data), series=rows)


def hdr_log(started_unix_s: float, intervals: Sequence[tuple[str, float, float, bytes]]) -> bytes:
    """Return a log for HdrHistogram's tools, by (tag, start in s, length, V2 histogram)."""
    return bytes(_native.hdr_log(started_unix_s, list(intervals)))


def load_plan(spec: LoadSpec, connection: Connection, *, pid: int | None) -> dict[str, Any]:
    """Return the plan for the core. It contains the password, if there is one."""
    recorded = spec.recorded
    return {
        "connection": dict(connection),
        "driver": "postgres",
        **common_plan(spec),
        "protocol": spec.protocol,
        "pipeline_depth": spec.pipeline_depth,
        "scripts": [
            {"name": script.name, "weight": script.weight, "text": script.text} for script in spec.scripts
        ],
        "recorded": None
        if recorded is None
        else {
            "scripts": list(recorded.scripts),
            "variables": list(recorded.values),
            "clients": list(recorded.clients),
        },
        "variables": dict(spec.variables),
        "max_tries": spec.max_tries,
        "on_lost": "reconnect",
        "prepare": "first use",
        "stop": _stop(spec),
        "deadline_ns": part_deadline_ns(
            spec.part,
            UNBOUNDED_NS if spec.duration_ns is None else spec.duration_ns + GRACE_NS,
            spec.warmup_ns,
        ),
        "digest": "none",
        "watch_pid": pid,
        "sample": sampler_plan(trial_watch(pid)),
        "pin_cpu": None,
        "fake": None,
        "log": None if spec.log is None else asdict(spec.log),
        "exit_on_abort": spec.exit_on_abort,
        "verbosity": spec.verbosity,
    }


def common_plan(spec: LoadSpec | HttpSpec) -> dict[str, Any]:
    """Return what the plans of all loads have in common."""
    return {
        "clients": spec.clients,
        "max_clients": spec.max_clients,
        "threads": spec.threads,
        "seed": spec.seed,
        "arrivals": None if spec.arrivals is None else arrivals_plan(spec.arrivals),
        "latency_limit_ns": spec.latency_limit_ns,
        "connect_each": spec.connect_each,
        "warmup_ns": spec.warmup_ns,
        "interval_ns": INTERVAL_NS,
        "progress_intervals": spec.progress_s or 0,
        "keep_interrupted": True,
        "give_up": True,
        "part": part_plan(spec.part),
    }


def _values(spec: LoadSpec) -> pa.Table:
    columns = {} if spec.recorded is None else spec.recorded.values
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def without_password(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan that may be stored, without the password."""
    return {**plan, "connection": {**plan["connection"], "password": None}}


def measurement(
    totals: Mapping[str, Any],
    times: Sequence[Mapping[str, Any]],
    series: Sequence[Mapping[str, Any]],
    statuses: Sequence[Mapping[str, Any]] = (),
) -> LoadMeasurement:
    """Convert the core's result to a LoadMeasurement."""
    connections, server = totals["connections"], totals["server"] or {}
    plain = {item.name for item in fields(LoadTotals)} & totals.keys()
    return LoadMeasurement(
        LoadTotals(
            **{name: totals[name] for name in plain - {"outcome", "http", "failures"}},
            outcome=LoadOutcome(totals["outcome"]),
            connections_opened=connections["opened"],
            connections_lost=connections["lost"],
            connections_most=connections["most"],
            connect_sum_ns=connections["sum_ns"],
            connect_max_ns=connections["max_ns"],
            server_user_ns=server.get("user_ns"),
            server_system_ns=server.get("system_ns"),
            http=None if totals.get("http") is None else http_totals(totals["http"]),
            failures=tuple(FailureTotals(**failure) for failure in totals["failures"]),
        ),
        tuple(LoadTimes(**row) for row in times),
        tuple(LoadInterval(**row) for row in series),
        tuple(IntervalStatus(**row) for row in statuses),
    )


def arrivals_plan(arrivals: Arrivals) -> dict[str, Any]:
    """Return the start times of an open loop's operations, in the core's format."""
    if arrivals.kind == "trace":
        return {"kind": "trace", "offsets_ns": list(arrivals.offsets_ns)}
    size = {} if arrivals.size is None else {"size": arrivals.size}
    return {"kind": arrivals.kind, "rate": arrivals.rate, **size}


def _stop(spec: LoadSpec) -> dict[str, int]:
    if spec.duration_ns is not None:
        return {"duration_ns": spec.duration_ns}
    if spec.operations_each is None:
        return {"operations": len(spec.arrivals.offsets_ns) if spec.arrivals else 1}
    if spec.arrivals is not None:
        return {"operations": spec.operations_each * spec.clients}
    return {"operations_each": spec.operations_each}
