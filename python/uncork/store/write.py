"""Write a run while it is measured: implements the runner's `Sink`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from uncork.model.engine import EngineOverhead
from uncork.model.measurement import Measurement, Outcome
from uncork.model.server import ExecutedPlan, Relation
from uncork.model.trial import Cell, Trial
from uncork.store.loads import write_environment
from uncork.store.system import SystemWriter
from uncork.store.tables import append_rows, row_of


class RunWriter:
    """Appends to the tables of one run. Each call writes its rows atomically.

    `metrics` has the metric of each workload, to store each trial's value. `plan_hash` returns the
    hash of a plan's text; None if it has none.
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
            row_of("statements", latency, statement=latency.name, **_place(trial))
            for trial, measurement in trials
            for latency in measurement.latencies
        ]
        slices = [
            row_of("slices", piece, **_place(trial))
            for trial, measurement in trials
            for piece in measurement.slices
        ]
        self._append("statements", statements)
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
        place = {"cell": cell.name, "workload": workload, "variant": variant}
        rows = [row_of("plans", plan, plan_hash=self._plan_hash(plan.text), **place) for plan in plans]
        self._append("plans", rows)

    def relations(self, cell: Cell, variant: str, relations: Sequence[Relation]) -> None:
        """Append sizes."""
        place = {"cell": cell.name, "variant": variant}
        rows = [row_of("relations", relation, relation=relation.name, **place) for relation in relations]
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
        write_environment(self._folder, facts)

    def _trial(self, trial: Trial, measurement: Measurement) -> dict[str, Any]:
        complete = measurement.outcome == Outcome.COMPLETE
        counters = measurement.counters
        return row_of(
            "trials",
            measurement,
            measurement.operation,
            counters,
            **_place(trial),
            outcome=str(measurement.outcome),
            value=measurement.metric(self._metrics[trial.workload]) if complete else None,
            errors=json.dumps(dict(measurement.errors)),
            statuses=json.dumps(dict(measurement.statuses)) if measurement.statuses else None,
            counted_operations=None if counters is None else counters.operations,
            disturbances=",".join(sorted(measurement.disturbances)),
            own=json.dumps(dict(measurement.own)) if measurement.own else None,
        )

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            append_rows(self._folder, name, rows)


def _place(trial: Trial) -> dict[str, Any]:
    return row_of("trials", trial, trial.arm, cell=trial.cell.name)
