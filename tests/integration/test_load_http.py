"""The load engine by HTTP, against nginx, aioquic and servers that misbehave."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest

from fakes.http3_server import SLOW_S, Http3Server, http3_server
from fakes.http_loads import accounted, load, row_of, spec_for, went_well
from fakes.http_servers import answer, certificate, nginx, proxy, reset, scripted
from uncork.engines.ports import free_port
from uncork.errors import LoadError
from uncork.load.http import check_http, run_http
from uncork.load.trials import ask
from uncork.model.http import Checks, HttpServer, HttpSpec, Request, Variable
from uncork.model.http_trial import AskedRequest
from uncork.model.load import Arrivals, LoadOutcome
from uncork.model.service import Served
from uncork.requests.service_options import ServiceOptions, service_job
from uncork.workbench.profile.services import profile_service

pytestmark = pytest.mark.xdist_group("http")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


# ---- a real server ----


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("plain", {}),
        ("plain", {"clients": 6, "threads": 2}),
        ("plain", {"clients": 2, "streams": 10}),
        ("plain", {"clients": 3, "connect_each": True}),
        ("two", {"version": "2"}),
        ("two", {"version": "2", "clients": 6, "streams": 20, "threads": 2}),
        ("two_streams", {"version": "2", "streams": 20}),
        ("tls", {"version": "negotiated", "tls": True, "verify": False, "streams": 5}),
        ("tls", {"version": "1.1", "tls": True, "verify": False, "clients": 2}),
        ("tls_one", {"version": "negotiated", "tls": True, "verify": False}),
    ],
)
def test_every_way_to_send_gets_every_answer(server, kind, options):
    checks = Checks(size=101, sha256=hashlib.sha256(b"x" * 101).hexdigest())
    before = len(server.requests(kind))
    measured = went_well(load(server.ports[kind], operations=500, checks=checks, **options), 500)
    http = measured.totals.http
    assert http.statuses == {"200": 500}
    assert http.body_bytes == 500 * 101
    assert measured.totals.connections_lost == 0
    assert row_of(measured, "first byte").executions == 500
    assert row_of(measured, "connect").executions >= options.get("clients", 1)
    assert (row_of(measured, "tls").executions > 0) if "tls" in options else True
    protocol = (
        "HTTP/2.0"
        if kind in ("two", "two_streams") or (kind == "tls" and options["version"] == "negotiated")
        else "HTTP/1.1"
    )
    found = server.new_requests(kind, before, 500)
    assert Counter(found) == {f"GET /small.txt {protocol}": 500}


@pytest.mark.parametrize(("kind", "version"), [("plain", "1.1"), ("two", "2")])
def test_large_bodies_arrive_whole(server, kind, version):
    digest = hashlib.sha256(bytes(range(256)) * 600).hexdigest()
    checks = Checks(sha256=digest, size=153_600)
    options = {"version": version, "clients": 3, "streams": 1 if version == "1.1" else 8}
    measured = went_well(load(server.ports[kind], "/big.bin", checks=checks, **options), 100)
    assert measured.totals.http.body_bytes == 100 * 153_600


@pytest.mark.parametrize(("kind", "version"), [("plain", "1.1"), ("two", "2")])
def test_methods_headers_and_bodies_are_sent(server, kind, version):
    body = b"y" * 100_000
    checks = Checks(headers=(("X-Method", "PUT"), ("x-length", "100000"), ("Server", None)))
    headers = (("X-Own", "mine"),)
    options = {"method": "PUT", "headers": headers, "body": body, "checks": checks, "version": version}
    measured = went_well(load(server.ports[kind], "/method?a=b", operations=20, **options), 20)
    # With HTTP/2 nginx answers this before it has the whole body, and the rest is not sent.
    assert measured.totals.sent_bytes > 20 * (100_000 if version == "1.1" else 60_000)
    went_well(load(server.ports[kind], "/small.txt", method="HEAD", version=version), 100)


@pytest.mark.parametrize(("kind", "version"), [("plain", "1.1"), ("two", "2")])
def test_variables_ask_for_different_objects_and_the_same_again_with_the_same_seed(server, kind, version):
    variables = (Variable("id", 1, 1000), Variable("word", values=("a b", "c"), in_turn=True))
    asked = []
    for threads in (1, 2):
        before = len(server.requests(kind))
        options = {"variables": variables, "version": version, "clients": 4, "threads": threads}
        went_well(load(server.ports[kind], "/object/{id}/{word}", operations=200, **options), 200)
        asked.append(Counter(line.split()[1] for line in server.new_requests(kind, before, 200)))
    assert asked[0] == asked[1]
    paths = list(asked[0].elements())
    assert len(set(paths)) > 150
    assert sum(path.endswith("/a%20b") for path in paths) == 100


def test_answers_that_are_not_as_they_must_be_are_counted_by_kind(server):
    port = server.ports["plain"]
    for path, checks, kind in (
        ("/refuse", Checks(), "status 503"),
        ("/missing", Checks(), "status 404"),
        ("/small.txt", Checks(statuses=(204,)), "status 200"),
        ("/small.txt", Checks(headers=(("X-None", None),)), "check header"),
        ("/small.txt", Checks(size=100), "check size"),
        ("/small.txt", Checks(sha256="0" * 64), "check digest"),
        ("/json", Checks(json=(("/items/0/id", 8),)), "check json"),
    ):
        measured = load(port, path, operations=10, checks=checks)
        assert measured.totals.errors == {kind: 10}, path
        assert measured.totals.outcome is LoadOutcome.COMPLETE
        assert measured.totals.http.unprocessed == 0
    went_well(load(port, "/json", checks=Checks(json=(("/items/0/id", 7), ("/ok", True)))), 100)
    # A redirect is an answer as any other, and is not followed.
    measured = went_well(load(port, "/move"), 100)
    assert measured.totals.http.statuses == {"301": 100}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("plain", {"clients": 2}),
        ("plain", {"connect_each": True}),
        ("two", {"version": "2", "streams": 5}),
        ("tls", {"version": "negotiated", "streams": 5}),
        ("tls_one", {"clients": 2}),
    ],
)
@pytest.mark.parametrize(("path", "size"), [("/small.txt", 101), ("/big.bin", 153_600)])
def test_bytes_are_those_on_the_wire(server, kind, options, path, size):
    """Between client and server stands a proxy that counts: what it sees is what is reported."""
    tls = kind.startswith("tls")
    with proxy(server.ports[kind]) as (port, seen):
        measured = went_well(load(port, path, operations=400, tls=tls, verify=False, **options), 400)
    totals, http = measured.totals, measured.totals.http
    # What a connection is opened with comes before the measured part: the keys, and HTTP/2's greeting.
    before = 100 if kind == "two" else (6_000 if tls else 0)
    assert 0 <= seen.sent - totals.sent_bytes <= before
    assert 0 <= seen.received - totals.received_bytes <= before
    assert http.body_bytes == 400 * size
    rest = totals.received_bytes - http.header_bytes - http.body_bytes
    if tls:
        # A record takes at least 22 bytes besides its content, and holds at most 16 KiB; six answers or more
        # may share one.
        assert rest > (66 * 22 if size < 16_384 else 400 * 10 * 22)
    elif kind == "plain":
        assert rest == 0
    else:
        assert rest >= 400 * 2 * 9, "the heads of frames"


def test_several_requests_are_chosen_by_weight(server):
    requests = (Request("a", "GET", "/small.txt", 3), Request("b", "GET", "/json", 1))
    spec = HttpSpec(HttpServer("127.0.0.1", server.ports["plain"]), requests, operations=4_000, clients=4)
    measured = went_well(accounted(run_http(spec)), 4_000)
    counts = {row.script: row.executions for row in measured.times if row.kind == "script"}
    # Three standard deviations of a binomial count.
    assert abs(counts["a"] - 3_000) < 83
    assert counts["a"] + counts["b"] == 4_000


def test_a_warm_up_is_not_counted(server):
    before = len(server.requests())
    measured = went_well(load(server.ports["plain"], warmup_ns=200_000_000, operations=50), 50)
    assert len(server.requests()) - before > 60
    assert row_of(measured, "connect").executions == 1


def test_the_warm_up_of_an_open_loop_has_its_rate(server):
    before = len(server.requests())
    arrivals = Arrivals("constant", 100.0)
    measured = load(server.ports["plain"], warmup_ns=400_000_000, operations=10, arrivals=arrivals)
    went_well(measured, 10)
    assert 10 <= len(server.requests()) - before - 10 <= 41, "at most 40 in 0.4 s"


def test_the_moment_at_which_a_server_turns_to_503_is_known_by_the_second(server):
    down, fell = server.folder / "down", []

    def fall() -> None:
        down.touch()
        fell.append(time.monotonic())

    timer = threading.Timer(1.6, fall)
    begun = time.monotonic() + 0.3
    timer.start()
    try:
        measured = load(
            server.ports["plain"],
            "/switched",
            clients=4,
            threads=2,
            warmup_ns=300_000_000,
            duration_ns=2_700_000_000,
            arrivals=Arrivals("constant", 400.0),
        )
    finally:
        timer.join()
        down.unlink()
    http, moment = measured.totals.http, fell[0] - begun
    assert set(http.statuses) == {"200", "503"}
    assert measured.totals.errors == {"status 503": http.statuses["503"]}
    assert http.statuses["200"] / 400 == pytest.approx(moment, abs=0.4), "400 came a second until then"
    seconds = {(one.start_ns / 1e9, one.status): one.answers for one in measured.statuses}
    assert min(at for at, status in seconds if status == 503) <= moment + 0.4
    assert max(at for at, status in seconds if status == 200) <= moment
    assert seconds[0.0, 200] == pytest.approx(400, abs=40) and (0.0, 503) not in seconds
    assert (2.0, 200) not in seconds and seconds[2.0, 503] == pytest.approx(280, abs=40)
    (last,) = [one for one in measured.statuses if one.start_ns == 2 * 10**9]
    assert last.length_ns == pytest.approx(700_000_000, abs=200_000_000)


# ---- closes ----


@pytest.mark.parametrize(
    ("kind", "version", "streams"),
    [("limited", "1.1", 1), ("limited", "1.1", 10), ("limited_two", "2", 1), ("limited_two", "2", 10)],
)
def test_a_limit_of_requests_a_connection_is_survived_and_counted(server, kind, version, streams):
    before = len(server.requests(kind))
    options = {"version": version, "streams": streams, "operations": 5_000}
    measured = went_well(load(server.ports[kind], **options), 5_000)
    http = measured.totals.http
    assert (http.closed_least, http.closed_most) == (1_000, 1_000)
    assert http.closed in (4, 5), "the last one may not have been seen"
    assert http.goaways == (http.closed if version == "2" else 0)
    assert measured.totals.connections_opened == 5
    # What was sent behind the last request that the server took was sent again, and arrived once.
    assert len(server.new_requests(kind, before, 5_000)) == 5_000
    if streams == 1:
        assert measured.totals.retried == 0


@pytest.mark.parametrize(("kind", "version"), [("limited", "1.1"), ("limited_two", "2")])
def test_a_load_stops_at_a_close_if_asked_to(server, kind, version):
    measured = load(server.ports[kind], operations=5_000, version=version, on_close="stop")
    totals = measured.totals
    assert totals.outcome is LoadOutcome.CONNECTION_LOST
    assert (totals.started, totals.succeeded, totals.http.planned) == (1_000, 1_000, 5_000)
    assert "closed a connection after 1000 requests" in totals.message


# ---- servers that misbehave ----


def test_nobody_listening_is_an_outcome():
    measured = load(free_port())
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"refused": 1}
    assert "is a server listening there?" in measured.totals.message


def test_a_name_without_an_address_is_an_outcome():
    one = Request("r", "GET", "/")
    measured = run_http(HttpSpec(HttpServer("no-such-host.invalid", 80), (one,), operations=1))
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"dns": 1}


def after_ten(connection: socket.socket, number: int, then) -> None:
    answer(connection, count=10)
    connection.recv(65536)
    then(connection)


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        (lambda it: None, "closed"),
        (reset, "reset"),
        (lambda it: it.shutdown(socket.SHUT_WR), "closed"),
        (lambda it: it.sendall(b"\x00\x01garbage\r\n\r\n"), "garbage"),
        (
            lambda it: it.sendall(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n"),
            "header too long",
        ),
        (lambda it: it.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), "truncated"),
        (lambda it: it.sendall(b"HTTP/1.1 200 OK\r\nContent-Le"), "truncated"),
    ],
    ids=["closes", "resets", "half-closes", "garbage", "long-header", "short-body", "half-a-head"],
)
def test_a_request_that_gets_no_answer_fails_by_kind_and_the_load_goes_on(then, kind):
    with scripted(lambda connection, number: after_ten(connection, number, then)) as port:
        measured = load(port, operations=55)
    totals = measured.totals
    assert totals.outcome is LoadOutcome.COMPLETE
    assert totals.errors == {kind: 5}
    assert totals.succeeded == 50
    assert totals.connections_lost == 5
    assert totals.http.unprocessed == 0, "it may have processed them"
    assert totals.first_error.endswith(" (request 11 of connection 1)")


H2_SETTINGS = bytes.fromhex("000012040000000000000300000080000400010000000500ffffff")
H2_GOAWAY = bytes.fromhex("0000080700000000000000000000000001")
"""What nginx 1.22 answers to a request by HTTP/1.1 on a port with `listen PORT http2`."""


@pytest.mark.parametrize(
    "pieces", [[H2_SETTINGS + H2_GOAWAY], [H2_SETTINGS[:5], H2_SETTINGS[5:]], [H2_GOAWAY]]
)
def test_a_server_that_speaks_http_2_only_is_named_after_one_request_of_each_client(pieces):
    def then(connection, number):
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)

    with scripted(then) as port:
        totals = load(port, operations=None, duration_ns=20 * 10**9, clients=2).totals
    assert totals.outcome is LoadOutcome.NOTHING_SUCCEEDED
    assert totals.message == totals.first_error
    assert totals.first_error.startswith("the server answers in HTTP/2, not in HTTP/1.1; use --h2")
    assert set(totals.errors) == {"other protocol"}
    assert totals.started <= 4


@pytest.mark.parametrize(
    ("path", "seconds", "outcome", "least", "most"),
    [("/missing", 20, "nothing succeeded", 1, 15), ("/small.txt", 1.2, "complete", 1.2, 20)],
)
def test_a_load_whose_requests_all_fail_ends_after_a_second(server, path, seconds, outcome, least, most):
    options = {"operations": None, "duration_ns": round(seconds * 1e9)}
    totals = load(server.ports["plain"], path, **options).totals
    assert totals.outcome == outcome
    assert least <= totals.elapsed_ns / 1e9 < most
    assert totals.succeeded + totals.failed == totals.started


@pytest.mark.parametrize(("kind", "version"), [("plain", "1.1"), ("two", "2")])
def test_the_first_failure_says_at_which_request_of_which_connection(server, kind, version):
    asked = {"version": version, "clients": 3, "operations": 9}
    first = load(server.ports[kind], "/missing", **asked).totals.first_error
    assert first in {f"the answer has the status 404 (request 1 of connection {one})" for one in (1, 2, 3)}


@pytest.mark.thorough
def test_a_server_that_goes_away_for_good_ends_the_load_with_what_there_is():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_once() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            answer(connection, count=10)

    server = threading.Thread(target=serve_once)
    server.start()
    measured = load(listener.getsockname()[1], operations=100)
    server.join(10)
    totals = measured.totals
    assert totals.outcome is LoadOutcome.CONNECTION_LOST
    assert totals.succeeded == 10
    assert "no connection for 10 s" in totals.message
    assert totals.connect_errors["refused"] > 5
    assert set(totals.errors) <= {"refused", "closed", "reset"}


def test_an_idle_close_is_no_error():
    def talk(connection: socket.socket, number: int) -> None:
        answer(connection, count=3)

    with scripted(talk) as port:
        # 40 ms between arrivals: on a busy machine the server closes some milliseconds after its answer.
        spec = spec_for(port, operations=30, arrivals=Arrivals("constant", 25.0))
        measured = went_well(accounted(run_http(spec)), 30)
    assert measured.totals.http.closed >= 9
    assert (measured.totals.http.closed_least, measured.totals.http.closed_most) == (3, 3)


def test_a_request_that_takes_too_long_is_given_up():
    def talk(connection: socket.socket, number: int) -> None:
        answer(connection, count=5)
        connection.recv(65536)
        connection.recv(65536)  # until the other side gives up

    with scripted(talk) as port:
        measured = load(port, operations=18, request_timeout_ns=100_000_000)
    assert measured.totals.errors == {"timed out": 3}
    assert measured.totals.succeeded == 15
    assert row_of(measured, "operation").executions == 18


def test_a_stall_shows_in_an_open_loop_as_arithmetic_says():
    """A service that stalls for 2 s of 10, at 200 requests a second on one connection.

    Those that arrive in the stall wait for its end: a fifth of all, from 2 s down to nothing. So one in ten
    waits at least 1 s, and one in a hundred at least 1.9 s.
    """

    def talk(connection: socket.socket, number: int) -> None:
        answer(connection, count=400)
        time.sleep(2)
        answer(connection)

    with scripted(talk) as port:
        arrivals = Arrivals("constant", 200.0)
        spec = spec_for(port, operations=None, duration_ns=10 * 10**9, arrivals=arrivals)
        measured = went_well(accounted(run_http(spec)), 2_000)
    found, service = row_of(measured, "operation"), row_of(measured, "service")
    # A slow machine can only make them longer.
    assert found.p90_ns >= 0.95e9
    assert found.p99_ns >= 1.85e9
    assert found.max_ns >= 1.98e9
    assert service.p99_ns < found.p99_ns / 2, "by the server's clock only one request was slow"
    assert row_of(measured, "lateness").executions > 0


@pytest.mark.thorough
def test_a_service_that_is_stopped_for_2_s_shows_as_arithmetic_says(server):
    """nginx stands still (SIGSTOP) for 2 s of 8, while 200 requests arrive each second on 8 connections.

    A quarter of them wait, evenly from 2 s down to nothing: one in ten at least 1.2 s, one in a hundred at
    least 1.92 s, and all together 250 ms on average.
    """

    def stop() -> None:
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(server.pid, signal.SIGCONT)

    stopper = threading.Timer(3, stop)
    stopper.start()
    try:
        spec = spec_for(
            server.ports["plain"],
            operations=None,
            duration_ns=8 * 10**9,
            arrivals=Arrivals("constant", 200.0),
            clients=8,
        )
        measured = went_well(accounted(run_http(spec)), 1_600)
    finally:
        stopper.join()
    found, service = row_of(measured, "operation"), row_of(measured, "service")
    # A busy machine can only make them longer.
    assert 1.15e9 <= found.p90_ns <= 1.6e9
    assert 1.88e9 <= found.p99_ns <= 2.3e9
    assert 0.23e9 <= found.sum_ns / 1_600 <= 0.4e9
    assert service.p99_ns < 0.5e9, "by the server's clock only eight were slow"
    assert row_of(measured, "lateness").p50_ns < 5e6


def test_an_expired_certificate_is_named(server):
    measured = load(server.ports["expired"], tls=True, cacert=str(server.folder / "old.crt"))
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"tls": 1}
    assert "has expired" in measured.totals.message
    measured = load(server.ports["tls"], tls=True)
    assert "signed by an authority that is not trusted" in measured.totals.message
    went_well(load(server.ports["tls"], tls=True, cacert=str(server.cacert)), 100)
    measured = load(server.ports["plain"], tls=True, verify=False)
    assert "not TLS" in measured.totals.message


def test_a_server_without_http_2_is_named(server):
    measured = load(server.ports["plain"], version="2")
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert "leave out --h2" in measured.totals.message


def test_what_cannot_be_sent_is_refused_before_anything_is(server):
    with pytest.raises(LoadError, match=r"\{nope\} in the path is not a variable"):
        check_http(spec_for(server.ports["plain"], "/{nope}"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    certificate(folder, "good", 3)
    certificate(folder, "old", 0)
    return folder


@pytest.fixture(scope="module")
def quic(keys):
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
def test_http3_every_way_to_send_gets_every_answer(quic, three, options):
    checks = Checks(size=101, sha256=hashlib.sha256(b"x" * 101).hexdigest())
    before, connections = quic.requests["GET /small.txt"], quic.connections
    measured = went_well(three(quic, operations=400, checks=checks, **options), 400)
    http = measured.totals.http
    assert http.statuses == {"200": 400}
    assert http.body_bytes == 400 * 101
    assert measured.totals.connections_lost == 0
    assert row_of(measured, "first byte").executions == 400
    assert row_of(measured, "connect").executions == options.get("clients", 1)
    assert quic.requests["GET /small.txt"] - before == 400, "each request came once"
    assert quic.connections - connections == options.get("clients", 1)
    assert measured.totals.received_bytes > http.body_bytes + http.header_bytes


def test_large_bodies_arrive_whole_in_both_directions(quic, three):
    digest = hashlib.sha256(bytes(range(256)) * 600).hexdigest()
    checks = Checks(sha256=digest, size=153_600)
    went_well(three(quic, "/big.bin", checks=checks, operations=30, streams=4), 30)
    body = b"y" * 2_000_000
    checks = Checks(headers=(("X-Method", "PUT"), ("x-length", "2000000")))
    options = {"method": "PUT", "body": body, "checks": checks, "operations": 3}
    measured = went_well(three(quic, "/method", **options), 3)
    assert measured.totals.sent_bytes > 6_000_000
    went_well(three(quic, method="HEAD", operations=10), 10)


def test_variables_and_cookies_are_those_of_every_version(quic, three):
    variables = (Variable("id", 1, 1000),)
    went_well(three(quic, "/small.txt?{id}", variables=variables, operations=50, clients=2), 50)
    sent = (number for path, number in quic.requests.items() if re.search(r"small\.txt\?\d", path))
    assert sum(sent) == 50


def test_an_open_loop_counts_latency_from_the_scheduled_arrival(quic, three):
    """One connection with one stream: every answer takes 50 ms, requests are due every 25 ms and queue."""
    measured = three(
        quic, "/slow", arrivals=Arrivals("constant", 40.0), operations=20, max_clients=1, clients=1
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
def test_failures_are_counted_by_kind(quic, three, path, kind):
    measured = three(quic, path, operations=10, streams=2)
    assert measured.totals.errors == {kind: 10}
    assert measured.totals.outcome is LoadOutcome.COMPLETE
    assert measured.totals.connections_lost == 0


def test_a_rejected_request_is_sent_again(quic, three):
    measured = went_well(three(quic, "/reject", operations=9), 9)
    assert measured.totals.retries == {"stream refused": measured.totals.retried}
    assert measured.totals.retried >= 8


def test_a_request_that_times_out_is_cancelled_and_the_connection_continues(quic, three):
    before, connections = quic.cancelled, quic.connections
    measured = three(quic, "/silent", operations=4, streams=2, request_timeout_ns=100_000_000)
    assert measured.totals.errors == {"timed out": 4}
    assert quic.connections - connections == 1
    time.sleep(0.1)
    assert quic.cancelled - before >= 2, "the last two end with the connection"


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


def test_certificates_are_verified(keys, three, quic):
    measured = three(quic, cacert=None)
    assert measured.totals.connect_errors == {"tls": 1}
    assert "signed by an authority that is not trusted" in measured.totals.first_error
    went_well(three(quic, cacert=None, verify=False, operations=5), 5)
    with http3_server(keys / "old.crt", keys / "old.key") as old:
        measured = three(old, cacert=str(keys / "old.crt"))
    assert "the server's certificate has expired" in measured.totals.first_error


def test_a_server_that_speaks_quic_but_not_http3_is_named(keys, three):
    with http3_server(keys / "good.crt", keys / "good.key", protocols=("hq-interop",)) as other:
        measured = three(other)
    assert measured.totals.connect_errors == {"tls": 1}
    assert "does not speak HTTP/3, though it speaks QUIC; leave out --h3" in measured.totals.first_error


def test_a_profile_of_a_service_sends_http3(quic, tmp_path):
    options = ServiceOptions(
        urls=[f"https://127.0.0.1:{quic.port}/small.txt?profile"], h3=True, insecure=True
    )
    job = service_job(options, read=lambda _: b"", environment={}, seed=1, command="uncork profile service")
    folder, status, reason = profile_service(tmp_path, replace(job, seconds=0.4, code=False), lambda _: None)
    assert status == "complete", reason
    plan = json.loads((folder / "parts" / "load" / "plan.json").read_text())
    assert (plan["http"]["version"], plan["http"]["tls"]["verify"]) == ("3", False)
    assert quic.requests["GET /small.txt?profile"] > 1, "once to check it, then for 0.4 s"


GET = AskedRequest("GET", "/json")


@pytest.mark.parametrize("kind", ["plain", "two"])
def test_answers_are_the_same_over_either_version(tmp_path, kind):
    requests = [
        GET,
        AskedRequest("POST", "/method?a=b c", (("X-Own", "mine"),), '{"a": 1}'),
        AskedRequest("GET", "/refuse"),
        AskedRequest("GET", "/small.txt"),
    ]
    with nginx(tmp_path) as server:
        found = ask(Served("api", server.ports[kind]), requests, timeout_s=5)
        again = ask(Served("api", server.ports["plain"]), requests, timeout_s=5)
    assert [answer.status for answer in found] == [200, 200, 503, 200]
    assert found[0].json == '{"items": [{"id": 7}], "ok": true}'
    assert [answer.digest for answer in found[:2]] == [answer.digest for answer in again[:2]]
    assert found[1].request == "POST /method?a=b c"
    assert found[3].size == again[3].size
    assert found[3].text and found[3].text == again[3].text
    assert found[0].text is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "it closed the connection before its answer was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "it closed the connection before"),
        (None, "no answer within 0.3 s"),
    ],
)
def test_a_request_without_an_answer_is_named(said, told):
    def script(connection, *_):
        connection.recv(4096)
        if said is None:
            connection.recv(4096)
        else:
            connection.sendall(said)

    with scripted(script) as port, pytest.raises(LoadError) as error:
        ask(Served("api", port), [GET], timeout_s=0.3)
    assert str(error.value).startswith(f"service api: GET /json: {told}")
