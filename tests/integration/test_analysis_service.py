"""The programs of the case analysis-api, on real databases: the service, the wire and nginx before it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fakes.needed import needs
from uncork import cases
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.ports import free_port
from uncork.load.http import run_http
from uncork.load.trials import ask, run_trial
from uncork.model.http import HttpServer, HttpSpec, Request, Variable
from uncork.model.http_trial import AskedRequest, HttpTrial
from uncork.model.measurement import Outcome
from uncork.model.server import Target
from uncork.model.service import Served

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("http")]

CASE = Path(cases.__file__).parent / "analysis-api"
DOCUMENTS = 400
VIEWS = ("last_distinct", "last_not_exists", "last_lateral", "last_marked", "last_current")


@pytest.fixture(scope="module")
def server():
    server = EmbeddedServer({"shared_buffers": "64MB", "max_connections": 120})
    server.start()
    files = {"documents": "schema.sql", "readings": "readings.sql", "events": "events.sql"}
    for name, file in files.items():
        make_database(server, name, file)
    yield server
    server.stop()


def make_database(server, name, file):
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        connection.execute((CASE / file).read_text().replace(":documents", str(DOCUMENTS)))
        connection.execute("VACUUM ANALYZE")


def environment(server, **more):
    return {
        "PATH": os.environ["PATH"],
        "HOST": "127.0.0.1",
        "DATABASE_URL": make_conninfo(server.conninfo("documents"), password="secret-word"),
        "DATABASE_URL_READINGS": server.conninfo("readings"),
        "DATABASE_URL_EVENTS": server.conninfo("events"),
        **more,
    }


@contextmanager
def started(program, settings, log):
    """Start a program of the case, wait until its port accepts; it is ended afterwards."""
    port = free_port()
    with log.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, str(CASE / program)], env={**settings, "PORT": str(port)}, stdout=out, stderr=out
        )
    try:
        until = time.monotonic() + 20
        while running.poll() is None and time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        assert running.poll() is None, log.read_text()
        yield running, port
    finally:
        running.terminate()
        running.wait(10)


@pytest.fixture(scope="module")
def service(server, tmp_path_factory):
    log = tmp_path_factory.mktemp("service") / "log"
    with started("service.py", environment(server, POOL="12"), log) as (running, port):
        yield running, port


def asked(port, path, method="GET"):
    """Return status and JSON of an answer by HTTP/1.1."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def becomes(condition, seconds=30):
    """Wait until a condition holds; say whether it did in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def asking(port, **options):
    options.setdefault("operations", 100)
    one = Request("object", "GET", "/objects/{id}")
    ids = Variable("id", 1, 500)
    return HttpSpec(HttpServer("127.0.0.1", port), (one,), variables=(ids,), seed=3, **options)


def loaded(port, **options):
    return run_http(asking(port, **options)).totals


def test_an_object_is_one_row(service):
    _, port = service
    assert asked(port, "/objects/7") == (
        200,
        {"id": 7, "name": "object 7", "site": 7, "since": "2015-01-08"},
    )
    assert asked(port, "/objects/501") == (404, {"error": "there is no object 501"})
    for wrong in ("/objects/x", "/objects/99999999999", "/objects/7/more", "/"):
        assert asked(port, wrong) == (404, {"error": f"there is no {wrong}"})
    assert asked(port, "/objects/7", "POST")[0] == 405


def test_an_analysis_has_thousands_of_lines_and_some_fifty_calls(service, server):
    _, port = service
    before = asked(port, "/pool")[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/objects/7/analysis", timeout=30) as answer:
        text = answer.read()
    assert text.count(b"\n") > 5000
    found = json.loads(text)
    assert len(found["readings"]["channels"]) == 38
    assert {len(channel) for channel in found["readings"]["channels"]} == {24}
    assert [len(found["documents"][part]) for part in ("newest", "states")] == [50, 3]
    assert len(found["neighbours"]) == 19
    after = asked(port, "/pool")[1]
    calls = sum(after[name]["calls"] - before[name]["calls"] for name in after)
    assert 45 <= calls <= 55


@pytest.mark.parametrize("view", VIEWS[1:])
def test_every_view_gives_the_same_analysis(view, service, server, tmp_path):
    _, port = service
    with started("service.py", environment(server, POOL="6", VIEW=view), tmp_path / "log") as (_, other):
        for number in (1, 7, 500):
            path = f"/objects/{number}/analysis"
            assert asked(other, path) == asked(port, path)


@pytest.mark.parametrize(("http2", "streams"), [(False, 1), (True, 1), (True, 100)])
def test_it_speaks_both_versions_on_one_port(service, http2, streams):
    _, port = service
    totals = loaded(port, version="2" if http2 else "1.1", streams=streams)
    assert (totals.started, totals.succeeded) == (100, 100)


def test_calls_beyond_the_pool_wait_and_are_counted(server, tmp_path):
    with started("service.py", environment(server, POOL="3"), tmp_path / "log") as (_, port):
        with ThreadPoolExecutor(8) as many:
            found = list(many.map(lambda number: asked(port, f"/objects/{number}/analysis")[0], range(1, 17)))
        assert set(found) == {200}
        pools = asked(port, "/pool")[1]
        assert {name: pool["most"] for name, pool in pools.items()} == dict.fromkeys(pools, 1)
        assert pools["documents"]["waited"] > 0
        assert pools["readings"]["waited_ms"] > 0


def test_a_call_that_waits_too_long_for_a_connection_is_refused(server, tmp_path):
    settings = environment(server, POOL="3", POOL_TIMEOUT="0.2")
    with (
        started("service.py", settings, tmp_path / "log") as (_, port),
        psycopg.connect(server.conninfo("documents")) as holding,
    ):
        assert asked(port, "/objects/7")[0] == 200
        holding.execute("LOCK TABLE object IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(4) as many:
            waiting = [many.submit(asked, port, "/objects/7") for _ in range(4)]
            assert becomes(lambda: sum(one.done() for one in waiting) == 3)
            holding.rollback()
            found = sorted(one.result()[0] for one in waiting)
        assert found == [200, 503, 503, 503]
        assert asked(port, "/objects/7")[0] == 200
    assert (tmp_path / "log").read_text() == (
        "service: database documents: no connection free within 0.2 s\n"
    )


def test_a_database_that_goes_away_is_told_once_and_found_again(server, tmp_path):
    make_database(server, "leaving", "events.sql")  # the other tests' service needs its own to stay
    own = {"DATABASE_URL_EVENTS": server.conninfo("leaving")}
    settings = environment(server, POOL="3", POOL_TIMEOUT="0.5", **own)
    with started("service.py", settings, tmp_path / "log") as (running, port):
        assert asked(port, "/objects/7/analysis")[0] == 200
        with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
            connection.execute("ALTER DATABASE leaving ALLOW_CONNECTIONS false")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'leaving'"
            )
            answers = [asked(port, "/objects/7/analysis") for _ in range(3)]
            assert answers == [(503, {"error": "database events is not available"})] * 3
            assert asked(port, "/objects/7")[0] == 200
            connection.execute("ALTER DATABASE leaving ALLOW_CONNECTIONS true")
        assert becomes(lambda: asked(port, "/health")[0] == 200)
        assert asked(port, "/objects/7/analysis")[0] == 200
        assert running.poll() is None
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith("service: database events: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_once_what_was_under_way_is_answered(server, tmp_path, number):
    settings = environment(server, POOL="6", PGAPPNAME="ending")
    with started("service.py", settings, tmp_path / "log") as (running, port):
        with psycopg.connect(server.conninfo("documents")) as holding, ThreadPoolExecutor(1) as one:
            holding.execute("LOCK TABLE object IN ACCESS EXCLUSIVE MODE")
            asking = one.submit(asked, port, "/objects/7")
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'object'::regclass"
            assert becomes(lambda: holding.execute(waits).fetchone()[0] == 1)
            running.send_signal(number)
            assert becomes(lambda: asked(port, "/pool") == (503, {"error": "the service is ending"}))
            holding.rollback()
            assert asking.result(30)[0] == 200
            assert running.wait(30) == 0
        with psycopg.connect(server.conninfo("postgres")) as connection:
            left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ending'"
            connection.autocommit = True
            assert becomes(lambda: connection.execute(left).fetchone()[0] == 0)
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize(
    ("program", "settings", "told"),
    [
        ("service.py", {"PORT": ""}, "PORT, POOL and POOL_TIMEOUT must be numbers: invalid literal"),
        ("service.py", {"DATABASE_URL_EVENTS": None}, "service: DATABASE_URL_EVENTS is not set"),
        ("service.py", {"VIEW": "x; DROP TABLE object"}, "service: VIEW must be one of last_distinct, "),
        (
            "service.py",
            {"POOL": "2"},
            "service: POOL must be 3 or more, one connection for each database; found 2",
        ),
        ("wire.py", {"SERVICE_API": "http://127.0.0.1:1"}, "wire: ROUND_TRIP_MS is not set"),
        ("wire.py", {"SERVICE_API": "http://127.0.0.1:1", "ROUND_TRIP_MS": "x"}, "must be numbers"),
        ("front.py", {"SERVICE_API": "http://127.0.0.1:1"}, "front: FOLDER is not set"),
        (
            "front.py",
            {"SERVICE_API": "http://a:1", "FOLDER": "/nowhere", "PATH": "/nowhere"},
            "front: there is no nginx on PATH",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(server, program, settings, told):
    changed = {**environment(server, PORT="1"), **settings}
    given = {name: text for name, text in changed.items() if text is not None}
    done = subprocess.run(
        [sys.executable, str(CASE / program)],
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret-word" not in done.stderr


def test_databases_that_do_not_answer_end_it_with_one_line(server):
    settings = environment(server, PORT="1", POOL_TIMEOUT="1")
    settings["DATABASE_URL_EVENTS"] = "postgresql://u:secret-word@127.0.0.1:1/none"
    done = subprocess.run(
        [sys.executable, str(CASE / "service.py")],
        env=settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "service: its databases do not answer within 1 s\n")


@pytest.mark.parametrize("program", ["service.py", "wire.py"])
def test_a_port_that_is_taken_is_one_line(server, program):
    more = {"SERVICE_API": "http://127.0.0.1:1", "ROUND_TRIP_MS": "20"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = environment(server, PORT=str(port), POOL="3", **more)
        command = [sys.executable, str(CASE / program)]
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    told = f"{program.removesuffix('.py')}: cannot listen on 127.0.0.1:{port}: "
    assert done.stderr.startswith(told)
    assert "in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_wire_adds_a_round_trip_and_keeps_the_order(service, tmp_path):
    _, port = service
    settings = {"HOST": "127.0.0.1", "SERVICE_API": f"http://127.0.0.1:{port}", "ROUND_TRIP_MS": "30"}
    with started("wire.py", settings, tmp_path / "log") as (running, far):
        assert asked(far, "/objects/7/analysis") == asked(port, "/objects/7/analysis")
        one, many = (loaded(far, version="2", streams=streams, operations=20) for streams in (1, 20))
        assert one.succeeded == many.succeeded == 20
        assert one.elapsed_ns > 20 * 30_000_000
        assert 30_000_000 < many.elapsed_ns < one.elapsed_ns / 4
        running.terminate()
        assert running.wait(10) == 0
    assert (tmp_path / "log").read_text() == ""


def test_a_wire_to_nowhere_closes(tmp_path):
    settings = {"SERVICE_API": f"http://127.0.0.1:{free_port()}", "ROUND_TRIP_MS": "2"}
    with (
        started("wire.py", settings, tmp_path / "log") as (_, port),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        assert connection.recv(1) == b""


@needs("nginx")
def test_nginx_closes_a_connection_after_its_thousand_requests(service, tmp_path):
    _, port = service
    settings = {
        "PATH": os.environ["PATH"],
        "FOLDER": str(tmp_path),
        "SERVICE_API": f"http://127.0.0.1:{port}",
    }
    with started("front.py", settings, tmp_path / "log") as (running, front):
        options = {"version": "2", "streams": 1000, "operations": 1500}
        stopped = loaded(front, on_close="stop", **options)
        assert (stopped.started, stopped.succeeded) == (1500, 1000)
        assert loaded(front, **options).succeeded == 1500
        served = Served("front", front, (running.pid,))
        trial = HttpTrial(Target("", {}), served, asking(front, on_close="stop", **options), 20, 60 * 10**9)
        measured = run_trial(trial, sample=False)
        assert measured.outcome == Outcome.COMPLETE, "that it was closed is what was asked about"
        assert (measured.succeeded, measured.failed) == (980, 520)
        (answer,) = ask(served, [AskedRequest("GET", "/objects/7")], timeout_s=10)
        assert answer.status == 200, "nginx below 1.25 speaks HTTP/2 only on such a port"
        running.terminate()
        assert running.wait(10) == 0
    with started("front.py", {**settings, "KEEPALIVE_REQUESTS": "100000"}, tmp_path / "log") as (_, front):
        assert loaded(front, on_close="stop", **options).succeeded == 1500
