"""The archive's service on each of its layouts: the same answers, the window, the deadline, its end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from urllib.parse import quote

import psycopg
import pytest

from uncork import cases
from uncork.experiment.spec.sqltext import substitute

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

ROWS = 20_000
CASE = cases.path("message-archive")
VARIANTS = tomllib.loads((CASE / "case.toml").read_text())["variants"]
LAYOUTS = [name for name in VARIANTS if name not in ("timescaledb", "window", "index-window")]
TOPIC = "org.fedoraproject.prod.copr.chroot.start"
KINDS = {
    "raw": "/raw",
    "topic": f"/raw?topic={TOPIC}",
    "category": "/raw?category=git",
    "user": "/raw?user=pingou",
    "package": "/raw?package=kernel",
    "both": "/raw?user=pingou&package=kernel",
    "all": "/raw?user=pingou&category=git&rows_per_page=3&page=2",
}


@pytest.fixture(scope="module")
def layouts(embedded):
    """Build every layout in a database of its own; return how each is reached."""
    found = {}
    for name in LAYOUTS:
        rows = {"rows": str(ROWS)}
        values = {key: substitute(text, rows) for key, text in VARIANTS[name]["values"].items()}
        database = f"archive_{name.replace('-', '_')}"
        with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {database}")
            connection.execute(f"CREATE DATABASE {database}")
        with psycopg.connect(embedded.conninfo(database), autocommit=True) as connection:
            connection.execute(substitute((CASE / "schema.sql").read_text(), {**rows, **values}).encode())
            connection.execute("VACUUM ANALYZE")
        found[name] = embedded.conninfo(database)
    return found


class Running:
    """The service as a process, with what the environment tells it."""

    def __init__(self, database, **environment):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, CASE / "service.py"],
            env={"PATH": os.environ["PATH"], "PORT": str(self.port), "DATABASE_URL": database, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        ends = time.monotonic() + 30
        while not self.listens():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < ends
            time.sleep(0.05)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10), self.process.stderr.read()


@pytest.fixture
def serve():
    started = []

    def start(database, **environment):
        started.append(Running(database, **environment))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        one.process.stderr.close()


def shown(service, path):
    status, body = service.get(path)
    assert status == 200, body
    return body["total"], [message["id"] for message in body["raw_messages"]]


def test_every_layout_answers_the_same(layouts, serve):
    expected = None
    for name, database in layouts.items():
        service = serve(database, LINKS=VARIANTS[name]["values"]["links"])
        found = {kind: shown(service, path) for kind, path in KINDS.items()}
        for kind in ("raw", "topic", "category"):
            # Messages that were delivered twice are there twice where keys allow it.
            total, messages = found[kind]
            found[kind] = (round(total, -2), [one for one in messages if one <= ROWS][:20])
        expected = expected or found
        assert found == expected, name
        status, body = service.end()
        assert (status, body) == (0, "")
    assert all(total > 0 for total, _ in expected.values())
    assert expected["user"][1] == sorted(expected["user"][1], reverse=True)


def test_messages_are_as_skewed_as_they_are_said_to_be(layouts):
    with psycopg.connect(layouts["prod"]) as connection:
        counts = connection.execute("SELECT count(*) FROM messages GROUP BY topic ORDER BY 1 DESC").fetchall()
        (last,) = connection.execute(
            "SELECT count(*) FROM messages WHERE \"timestamp\" >= '2021-09-28'"
        ).fetchone()
    assert counts[0][0] > 10 * counts[30][0]
    assert 0.001 < last / ROWS < 0.002, "a window of 3 days holds one message in a thousand"


def test_a_window_holds_where_a_request_names_none(layouts, serve):
    service = serve(layouts["prod"], WINDOW="3")
    total, messages = shown(service, "/raw")
    assert 20 <= total <= 40
    assert shown(service, f"/raw?delta={10 * 366 * 86_400}")[0] == ROWS
    assert shown(service, "/raw?user=pingou")[0] < total
    assert max(messages) == ROWS


def test_a_message_by_its_id(layouts, serve):
    service = serve(layouts["by-time"], LINKS="keyed")
    with psycopg.connect(layouts["by-time"]) as connection:
        (name,) = connection.execute("SELECT msg_id FROM messages WHERE id = 77").fetchone()
    status, body = service.get(f"/id?id={quote(name)}")
    assert (status, body["id"]) == (200, 77)
    assert service.get("/id?id=none")[0] == 404


def test_duplicates_are_where_the_keys_allow_them(layouts):
    check = tomllib.loads((CASE / "case.toml").read_text())["checks"]["duplicates"]["sql"]
    found = {}
    for name, database in layouts.items():
        with psycopg.connect(database) as connection:
            (found[name],) = connection.execute(check).fetchone()
    twice = ROWS // 10_000
    assert found == {name: twice if name.startswith("by-") else 0 for name in layouts}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/raw?tpoic=x", 'there is no parameter "tpoic"'),
        ("/raw?page=x", 'page must be a number, not "x"'),
        ("/raw?topic=%00", "NUL"),
        ("/id", "id is missing"),
    ],
)
def test_a_request_that_makes_no_sense(layouts, serve, path, told):
    status, body = serve(layouts["prod"]).get(path)
    assert status == 400
    assert told in body["error"]


def test_what_is_not_answered_by_the_deadline_is_a_504_and_its_query_ends(layouts, serve):
    service = serve(layouts["prod"], DEADLINE="0.2", POOL="1")
    with psycopg.connect(layouts["prod"], autocommit=False) as lock:
        lock.execute("LOCK TABLE messages")
        assert service.get("/raw") == (504, {"error": "not answered within 0.2 s"})
        assert service.get("/id?id=x")[0] == 504
    assert service.get("/raw")[0] == 200
    assert service.get("/nothing")[0] == 404


def test_a_database_that_goes_away_is_a_503_and_one_line(layouts, serve):
    service = serve(layouts["prod"], POOL="1")
    with psycopg.connect(layouts["prod"], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
    assert service.get("/raw") == (503, {"error": "the database cannot answer"})
    assert service.get("/raw")[0] == 200, "the pool has connected again"
    status, told = service.end()
    assert status == 0
    assert re.search(r"^/raw: terminating connection", told, re.MULTILINE)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "PORT is not set"),
        ({"PORT": "1", "DATABASE_URL": "", "LINKS": "other"}, 'LINKS is "other"'),
        ({"PORT": "8", "DATABASE_URL": "host=/nowhere connect_timeout=1"}, "pool initialization incomplete"),
    ],
)
def test_an_environment_that_makes_no_sense(environment, told):
    done = subprocess.run(
        [sys.executable, CASE / "service.py"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
