"""Run a trial by HTTP, or a block of trials, with one call of the Rust core."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.load.http import http_plan
from uncork.load.merging import count_within
from uncork.load.sampler import sampler_plan, strain, system_series, trial_watch
from uncork.load.sql import sql_arm_plan, sql_measurement, sql_parameters, trial_measurement
from uncork.model.block import BlockMeasurement, BlockRequest, SliceSize
from uncork.model.http_trial import HttpTrial, TrialRequest
from uncork.model.measurement import Measurement, Outcome, Slice
from uncork.model.units import format_duration

LATE = "late"
"""The kind of error of an answer that arrived after its deadline."""

_GONE = ("connection lost", "refused")
"""The outcomes of a load when nothing listens at the port."""


class HttpLoad:
    """The runner's `Load` port for HTTP, on the Rust core; with `sample`, trials sample the machine."""

    def __init__(self, *, sample: bool = True) -> None:
        self._sample = sample

    def run(self, trial: HttpTrial) -> Measurement:
        """Run one trial; failed and late requests are part of it. Raises LoadError if it cannot be sent."""
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
    outcome = totals["outcome"]
    if outcome == "connection lost" and trial.spec.on_close == "stop" and totals["succeeded"]:
        outcome = "complete"  # the closing was expected; a service that is gone is detected elsewhere
    measured = trial_measurement(
        totals,
        rows,
        "script",
        Outcome.CONNECTION_LOST if outcome in _GONE else Outcome(outcome),
        totals["message"] or (totals["first_error"] if totals["failed"] else None),
    )
    statuses = (totals["http"] or {}).get("statuses") or {}
    measured = replace(measured, statuses={int(status): count for status, count in statuses.items()})
    return measured if trial.late_ns is None else _without_late(measured, trial.late_ns)


def _without_late(measured: Measurement, late_ns: int) -> Measurement:
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


# ---- blocks of an experiment ----


def run_block(block: BlockRequest, *, sample: bool) -> BlockMeasurement:
    """Run a block; the first arm has the samples of the machine. Raises LoadError or ConnectError."""
    # The servers and services of all arms, each once, and ourselves.
    watch = dict.fromkeys(
        watch
        for request in block.arms
        for watch in trial_watch(
            request.target.pid, request.served.pids if isinstance(request, HttpTrial) else ()
        )
    )
    plan = {
        "arms": [_arm(request) for request in block.arms],
        "slices": [_slice(size) for size in block.sizes],
        "cycles": [list(cycle) for cycle in block.cycles],
        "cycles_together": block.together,
        "limit_ns": block.limit_ns,
        "sample": sampler_plan(list(watch)) if sample else None,
    }
    tables = [
        sql_parameters([] if isinstance(request, HttpTrial) else request.parameters) for request in block.arms
    ]
    answered, slices, sampled = _native.run_block(json.dumps(plan).encode(), tables)
    system = system_series(sampled)
    found, measured = strain(system), []
    for request, (data, rows) in zip(block.arms, answered, strict=True):
        totals, times = json.loads(data), pa.table(rows).to_pylist()
        measurement = (
            http_measurement(request, totals, times)
            if isinstance(request, HttpTrial)
            else sql_measurement(totals, times)
        )
        measured.append(replace(measurement, strain=found))
    measured[0] = replace(measured[0], system=system)
    return BlockMeasurement(tuple(measured), tuple(Slice(**row) for row in pa.table(slices).to_pylist()))


def _arm(request: TrialRequest) -> dict[str, Any]:
    plan = http_arm_plan(request) if isinstance(request, HttpTrial) else sql_arm_plan(request)
    return {**plan, "stop": {"operations": 1}, "sample": None}


def _slice(size: SliceSize) -> dict[str, Any]:
    stop = {"operations": size.operations} if size.duration_ns is None else {"duration_ns": size.duration_ns}
    return {"settle": {"duration_ns": size.settle_ns} if size.settle_ns else None, "stop": stop}
