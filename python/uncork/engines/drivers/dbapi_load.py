"""Load on an engine with a Python driver: run clients in processes, and sum their counts to a `Measurement`.

The clients of an embedded engine are threads of one process and share its locks, as they would in a service.
Each client of a server is a process of its own, so that Python's global interpreter lock does not limit them.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.engines.children import Crew
from uncork.engines.host import stolen_ns, throttled_ns
from uncork.errors import LoadError, ServerCrash
from uncork.model.measurement import Latency, Measurement, Outcome
from uncork.model.request import LoadRequest

_CONNECT_S = 120.0
"""How much longer than a trial's own limit opening files, connecting and warming up may take."""


def run_driven(request: LoadRequest, *, embedded: bool, crew: Crew) -> Measurement:
    """Run one trial on an engine that the Rust core does not support.

    The client processes stay in `crew` for the next trial, unless this one was cut short or failed.

    Raises:
        LoadError: if no load can be sent: a statement fails during the warm-up, or the engine refuses the
            connection.
    """
    database, whole = request.target.database, False
    try:
        measurement = _trial(request, embedded, crew)
        whole = measurement.outcome in {Outcome.COMPLETE, Outcome.ERRORS}
        return measurement
    finally:
        if not whole:
            crew.end(database)


def _trial(request: LoadRequest, embedded: bool, crew: Crew) -> Measurement:
    children = crew.take(request.target.database, _jobs(request, embedded=embedded))
    limit_s = request.deadline_ns / 1e9
    try:
        for child in children:
            _ready(child.answer(limit_s + _CONNECT_S))
        before = stolen_ns(), throttled_ns()
        begun_ns = time.perf_counter_ns()
        for child in children:
            child.tell("go")
        received = [child.answer(limit_s) for child in children]
    except ServerCrash as crash:
        return _lost(str(crash))
    after = stolen_ns(), throttled_ns()
    answers = [answer for answer in received if answer is not None]
    if len(answers) < len(received):
        return _hung(time.perf_counter_ns() - begun_ns)
    for answer in answers:
        if "error" in answer:
            raise LoadError(answer["error"])
    throttled = None if after[1] is None or before[1] is None else after[1] - before[1]
    return _measurement(request, answers, embedded, after[0] - before[0], throttled)


def _jobs(request: LoadRequest, *, embedded: bool) -> list[dict[str, Any]]:
    """Split the request into one job per process."""
    processes = 1 if embedded else request.clients
    target = request.target.connection
    plan = {
        **target,
        "settings": {**_mapping(target["settings"]), **request.settings},
        "statements": [
            {"name": statement.name, "sql": statement.sql, "columns": list(statement.columns)}
            for statement in request.statements
        ],
        "parameters": [list(column) for column in request.parameters],
        "numbers": sorted(request.numbers),
        "transaction": request.transaction,
        "clients": request.clients // processes,
        "warmup_all": request.warmup_operations,
        "duration_ns": request.duration_ns,
        "deadline_ns": request.deadline_ns,
        "stride": processes,
    }
    return [
        plan
        | {
            "first": number,
            "warmup": _share(request.warmup_operations, number, processes),
            "operations": None
            if request.operations is None
            else _share(request.operations, number, processes),
        }
        for number in range(processes)
    ]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _share(total: int, number: int, of: int) -> int:
    return total // of + (number < total % of)


def _ready(answer: dict[str, Any] | None) -> None:
    if answer is None:
        raise LoadError(
            f"the engine did not open its data and warm up within {_CONNECT_S:g} s beyond the trial's limit"
        )
    if "error" in answer:
        raise LoadError(answer["error"])


def _measurement(
    request: LoadRequest,
    answers: Sequence[dict[str, Any]],
    embedded: bool,
    steal_ns: int,
    throttled: int | None,
) -> Measurement:
    clients = [client for answer in answers for client in answer["clients"]]
    errors: Counter[str] = Counter()
    for client in clients:
        errors.update(client["errors"])
    outcomes = {answer["outcome"] for answer in answers}
    worst = [outcome for outcome in (Outcome.CONNECTION_LOST, Outcome.DEADLINE) if outcome.value in outcomes]
    outcome = worst[0] if worst else Outcome.ERRORS if errors else Outcome.COMPLETE
    message = next((answer["message"] for answer in answers if answer["message"]), None)
    user_ns = sum(answer["user_ns"] for answer in answers)
    system_ns = sum(answer["system_ns"] for answer in answers)
    operation = _latency("operation", [client["operation"] for client in clients])
    names = [statement.name for statement in request.statements]
    found = (
        [operation and _renamed(operation, names[0])]
        if len(names) == 1
        else [
            _latency(name, [client["statements"][number] for client in clients])
            for number, name in enumerate(names)
        ]
    )
    return Measurement(
        outcome=outcome,
        message=message,
        started=sum(client["started"] for client in clients),
        succeeded=sum(client["succeeded"] for client in clients),
        failed=sum(errors.values()),
        errors=dict(errors),
        rows=sum(client["rows"] for client in clients),
        elapsed_ns=max(answer["end_ns"] for answer in answers) - min(a["start_ns"] for a in answers),
        latencies=tuple(latency for latency in found if latency is not None),
        operation=operation,
        client_user_ns=None if embedded else user_ns,
        client_system_ns=None if embedded else system_ns,
        server_user_ns=user_ns if embedded else None,
        server_system_ns=system_ns if embedded else None,
        sent_bytes=None,
        received_bytes=None,
        steal_ns=steal_ns,
        throttled_ns=throttled,
        digest=None,
        round_trips=0,
    )


def _latency(name: str, packed: Sequence[str]) -> Latency | None:
    values = b"".join(base64.b64decode(text) for text in packed)
    if not values:
        return None
    (row,) = pa.table(_native.summarize(name, values)).to_pylist()
    known = Latency.__dataclass_fields__
    return Latency(**{field: value for field, value in row.items() if field in known})


def _renamed(latency: Latency, name: str) -> Latency:
    return replace(latency, name=name)


def _lost(message: str) -> Measurement:
    return _nothing(Outcome.CONNECTION_LOST, message, 0)


def _hung(elapsed_ns: int) -> Measurement:
    return _nothing(Outcome.DEADLINE, "the engine did not answer in time; its process was killed", elapsed_ns)


def _nothing(outcome: Outcome, message: str, elapsed_ns: int) -> Measurement:
    """Return a measurement without operations, for a trial whose client could not report."""
    return Measurement(
        outcome=outcome,
        message=message,
        started=0,
        succeeded=0,
        failed=0,
        errors={},
        rows=0,
        elapsed_ns=elapsed_ns,
        latencies=(),
        operation=None,
        client_user_ns=None,
        client_system_ns=None,
        server_user_ns=None,
        server_system_ns=None,
        sent_bytes=None,
        received_bytes=None,
        steal_ns=0,
        throttled_ns=None,
        digest=None,
    )
