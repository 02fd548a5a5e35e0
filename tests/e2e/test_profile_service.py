"""`uncork profile service` on a real service with a real PostgreSQL, whose bottlenecks are known."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import psycopg
import pyarrow.parquet as pq
import pytest

from fakes.shop_service import fill
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.ports import free_port
from uncork.report.write.schemas import result_schema

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shop():
    """A shop, the connection string of its database, and the server's log."""
    settings = {"shared_buffers": "64MB", "shared_preload_libraries": "pg_stat_statements"}
    settings |= {"log_min_duration_statement": 0, "log_line_prefix": "%m [%p] "}
    server = EmbeddedServer(settings)
    server.start()
    try:
        fill(server.conninfo())
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        port = free_port()
        environment = {
            **os.environ,
            "SHOP_DSN": server.conninfo(),
            "SHOP_TAGS": "1",
            "PYTHONPATH": str(TESTS),
        }
        command = [sys.executable, "-m", "fakes.shop_service", str(port)]
        with subprocess.Popen(command, env=environment) as process:
            try:
                _wait_for(f"http://127.0.0.1:{port}/product/1", process)
                yield f"http://127.0.0.1:{port}", server.conninfo(), server.logs[0]
            finally:
                process.kill()
    finally:
        server.stop()


def _wait_for(url, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (OSError, urllib.error.URLError):
            assert process.poll() is None, "the service ended"
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.05)


def test_statements_of_each_request_are_counted_and_the_n_plus_one_is_named(shop, uncork):
    url, dsn, _ = shop
    done = uncork(
        *("profile", "service", f"{url}/orders/transaction", "/orders/autocommit@1", "/product/{n}"),
        *("--var", "n=1..1000", "--postgres", dsn, "-c", 4, "--for", "8s", "--json", "--html", "page.html"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, result_schema("service-result"))
    requests = {one["name"]: one for one in found["requests"]}
    for path, around in (("/orders/transaction", 2), ("/orders/autocommit", 0)):
        calls = {one["text"]: one["calls"] for one in requests[path]["templates"]}
        assert calls["select name from customers where id = ?"] == pytest.approx(20, rel=0.02)
        assert calls["select name from products where id = ?"] == pytest.approx(20, rel=0.02)
        assert requests[path]["statements"] == pytest.approx(41 + around, rel=0.02)
        assert requests[path]["connections"] < 0.5, "a pool keeps them"
    (single,) = requests["/product/{n}"]["templates"]
    assert (round(single["calls"], 1), round(single["rows"], 1)) == (1.0, 1.0)
    assert found["explained"] > 0.95
    repeated = {one["request"] for one in found["findings"] if one["name"] == "n+1"}
    assert repeated == {"/orders/transaction", "/orders/autocommit"}
    assert sum(one["share"] for one in found["time"]) == pytest.approx(1.0, abs=0.02)
    (worker,) = found["workers"]
    assert worker["runtime"] == "python"
    assert {one["origin"] for one in found["origins"]} <= {
        "/orders/transaction",
        "/orders/autocommit",
        "/product/{number}",
    }
    assert found["code"] is not None
    (run,) = uncork.runs
    apart = pq.read_table(run / "parts" / "apart" / "stacks")
    assert "/orders/transaction" in apart["route"].to_pylist(), "the request with most time is recorded alone"
    page = (uncork.folder / "page.html").read_text()
    assert "Where the requests pass their time" in page
    assert "Database: where the time goes" in page
    assert "postgres:" not in page
    again = uncork("report", "last")
    assert "(N+1)" in again.stdout


def test_statements_carry_the_trace_of_their_request(shop, uncork):
    url, dsn, log = shop
    done = uncork(
        *("profile", "service", f"{url}/orders/one", "/orders/joined", "--postgres", dsn, "--traceparent"),
        *("-c", 4, "--for", "5s", "--no-code", "--json", "--logs", log),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, result_schema("service-result"))
    requests = {one["name"]: one for one in found["requests"]}
    for name, expected in {
        "/orders/one": {
            "select id, customer, product from orders where id between ? and ?": (1, 20),
            "select name from products where id = ?": (20, 1),
        },
        "/orders/joined": {
            "select o.id, c.name, p.name from orders as o join customers as c on c.id = o.customer "
            "join products as p on p.id = o.product where o.id between ? and ?": (1, 20),
        },
    }.items():
        request = requests[name]
        assert all(one["traced"] for one in request["templates"])
        calls = {one["text"]: (one["calls"], one["rows"]) for one in request["templates"]}
        assert calls.keys() == expected.keys()
        for text, (many, rows) in expected.items():
            # Requests in flight at the end are not counted as sent, but their statements ran.
            assert calls[text][0] == pytest.approx(many, abs=many * 4.5 / request["sent"])
            assert calls[text][1] == pytest.approx(rows, rel=0.02)
        assert request["traced"] == pytest.approx(request["sent"], rel=0.1)
    routes = {one["name"]: one for one in found["log"]["routes"] if one["kind"] == "route"}
    assert {"/orders/one", "/orders/joined"} <= routes.keys()
    several = routes["/orders/one"]
    assert several["executions"] / several["requests"] == pytest.approx(21, rel=0.15)
    query = "SELECT route, sum(executions) FROM log_routes WHERE trace <> '' GROUP BY ALL ORDER BY ALL"
    asked = uncork("sql", str(uncork.folder / "runs" / found["run"]["id"] / "parts/log"), query)
    assert asked.returncode == 0, asked.stderr
    assert "/orders/joined" in asked.stdout


@pytest.mark.thorough
def test_a_lock_that_all_requests_need_is_named_with_its_statement(shop, uncork):
    url, dsn, log = shop
    arguments = (f"{url}/visit", "--postgres", dsn, "--for", "5s", "--no-code", "--json", "--logs", log)
    done = uncork("profile", "service", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["findings"][0]["name"] == "statement"
    assert found["answer"].startswith('"update visits set many = many + ? where id = ?" of /visit takes')
    assert found["time"][0]["kind"] == "locks"
    assert found["code"] is None
    assert found["log"]["templates"]
    assert any(one.startswith("From the logs:") for one in found["reasons"])


@pytest.mark.thorough
def test_traffic_that_is_there_is_watched_and_ctrl_c_keeps_what_was_seen(shop, uncork):
    url, dsn, _ = shop
    sender = [
        sys.executable,
        "-m",
        "uncork",
        "load",
        "http",
        f"{url}/search",
        "-c",
        "4",
        "-D",
        "60",
        "--runs",
    ]
    with subprocess.Popen([*sender, str(uncork.folder / "other")], stdout=-3, stderr=-3) as load:
        try:
            started = uncork.start(
                *("profile", "service", url, "--postgres", dsn, "--watch-only", "--for", "60s", "--no-code")
            )
            uncork.wait_for(started, "the traffic that is there")
            time.sleep(3)
            started.send_signal(signal.SIGINT)
            printed, _ = started.communicate(timeout=60)
        finally:
            load.terminate()
    assert started.returncode == 130
    assert "computing" in printed.partition(".")[0] + printed
    assert "/search" in printed  # from the comments in the statements
    (folder,) = uncork.runs
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"


def test_what_cannot_be_profiled_is_refused_in_one_sentence(shop, uncork):
    url, dsn, _ = shop
    attempts = {
        (f"{url}/nowhere", "--postgres", dsn): "404",
        (f"http://127.0.0.1:{free_port()}/", "--postgres", dsn): "efused",
        (f"{url}/search", "--postgres", "host=127.0.0.1 port=1 user=u dbname=d"): "port 1",
        (f"{url}/search", "--watch-only"): "--postgres",
    }
    for arguments, text in attempts.items():
        done = uncork("profile", "service", *arguments)
        assert done.returncode in (1, 2), (arguments, done.returncode)
        assert text in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
    assert uncork.runs == []
