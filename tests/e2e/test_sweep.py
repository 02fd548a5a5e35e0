"""`uncork load sql --sweep` by subprocess, on a real server: bends, cliffs, objectives, refusals."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import duckdb
import jsonschema
import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer

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
