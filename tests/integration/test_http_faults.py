"""HTTP/1.1 and TLS against servers that err: what each fault is called, and that all ends in time."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fakes.http_loads import load, row_of, went_well
from fakes.http_servers import answer, nginx, scripted
from uncork.model.http import Checks
from uncork.model.load import Arrivals, LoadOutcome

pytestmark = pytest.mark.xdist_group("http")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


def each_gets(reply: bytes):
    """A server that sends the same to each request, and keeps its connections."""
    return scripted(lambda connection, number: answer(connection, reply))


def silent(connection: socket.socket, number: int) -> None:
    """Take what comes and say nothing, until the other side gives up."""
    while connection.recv(65536):
        pass


# ---- bodies ----


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (CHUNKED + b"5\r\nhel", "truncated"),
        (CHUNKED + b"5\r\nhello\r\n", "truncated"),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", "truncated"),
        (CHUNKED + b"5\r\nhello, world\r\n0\r\n\r\n", "garbage"),
        (CHUNKED + b"fffffffffffffffff\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "truncated"),
    ],
    ids=["in-a-chunk", "behind-a-chunk", "in-the-trailers", "longer-chunk", "vast-chunk", "content-length"],
)
def test_a_body_that_is_cut_short_or_wrong_is_not_whole(reply, kind):
    def talk(connection: socket.socket, number: int) -> None:
        answer(connection, count=3)
        answer(connection, reply, count=1)

    with scripted(talk) as port:
        measured = load(port, operations=20)
    totals = measured.totals
    assert (totals.outcome, totals.succeeded) == (LoadOutcome.COMPLETE, 15)
    assert totals.errors == {kind: 5}
    assert totals.first_error


def test_chunks_trailers_and_early_answers_are_taken():
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    whole = early + CHUNKED + b"2;a=b\r\nte\r\n2\r\nxt\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n"
    with each_gets(whole) as port:
        for streams in (1, 4):
            measured = went_well(load(port, streams=streams, checks=Checks(size=4)), 100)
            assert measured.totals.http.statuses == {"200": 100}
            assert measured.totals.connections_opened == 1


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answers_that_have_no_body_have_none_whatever_their_length_says(method, status):
    with each_gets(f"HTTP/1.1 {status} X\r\nContent-Length: 1000\r\n\r\n".encode()) as port:
        for streams in (1, 4):
            measured = went_well(load(port, method=method, streams=streams), 100)
            assert measured.totals.http.statuses == {str(status): 100}
            assert measured.totals.http.body_bytes == 0


def test_a_flood_of_early_answers_ends_in_time():
    def talk(connection: socket.socket, number: int) -> None:
        answer(connection, count=5)
        connection.recv(65536)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000)

    begun = time.monotonic()
    with scripted(talk) as port:
        measured = load(port, operations=12, request_timeout_ns=200_000_000)
    assert measured.totals.errors == {"timed out": 2}
    assert measured.totals.elapsed_ns < 30e9
    assert time.monotonic() - begun < 30


def test_a_body_without_end_ends_in_time():
    def talk(connection: socket.socket, number: int) -> None:
        connection.recv(65536)
        connection.sendall(CHUNKED)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            connection.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")

    with scripted(talk) as port:
        measured = load(port, operations=3, request_timeout_ns=200_000_000)
    assert measured.totals.errors == {"timed out": 3}
    assert measured.totals.elapsed_ns < 30e9


# ---- servers that say nothing ----


@pytest.mark.parametrize("streams", [1, 3])
def test_a_server_that_accepts_and_never_answers_is_given_up(streams):
    begun = time.monotonic()
    with scripted(silent) as port:
        options = {"clients": 2, "streams": streams, "request_timeout_ns": 200_000_000}
        measured = load(port, operations=12, **options)
    totals = measured.totals
    assert totals.outcome is LoadOutcome.COMPLETE
    assert totals.succeeded == 0
    assert sum(totals.errors.values()) == 12
    assert set(totals.errors) <= {"timed out", "abandoned"}
    assert time.monotonic() - begun < 30


def test_a_server_that_never_agrees_on_keys_is_an_outcome():
    with scripted(silent) as port:
        measured = load(port, tls=True, verify=False, connect_timeout_ns=300_000_000)
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"connect timeout": 1}
    assert "within 0.3 s" in measured.totals.message


# ---- TLS ----


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "should the address begin with http://?"),
        (b"\x16\x03\x03\x00\x04garbage that is not TLS at all", "TLS with 127.0.0.1 failed"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "the server aborted the TLS handshake (HandshakeFailure)"),
        (b"", "the server closed the connection during the TLS handshake"),
    ],
    ids=["http", "garbage", "alert", "closed"],
)
def test_what_is_no_handshake_is_named(words, told):
    def talk(connection: socket.socket, number: int) -> None:
        connection.recv(65536)
        connection.sendall(words)

    with scripted(talk) as port:
        measured = load(port, tls=True, verify=False)
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert measured.totals.connect_errors == {"tls": 1}
    assert told in measured.totals.message


def test_a_certificate_for_another_name_is_named(server):
    cacert = str(server.folder / "other.crt")
    measured = load(server.ports["other"], tls=True, cacert=cacert)
    assert measured.totals.outcome is LoadOutcome.REFUSED
    assert 'certificate is not for "127.0.0.1"' in measured.totals.message
    went_well(load(server.ports["other"], tls=True, verify=False), 100)


# ---- connections in an open loop ----


def test_connections_grow_while_the_service_is_slow_and_not_beyond_their_bound():
    """200 requests a second of 50 ms each keep ten connections busy: two become many, but no more than 16."""
    opened: list[int] = []

    def slow(connection: socket.socket, number: int) -> None:
        opened.append(number)
        while connection.recv(65536):
            time.sleep(0.05)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with scripted(slow) as port:
        arrivals = Arrivals("constant", 200.0)
        options = {"operations": 400, "arrivals": arrivals, "clients": 2, "threads": 2}
        measured = went_well(load(port, max_clients=16, **options), 400)
        assert 10 <= measured.totals.connections_most <= 16
        assert measured.totals.connections_opened == len(opened) == measured.totals.connections_most
        # Waiting for connections is counted, and stops when there are enough.
        assert row_of(measured, "operation").p50_ns < 0.2e9
        opened.clear()
        measured = load(port, max_clients=4, **options)
        assert measured.totals.connections_most == len(opened) == 4
        # Four carry 80 a second: 400 take 5 s instead of 2, and the last one waits for the difference.
        assert row_of(measured, "operation").max_ns > 2.5e9
        assert row_of(measured, "service").p50_ns < 0.1e9


def test_a_quick_service_is_served_by_the_connections_there_are(server):
    options = {"arrivals": Arrivals("constant", 200.0), "clients": 2, "max_clients": 64}
    measured = went_well(load(server.ports["plain"], operations=200, **options), 200)
    assert measured.totals.connections_most < 16


# ---- local ports ----


def out_of_ports_at_the_start() -> None:
    """Load over more connections than there are local ports."""
    with scripted(silent) as port:
        totals = load(port, clients=30, operations=30).totals
    assert totals.outcome is LoadOutcome.REFUSED
    assert totals.connect_errors == {"no local port": 1}
    assert "all local ports are in use" in totals.message


def out_of_ports_on_the_way() -> None:
    """Grow until there are no more local ports: the load goes on with the connections that there are."""

    def slow(connection: socket.socket, number: int) -> None:
        while connection.recv(65536):
            time.sleep(0.1)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with scripted(slow) as port:
        arrivals = Arrivals("constant", 300.0)
        totals = load(port, clients=2, max_clients=40, arrivals=arrivals, operations=600).totals
    assert totals.outcome is LoadOutcome.COMPLETE
    assert totals.connections_most <= 20
    assert set(totals.connect_errors) == {"no local port"}
    assert totals.succeeded == 600


@pytest.mark.thorough
@pytest.mark.parametrize("when", [out_of_ports_at_the_start, out_of_ports_on_the_way])
def test_running_out_of_local_ports_is_named(when):
    """In a network of its own, where there are 20 local ports."""
    unshare = shutil.which("unshare")
    allowed = unshare and subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    if not allowed or allowed.returncode:
        pytest.skip("unshare may not make a network of its own here")
    folder = Path(__file__).parent
    narrow = "ip link set lo up && echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range"
    call = f"import test_http_faults as tests; tests.{when.__name__}()"
    done = subprocess.run(
        [str(unshare), "-rn", "sh", "-c", f'{narrow} && exec "$0" -c "$1"', sys.executable, call],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder.parent), *sys.path])},
    )
    assert done.returncode == 0, done.stderr


def test_a_count_of_requests_ends_though_a_connection_cannot_be_opened_again():
    """The last request begins on a closed connection, and another client has nothing left to send."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        (one, _), (other, _) = listener.accept(), listener.accept()
        with listener, one, other:
            other.recv(65536)
            answer(one, count=1)
            one.recv(65536)
            listener.close()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    measured = load(listener.getsockname()[1], clients=2, operations=4)
    server.join(10)
    assert measured.totals.outcome is LoadOutcome.COMPLETE
    assert (measured.totals.started, measured.totals.succeeded, measured.totals.failed) == (4, 1, 3)
