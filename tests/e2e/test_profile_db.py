"""`uncork profile db` and `profile objects` as a person runs them, also with --anonymize."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import jsonschema
import psycopg
import pyarrow.parquet as pq
import pytest
from bench.servers.s3_server import BUCKET, s3_server

from fakes.log_fleet import PREFIX, fleet_log
from fakes.object_server import object_server
from uncork.engines.embedded import EmbeddedServer

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


@pytest.mark.postgres
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


@pytest.mark.postgres
def test_passwords_are_not_kept_and_anonymous_runs_have_no_literals(uncork, server):
    conninfo = f"{server.conninfo()} password=hunter2"
    assert uncork("profile", "db", conninfo, "--for", "500ms", "--anonymize", "-q").returncode == 0
    (folder,) = uncork.runs
    kept = {one.name: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    assert kept
    for secret in (b"hunter2", b"secret literal"):
        assert [name for name, content in kept.items() if secret in content] == []


@pytest.mark.postgres
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


@pytest.mark.postgres
def test_the_graph_of_foreign_keys_is_written(uncork, server):
    done = uncork("profile", "db", server.conninfo(), "--for", "200ms", "-q", "--graph", "tables.dot")
    assert done.returncode == 0, done.stderr
    text = (uncork.folder / "tables.dot").read_text()
    assert text.startswith("digraph") and "bill" in text and "no index" in text


@pytest.mark.postgres
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


FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
NAME = "same-events.stderr.log.gz"
NAMED = "postgresql.log.2026-11-27"
TEXT = gzip.decompress((FIXTURES / NAME).read_bytes())


@pytest.fixture
def objects_server():
    with object_server() as running:
        yield running


def put(server, key, content):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("PUT", f"/{BUCKET}/{key}", content, {"content-type": "application/octet-stream"})
    assert connection.getresponse().status == 200
    connection.close()


def test_logs_in_a_bucket_are_reported_as_local_ones_are(uncork):
    with s3_server() as server:
        put(server, f"error/{NAME}", (FIXTURES / NAME).read_bytes())
        put(server, "error/notes.bin", b"\0")
        bucket = f"s3://{BUCKET}/error/"
        done = uncork("profile", "logs", bucket, "-j", "1", "--json", env=server.environment)
        advice = uncork("advise", bucket, "-q", env=server.environment)
        none = uncork("profile", "logs", f"s3://{BUCKET}/none/", env=server.environment)
    assert done.returncode == 0, done.stderr
    local = json.loads(uncork("profile", "logs", FIXTURES / NAME, "-j", "1", "--json").stdout)
    assert json.loads(done.stdout)["skipped"] == [f"{bucket}notes.bin"]
    found = json.loads(done.stdout.replace(f"{bucket}{NAME}", str(FIXTURES / NAME)))
    assert {name for name in found if found[name] != local[name]} <= {"run", "missing", "skipped", "warnings"}
    assert advice.returncode == 0, advice.stderr
    assert none.returncode == 1
    assert none.stderr == f"uncork: s3://{BUCKET}/none/: no object has this name or prefix\n"


def test_an_object_that_cannot_be_read_to_its_end_is_named(uncork, objects_server):
    objects_server.put("a.log", TEXT)
    objects_server.put("b.log", TEXT)
    objects_server.faults["a.log", 0] = ["403"] * 2  # also of its beginning
    done = uncork("profile", "logs", "s3://logs/", env=objects_server.s3)
    assert done.returncode == 2
    said = " ".join(done.stdout.split())
    assert "s3://logs/a.log" in said and "access is forbidden (403 SlowDown)" in said


def test_a_signed_address_is_stored_without_its_signature(uncork, objects_server):
    objects_server.put("a.log", TEXT)
    address = f"http://127.0.0.1:{objects_server.port}/logs/a.log"
    done = uncork("profile", "logs", f"{address}?X-Amz-Signature=hush", "-q")
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in uncork.runs[0].rglob("*") if path.is_file())
    assert b"hush" not in written
    assert "SIGNATURE:?" in (uncork.runs[0] / "manifest.json").read_text()


def test_objects_are_not_followed(uncork, objects_server):
    done = uncork("profile", "logs", "s3://logs/", "--follow", env=objects_server.s3)
    assert done.returncode == 1
    assert done.stderr == "uncork: --follow reads files and folders, not objects such as s3://logs/\n"


def test_ctrl_c_keeps_what_has_arrived(uncork, objects_server):
    objects_server.put(f"{NAMED}-01", TEXT)
    objects_server.put(f"{NAMED}-02", TEXT)
    objects_server.put(f"{NAMED}-03", TEXT)
    objects_server.silent[f"{NAMED}-03"] = 0
    for name, value in objects_server.s3.items():
        uncork.environment[name] = value
    process = uncork.start("profile", "logs", "s3://logs/")
    until = time.monotonic() + 60
    while f"{NAMED}-03" not in {key for key, _, _ in objects_server.ranges} and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(1)  # the others have long arrived
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    facts = json.loads((uncork.runs[0] / "facts.json").read_text())
    assert facts["stopped"] and facts["entries"] > 0


def test_a_killed_command_goes_on_with_what_it_had_not_read(uncork, objects_server):
    for number in range(4):
        objects_server.put(f"{NAMED}-0{number}", fleet_log(random.Random(number), 0, number, 200).encode())
    objects_server.silent[f"{NAMED}-02"] = 0
    for name, value in objects_server.s3.items():
        uncork.environment[name] = value
    words = ("profile", "logs", "s3://logs/", "-p", PREFIX)
    process = uncork.start(*words, "--processes", "2")
    kept, until = uncork.folder / "runs" / ".unfinished", time.monotonic() + 60
    while len(list(kept.glob("*[!w]"))) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    objects_server.silent.clear()
    objects_server.ranges.clear()
    done = uncork(*words, "--processes", "2", "--json")
    assert "3 of 4 parts of the logs were read before an interruption" in done.stderr
    assert {key for key, _, _ in objects_server.ranges} == {f"{NAMED}-02"} and not kept.exists()
    whole = json.loads(uncork(*words, "-j", "1", "--json").stdout)
    found = json.loads(done.stdout)
    assert {name for name in found if found[name] != whole[name]} <= {"run", "missing", "findings"}


SECRET, NUMBER = "Zanzibar", 47110815
BROKEN = f"first line\n{SECRET} middle line\n{SECRET}''s last line"
SENT = (
    f"SELECT count(*), '{SECRET}' FROM customer, pg_sleep(0.02) WHERE email = '{SECRET}' AND id < {NUMBER} "
    f"/* path='%2F{SECRET}' */",
    f"SELECT note FROM customer WHERE account = {NUMBER} AND note <> '{BROKEN}'",
    f"SELECT id, pg_sleep(0.02) FROM customer WHERE account = {NUMBER + 1} OR account = {NUMBER} LIMIT 1",
    f"SELECT to_date('{SECRET}', 'YYYY') FROM pg_sleep(0.01)",
)
BOUND = "SELECT id FROM customer WHERE email = %s AND account > %s /* path='%%2FZanzibar' */"


@pytest.fixture
def anonymized_server():
    """A server that logs plans, while a client sends values within statements and as parameters."""
    found = EmbeddedServer(
        {
            "shared_preload_libraries": "pg_stat_statements,auto_explain",
            "auto_explain.log_min_duration": 0,
            "auto_explain.log_verbose": "on",
            "auto_explain.log_parameter_max_length": -1,
            "log_min_duration_statement": 0,
        }
    )
    found.start()
    over = threading.Event()

    def work():
        with psycopg.connect(found.conninfo(), autocommit=True, application_name="shop") as connection:
            connection.prepare_threshold = 0
            while not over.is_set():
                for text in SENT:
                    connection.pgconn.exec_(text.encode())
                connection.execute(BOUND, (SECRET, NUMBER))

    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE customer (id int, email text, account int, note text)")
        connection.execute(
            "INSERT INTO customer SELECT n, CASE WHEN n %% 3 = 0 THEN %s ELSE n::text END, "
            "CASE WHEN n %% 2 = 0 THEN %s ELSE n END, %s FROM generate_series(1, 3000) AS n",
            (SECRET, NUMBER, SECRET),
        )
        connection.execute("CREATE INDEX ON customer (account)")
        connection.execute("ANALYZE customer")
    thread = threading.Thread(target=work)
    thread.start()
    yield found
    over.set()
    thread.join()
    found.stop()


def where_values_are(folder):
    """Return the files below a folder that contain a value; Parquet is read, because it is compressed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        texts = [path.read_bytes().decode(errors="replace")]
        if path.suffix == ".parquet":
            texts += [str(row) for row in pq.read_table(path, partitioning=None).to_pylist()]
        for text in texts:
            place = min((text.find(value) for value in (SECRET, str(NUMBER)) if value in text), default=-1)
            if place >= 0:
                found.append((str(path.relative_to(folder)), text[max(0, place - 60) : place + 60]))
                break
    return found


@pytest.mark.postgres
def test_no_value_of_the_data_is_in_any_file(uncork, anonymized_server):
    assert uncork("profile", "db", anonymized_server.conninfo(), "--for", "2s", "-q").returncode == 0
    (plain,) = uncork.runs
    told = " ".join(path for path, _ in where_values_are(plain))
    tables = ("database_plans", "database_texts", "database_columns", "database_activity")
    assert [table for table in tables if table not in told] == [], told

    done = uncork("profile", "db", anonymized_server.conninfo(), "--for", "2s", "--anonymize", "--full")
    assert done.returncode == 0, done.stderr
    watched = max(uncork.runs, key=lambda folder: folder.stat().st_mtime_ns)
    assert watched != plain
    advised = uncork("advise", watched.name)
    assert advised.returncode == 0, advised.stderr
    rows = uncork("sql", watched.name, "SELECT source, plan FROM database_plans", "--json").stdout
    assert "(email = ?::text)" in rows and '"seen"' in rows and "Index" in rows

    log = uncork.folder / "server.log"
    log.write_bytes(b"".join(path.read_bytes() for path in anonymized_server.logs))
    assert SECRET in log.read_text()
    events = uncork.folder / "events"
    read = uncork("profile", "logs", log, "--anonymize", "--rejected", "--full", "--events", events)
    assert read.returncode == 0, read.stderr
    plans = uncork("sql", "last", "SELECT text FROM log_examples WHERE kind = 'plan'", "--json").stdout
    assert "Seq Scan on public.customer" in plans and "email = ?::text" in plans
    runs = [folder for folder in uncork.runs if folder != plain]
    assert len(runs) == 2
    for folder in (*runs, events):
        assert where_values_are(folder) == []
    for text in (done.stdout, advised.stdout, read.stdout):
        assert SECRET not in text and str(NUMBER) not in text
