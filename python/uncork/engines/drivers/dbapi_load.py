"""Load on an engine with a Python driver: run clients in processes, and sum their counts to a `Measurement`.

The clients of an embedded engine are threads of one process and share its locks, as they would in a service.
Each client of a server is a process of its own, so that Python's global interpreter lock does not limit them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from subprocess import PIPE, TimeoutExpired
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.engines.host import stolen_ns, throttled_ns
from uncork.errors import LoadError, ServerCrash, SetupError
from uncork.model.measurement import Latency, Measurement, Outcome
from uncork.model.request import LoadRequest
from uncork.spawn.child import start

_GRACE_S = 20.0
"""How much longer than its job's own limit a client may take, to load a driver and open files."""

_OPENED_WITH = ("engine", "module", "path", "options", "settings")
"""The fields of a job that decide how its process opens the engine."""

_LEAVE_S = 20.0
"""How long a client may take to close an engine's files."""


class Child:
    """One client process with its job. Leaving the context ends the process."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        self._process = start(
            [sys.executable, "-m", "uncork.engines.drivers.client"],
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._errors,
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        )
        self._buffer = b""
        self.tell(json.dumps(job))

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def tell(self, line: str) -> None:
        """Send a line to the process."""
        assert self._process.stdin is not None  # noqa: S101 -- opened as a pipe
        with contextlib.suppress(BrokenPipeError):  # `answer` reports that the process has ended
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """Return the next answer, or None if there is none in time.

        Raises ServerCrash if the process ended without an answer.
        """
        deadline = time.monotonic() + seconds + _GRACE_S
        assert self._process.stdout is not None  # noqa: S101 -- opened as a pipe
        stream = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                return None
            read = os.read(stream, 1 << 20)
            if not read:
                raise ServerCrash(self._exit_reason())
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def leave(self) -> None:
        """Let the process close its engine and exit; kill it if that takes too long."""
        assert self._process.stdin is not None  # noqa: S101 -- opened as a pipe
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(TimeoutExpired):
            self._process.wait(_LEAVE_S)
        self.end()

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _exit_reason(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines()]
        shown = "; ".join(line for line in lines[-3:] if line)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"the engine's process ended ({how}{': ' + shown if shown else ''})"


class Crew:
    """Client processes that are kept for the next trial on the same database.

    Starting a process, loading its driver and opening an engine's files takes longer than most trials. So the
    next trial on a database reuses the processes, unless it needs other settings or another number of them.
    """

    def __init__(self) -> None:
        self._living: dict[str, tuple[tuple[str, int], list[Child]]] = {}

    def take(self, database: str, jobs: Sequence[Mapping[str, Any]]) -> list[Child]:
        """Send each job to a process of its own, and return the processes in the order of the jobs."""
        same = json.dumps([jobs[0][name] for name in _OPENED_WITH], sort_keys=True), len(jobs)
        known, children = self._living.get(database, (None, []))
        if known == same:
            for child, job in zip(children, jobs, strict=True):
                child.tell(json.dumps(job))
            return children
        self.leave(database)
        children = []
        self._living[database] = (same, children)
        for job in jobs:
            children.append(Child(job))
        return children

    def leave(self, database: str | None = None) -> None:
        """Let the processes of one database, or of all databases, close their engine and exit."""
        for child in self._gone(database):
            child.leave()

    def end(self, database: str | None = None) -> None:
        """Kill the processes of one database, or of all databases, at once. Their work is lost."""
        for child in self._gone(database):
            child.end()

    def _gone(self, database: str | None) -> list[Child]:
        names = list(self._living) if database is None else [database]
        return [child for name in names if name in self._living for child in self._living.pop(name)[1]]


def ask(job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Run a job that has one answer, in a process of its own, and return the answer.

    Raises SetupError if the job failed, with the engine's message, or took too long; ServerCrash if
    the engine's process ended.
    """
    with Child(job) as child:
        answer = child.answer(seconds)
    if answer is None:
        raise SetupError(f"it took longer than {seconds:g} s")
    if "error" in answer:
        line = f"line {answer['line']}: " if "line" in answer else ""
        raise SetupError(f"{line}{answer['error']}")
    return answer


_CONNECT_S = 120.0
"""How much longer than a trial's own limit opening files, connecting and warming up may take."""


def run_driven(request: LoadRequest, *, embedded: bool, crew: Crew) -> Measurement:
    """Run one trial on an engine that the Rust core does not support.

    The client processes stay in `crew` for the next trial, unless this one was cut short or failed.
    Raises LoadError if no load can be sent: a statement fails during the warm-up, or the engine
    refuses the connection.
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
        return _nothing(Outcome.CONNECTION_LOST, str(crash), 0)
    after = stolen_ns(), throttled_ns()
    answers = [answer for answer in received if answer is not None]
    if len(answers) < len(received):
        message = "the engine did not answer in time; its process was killed"
        return _nothing(Outcome.DEADLINE, message, time.perf_counter_ns() - begun_ns)
    for answer in answers:
        if "error" in answer:
            raise LoadError(answer["error"])
    throttled = None if after[1] is None or before[1] is None else after[1] - before[1]
    return _measurement(request, answers, embedded, after[0] - before[0], throttled)


def _jobs(request: LoadRequest, *, embedded: bool) -> list[dict[str, Any]]:
    """Split the request into one job per process."""
    processes = 1 if embedded else request.clients
    target: Mapping[str, Any] = request.target.connection
    plan = {
        **target,
        **work_of(request),
        "settings": {**target["settings"], **request.settings},
        "transaction": request.transaction,
        "clients": request.clients // processes,
        "warmup_all": request.warmup_operations,
        "duration_ns": request.duration_ns,
        "deadline_ns": request.deadline_ns,
        "stride": processes,
    }
    jobs = []
    for number in range(processes):
        most = request.operations
        operations = None if most is None else _share(most, number, processes)
        warmup = _share(request.warmup_operations, number, processes)
        jobs.append({**plan, "first": number, "warmup": warmup, "operations": operations})
    return jobs


def work_of(request: LoadRequest) -> dict[str, Any]:
    """Return the statements and parameters of a request as a client process takes them."""
    return {
        "statements": [
            {"name": statement.name, "sql": statement.sql, "columns": list(statement.columns)}
            for statement in request.statements
        ],
        "parameters": [list(column) for column in request.parameters],
        "numbers": sorted(request.numbers),
    }


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
    if len(names) == 1:
        found = [operation and replace(operation, name=names[0])]
    else:
        found = [
            _latency(name, [client["statements"][number] for client in clients])
            for number, name in enumerate(names)
        ]
    elapsed_ns = max(answer["end_ns"] for answer in answers) - min(answer["start_ns"] for answer in answers)
    return replace(
        _nothing(outcome, message, elapsed_ns),
        started=sum(client["started"] for client in clients),
        succeeded=sum(client["succeeded"] for client in clients),
        failed=sum(errors.values()),
        errors=dict(errors),
        rows=sum(client["rows"] for client in clients),
        latencies=tuple(latency for latency in found if latency is not None),
        operation=operation,
        client_user_ns=None if embedded else user_ns,
        client_system_ns=None if embedded else system_ns,
        server_user_ns=user_ns if embedded else None,
        server_system_ns=system_ns if embedded else None,
        steal_ns=steal_ns,
        throttled_ns=throttled,
    )


def _latency(name: str, packed: Sequence[str]) -> Latency | None:
    values = b"".join(base64.b64decode(text) for text in packed)
    if not values:
        return None
    (row,) = pa.table(_native.summarize(name, values)).to_pylist()
    known = Latency.__dataclass_fields__
    return Latency(**{field: value for field, value in row.items() if field in known})


def _nothing(outcome: Outcome, message: str | None, elapsed_ns: int) -> Measurement:
    """Return a measurement without operations, as of a trial whose client could not report."""
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
