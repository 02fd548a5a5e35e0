"""Run a trial by HTTP with one call of the Rust core."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.load.histogram import count_within
from uncork.load.http import http_plan
from uncork.load.sampler import sampler_plan, strain, system_series, trial_watch
from uncork.load.sql import trial_latency
from uncork.model.http import OnClose
from uncork.model.http_trial import HttpTrial
from uncork.model.measurement import Measurement, Outcome
from uncork.model.units import format_duration

LATE = "late"
"""The kind of error of an answer that arrived after its deadline."""

_GONE = ("connection lost", "refused")
"""The outcomes of a load when nothing listens at the port."""


class HttpLoad:
    """The runner's `Load` port for HTTP requests, on the Rust core.

    `sample` decides whether machine and processes are sampled during each trial.
    """

    def __init__(self, *, sample: bool = True) -> None:
        self._sample = sample

    def run(self, trial: HttpTrial) -> Measurement:
        """Run one trial. Requests that fail or are late are part of the measurement, not errors.

        Raises LoadError if a request cannot be sent, or the plan is invalid.
        """
        watch = trial_watch(trial.target.pid, trial.served.pids)
        plan = {**http_arm_plan(trial), "sample": sampler_plan(watch) if self._sample else None}
        totals, times, _, _, sampled = _native.run_load(json.dumps(plan).encode(), pa.table({}))
        measured = http_measurement(trial, json.loads(totals), pa.table(times).to_pylist())
        system = system_series(sampled)
        return replace(measured, system=system, strain=strain(system))


def http_arm_plan(trial: HttpTrial) -> dict[str, Any]:
    """Return a trial's plan for the core, without what to sample."""
    return {
        **http_plan(trial.spec),
        "warmup_ns": 0,
        "warmup_operations": trial.warmup_operations,
        "deadline_ns": trial.deadline_ns,
        "watch_pid": trial.target.pid,
        "accepting_pid": next(iter(trial.served.pids), None),
        "interval_ns": 0,
        "keep_interrupted": False,
        "give_up": False,
    }


def http_measurement(trial: HttpTrial, totals: dict[str, Any], rows: list[dict[str, Any]]) -> Measurement:
    """Convert the core's result of a trial to a Measurement."""
    measured = _measurement(totals, rows, trial.spec.on_close)
    return measured if trial.late_ns is None else _without_late(measured, trial.late_ns)


def _without_late(measured: Measurement, late_ns: int) -> Measurement:
    """Count answers after the deadline as failed; their times stay among the latencies."""
    times = measured.operation
    if times is None or times.max_ns <= late_ns or times.histogram is None:
        return measured
    late = min(times.executions - count_within(times.histogram, late_ns), measured.succeeded)
    if not late:
        return measured
    return replace(
        measured,
        succeeded=measured.succeeded - late,
        failed=measured.failed + late,
        errors={**measured.errors, LATE: measured.errors.get(LATE, 0) + late},
        message=measured.message or f"{late} answers came after the deadline of {format_duration(late_ns)}",
    )


def _measurement(totals: dict[str, Any], rows: list[dict[str, Any]], on_close: OnClose) -> Measurement:
    found = totals["outcome"]
    if found == "connection lost" and on_close == "stop" and totals["succeeded"]:
        found = "complete"  # the closing was expected; a service that is gone is detected elsewhere
    executed = [row for row in rows if row["executions"] > row["errors"]]
    server = totals["server"] or {}
    http = totals["http"] or {}
    return Measurement(
        outcome=Outcome.CONNECTION_LOST if found in _GONE else Outcome(found),
        message=totals["message"] or (totals["first_error"] if totals["failed"] else None),
        started=totals["started"],
        succeeded=totals["succeeded"],
        failed=totals["failed"],
        errors=totals["errors"],
        rows=0,
        elapsed_ns=totals["elapsed_ns"],
        latencies=tuple(trial_latency(row) for row in executed if row["kind"] == "script"),
        operation=next((trial_latency(row) for row in executed if row["kind"] == "operation"), None),
        client_user_ns=totals["client_user_ns"],
        client_system_ns=totals["client_system_ns"],
        server_user_ns=server.get("user_ns"),
        server_system_ns=server.get("system_ns"),
        sent_bytes=totals["sent_bytes"],
        received_bytes=totals["received_bytes"],
        steal_ns=totals["steal_ns"],
        throttled_ns=totals["throttled_ns"],
        digest=None,
        round_trips=totals["round_trips"],
        settling=totals["settling"],
        statuses={int(status): count for status, count in (http.get("statuses") or {}).items()},
    )
