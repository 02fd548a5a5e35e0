"""`uncork profile db` as a person runs it: what it says, what it keeps, what it refuses."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import jsonschema
import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer

pytestmark = pytest.mark.postgres
SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schemas" / "database-result.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture
def server(uncork):
    """A server with one session that sleeps again and again, for a route."""
    found = EmbeddedServer({"shared_buffers": "16MB", "pg_stat_statements.track_planning": "on"})
    found.start()
    over = threading.Event()
    statement = "SELECT pg_sleep(0.1) WHERE 'secret literal' <> '' /*route='%2Fsleep'*/"

    def sleep():
        with psycopg.connect(found.conninfo(), autocommit=True, application_name="sleeper") as connection:
            while not over.is_set():
                connection.execute(statement, prepare=False)  # so that each execution is planned

    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE customer (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE bill (id int PRIMARY KEY, customer int REFERENCES customer)")
    thread = threading.Thread(target=sleep)
    thread.start()
    yield found
    over.set()
    thread.join()
    found.stop()


def test_it_says_where_the_time_goes_and_is_reported_again(uncork, server):
    done = uncork("profile", "db", server.conninfo(), "--for", "1s", "--full")
    assert done.returncode == 0, done.stderr
    assert "sessions were busy on average" in done.stdout or "session was busy on average" in done.stdout
    told = " ".join(done.stdout.split())
    for part in (
        "sleeping",
        "select pg_sleep(?)",
        "sleeper",
        "Busy sessions by step",
        "/sleep",
        "Tables by size",
        "Foreign keys without an index",
        "How the server was watched",
    ):
        assert part in told
    (folder,) = uncork.runs
    assert {path.name for path in folder.iterdir()} >= {
        "manifest.json",
        "facts.json",
        "report.html",
        "report.md",
    }
    first = json.loads((folder / "result.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(first)
    assert [one["name"] for one in first["routes"]] == ["/sleep"]
    assert first["routes"][0]["templates"][0]["name"].startswith("select pg_sleep(?)")
    steps = {one["name"]: one["sessions"] for one in first["steps"]}
    assert steps.keys() == {"plan", "execute", "commit", "idle in transaction", "unknown"}
    assert sum(steps.values()) == pytest.approx(first["tree"]["sessions"])
    assert 0 < steps["plan"] < steps["execute"]
    again = uncork("report", "last", "--json")
    assert json.loads(again.stdout) == first
    assert uncork("report", "last").stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert uncork("report", "last", "--markdown").stdout.startswith("# ")
    assert " database " in uncork("runs").stdout
    asked = uncork("sql", "last", "SELECT DISTINCT application FROM database_activity", "--csv")
    assert asked.stdout == "application\nsleeper\n"
    rerun = uncork("rerun", "last")
    assert rerun.returncode == 1 and "is a database, not an experiment" in rerun.stderr


def test_passwords_are_not_kept_and_anonymous_runs_have_no_literals(uncork, server):
    conninfo = f"{server.conninfo()} password=hunter2"
    assert uncork("profile", "db", conninfo, "--for", "500ms", "--anonymize", "-q").returncode == 0
    (folder,) = uncork.runs
    kept = {one.name: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    assert kept
    for secret in (b"hunter2", b"secret literal"):
        assert [name for name, content in kept.items() if secret in content] == []


def test_variables_name_the_server_and_forms_go_to_standard_output(uncork, server):
    env = {"PGHOST": server.host, "PGPORT": str(server.port), "PGUSER": "uncork", "PGDATABASE": "postgres"}
    page = uncork.folder / "page.html"
    done = uncork("profile", "db", "--for", "200ms", "--rate", "10", "--json", "--html", page, "-q", env=env)
    assert done.returncode == 0 and done.stderr == ""
    result = json.loads(done.stdout)
    assert result["watch"]["rate_hz"] == 10
    assert "<script src" not in page.read_text()
    done = uncork("profile", "db", "--for", "200ms", "--markdown", env=env)
    assert done.stdout.startswith("# database-")
    place = f"uncork@{server.host}:{server.port}/postgres"
    assert f"watching {place} for 200 ms" in done.stderr


def test_the_graph_of_foreign_keys_is_written(uncork, server):
    done = uncork("profile", "db", server.conninfo(), "--for", "200ms", "-q", "--graph", "tables.dot")
    assert done.returncode == 0, done.stderr
    text = (uncork.folder / "tables.dot").read_text()
    assert text.startswith("digraph") and "bill" in text and "no index" in text


def test_ctrl_c_keeps_what_was_seen(uncork, server):
    process = uncork.start("profile", "db", server.conninfo(), "--for", "10min")
    uncork.wait_for(process, "left; ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what was recorded until then is kept" in err
    assert "Watching was interrupted" in " ".join(out.split())
    (folder,) = uncork.runs
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"
    assert json.loads((folder / "result.json").read_text())["counted_ns"] > 0
