"""Write a run as it goes: the runner's `Sink`."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.model.measurement import Latency, Measurement, Outcome
from uncork.model.server import ExecutedPlan, Relation
from uncork.model.tables import SCHEMA_VERSION, TABLES, Table
from uncork.model.trial import Cell, Trial
from uncork.store.layout import write_atomically

__all__ = ["RunWriter", "append_rows", "append_table", "arrow_schema"]

_ARROW = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "bytes": pa.binary(),
    "time": pa.timestamp("us"),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Return a stored table's Arrow schema, with units and meanings as metadata."""
    columns = [
        pa.field(
            column.name,
            _ARROW[column.type],
            nullable=column.name not in table.key,
            metadata={"unit": column.unit, "meaning": column.meaning},
        )
        for column in table.columns
    ]
    return pa.schema(columns, metadata={"uncork.table": table.name, "uncork.schema": str(SCHEMA_VERSION)})


class RunWriter:
    """Appends to the tables of one run. Each call writes its rows whole or not at all.

    Args:
        folder: the run's.
        metrics: the metric of each workload, so that a trial's value is stored beside it.
    """

    def __init__(self, folder: Path, metrics: Mapping[str, str]) -> None:
        self._folder = folder
        self._metrics = metrics

    def trials(self, trials: Sequence[tuple[Trial, Measurement]]) -> None:
        """Append trials and their statements. Statements go first: a trial is there only with all of it."""
        statements = [
            {**_place(trial), "statement": latency.name, **_latency(latency)}
            for trial, measurement in trials
            for latency in measurement.latencies
        ]
        if statements:
            self._append("statements", statements)
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

    def refusal(self, cell: Cell, workload: str, variant: str, reason: str) -> None:
        """Append that a variant was refused."""
        row = {"cell": cell.name, "workload": workload, "variant": variant, "reason": reason}
        self._append("refusals", [row])

    def environment(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """Write what server and machine are."""
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
            **(
                {
                    "counted_operations": counters.operations,
                    "shared_hit": counters.shared_hit,
                    "shared_read": counters.shared_read,
                    "shared_dirtied": counters.shared_dirtied,
                    "temp_bytes": counters.temp_bytes,
                    "wal_bytes": counters.wal_bytes,
                    "wal_records": counters.wal_records,
                }
                if counters is not None
                else {}
            ),
            "disturbances": ",".join(sorted(measurement.disturbances)),
        }

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        append_rows(self._folder, name, rows)


def append_rows(run: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a table of a run, whole or not at all.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    append_table(run, name, pa.Table.from_pylist(list(rows), schema=arrow_schema(TABLES[name])))


def append_table(run: Path, name: str, table: pa.Table) -> None:
    """Append an Arrow table to a table of a run, whole or not at all; columns are cast to those stored.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    table = table.select([column.name for column in TABLES[name].columns])
    table = table.cast(arrow_schema(TABLES[name]))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    folder = run / name
    last = max((int(path.stem) for path in folder.glob("*.parquet")), default=0)
    write_atomically(folder / f"{last + 1:06d}.parquet", buffer.getvalue())


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
