"""`uncork export`: a run's series as OpenTelemetry reads them, in a file and at a collector."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from fakes.stored_loads import store_load
from uncork.analysis.runs.telemetry import measured_from, run_telemetry
from uncork.workbench.documents.loads import read_load


@pytest.fixture
def load(uncork):
    return store_load(uncork.folder / "runs", 1, failed=3, commit="1f2e3d4c" * 5, seconds=12)


@contextmanager
def collector(status=200, answer=b"{}"):
    """A collector that takes metrics as they come; yields its address and what it was sent."""
    seen = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["content-length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.append((self.path, headers, self.rfile.read(length)))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def parsed(text):
    """Read a request by OpenTelemetry's own definitions; what they do not know is an error."""
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    from google.protobuf import json_format

    return json_format.Parse(text, service.ExportMetricsServiceRequest())


def metrics(request):
    return {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}


def attributes(found):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found}


def test_every_second_of_a_load_is_had_with_its_time(uncork, load):
    done = uncork("export", "last", "--otlp", "out.jsonl", "--service", "shop")
    assert done.returncode == 0 and "points of" in done.stderr and done.stdout == ""
    (line,) = (uncork.folder / "out.jsonl").read_text().splitlines()
    request = parsed(line)
    told = attributes(request.resource_metrics[0].resource.attributes)
    assert told["service.name"] == "shop" and told["uncork.run.id"] == load.name
    assert "service.version" not in told, "that of uncork is not that of the shop"
    assert told["vcs.ref.head.revision"] == "1f2e3d4c" * 5
    assert any(key.startswith("uncork.environment.machine.") for key in told)
    result, found = read_load(load), metrics(request)
    operations = found["uncork.load.operations"].sum
    assert operations.is_monotonic and operations.aggregation_temporality == 1
    by_outcome = {}
    for point in operations.data_points:
        outcome = attributes(point.attributes)["outcome"]
        by_outcome[outcome] = by_outcome.get(outcome, 0) + point.as_int
    assert by_outcome["succeeded"] == sum(one.succeeded for one in result.series) > 0
    begun = int(datetime.fromisoformat(result.run.started_at).timestamp()) * 10**9
    points = [one for one in operations.data_points if attributes(one.attributes)["outcome"] == "succeeded"]
    assert [one.start_time_unix_nano for one in points] == [begun + one.start_ns for one in result.series]
    assert all(one.time_unix_nano > one.start_time_unix_nano for one in points)
    latency = found["uncork.load.latency"]
    p99 = [
        one.as_double for one in latency.gauge.data_points if attributes(one.attributes)["quantile"] == 0.99
    ]
    assert p99 == [one.p99_ns / 1e9 for one in result.series] and latency.unit == "s"
    figures = {
        attributes(one.attributes)["figure"]: one.as_double
        for one in found["uncork.figure.rate"].gauge.data_points
    }
    assert figures["throughput"] == pytest.approx(result.operations_per_second)


def test_long_loads_are_sent_in_several_requests(uncork):
    store_load(uncork.folder / "runs", 1, seconds=1700)
    lines = uncork("export", "--otlp", "-").stdout.splitlines()
    requests = [parsed(line) for line in lines]
    assert len(requests) > 1
    found = [one for request in requests for one in request.resource_metrics[0].scope_metrics[0].metrics]
    points = [point for one in found for point in getattr(one, one.WhichOneof("data")).data_points]
    whole = run_telemetry(next((uncork.folder / "runs").glob("load-*")))
    assert len(points) == sum(len(one.points) for one in whole.metrics) > 5_000


def test_a_collector_is_sent_metrics_and_what_it_left_out_is_told(uncork, load):
    answer = b'{"partialSuccess": {"rejectedDataPoints": "7", "errorMessage": "old"}}'
    with collector(answer=answer) as (address, seen):
        done = uncork("export", load.name, "--otlp", address, "--header", "X-Scope: team")
    assert done.returncode == 0 and "; it rejected 7" in done.stderr
    ((path, headers, body),) = seen
    assert path == "/v1/metrics" and headers["content-type"] == "application/json"
    assert headers["x-scope"] == "team"
    assert metrics(parsed(body.decode()))


@pytest.mark.parametrize("status", [302, 400, 503])
def test_a_collector_that_refuses_is_told_with_its_words(uncork, load, status):
    with collector(status, b"too many points") as (address, seen):
        done = uncork("export", "--otlp", f"{address}/otlp/v1/metrics")
    assert done.returncode == 1 and f"answered {status}: too many points" in done.stderr
    assert [path for path, _, _ in seen] == ["/otlp/v1/metrics"]


def test_runs_say_when_measuring_began_to_the_microsecond(load):
    from dataclasses import replace

    from uncork.store.layout import read_manifest

    manifest = read_manifest(load)
    told = replace(manifest, options={**manifest.options, "measured_us": 1_800_000_000_123_456})
    assert measured_from(told) == 1_800_000_000_123_456_000
    assert json.dumps(dict(told.options))
