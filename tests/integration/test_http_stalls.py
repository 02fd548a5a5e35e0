"""Answers that wait for an acknowledgement, and answers that only look so."""

from __future__ import annotations

import random
import socket
import time
from itertools import cycle

import pytest

from fakes.http_loads import load, went_well
from fakes.http_servers import nginx, scripted
from uncork.stats.load.stall import waits_for_acknowledgements

pytestmark = [pytest.mark.xdist_group("http"), pytest.mark.thorough]
HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"text"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


def in_two_parts(pauses=(0.0,), *, delays: bool):
    """A service that writes a head, works, and writes a body; with Nagle's algorithm or without."""

    def talk(connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if delays else 1)
        for pause in cycle(pauses):
            if not connection.recv(65536):
                return
            connection.sendall(HEAD)
            if pause:
                time.sleep(pause)
            connection.sendall(BODY)

    return scripted(talk)


def named(measured) -> bool:
    http = measured.totals.http
    return waits_for_acknowledgements(http.stalls, sum(http.statuses.values()))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("sendfile_two", {"version": "2"}),
        ("sendfile_two", {"version": "2", "clients": 4, "threads": 2}),
        ("delayed_one", {}),
    ],
)
def test_a_real_server_that_waits_for_acknowledgements_is_named(server, kind, options):
    count = 80 * options.get("clients", 1)
    measured = went_well(load(server.ports[kind], operations=count, **options), count)
    stalls = measured.totals.http.stalls
    # A new connection acknowledges at once for a while; a busy machine makes some silences longer.
    assert stalls.answers > count / 3
    assert stalls.hastened_short >= 0.8 * stalls.hastened > 0
    assert named(measured)


def test_a_service_that_writes_in_two_parts_is_named():
    with in_two_parts(delays=True) as port:
        assert named(went_well(load(port, operations=80), 80))


@pytest.mark.parametrize(
    ("kind", "options"),
    [("sendfile_two", {"version": "2", "streams": 10}), ("two", {"version": "2"}), ("plain", {})],
)
def test_the_same_server_with_more_at_once_or_without_the_trap_is_not(server, kind, options):
    measured = went_well(load(server.ports[kind], operations=2_000, **options), 2_000)
    assert measured.totals.http.stalls.answers < 20
    assert not named(measured)


@pytest.mark.parametrize(
    "pauses", [(0.0425,), (0.038, 0.046), (0.043, 0.02)], ids=["tight", "two-lengths", "every-other"]
)
def test_a_service_that_works_for_43_ms_between_the_parts_is_not(pauses):
    with in_two_parts(pauses, delays=False) as port:
        measured = went_well(load(port, operations=70), 70)
    stalls = measured.totals.http.stalls
    assert stalls.answers > 15, "they look the same"
    assert stalls.kept == stalls.hastened == 8, "so it was tried"
    assert not named(measured)


def test_a_service_that_works_for_about_40_ms_is_not():
    dice = random.Random(4)
    with in_two_parts([dice.uniform(0.012, 0.07) for _ in range(500)], delays=False) as port:
        measured = went_well(load(port, operations=80), 80)
    assert measured.totals.http.stalls.kept == 8
    assert not named(measured)


def test_a_whole_answer_after_41_ms_is_no_stall():
    def talk(connection: socket.socket, number: int) -> None:
        while connection.recv(65536):
            time.sleep(0.041)
            connection.sendall(HEAD + BODY)

    with scripted(talk) as port:
        measured = went_well(load(port, operations=40), 40)
    assert measured.totals.http.stalls.answers == 0
