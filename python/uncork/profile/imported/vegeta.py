"""Results of vegeta: its JSON report, and the requests of an attack as JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import is_known, share, throughput, time
from uncork.profile.imported.strict import Value, shown

__all__ = ["read_report", "read_requests"]

_NAMES: Final = {
    "mean": ("mean", 0.0),
    **{"50th": ("p50", 0.5), "90th": ("p90", 0.9), "95th": ("p95", 0.95), "99th": ("p99", 0.99)},
}
_QUANTILES: Final = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))
_OK: Final = range(200, 400)
_LEAST_COLUMNS: Final = 8
_NS: Final = 10**9


def read_report(data: Any) -> ImportedRun | None:
    """Return the results in a report; None if the data is no report of vegeta. Times are in nanoseconds.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    if not isinstance(data, dict) or not {"latencies", "status_codes", "earliest"} <= set(data):
        return None
    document = Value(data)
    requests = document["requests"].count()
    figures = list(_report_figures(document, requests)) if requests else []
    begun = document["earliest"]
    try:
        started_at = datetime.fromisoformat(begun.text()).isoformat(timespec="seconds")
    except ValueError as error:
        raise begun.wrong("a time such as 2026-05-31T08:30:00Z") from error
    return ImportedRun(
        tool="vegeta",
        question="vegeta: HTTP requests",
        figures=tuple(figures),
        started_at=started_at if requests else None,
    )


def _report_figures(document: Value, requests: int) -> Iterator[Figure]:
    if document["throughput"].number(0.0) > 0:
        yield throughput(document["throughput"].number())
    for key, (name, quantile) in _NAMES.items():
        value = document["latencies"].get(key)
        if value is not None and is_known(quantile, requests) and value.number(0.0) > 0:
            yield time(name, value.number())
    rate = document["success"]
    if rate.number(0.0) > 1:
        raise rate.wrong("a share from 0 to 1")
    yield from share("failed", round((1.0 - rate.number()) * requests), requests)


# ---- each request ----


@dataclass(frozen=True, slots=True)
class _Request:
    at_ns: int
    latency_ns: int
    failed: bool
    attack: str
    target: str


def read_requests(text: str) -> ImportedRun | None:
    """Return the results of `vegeta encode`, as JSON lines or CSV; None if the text is neither.

    Quantiles are values of requests, nearest rank, and cover failed requests too, as vegeta's report does.

    Raises:
        ValueError: if a line is not valid.
    """
    first = text.lstrip().partition("\n")[0]
    if _is_json_line(first):
        requests = list(_of_json_lines(text))
    elif _is_csv_line(first):
        requests = list(_of_csv(text))
    else:
        return None
    attacks, targets = ({getattr(request, name) for request in requests} for name in ("attack", "target"))
    target = next(iter(targets)) if len(targets) == 1 else f"{len(targets)} targets"
    begun = min(request.at_ns for request in requests)
    return ImportedRun(
        tool="vegeta",
        question=f"vegeta: {target}",
        figures=tuple(_request_figures(requests)),
        series=next(iter(attacks)) if len(attacks) == 1 else "",
        started_at=datetime.fromtimestamp(begun // _NS, UTC).isoformat(timespec="seconds"),
    )


def _request_figures(requests: list[_Request]) -> Iterator[Figure]:
    failed = sum(request.failed for request in requests)
    begun = min(request.at_ns for request in requests)
    last = max(requests, key=lambda one: one.at_ns)
    seconds = (last.at_ns + last.latency_ns - begun) / _NS
    if seconds > 0 and failed < len(requests):
        yield throughput((len(requests) - failed) / seconds)
    latencies = sorted(request.latency_ns for request in requests)
    mean = math.fsum(latencies) / len(latencies)
    if mean > 0:
        yield time("mean", mean)
    for name, q in _QUANTILES:
        value = latencies[max(0, math.ceil(q * len(latencies)) - 1)]
        if value > 0 and is_known(q, len(latencies)):
            yield time(name, float(value))
    yield from share("failed", failed, len(requests))


def _is_json_line(line: str) -> bool:
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and {"latency", "timestamp", "code"} <= set(found)


def _of_json_lines(text: str) -> Iterator[_Request]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = Value(json.loads(line), f"line {number}: ")
        except ValueError as error:
            raise ValueError(f"line {number} is not valid JSON: {error}") from error
        at = found["timestamp"]
        try:
            at_ns = _nanoseconds(at.text())
        except ValueError as error:
            raise at.wrong("a time such as 2026-05-31T08:30:00.5Z") from error
        method, url = (found.get(key) for key in ("method", "url"))
        wrong = found.get("error")
        yield _Request(
            at_ns=at_ns,
            latency_ns=found["latency"].count(),
            failed=found["code"].count() not in _OK or bool(wrong is not None and wrong.text()),
            attack=_text(found.get("attack")),
            target=f"{_text(method)} {_text(url)}".strip() or "HTTP requests",
        )


def _text(value: Value | None) -> str:
    return "" if value is None else value.text()


def _nanoseconds(text: str) -> int:
    """Return the time in nanoseconds since 1970; Python's own parser keeps microseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1e6) * 1000


def _is_csv_line(line: str) -> bool:
    """Say whether a line has vegeta's columns: a time in ns since 1970, a status, and a latency in ns."""
    words = line.split(",")
    numbers = len(words) >= _LEAST_COLUMNS and all(word.isdigit() for word in words[:5])
    return numbers and 10**18 <= int(words[0]) < 10**19


def _of_csv(text: str) -> Iterator[_Request]:
    rows: Iterable[list[str]] = csv.reader(io.StringIO(text))
    for number, row in enumerate(rows, start=1):
        if not row:
            continue
        if len(row) < _LEAST_COLUMNS:
            raise ValueError(f"line {number} has {len(row)} columns; expecting at least {_LEAST_COLUMNS}")
        at, code, latency = (_whole(text, number) for text in row[:3])
        target = " ".join(row[9:11]).strip() or "HTTP requests"
        yield _Request(at, latency, code not in _OK or bool(row[5]), row[7], target)


def _whole(text: str, line: int) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"line {line}: {shown(text)} is not a whole number")
    return int(text)
