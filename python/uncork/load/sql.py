"""The plan of a trial by SQL for the Rust core, and what the core measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Final, Literal

import pyarrow as pa

from uncork import _native
from uncork.errors import ConnectError
from uncork.model.measurement import Latency, Measurement, Outcome
from uncork.model.request import LoadRequest


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
    """Return a request's plan for the core, without what to sample."""
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
                "statements": [
                    {
                        "name": statement.name,
                        "sql": statement.sql,
                        "parameters": list(statement.columns),
                        "batch": None if statement.batch is None else asdict(statement.batch),
                    }
                    for statement in request.statements
                ],
                "transaction": request.transaction,
                "pauses": [asdict(pause) for pause in request.pauses],
            }
        ],
        "connect_each": request.connect_each,
        "prepare": request.prepare,
        "warmup_operations": request.warmup_operations,
        "deadline_ns": request.deadline_ns,
        "stop": {"duration_ns": request.duration_ns}
        if request.operations is None
        else {"operations": request.operations},
        "digest": request.digest,
        "watch_pid": target.pid,
        "pin_cpu": request.pin_cpu,
    }


def _options(settings: Mapping[str, str]) -> str:
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
    outcome = Outcome(totals["outcome"])
    message = totals["message"]
    if outcome == Outcome.COMPLETE and (totals["failed"] or totals["warmup_failed"]):
        outcome = Outcome.ERRORS
        message = totals["first_error"]
    found = trial_measurement(totals, rows, "statement", outcome, message)
    return replace(found, rows=totals["rows"], digest=totals["digest"])


def trial_measurement(
    totals: dict[str, Any],
    rows: list[dict[str, Any]],
    part: Literal["statement", "script"],
    outcome: Outcome,
    message: str | None,
) -> Measurement:
    """Return what the core measured in a trial, with the latencies of each `part`."""
    executed = [row for row in rows if row["executions"] > row["errors"]]
    server = totals["server"] or {}
    return Measurement(
        outcome=outcome,
        message=message,
        rows=0,
        latencies=tuple(_latency(row) for row in executed if row["kind"] == part),
        operation=next((_latency(row) for row in executed if row["kind"] == "operation"), None),
        server_user_ns=server.get("user_ns"),
        server_system_ns=server.get("system_ns"),
        digest=None,
        **{name: totals[name] for name in _COUNTED},
    )


_COUNTED: Final = (
    *("started", "succeeded", "failed", "errors", "elapsed_ns", "client_user_ns", "client_system_ns"),
    *("sent_bytes", "received_bytes", "steal_ns", "throttled_ns", "round_trips", "settling"),
)


def _latency(row: dict[str, Any]) -> Latency:
    found = {item.name: row[item.name] for item in fields(Latency)}
    return Latency(**{**found, "executions": row["executions"] - row["errors"]})
