"""Run a block of an experiment with one call of the Rust core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.load.http_trials import http_arm_plan, http_measurement
from uncork.load.sampler import sampler_plan, strain, system_series, trial_watch
from uncork.load.sql import sql_arm_plan, sql_measurement, sql_parameters
from uncork.model.block import BlockMeasurement, BlockRequest, SliceSize
from uncork.model.http_trial import HttpTrial, TrialRequest
from uncork.model.measurement import Measurement, Slice
from uncork.model.system import Watch


def run_block(block: BlockRequest, *, sample: bool) -> BlockMeasurement:
    """Run a block. The samples of the machine are returned with the first arm.

    Raises LoadError if a statement cannot be prepared, or the plan is invalid. Raises ConnectError if the
    server refuses a connection.
    """
    plan = {
        "arms": [_arm(request) for request in block.arms],
        "slices": [_slice(size) for size in block.sizes],
        "cycles": [list(cycle) for cycle in block.cycles],
        "cycles_together": block.together,
        "limit_ns": block.limit_ns,
        "sample": sampler_plan(_watch(block.arms)) if sample else None,
    }
    tables = [
        sql_parameters([] if isinstance(request, HttpTrial) else request.parameters) for request in block.arms
    ]
    answered, slices, sampled = _native.run_block(json.dumps(plan).encode(), tables)
    measured = [
        _measured(request, json.loads(totals), pa.table(rows).to_pylist())
        for request, (totals, rows) in zip(block.arms, answered, strict=True)
    ]
    system = system_series(sampled)
    found = strain(system)
    measured = [replace(measurement, strain=found) for measurement in measured]
    measured[0] = replace(measured[0], system=system)
    return BlockMeasurement(tuple(measured), tuple(Slice(**row) for row in pa.table(slices).to_pylist()))


def _arm(request: TrialRequest) -> dict[str, Any]:
    plan = http_arm_plan(request) if isinstance(request, HttpTrial) else sql_arm_plan(request)
    return {**plan, "stop": {"operations": 1}, "sample": None}


def _slice(size: SliceSize) -> dict[str, Any]:
    stop = {"operations": size.operations} if size.duration_ns is None else {"duration_ns": size.duration_ns}
    return {"settle": {"duration_ns": size.settle_ns} if size.settle_ns else None, "stop": stop}


def _watch(requests: Sequence[TrialRequest]) -> list[Watch]:
    """Return the processes to sample: the servers and services of all arms, each once, and ourselves."""
    found = [
        watch
        for request in requests
        for watch in trial_watch(
            request.target.pid, request.served.pids if isinstance(request, HttpTrial) else ()
        )
    ]
    return list(dict.fromkeys(found))


def _measured(request: TrialRequest, totals: dict[str, Any], rows: list[dict[str, Any]]) -> Measurement:
    if isinstance(request, HttpTrial):
        return http_measurement(request, totals, rows)
    return sql_measurement(totals, rows)
