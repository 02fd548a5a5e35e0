"""Durations of a load's requests and statements, as OpenTelemetry's semantic conventions define them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from uncork.load.sql import merge_histograms
from uncork.model.load import LoadMeasurement, LoadTimes
from uncork.model.results.load import LoadResult
from uncork.model.telemetry import Attribute, HistogramPoint, Metric

_HTTP_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_DATABASE_BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""The bounds of buckets, in seconds, that the conventions recommend."""
_VERSIONS: Final = {"HTTP/1.1": "1.1", "HTTP/2": "2", "HTTP/3": "3"}


def load_durations(
    result: LoadResult, plan: Mapping[str, Any], measured: LoadMeasurement, begun: int
) -> Iterator[Metric]:
    """Yield the histogram of all successes in a load; nothing if the load does not have it.

    A request or statement lasts from when it is sent, whatever was due before. For requests with several
    methods that arrive at times of their own, only latencies from the intended start are known by method, so
    they have none. Pure, except that it decodes histograms.
    """
    whole = (begun, begun + result.run.elapsed_ns)
    if result.http is not None:
        attributes = _http_attributes(result, plan["http"])
        points = [
            _point(rows, _HTTP_BOUNDS, whole, {"http.request.method": method, **attributes})
            for method, rows in _by_method(result, plan, measured.times).items()
        ]
        yield from _metric("http.client.request.duration", "Duration of HTTP client requests", points)
        return
    rows = [row for row in measured.times if row.kind == "statement"]
    told = _database_attributes(plan.get("connection", {}))
    points = [_point(rows, _DATABASE_BOUNDS, whole, told)]
    yield from _metric("db.client.operation.duration", "Duration of database client operations", points)


def _metric(name: str, description: str, points: Sequence[HistogramPoint | None]) -> Iterator[Metric]:
    known = tuple(point for point in points if point is not None)
    if known:
        yield Metric(name, f"{description}, of those that succeeded.", "s", "histogram", known)


def _by_method(
    result: LoadResult, plan: Mapping[str, Any], times: Sequence[LoadTimes]
) -> dict[str, list[LoadTimes]]:
    methods = {script["name"]: str(script["request"]["method"]) for script in plan["scripts"]}
    if len(set(methods.values())) == 1:
        (method,) = set(methods.values())
        return {method: [row for row in times if row.kind == "service"]}
    found: dict[str, list[LoadTimes]] = {}
    for row in times:
        if row.kind == "script" and not result.settings.open_loop:
            found.setdefault(methods[row.script], []).append(row)
    return found


def _http_attributes(result: LoadResult, http: Mapping[str, Any]) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        "server.address": str(http["host"]),
        "server.port": int(http["port"]),
        "url.scheme": "https" if http["tls"] else "http",
    }
    version = _VERSIONS.get(result.settings.protocol)
    if version is not None:
        found["network.protocol.version"] = version
    statuses = result.http.statuses if result.http is not None else {}
    if len(statuses) == 1:  # the duration of each of several is unknown
        found["http.response.status_code"] = int(next(iter(statuses)))
    return found


def _database_attributes(connection: Mapping[str, Any]) -> dict[str, Attribute]:
    return {
        "db.system.name": "postgresql",
        "db.namespace": str(connection["database"]),
        "server.address": str(connection["host"]),
        "server.port": int(connection["port"]),
    }


def _point(
    rows: Sequence[LoadTimes],
    bounds: Sequence[float],
    whole: tuple[int, int],
    attributes: Mapping[str, Attribute],
) -> HistogramPoint | None:
    """Return rows of times together; None if none of them succeeded."""
    known = [row for row in rows if row.histogram and row.min_ns is not None and row.max_ns is not None]
    if not known:
        return None
    number = sum(row.executions - row.errors for row in known)
    points = merge_histograms([row.histogram for row in known if row.histogram])
    upto = [
        max((round(quantile * number) for quantile, value in points if value <= bound * 1e9), default=0)
        for bound in bounds
    ]
    counts = tuple(after - before for before, after in pairwise((0, *upto, number)))
    seconds = sum(row.sum_ns for row in known) / 1e9
    least = min(row.min_ns for row in known if row.min_ns is not None) / 1e9
    most = max(row.max_ns for row in known if row.max_ns is not None) / 1e9
    return HistogramPoint(seconds, *whole, attributes, tuple(bounds), counts, least, most)
