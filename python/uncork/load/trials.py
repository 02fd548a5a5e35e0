"""Run a trial, or a block of trials, with one call of the Rust core."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa

from uncork import _native
from uncork.errors import LoadError
from uncork.load.http import http_plan
from uncork.load.merging import count_within
from uncork.load.sampler import sampler_plan, strain, system_series, trial_watch
from uncork.load.sql import sql_arm_plan, sql_measurement, sql_parameters, trial_measurement
from uncork.model.block import BlockMeasurement, BlockRequest, SliceSize
from uncork.model.http_trial import AskedRequest, HttpAnswer, HttpTrial, TrialRequest
from uncork.model.measurement import Measurement, Outcome, Slice
from uncork.model.service import Served
from uncork.model.services.tls import own_service_tls, speaks_only_http2
from uncork.model.system import Watch
from uncork.model.units import format_duration

LATE = "late"
"""The kind of error of an answer that arrived after its deadline."""

_GONE = ("connection lost", "refused")
"""The outcomes of a load when nothing listens at the port."""


def run_trial(request: TrialRequest, *, sample: bool = True) -> Measurement:
    """Run a trial, without the server's counters; with `sample`, the machine is sampled.

    Failed and late requests are part of it. Raises LoadError if a statement or a request cannot be sent, and
    ConnectError if a server refuses the connection.
    """
    plan = {**_plan(request), "sample": sampler_plan(_watch(request)) if sample else None}
    totals, times, _, _, sampled = _native.run_load(json.dumps(plan).encode(), _parameters(request))
    system = system_series(sampled)
    return replace(_measurement(request, totals, times), system=system, strain=strain(system))


def _watch(request: TrialRequest) -> list[Watch]:
    return trial_watch(request.target.pid, request.served.pids if isinstance(request, HttpTrial) else ())


def _plan(request: TrialRequest) -> dict[str, Any]:
    """Return a request's plan for the core, without what to sample."""
    return http_arm_plan(request) if isinstance(request, HttpTrial) else sql_arm_plan(request)


def _parameters(request: TrialRequest) -> pa.Table:
    return sql_parameters(() if isinstance(request, HttpTrial) else request.parameters)


def _measurement(request: TrialRequest, totals: bytes, times: Any) -> Measurement:
    found, rows = json.loads(totals), pa.table(times).to_pylist()
    if isinstance(request, HttpTrial):
        return http_measurement(request, found, rows)
    return sql_measurement(found, rows)


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
    """Run a block; the first arm has the machine's samples. Raises LoadError, ConnectError."""
    # The servers and services of all arms, each once, and ourselves.
    watch = dict.fromkeys(watch for request in block.arms for watch in _watch(request))
    plan = {
        "arms": [{**_plan(request), "stop": {"operations": 1}, "sample": None} for request in block.arms],
        "slices": [_slice(size) for size in block.sizes],
        "cycles": [list(cycle) for cycle in block.cycles],
        "cycles_together": block.together,
        "limit_ns": block.limit_ns,
        "sample": sampler_plan(list(watch)) if sample else None,
    }
    answered, slices, sampled = _native.run_block(
        json.dumps(plan).encode(), [_parameters(request) for request in block.arms]
    )
    system = system_series(sampled)
    found = strain(system)
    measured = [
        replace(_measurement(request, *results), strain=found)
        for request, results in zip(block.arms, answered, strict=True)
    ]
    measured[0] = replace(measured[0], system=system)
    return BlockMeasurement(tuple(measured), tuple(Slice(**row) for row in pa.table(slices).to_pylist()))


def _slice(size: SliceSize) -> dict[str, Any]:
    stop = {"operations": size.operations} if size.duration_ns is None else {"duration_ns": size.duration_ns}
    return {"settle": {"duration_ns": size.settle_ns} if size.settle_ns else None, "stop": stop}


# ---- a service's complete answers to a few requests, to compare variants ----


if TYPE_CHECKING:
    from httpcore2 import ConnectionPool

_SAFE: Final = "!$%&'()*+,-./:;=?@[]_~"
"""Characters of a path that need no escaping, besides letters and digits."""
_OWN: Final = ("connection", "keep-alive", "upgrade")
"""Headers that HTTP/2 does not allow."""
_CLOSED: Final = "Server disconnected"
_SILENTLY: Final = f"{_CLOSED} without"
"""How httpcore says that a service closed the connection, and that it did so without any answer."""


def ask(served: Served, requests: Sequence[AskedRequest], *, timeout_s: float) -> list[HttpAnswer]:
    """Send requests one by one, by HTTP/2 only if need be; return the answers. Raises LoadError."""
    connection = _Connection(served, timeout_s)
    found: list[HttpAnswer] = []
    try:
        for request in requests:
            status, data = connection.answer(request)
            form = _json(data)
            text = _text(data) if form is None else None
            digest = hashlib.sha256(data).hexdigest()
            found.append(HttpAnswer(request.line, status, form, digest, len(data), text))
    finally:
        connection.close()
    return found


class _Connection:
    """One connection to a service, opened anew if the service has closed it or speaks only HTTP/2."""

    def __init__(self, served: Served, timeout_s: float) -> None:
        self._served, self._timeout_s = served, timeout_s
        self._two = self._used = False
        self._pool = self._open()

    def close(self) -> None:
        self._pool.close()

    def answer(self, request: AskedRequest) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request. Raises LoadError."""
        import httpcore2  # noqa: PLC0415 -- slow to load, and few commands compare answers

        try:
            try:
                found = self._sent(request)
            except (httpcore2.RemoteProtocolError, httpcore2.NetworkError) as error:
                if not self._may_try_again(error):
                    raise
                self.close()
                self._pool = self._open()
                found = self._sent(request)
        except (httpcore2.TimeoutException, TimeoutError) as error:
            raise self._refused(request, f"no answer within {self._timeout_s:g} s") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError) as error:
            closed = "it closed the connection before its answer was complete"
            text = closed if str(error).startswith(_CLOSED) else str(error)
            raise self._refused(request, text or type(error).__name__) from error
        self._used = True
        return found

    def _may_try_again(self, error: Exception) -> bool:
        """Return whether to send a request anew: to a service that closed the connection, or by HTTP/2."""
        from httpcore2 import ReadError, WriteError  # noqa: PLC0415 -- as above

        if isinstance(error, ReadError | WriteError) or str(error).startswith(_SILENTLY):
            return self._used
        if self._used or self._two or not _understands_other(error):
            return False
        self._two = True
        return True

    def _open(self) -> ConnectionPool:
        from httpcore2 import ConnectionPool  # noqa: PLC0415 -- as above

        return ConnectionPool(
            own_service_tls("h2" if self._two else "http/1.1"),
            max_connections=1,
            http1=not self._two,
            http2=self._two,
        )

    def _sent(self, request: AskedRequest) -> tuple[int, bytes]:
        from httpcore2 import URL  # noqa: PLC0415 -- as above

        served, deadline = self._served, time.monotonic() + self._timeout_s
        scheme, target = "https" if served.tls else "http", quote(request.path, safe=_SAFE)
        barred = _OWN if self._two else ()
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_s)
        with self._pool.stream(
            request.method,
            URL(scheme=scheme, host=served.host, port=served.port, target=target),
            headers=[header for header in request.headers if header[0].lower() not in barred],
            content=None if request.body is None else request.body.encode(),
            extensions={"timeout": timeouts},
        ) as answer:
            return answer.status, b"".join(_before(deadline, answer.iter_stream()))

    def _refused(self, request: AskedRequest, reason: str) -> LoadError:
        return LoadError(f"service {self._served.name}: {request.line}: {reason}")


def _understands_other(error: BaseException) -> bool:
    """Return whether a service answered, but in another version than HTTP/1.1."""
    from httpcore2 import RemoteProtocolError  # noqa: PLC0415 -- as above

    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    return isinstance(error, RemoteProtocolError) or any(map(speaks_only_http2, causes))


def _before(deadline: float, parts: Iterator[bytes]) -> Iterator[bytes]:
    for part in parts:
        if time.monotonic() > deadline:
            raise TimeoutError
        yield part


def _json(data: bytes) -> str | None:
    try:
        return json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
