"""The load engine by HTTP/3, against a server of another implementation of QUIC (aioquic)."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import time
from dataclasses import replace

import pytest

from fakes.http3_server import SLOW_S, Http3Server, http3_server
from fakes.http_loads import load, row_of, went_well
from fakes.http_servers import certificate
from uncork.model.http import Checks, Variable
from uncork.model.load import Arrivals, LoadOutcome
from uncork.requests.service_options import ServiceOptions, service_job
from uncork.workbench.profile.services import profile_service

pytestmark = pytest.mark.xdist_group("http")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    certificate(folder, "good", 3)
    certificate(folder, "old", 0)
    return folder


@pytest.fixture(scope="module")
def server(keys):
    with http3_server(keys / "good.crt", keys / "good.key") as running:
        yield running


@pytest.fixture
def three(keys):
    def send(server, path="/small.txt", **options):
        where = {"tls": True, "cacert": str(keys / "good.crt"), "version": "3", **options}
        return load(server.port, path, **where)

    return send


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clients": 3, "threads": 2},
        {"clients": 2, "streams": 20},
        # More than the server allows at once.
        {"streams": 200},
    ],
)
def test_every_way_to_send_gets_every_answer(server, three, options):
    checks = Checks(size=101, sha256=hashlib.sha256(b"x" * 101).hexdigest())
    before, connections = server.requests["GET /small.txt"], server.connections
    measured = went_well(three(server, operations=400, checks=checks, **options), 400)
    http = measured.totals.http
    assert http.statuses == {"200": 400}
    assert http.body_bytes == 400 * 101
    assert measured.totals.connections_lost == 0
    assert row_of(measured, "first byte").executions == 400
    assert row_of(measured, "connect").executions == options.get("clients", 1)
    assert server.requests["GET /small.txt"] - before == 400, "each request came once"
    assert server.connections - connections == options.get("clients", 1)
    assert measured.totals.received_bytes > http.body_bytes + http.header_bytes


def test_large_bodies_arrive_whole_in_both_directions(server, three):
    digest = hashlib.sha256(bytes(range(256)) * 600).hexdigest()
    checks = Checks(sha256=digest, size=153_600)
    went_well(three(server, "/big.bin", checks=checks, operations=30, streams=4), 30)
    body = b"y" * 2_000_000
    checks = Checks(headers=(("X-Method", "PUT"), ("x-length", "2000000")))
    options = {"method": "PUT", "body": body, "checks": checks, "operations": 3}
    measured = went_well(three(server, "/method", **options), 3)
    assert measured.totals.sent_bytes > 6_000_000
    went_well(three(server, method="HEAD", operations=10), 10)


def test_variables_and_cookies_are_those_of_every_version(server, three):
    variables = (Variable("id", 1, 1000),)
    went_well(three(server, "/small.txt?{id}", variables=variables, operations=50, clients=2), 50)
    sent = (number for path, number in server.requests.items() if re.search(r"small\.txt\?\d", path))
    assert sum(sent) == 50


def test_an_open_loop_counts_latency_from_the_scheduled_arrival(server, three):
    """One connection with one stream: every answer takes 50 ms, requests are due every 25 ms and queue."""
    measured = three(
        server, "/slow", arrivals=Arrivals("constant", 40.0), operations=20, max_clients=1, clients=1
    )
    totals = measured.totals
    assert (totals.outcome, totals.succeeded) == (LoadOutcome.COMPLETE, 20)
    service, operation = row_of(measured, "service"), row_of(measured, "operation")
    assert SLOW_S * 1e9 <= service.min_ns < 2 * SLOW_S * 1e9
    # The last of 20 waits half a second.
    assert operation.max_ns > 19 * (SLOW_S - 0.025) * 1e9
    assert row_of(measured, "first byte").sum_ns == pytest.approx(service.sum_ns, rel=0.1)


@pytest.mark.parametrize(
    ("path", "kind"), [("/refuse", "status 503"), ("/abort", "stream reset"), ("/cut", "truncated")]
)
def test_failures_are_counted_by_kind(server, three, path, kind):
    measured = three(server, path, operations=10, streams=2)
    assert measured.totals.errors == {kind: 10}
    assert measured.totals.outcome is LoadOutcome.COMPLETE
    assert measured.totals.connections_lost == 0


def test_a_rejected_request_is_sent_again(server, three):
    measured = went_well(three(server, "/reject", operations=9), 9)
    assert measured.totals.retries == {"stream refused": measured.totals.retried}
    assert measured.totals.retried >= 8


def test_a_request_that_times_out_is_cancelled_and_the_connection_continues(server, three):
    before, connections = server.cancelled, server.connections
    measured = three(server, "/silent", operations=4, streams=2, request_timeout_ns=100_000_000)
    assert measured.totals.errors == {"timed out": 4}
    assert server.connections - connections == 1
    time.sleep(0.1)
    assert server.cancelled - before >= 2, "the last two end with the connection"


def test_goaway_is_followed_by_another_connection(keys, three):
    with http3_server(keys / "good.crt", keys / "good.key", leaves_after=10) as leaving:
        measured = went_well(three(leaving, operations=30), 30)
    totals = measured.totals
    assert totals.retries == {"goaway": 3}, "what the server did not process was sent again"
    assert (totals.http.closed, totals.http.goaways) == (3, 3)
    assert totals.connections_lost == 0
    assert leaving.requests["GET /small.txt"] == 30
    assert leaving.connections == 4


def test_a_connection_that_the_server_ends_with_an_error_is_lost(keys, three):
    with http3_server(keys / "good.crt", keys / "good.key", closes_after=10) as closing:
        measured = three(closing, operations=15)
    assert measured.totals.errors == {"reset": 1}
    assert "H3_INTERNAL_ERROR" in measured.totals.first_error
    assert measured.totals.connections_lost == 1


def test_a_connection_that_was_idle_for_too_long_is_opened_again(keys, three):
    with http3_server(keys / "good.crt", keys / "good.key", idle_s=0.2) as forgetful:
        measured = three(forgetful, arrivals=Arrivals("constant", 2.0), operations=3)
    assert measured.totals.succeeded == 3
    assert measured.totals.http.closed == 2


def test_without_a_server_of_http3_the_message_says_what_to_do(three):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        measured = three(Http3Server(port), connect_timeout_ns=300_000_000)
        assert measured.totals.connect_errors == {"connect timeout": 1}
        message = "within 0.3 s; does it speak HTTP/3, and does UDP get through? Leave out --h3 to use TCP"
        assert message in measured.totals.first_error
    measured = three(Http3Server(port))
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"refused": 1}
    message = "is a server of HTTP/3 listening there, on UDP? Leave out --h3 to use TCP"
    assert message in measured.totals.first_error


def test_certificates_are_verified(keys, three, server):
    measured = three(server, cacert=None)
    assert measured.totals.connect_errors == {"tls": 1}
    assert "signed by an authority that is not trusted" in measured.totals.first_error
    went_well(three(server, cacert=None, verify=False, operations=5), 5)
    with http3_server(keys / "old.crt", keys / "old.key") as old:
        measured = three(old, cacert=str(keys / "old.crt"))
    assert "the server's certificate has expired" in measured.totals.first_error


def test_a_server_that_speaks_quic_but_not_http3_is_named(keys, three):
    with http3_server(keys / "good.crt", keys / "good.key", protocols=("hq-interop",)) as other:
        measured = three(other)
    assert measured.totals.connect_errors == {"tls": 1}
    assert "does not speak HTTP/3, though it speaks QUIC; leave out --h3" in measured.totals.first_error


def test_a_profile_of_a_service_sends_http3(server, tmp_path):
    options = ServiceOptions([f"https://127.0.0.1:{server.port}/small.txt?profile"], h3=True, insecure=True)
    job = service_job(options, read=lambda _: b"", environment={}, seed=1, command="uncork profile service")
    folder, status, reason = profile_service(tmp_path, replace(job, seconds=0.4, code=False), lambda _: None)
    assert status == "complete", reason
    plan = json.loads((folder / "parts" / "load" / "plan.json").read_text())
    assert (plan["http"]["version"], plan["http"]["tls"]["verify"]) == ("3", False)
    assert server.requests["GET /small.txt?profile"] > 1, "once to check it, then for 0.4 s"
