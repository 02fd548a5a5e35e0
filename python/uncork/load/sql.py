"""Run a trial by SQL with one call of the Rust core."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.errors import ConnectError
from uncork.load.sampler import sampler_plan, strain, system_series, trial_watch
from uncork.model.measurement import Latency, Measurement, Outcome
from uncork.model.request import LoadRequest, Statement


class SqlLoad:
    """The runner's `Load` port for SQL, on the Rust core: a closed loop over connections to PostgreSQL.

    `sample` decides whether machine and processes are sampled during each trial.
    """

    def __init__(self, *, sample: bool = True) -> None:
        self._sample = sample

    def run(self, request: LoadRequest) -> Measurement:
        """Run one trial and return its measurement, without the server's counters.

        Raises LoadError if a statement cannot be prepared, or the plan is invalid. Raises ConnectError if
        the server refuses the connection.
        """
        sample = sampler_plan(trial_watch(request.target.pid)) if self._sample else None
        plan = {**sql_arm_plan(request), "stop": _stop(request), "sample": sample}
        totals, statements, _, _, sampled = _native.run_load(
            json.dumps(plan).encode(), sql_parameters(request.parameters)
        )
        measured = sql_measurement(json.loads(totals), pa.table(statements).to_pylist())
        system = system_series(sampled)
        return replace(measured, system=system, strain=strain(system))


def merge_histograms(histograms: Sequence[bytes]) -> list[tuple[float, float]]:
    """Merge HDR histograms without loss; return points (quantile, nanoseconds) in rising order."""
    table = pa.table(_native.merge_histograms(list(histograms)))
    quantiles = table.column("quantile").to_pylist()
    values = table.column("value_ns").to_pylist()
    return [(float(q), float(v)) for q, v in zip(quantiles, values, strict=True)]


def build_facts() -> dict[str, str]:
    """Return the version and build options of the compiled core."""
    facts: dict[str, Any] = json.loads(_native.build_info())
    return {str(name): str(value) for name, value in facts.items()}


def sql_arm_plan(request: LoadRequest) -> dict[str, Any]:
    """Return a request's plan for the core, without when to stop and what to sample."""
    target = request.target
    return {
        "connection": {
            **target.connection,
            "database": target.database,
            "options": f"{target.connection.get('options', '')} {_options(request.settings)}".strip(),
        },
        "driver": "postgres",
        "clients": request.clients,
        "threads": request.threads,
        "protocol": request.protocol,
        "scripts": [
            {
                "name": "operation",
                "weight": 1,
                "statements": [_statement(statement) for statement in request.statements],
                "transaction": request.transaction,
                "pauses": [asdict(pause) for pause in request.pauses],
            }
        ],
        "connect_each": request.connect_each,
        "prepare": request.prepare,
        "warmup_operations": request.warmup_operations,
        "deadline_ns": request.deadline_ns,
        "digest": request.digest,
        "watch_pid": target.pid,
        "pin_cpu": request.pin_cpu,
    }


def _stop(request: LoadRequest) -> dict[str, int | None]:
    if request.operations is None:
        return {"duration_ns": request.duration_ns}
    return {"operations": request.operations}


def _statement(statement: Statement) -> dict[str, Any]:
    return {
        "name": statement.name,
        "sql": statement.sql,
        "parameters": list(statement.columns),
        "batch": None if statement.batch is None else asdict(statement.batch),
    }


def _options(settings: Mapping[str, str]) -> str:
    """Return settings as a connection's start-up options, with spaces and backslashes escaped."""
    escaped = str.maketrans({"\\": "\\\\", " ": "\\ "})
    return " ".join(f"-c {name}={value.translate(escaped)}" for name, value in settings.items())


def sql_parameters(columns: Sequence[Sequence[str | None]]) -> pa.Table:
    """Return the columns of a parameter table in the core's format."""
    names = [f"p{number}" for number in range(len(columns))]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=names)


def sql_measurement(totals: dict[str, Any], rows: list[dict[str, Any]]) -> Measurement:
    """Convert the core's result to a Measurement. Raises ConnectError if the connection was refused."""
    if totals["outcome"] == "refused":
        raise ConnectError(str(totals["message"]))
    executed = [row for row in rows if row["executions"] > row["errors"]]
    outcome = Outcome(totals["outcome"])
    message = totals["message"]
    if outcome == Outcome.COMPLETE and (totals["failed"] or totals["warmup_failed"]):
        outcome = Outcome.ERRORS
        message = totals["first_error"]
    server = totals["server"] or {}
    return Measurement(
        outcome=outcome,
        message=message,
        started=totals["started"],
        succeeded=totals["succeeded"],
        failed=totals["failed"],
        errors=totals["errors"],
        rows=totals["rows"],
        elapsed_ns=totals["elapsed_ns"],
        latencies=tuple(trial_latency(row) for row in executed if row["kind"] == "statement"),
        operation=next((trial_latency(row) for row in executed if row["kind"] == "operation"), None),
        client_user_ns=totals["client_user_ns"],
        client_system_ns=totals["client_system_ns"],
        server_user_ns=server.get("user_ns"),
        server_system_ns=server.get("system_ns"),
        sent_bytes=totals["sent_bytes"],
        received_bytes=totals["received_bytes"],
        steal_ns=totals["steal_ns"],
        throttled_ns=totals["throttled_ns"],
        digest=totals["digest"],
        round_trips=totals["round_trips"],
        settling=totals["settling"],
    )


def trial_latency(row: dict[str, Any]) -> Latency:
    """Convert a row of times from the core, which must have successes, to a `Latency`."""
    return Latency(
        name=row["name"],
        executions=row["executions"] - row["errors"],
        sum_ns=row["sum_ns"],
        min_ns=row["min_ns"],
        max_ns=row["max_ns"],
        p50_ns=row["p50_ns"],
        p90_ns=row["p90_ns"],
        p95_ns=row["p95_ns"],
        p99_ns=row["p99_ns"],
        p999_ns=row["p999_ns"],
        histogram=row["histogram"],
    )
