"""`uncork load together` by subprocess, on a real PostgreSQL and a real nginx."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import jsonschema
import psycopg
import pytest

from fakes.http_servers import nginx
from uncork.analysis.runs.figures import run_figures
from uncork.engines.embedded import EmbeddedServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("load")]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "together-result.schema.json").read_text())


@pytest.fixture(scope="module")
def database():
    server = EmbeddedServer({"max_connections": 30, "autovacuum": False, "shared_buffers": "32MB"})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield f"http://127.0.0.1:{running.ports['plain']}"


@pytest.fixture
def words(uncork, database, service):
    """Return the words of two loads: of SQL with these options, and of HTTP with those."""
    script = uncork.write("SELECT 1;\n", "one.sql")

    def of(sql: str, http: str, path: str = "/small.txt") -> tuple[str, ...]:
        address = f"-h {database.host} -p {database.port} -U uncork postgres"
        return (
            *("load", "together", "--sql", f"-n -f {script} {sql} {address}"),
            *("--http", f"{http} {service}{path}"),
        )

    return of


def result_of(folder: Path) -> dict:
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    for one in result["loads"]:
        counts = one["load"]["counts"]
        assert counts["started"] == counts["succeeded"] + counts["failed"]
        if counts["arrivals"] is not None:
            assert counts["arrivals"] == counts["started"] + counts["skipped"] + counts["unsent"]
        assert sum(second["succeeded"] for second in one["load"]["series"]) == counts["succeeded"]
    return result


def test_two_loads_start_at_one_instant_and_are_one_run_with_one_report(uncork, words):
    done = uncork(*words("-c 2 -T 2.4 --warmup 0.3", "-c 2 -R 200 -D 2.4"), "-P", 1)
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = result_of(folder)
    assert result["kind"] == "together" and result["run"]["status"] == "complete"
    sql, http = (one["load"] for one in result["loads"])
    assert [one["name"] for one in result["loads"]] == ["sql", "http"]
    assert (sql["http"], http["settings"]["arrivals"]) == (None, "constant")
    assert http["counts"]["arrivals"] == 480 and set(http["http"]["statuses"]) == {"200"}
    plans = [json.loads((folder / "parts" / name / "plan.json").read_text()) for name in ("sql", "http")]
    (start,) = {plan["part"]["start_at_ns"] for plan in plans}
    assert 0 < start < time.monotonic_ns(), "one instant of the monotonic clock"
    assert result["apart_ns"] < 500_000_000
    said = " ".join(done.stdout.split())
    # Beside other programs, a generator may be late: then the answer begins with what was not sent.
    assert re.match(
        r"(Together, the loads handled|2 loads ran together, without failures, and arrivals not)", said
    )
    assert re.search(r" transactions a second \(sql\).* \(http\)", said)
    assert "sql: The server handled" in said and "http: The service handled" in said
    assert re.search(r"^sql: progress: ", done.stderr, re.MULTILINE)
    assert re.search(r"^http: progress: ", done.stderr, re.MULTILINE)
    page = (folder / "report.html").read_text()
    assert "Throughput of all loads over time" in page and "sql: latency" in page and "http: latency" in page
    again = uncork("report", "last")
    assert again.returncode == 0 and again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert "together: sql, http" in uncork("runs").stdout
    metrics = {one.key for one in run_figures(folder).figures}
    assert {("sql", "throughput"), ("http", "throughput"), ("http", "never sent")} <= metrics


def test_an_error_in_one_load_does_not_end_the_other_and_the_status_says_so(uncork, words):
    done = uncork(*words("-c 1 -T 1", "-c 1 -n 20", "/missing"))
    assert done.returncode == 2
    sql, http = (one["load"]["counts"] for one in result_of(uncork.runs[0])["loads"])
    assert (sql["failed"], http["succeeded"], http["errors"]) == (0, 0, {"status 404": 20})
    assert json.loads((uncork.runs[0] / "manifest.json").read_text())["status"] == "failed"


def test_ctrl_c_ends_both_and_keeps_what_was_measured(uncork, words, database):
    process = uncork.start(*words("-c 2 -T 600", "-c 2 -D 600"))
    with psycopg.connect(database.conninfo(), autocommit=True) as connection:
        clients = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT 1;'"
        until = time.monotonic() + 60
        while not all(list(one.glob("parts/*/glances.jsonl"))[1:] for one in uncork.runs or [uncork.folder]):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 130, error
        assert "Traceback" not in error and "what was measured until then is kept" in error
        assert connection.execute(clients).fetchone() == (0,), "no client is left"
    loads = result_of(uncork.runs[0])["loads"]
    assert [one["load"]["run"]["outcome"] for one in loads] == ["interrupted", "interrupted"]
    assert all(one["load"]["counts"]["succeeded"] > 0 for one in loads)


def test_a_load_that_cannot_start_ends_the_others_and_nothing_is_kept(uncork, words, database, service):
    address = f"-h {database.host} -p {database.port} -U uncork postgres"
    done = uncork("load", "together", "--sql", f"-T 60 {address}", "--http", f"-D 60 {service}/")
    assert done.returncode == 1 and done.stderr.count("\n") <= 4
    assert "uncork: sql: " in done.stderr and "has no pgbench tables" in done.stderr
    assert uncork.runs == []
