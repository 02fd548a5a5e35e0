"""Write a run while it is measured: implements the runner's `Sink`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from uncork.model.engine import EngineOverhead
from uncork.model.measurement import Latency, Measurement, Outcome, Slice
from uncork.model.server import ExecutedPlan, Relation
from uncork.model.trial import Cell, Trial
from uncork.store.append import append_rows
from uncork.store.layout import write_atomically
from uncork.store.system import SystemWriter

_SLICE = tuple(item.name for item in fields(Slice) if item.name != "arm")


class RunWriter:
    """Appends to the tables of one run. Each call writes its rows atomically.

    Args:
        folder: The run's folder.
        metrics: The metric of each workload, to store each trial's value.
        plan_hash: Returns the hash of a plan's text; None if it has none.
    """

    def __init__(
        self,
        folder: Path,
        metrics: Mapping[str, str],
        plan_hash: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._metrics = metrics
        self._plan_hash = plan_hash
        self._system = SystemWriter(folder)

    def trials(self, trials: Sequence[tuple[Trial, Measurement]]) -> None:
        """Append trials and their statements. Trials are written last, so each stored trial is complete."""
        statements = [
            {**_place(trial), "statement": latency.name, **_latency(latency)}
            for trial, measurement in trials
            for latency in measurement.latencies
        ]
        if statements:
            self._append("statements", statements)
        slices = [
            {**_place(trial), **{name: getattr(piece, name) for name in _SLICE}}
            for trial, measurement in trials
            for piece in measurement.slices
        ]
        if slices:
            self._append("slices", slices)
        self._system.append(
            [
                (_place(trial), measurement.system)
                for trial, measurement in trials
                if measurement.system is not None
            ]
        )
        self._append("trials", [self._trial(trial, measurement) for trial, measurement in trials])

    def plans(self, cell: Cell, workload: str, variant: str, plans: Sequence[ExecutedPlan]) -> None:
        """Append executed plans."""
        rows = [
            {
                "cell": cell.name,
                "workload": workload,
                "variant": variant,
                "statement": plan.statement,
                "text": plan.text,
                "shape": plan.shape,
                "plan_hash": self._plan_hash(plan.text),
                "buffers": plan.buffers,
                "execution_ns": plan.execution_ns,
            }
            for plan in plans
        ]
        if rows:
            self._append("plans", rows)

    def relations(self, cell: Cell, variant: str, relations: Sequence[Relation]) -> None:
        """Append sizes."""
        rows = [
            {
                "cell": cell.name,
                "variant": variant,
                "relation": relation.name,
                "kind": relation.kind,
                "table": relation.table,
                "bytes": relation.bytes,
                "rows": relation.rows,
                "depth": relation.depth,
            }
            for relation in relations
        ]
        if rows:
            self._append("relations", rows)

    def answer(self, cell: Cell, workload: str, variant: str, difference: str) -> None:
        """Append how a variant's answer differs, where the experiment allows it."""
        row = {"cell": cell.name, "workload": workload, "variant": variant, "difference": difference}
        self._append("answers", [row])

    def data_check(self, cell: Cell, variant: str, name: str, value: str | None) -> None:
        """Append the result of a data check on a variant."""
        row = {"cell": cell.name, "variant": variant, "name": name, "value": value}
        self._append("data_checks", [row])

    def refusal(self, cell: Cell, workload: str, variant: str, reason: str) -> None:
        """Append the refusal of a variant."""
        row = {"cell": cell.name, "workload": workload, "variant": variant, "reason": reason}
        self._append("refusals", [row])

    def overhead(self, overhead: EngineOverhead) -> None:
        """Append the overhead of an engine's client."""
        self._append("overheads", [asdict(overhead)])

    def environment(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """Write facts about server and machine."""
        write_atomically(self._folder / "environment.json", json.dumps(facts, indent=2) + "\n")

    def _trial(self, trial: Trial, measurement: Measurement) -> dict[str, Any]:
        complete = measurement.outcome == Outcome.COMPLETE
        counters = measurement.counters
        operation = measurement.operation
        return {
            **_place(trial),
            "outcome": str(measurement.outcome),
            "message": measurement.message,
            "value": measurement.metric(self._metrics[trial.workload]) if complete else None,
            "started": measurement.started,
            "succeeded": measurement.succeeded,
            "failed": measurement.failed,
            "errors": json.dumps(dict(measurement.errors)),
            "statuses": json.dumps(dict(measurement.statuses)) if measurement.statuses else None,
            "rows": measurement.rows,
            "elapsed_ns": measurement.elapsed_ns,
            **(_latency(operation) if operation is not None else {}),
            "client_user_ns": measurement.client_user_ns,
            "client_system_ns": measurement.client_system_ns,
            "server_user_ns": measurement.server_user_ns,
            "server_system_ns": measurement.server_system_ns,
            "sent_bytes": measurement.sent_bytes,
            "received_bytes": measurement.received_bytes,
            "steal_ns": measurement.steal_ns,
            "throttled_ns": measurement.throttled_ns,
            "observer_ns": measurement.observer_ns,
            **(
                {
                    "counted_operations": counters.operations,
                    "shared_hit": counters.shared_hit,
                    "shared_read": counters.shared_read,
                    "shared_dirtied": counters.shared_dirtied,
                    "temp_bytes": counters.temp_bytes,
                    "wal_bytes": counters.wal_bytes,
                    "wal_records": counters.wal_records,
                    "queries": counters.queries,
                    "updated": counters.updated,
                    "hot_updated": counters.hot_updated,
                    "service_user_ns": counters.service_user_ns,
                    "service_system_ns": counters.service_system_ns,
                }
                if counters is not None
                else {}
            ),
            "disturbances": ",".join(sorted(measurement.disturbances)),
            "long_slices": measurement.long_slices,
            "own": json.dumps(dict(measurement.own)) if measurement.own else None,
        }

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        append_rows(self._folder, name, rows)


def _place(trial: Trial) -> dict[str, Any]:
    return {
        "round": trial.round,
        "block": trial.block,
        "position": trial.position,
        "cell": trial.cell.name,
        "workload": trial.workload,
        "variant": trial.arm.variant,
        "again": trial.arm.again,
    }


def _latency(latency: Latency) -> dict[str, Any]:
    return {
        "executions": latency.executions,
        "sum_ns": latency.sum_ns,
        "min_ns": latency.min_ns,
        "max_ns": latency.max_ns,
        "p50_ns": latency.p50_ns,
        "p90_ns": latency.p90_ns,
        "p95_ns": latency.p95_ns,
        "p99_ns": latency.p99_ns,
        "p999_ns": latency.p999_ns,
        "histogram": latency.histogram,
    }
