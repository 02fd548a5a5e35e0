"""How long requests and statements took, as OpenTelemetry's semantic conventions have it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fakes.http_results import HTTP_SPEC, http_result
from fakes.load_results import CLOSED_SPEC, closed_load, closed_result, plan, times, totals
from uncork.analysis.runs.telemetry import load_durations
from uncork.load.http import http_plan
from uncork.load.run import measurement
from uncork.model.load import Arrivals
from uncork.model.telemetry import Telemetry
from uncork.report.write.otlp import otlp_requests

ITEMS, BASKETS = [1_000_000, 4_900_000, 5_100_000, 80_000_000], [11_000_000_000]
ROWS = [
    times("script", ITEMS, script="/items/{id}", errors=2),
    times("script", BASKETS, script="/basket"),
    times("service", ITEMS + BASKETS, errors=2),
]


def http_durations(spec=HTTP_SPEC, arrivals=None, statuses=None, protocol="HTTP/2"):
    result = http_result()
    result = replace(
        result,
        settings=replace(result.settings, arrivals=arrivals, protocol=protocol),
        http=replace(result.http, statuses=statuses or result.http.statuses),
    )
    return list(load_durations(result, http_plan(spec), measurement(totals(), ROWS, []), 1_000))


def test_requests_have_a_histogram_by_method():
    (metric,) = http_durations()
    assert (metric.name, metric.unit, metric.kind) == ("http.client.request.duration", "s", "histogram")
    items, baskets = metric.points
    assert dict(items.attributes) == {
        "http.request.method": "GET",
        "server.address": "shop.example",
        "server.port": 443,
        "url.scheme": "https",
        "network.protocol.version": "2",
    }
    assert baskets.attributes["http.request.method"] == "POST"
    assert items.bounds == (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
    assert items.counts == (2, 1, 0, 0, 0, 1) + 9 * (0,)
    assert baskets.counts == 14 * (0,) + (1,), "what lies above the last bound has a bucket of its own"
    assert items.value == pytest.approx(sum(ITEMS) / 1e9)
    assert (items.least, items.most) == (0.001, 0.08)
    assert (items.start_ns, items.time_ns) == (1_000, 1_000 + 15_000_000_000)


def test_a_status_and_a_version_are_told_where_all_had_the_same():
    one = http_durations(statuses={"200": 5})[0].points[0].attributes
    assert one["http.response.status_code"] == 200
    several = http_durations(protocol="HTTP/2 or HTTP/1.1")[0].points[0].attributes
    assert "http.response.status_code" not in several
    assert "network.protocol.version" not in several


def test_where_requests_arrive_at_a_rate_the_time_from_sending_counts():
    assert http_durations(arrivals="poisson") == [], "by method only latency from the intended start is known"
    spec = replace(HTTP_SPEC, requests=HTTP_SPEC.requests[:1], arrivals=Arrivals("poisson", rate=5.0))
    (metric,) = http_durations(spec, arrivals="poisson")
    (point,) = metric.points
    assert sum(point.counts) == 5 and point.attributes["http.request.method"] == "GET"


def test_statements_have_a_histogram_and_a_load_without_them_has_none():
    measured = closed_load()
    (metric,) = load_durations(closed_result(), plan(CLOSED_SPEC), measured, 0)
    assert (metric.name, metric.unit) == ("db.client.operation.duration", "s")
    (point,) = metric.points
    statements = [row for row in measured.times if row.kind == "statement"]
    assert point.attributes["db.system.name"] == "postgresql"
    assert sum(point.counts) == sum(row.executions for row in statements) == 15_000
    assert point.value == pytest.approx(sum(row.sum_ns for row in statements) / 1e9)
    silent = measurement(totals(), [times("operation", ITEMS)], [])
    assert list(load_durations(closed_result(), plan(CLOSED_SPEC), silent, 0)) == []


def test_otlp_has_them_as_histograms_of_the_time_they_are_of():
    (line,) = otlp_requests(Telemetry({"service.name": "shop"}, tuple(http_durations()), "1"))
    found = json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
    assert found["histogram"]["aggregationTemporality"] == 1
    assert "isMonotonic" not in found["histogram"]
    point = found["histogram"]["dataPoints"][0]
    assert (point["count"], len(point["bucketCounts"]), len(point["explicitBounds"])) == ("4", 15, 14)
    assert "asDouble" not in point
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    from google.protobuf import json_format

    parsed = json_format.Parse(line, service.ExportMetricsServiceRequest())
    (read, _) = parsed.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points
    assert (read.count, list(read.bucket_counts)[:3], read.min, read.max) == (4, [2, 1, 0], 0.001, 0.08)
