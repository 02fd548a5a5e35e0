"""Sweeps by subprocess, on a real server and a real service: bends, cliffs, objectives."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import duckdb
import jsonschema
import psycopg
import pytest

from fakes.http_servers import nginx
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.ports import free_port

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("load")]

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "sweep-result.schema.json").read_text())
ROOM = 13
"""Connections that the server has for others than its superuser's reserve."""


@pytest.fixture(scope="module")
def server():
    server = EmbeddedServer({"max_connections": 16, "superuser_reserved_connections": 3, "autovacuum": False})
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN")
    yield server
    server.stop()


@pytest.fixture
def words_of(uncork, server):
    """Give the words that sweep a script on the module's server, as a plain user."""

    def words(script: str, *more: object) -> tuple[object, ...]:
        path = uncork.write(script, "script.sql")
        address = ("-n", "-h", server.host, "-p", server.port, "-U", "app", "postgres")
        return ("load", "sql", "-f", path, "--sweep", *more, *address)

    return words


@pytest.fixture
def sweep(uncork, words_of):
    """Sweep a script on the module's server."""
    return lambda script, *more: uncork(*words_of(script, *more))


def result_of(uncork) -> dict:
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    return result


def bottlenecks(result) -> list[dict]:
    """Return what was named, but for processors that other programs may take on a shared machine."""
    return [one for one in result["bottlenecks"] if one["resource"] != "machine cpu"]


def test_the_cliff_is_the_servers_limit_of_connections_and_named(sweep, uncork):
    ended = sweep("SELECT pg_sleep(0.002);", "clients", "-T", 0.3, "--budget", "14s")
    assert ended.returncode == 0, ended.stderr
    result = result_of(uncork)
    assert result["cliff"]["works"] <= ROOM < result["cliff"]["breaks"]
    assert "too many" in result["cliff"]["reason"] or "reserved" in result["cliff"]["reason"]
    assert f"It breaks at {result['cliff']['breaks']:.0f} clients" in " ".join(ended.stdout.split())
    assert "connection limit" in {one["resource"] for one in result["bottlenecks"]}
    broken = [level for level in result["levels"] if not level["works"]]
    assert broken and all(level["level"] > ROOM for level in broken)


@pytest.mark.thorough
def test_a_lock_that_all_need_bends_at_once_and_misses_its_objective(sweep, uncork):
    """One at a time, 5 ms each: throughput is flat, and the p99 of four clients is four times that of one."""
    script = "BEGIN;\nSELECT pg_advisory_xact_lock(1);\nSELECT pg_sleep(0.005);\nEND;"
    words = ("clients", "--to", 8, "-T", 0.4, "--budget", "18s", "--objective", "p99<14ms", "--verify")
    ended = sweep(script, *words)
    assert ended.returncode == 0, ended.stderr
    result = result_of(uncork)
    assert result["knee"]["low"] is None and result["knee"]["high"] <= 4
    (objective,) = result["objectives"]
    assert objective["holds"] in (None, 1, 2) and objective["fails"] <= 4
    assert bottlenecks(result)[0]["resource"] == "locks"
    rounds = [level for level in result["levels"] if level["rounds"]]
    # A request takes 5 ms, and some for the way.
    assert rounds and all(100 < level["throughput"] < 200 for level in rounds)
    found = result["verified"]
    at_knee = next(one for one in result["levels"] if one["level"] == found["knee"])
    assert found["rate"] == pytest.approx(0.7 * at_knee["throughput"])
    # Users who do not wait queue for the lock. How many still queue at the end is chance, so "works" is too.
    assert found["elapsed_ns"] > 2.9e9
    (late,) = found["objectives"]
    assert not late["holds"] and late["value"] > 14e6
    assert re.search("p99 < 14ms (failed|fails) at ", result["answer"].replace("\u202f", " "))
    assert "arrivals that do not wait" in uncork("report", "last", "--markdown").stdout


@pytest.mark.thorough
def test_processors_are_named_when_they_are_what_is_missing(sweep, uncork):
    script = "SELECT sum(n * n) FROM generate_series(1, 3000) AS n;"
    assert sweep(script, "clients", "-c", 2, "--to", 16, "-T", 0.3, "--budget", "12s").returncode == 0
    result = result_of(uncork)
    assert result["bottlenecks"][0]["resource"] in ("database cpu", "machine cpu")
    assert "processors are" in result["answer"]


@pytest.mark.thorough
def test_a_load_that_only_sleeps_has_no_bottleneck(sweep, uncork):
    ended = sweep("SELECT pg_sleep(0.02);", "clients", "--to", 8, "-T", 0.3, "--budget", "10s", "--verify")
    assert ended.returncode == 0
    assert "70 % of the knee, for 3.00 s" in ended.stderr
    result = result_of(uncork)
    # Other programs can be what it does not sustain them for.
    assert re.search(r"sustains? \d+ arrivals a second for 3\.", result["answer"])
    assert bottlenecks(result) == []
    assert result["knee"]["high"] is None


@pytest.mark.thorough
def test_every_visit_is_kept_and_counts_its_operations(sweep, uncork):
    assert sweep("SELECT 1;", "clients", "--to", 4, "-T", 0.2, "--budget", "3s").returncode == 0
    (folder,) = uncork.runs
    steps = f"'{folder}/sweep_visits/*.parquet'"
    rows = duckdb.sql(f"SELECT number, started, succeeded + failed FROM {steps} ORDER BY 1").fetchall()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert all(started == ended > 0 for _, started, ended in rows)
    again = uncork("report", "last", "--markdown")
    assert again.returncode == 0 and "## Results by level" in again.stdout


@pytest.mark.thorough
def test_ctrl_c_keeps_what_was_visited(uncork, words_of):
    process = uncork.start(*words_of("SELECT 1;", "clients", "-T", 0.3, "--budget", "60s"))
    uncork.wait_for(process, "4 clients")
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130, talk
    assert result_of(uncork)["run"]["status"] == "interrupted"


def test_an_unreachable_server_leaves_nothing(uncork, tmp_path):
    (tmp_path / "one.sql").write_text("SELECT 1;")
    ended = uncork(
        "load", "sql", "-n", "-f", "one.sql", "--sweep", "clients", "-h", "127.0.0.1", "-p", 1, "x"
    )
    assert ended.returncode != 0
    assert not uncork.runs


ROOT = Path(__file__).parents[2]
SWEEP = json.loads((ROOT / "schemas" / "sweep-result.schema.json").read_text())
LOAD = json.loads((ROOT / "schemas" / "load-result.schema.json").read_text())
SIZE = 4
"""Connections of the service's pool."""
HOLD_S = 0.05
"""How long each request has one: much longer than the time in which a busy machine hands it to the next."""


@pytest.fixture(scope="module")
def database():
    server = EmbeddedServer({"autovacuum": False})
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN PASSWORD 'never-shown'")
    yield server
    server.stop()


@contextmanager
def service(dsn: str, what: str):
    """Run the service that the benchmark of saturations loads; yield its address and its process."""
    port = free_port()
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "bench" / "servers" / "saturation_service.py"), str(port), what],
        env={**os.environ, "SERVICE_DSN": dsn},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None and running.stdout.readline()
        yield f"http://127.0.0.1:{port}/items", running.pid
    finally:
        running.terminate()
        running.communicate()


@pytest.fixture(scope="module")
def pooled(database):
    with service(database.conninfo(), f"pool:{SIZE}:SELECT pg_sleep({HOLD_S})") as running:
        yield running


def http_result_of(uncork, schema) -> dict:
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, schema)
    return result


@pytest.mark.thorough
def test_a_sweep_finds_the_pool_that_bends_it_and_the_load_that_holds_an_objective(uncork, database, pooled):
    # Few levels, so that a slow machine also finishes enough rounds within the budget.
    words = ("-c", 2, "--to", 16, "-D", 0.3, "--budget", "30s", "--objective", "p99<120ms, errors<0.1%")
    ended = uncork("load", "http", "--sweep", "clients", *words, "--postgres", database.conninfo(), pooled[0])
    assert ended.returncode == 0, ended.stderr
    result = http_result_of(uncork, SWEEP)
    assert result["operation"] == "request"
    assert result["knee"]["level"] <= 4 * SIZE
    best = max(level["throughput"] for level in result["levels"])
    assert best <= SIZE / HOLD_S, "four at a time"
    p99, errors = result["objectives"]
    assert p99["holds"] is None or p99["holds"] <= 4 * SIZE
    assert p99["fails"] is not None and errors["fails"] is None
    first = bottlenecks(result)[0]
    assert first["resource"] == "pool", result["bottlenecks"]
    assert first["sentence"].startswith(f"the pool of {SIZE} connections is full")
    assert all(level["server_cpus"] is not None for level in result["levels"])
    told = " ".join(ended.stdout.split())
    assert "requests a second" in told and "transaction" not in told
    again = uncork("report", "last", "--markdown")
    assert again.returncode == 0 and "## Bottlenecks" in again.stdout


@pytest.mark.thorough
def test_streams_are_raised_on_one_connection_of_nginx(uncork, tmp_path):
    with nginx(tmp_path) as server:
        url = f"http://127.0.0.1:{server.ports['two']}/small.txt"
        words = ("--to", 8, "-D", 0.2, "--budget", "5s")
        ended = uncork("load", "http", "--h2", "--sweep", "streams", *words, url)
    assert ended.returncode == 0, ended.stderr
    result = http_result_of(uncork, SWEEP)
    assert result["axis"] == "streams"
    assert [level["level"] for level in result["levels"]][:2] == [1, 2]
    assert "streams per connection" in result["answer"]


@pytest.mark.thorough
def test_the_cliff_of_a_limit_of_requests_a_connection_is_named(uncork, tmp_path):
    with nginx(tmp_path) as server:
        url = f"http://127.0.0.1:{server.ports['limited']}/small.txt"
        ended = uncork("load", "http", "--sweep", "clients", "--on-close", "stop", "-D", 0.5, url)
    assert ended.returncode == 2
    cliff = http_result_of(uncork, SWEEP)["cliff"]
    assert (cliff["works"], cliff["breaks"]) == (None, 1)
    assert cliff["reason"].startswith("the server closed a connection after 1000 requests")


@pytest.mark.thorough
def test_the_cliff_of_the_databases_limit_is_explained_by_who_refused(uncork, database):
    small = EmbeddedServer({"max_connections": 12, "autovacuum": False})
    small.start()
    try:
        with service(small.conninfo(), "connect:SELECT pg_sleep(0.05)") as (url, _):
            words = ("-c", 4, "--to", 32, "-D", 0.4, "--budget", "10s")
            ended = uncork("load", "http", "--sweep", "clients", *words, "--postgres", small.conninfo(), url)
    finally:
        small.stop()
    assert ended.returncode == 0, ended.stderr
    result = http_result_of(uncork, SWEEP)
    assert "the answer has the status 503 (request " in result["cliff"]["reason"]
    assert "connection limit" in {one["resource"] for one in result["bottlenecks"]}, result["bottlenecks"]


def test_a_plain_load_tells_what_holds_it_up(uncork, database, pooled):
    url, pid = pooled
    seen = ("--postgres", database.conninfo(), "--service-pid", pid)
    ended = uncork("load", "http", "-c", 24, "-D", 3, *seen, url)
    assert ended.returncode == 0, ended.stderr
    result = http_result_of(uncork, LOAD)
    assert result["bottlenecks"][0]["sentence"] in " ".join(ended.stdout.split())
    first = bottlenecks(result)[0]
    assert first["resource"] == "pool" and result["missing"] == []
    assert first["sentence"].startswith("the pool of 4 connections is full")
    assert {one["role"] for one in result["system"]["processes"]} == {"service", "database", "generator"}


def test_a_light_load_has_no_bottleneck(uncork, database, pooled):
    ended = uncork("load", "http", "-R", 20, "-D", 3, "--postgres", database.conninfo(), pooled[0])
    assert ended.returncode == 0, ended.stderr
    assert bottlenecks(http_result_of(uncork, LOAD)) == []


def test_a_party_that_is_not_there_is_told_in_one_line_and_the_load_goes_on(uncork, pooled):
    dsn = f"host=127.0.0.1 port={free_port()} user=app password=never-shown dbname=x"
    ended = uncork("load", "http", "-n", 50, "--service-pid", 4194303, "--postgres", dsn, pooled[0])
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.splitlines()
    (gone,) = (line for line in lines if "there is no process 4194303" in line)
    (refused,) = (line for line in lines if "--postgres: " in line)
    assert "continues without watching it" in gone and "continues without watching the database" in refused
    assert "There is no process 4194303" in " ".join(ended.stdout.split())
    assert "never-shown" not in ended.stdout + ended.stderr
    for path in uncork.runs[0].rglob("*"):
        assert path.is_dir() or b"never-shown" not in path.read_bytes(), path


def test_a_role_that_may_not_see_others_is_told_what_it_loses(uncork, database, pooled):
    dsn = f"{database.conninfo()} user=app"
    ended = uncork("load", "http", "-n", 50, "--postgres", dsn, pooled[0])
    assert ended.returncode == 0, ended.stderr
    assert 'GRANT pg_read_all_stats TO "app"' in " ".join(ended.stdout.split())
