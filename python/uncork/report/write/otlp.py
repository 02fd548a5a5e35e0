"""Telemetry as OTLP/JSON, which an OpenTelemetry collector accepts at ``/v1/metrics`` and reads from files.

The encoding is protobuf's JSON with the rules of OTLP: field names in lower camel case, enumerations as
numbers, 64-bit integers as decimal text. A file holds one request per line, as the collector's file exporter
writes them and its ``otlpjsonfile`` receiver reads them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from uncork.model.telemetry import Attribute, HistogramPoint, Metric, Point, Telemetry

_MOST_POINTS: Final = 5_000
"""Maximum number of points per request: about a megabyte, far below the limits of collectors."""
_DELTA: Final = 1
"""AGGREGATION_TEMPORALITY_DELTA"""


def otlp_requests(telemetry: Telemetry) -> Iterator[str]:
    """Yield export requests, each a line of JSON without its newline, with a few thousand points at most."""
    for part in _parts(telemetry.metrics):
        request = {
            "resourceMetrics": [
                {
                    "resource": {"attributes": _attributes(telemetry.resource)},
                    "scopeMetrics": [
                        {
                            "scope": {"name": "uncork", "version": telemetry.version},
                            "metrics": [_metric(metric, points) for metric, points in part],
                        }
                    ],
                }
            ]
        }
        yield json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _parts(metrics: Iterable[Metric]) -> Iterator[list[tuple[Metric, tuple[Point, ...]]]]:
    part: list[tuple[Metric, tuple[Point, ...]]] = []
    room = _MOST_POINTS
    for metric in metrics:
        known = [point for point in metric.points if math.isfinite(point.value)]
        while known:
            part.append((metric, tuple(known[:room])))
            room, known = room - min(room, len(known)), known[room:]
            if not room:
                yield part
                part, room = [], _MOST_POINTS
    if part:
        yield part


def _metric(metric: Metric, points: Iterable[Point]) -> dict[str, Any]:
    data: dict[str, Any] = {"dataPoints": [_point(point) for point in points]}
    if metric.kind != "gauge":
        data["aggregationTemporality"] = _DELTA
    if metric.kind == "delta":
        data["isMonotonic"] = True
    return {
        "name": metric.name,
        "description": metric.description,
        "unit": metric.unit,
        "sum" if metric.kind == "delta" else metric.kind: data,
    }


def _point(point: Point) -> dict[str, Any]:
    value: dict[str, Any]
    if isinstance(point, HistogramPoint):
        value = {
            "count": str(sum(point.counts)),
            "sum": point.value,
            "bucketCounts": list(map(str, point.counts)),
            "explicitBounds": list(point.bounds),
            "min": point.least,
            "max": point.most,
        }
    else:
        value = {"asInt": str(point.value)} if isinstance(point.value, int) else {"asDouble": point.value}
    return {
        "attributes": _attributes(point.attributes),
        "startTimeUnixNano": str(point.start_ns),
        "timeUnixNano": str(point.time_ns),
        **value,
    }


def _attributes(attributes: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
