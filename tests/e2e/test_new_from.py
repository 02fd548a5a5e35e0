"""From a slow statement or a load of a service to a verdict on an index: new --from, plan, run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.engines.ports import free_port

pytestmark = pytest.mark.postgres

TABLE = """
CREATE TYPE state AS ENUM ('open', 'paid', 'sent');
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer_id int NOT NULL, state state, note varchar(40),
    placed timestamptz NOT NULL,
    details jsonb, tags text[], total numeric(10, 2), gross numeric GENERATED ALWAYS AS (total * 1.2) STORED
);
INSERT INTO orders (id, customer_id, state, note, placed, details, tags, total)
SELECT n, n % 5000, CASE WHEN n % 10 = 0 THEN 'open' WHEN n % 7 > 0 THEN 'paid' END::state, 'note ' || n,
       timestamptz '2026-01-01' + n * interval '1 minute', '{}', '{}', n % 1000
  FROM generate_series(1, 40000) AS n;
CREATE INDEX orders_placed ON orders (placed);
ANALYZE orders;
CREATE EXTENSION pg_stat_statements
"""
SLOW = "SELECT id, total FROM orders WHERE customer_id = %s AND state = 'open' ORDER BY placed LIMIT 10"


@pytest.mark.thorough
@pytest.mark.slow
def test_a_slow_statement_becomes_an_experiment_with_a_verdict(uncork):
    server, over = EmbeddedServer({"shared_buffers": "32MB"}), threading.Event()
    server.start()

    def ask():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute(SLOW, (10,))

    thread = threading.Thread(target=ask)
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for statement in TABLE.split(";\n"):
                connection.execute(statement)
        thread.start()
        done = uncork("profile", "db", server.conninfo(), "--for", "1s")
        assert done.returncode == 0, done.stderr
        bare = uncork("new", "bare.toml", "--from", "last")
        assert bare.returncode == 0, bare.stderr
        index = "CREATE INDEX ON orders (customer_id)"
        made = uncork(
            *(
                "new",
                "slow.toml",
                "--from",
                "last",
                "--template",
                "from orders",
                "--change",
                f"index={index}",
            ),
            *("--dsn", server.conninfo()),
        )
        assert made.returncode == 0, made.stderr
    finally:
        over.set()
        thread.join()
        server.stop()

    unfilled = uncork("plan", "bare.toml")
    assert unfilled.returncode == 1
    assert "fill in the change to test, such as CREATE INDEX ON orders (customer_id);" in unfilled.stderr
    assert "fill in CREATE TABLE orders and INSERT with realistic rows" in unfilled.stderr
    assert "CREATE INDEX orders_placed ON public.orders" in (uncork.folder / "bare.toml").read_text()

    text = (uncork.folder / "slow.toml").read_text()
    assert "limit :p" in text and "customer_id = :customer_id and state = :state" in text
    place = "-- FILL IN: a query that returns the values of :p, such as VALUES (1), (2)"
    assert place in text
    uncork.write(text.replace(place, "VALUES (10)"), "slow.toml")
    planned = uncork("plan", "slow.toml")
    assert planned.returncode == 0, planned.stderr
    ran = uncork("run", "slow.toml", "--budget", "20s", "--precision", "99%", "--expect", "index=faster")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "faster" in ran.stdout


SHOP = """
CREATE TABLE items (id integer NOT NULL, name text NOT NULL, price integer NOT NULL);
INSERT INTO items SELECT n, 'item ' || n, n % 100 FROM generate_series(1, 30000) AS n;
CREATE VIEW item AS SELECT * FROM items
"""
SERVICE = Path(__file__).parents[2] / "examples" / "services" / "service.py"


@contextmanager
def service(dsn):
    """Run the example's service on a database; yield its address. It has a secret that nothing may store."""
    port = free_port()
    given = {"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(port), "DATABASE_URL": dsn}
    running = subprocess.Popen(
        [sys.executable, SERVICE.name],
        cwd=SERVICE.parent,
        env={**given, "POOL": "4", "API_TOKEN": "never-shown"},
    )
    try:
        deadline = time.monotonic() + 30
        while f":{port:04X} " not in Path("/proc/net/tcp").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


@pytest.mark.thorough
@pytest.mark.slow
def test_a_load_of_a_service_becomes_an_experiment_with_a_verdict(uncork):
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
        dsn = server.conninfo("shop")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SHOP)
        with service(dsn) as address:
            loading = ("load", "http", "-c", 2, "-D", "0.5s", "--var", "id=1..30000", "--postgres", dsn)
            done = uncork(*loading, f"{address}/items/{{id}}")
            assert done.returncode == 0, done.stderr
            changes = ("--change", "index=CREATE INDEX ON items (id)")
            made = uncork("new", "slow.toml", "--from", "last", *changes)
            assert made.returncode == 0, made.stderr
            bare = uncork("new", "bare.toml", "--from", "last", "--change-env", "POOL=1")
            refused = uncork("new", "no.toml", "--from", "last", "--template", "item")
        (stored,) = uncork.runs
        assert not [
            path for path in stored.rglob("*") if path.is_file() and b"never-shown" in path.read_bytes()
        ]
        text = (uncork.folder / "slow.toml").read_text()
        assert 'POOL = "4"' in text and 'API_TOKEN = "${API_TOKEN}"' in text and f'"{SERVICE.name}"' in text
        assert 'services.app.environment = { POOL = "1" }' in (uncork.folder / "bare.toml").read_text()
        assert bare.returncode == 0 and refused.returncode == 1
        assert "--template chooses a statement, but this run is a load of a service" in refused.stderr

        planned = uncork("plan", "slow.toml", "--dsn", dsn)
        assert planned.returncode == 0, planned.stderr
        # Short trials, for a short test. Where a pg_dump of this version is installed, the file has settings
        # for the embedded server, into which it copies.
        text = text.replace('metric = "latency_mean"', 'metric = "latency_mean"\noperations = 30\nblocks = 2')
        head, _, rest = text.partition("# Settings of the service's server")
        uncork.write(head + rest[rest.find("[stop]") :] if rest else text, "slow.toml")
        words = ("--budget", "200s", "--precision", "50%", "--expect", "index=faster")
        ran = uncork("run", "slow.toml", "--dsn", dsn, *words, env={"API_TOKEN": "never-shown"})
        assert ran.returncode == 0, ran.stderr + ran.stdout
        with psycopg.connect(dsn) as connection:
            names = [name for (name,) in connection.execute("SELECT datname FROM pg_database")]
        assert sorted(names) == ["postgres", "shop", "template0", "template1"], "the copies are dropped"
    finally:
        server.stop()


ENTRY = "2026-01-01 10:00:0{second}.000 UTC [{pid}] user=app,db=shop {rest}\n"
OPEN = "'open'"
FIND = "SELECT id FROM orders WHERE customer_id = {} AND status = {}"
LOG = "".join(
    ENTRY.format(second=second, pid=pid, rest=rest)
    for second, pid, rest in (
        (0, 101, f"LOG:  duration: 812.500 ms  execute <unnamed>: {FIND.format('$1', '$2')}"),
        (0, 101, "DETAIL:  Parameters: $1 = '42', $2 = 'it''s'"),
        (1, 102, f"LOG:  duration: 512.500 ms  statement: {FIND.format(17, OPEN)}"),
        (3, 102, "LOG:  duration: 12.500 ms  statement: UPDATE orders SET status = 'done' WHERE id = 7"),
    )
)


def test_the_statement_of_a_log_keeps_the_values_that_the_log_shows(uncork):
    (uncork.folder / "server.log").write_text(LOG)
    assert uncork("profile", "logs", "server.log", "-q").returncode == 0
    made = uncork(
        "new", "slow.toml", "--from", "last", "--change", "index=CREATE INDEX ON orders (customer_id)"
    )
    assert made.returncode == 0, made.stderr
    assert "slow.toml:24: fill in CREATE TABLE orders and INSERT with realistic rows" in made.stdout
    text = (uncork.folder / "slow.toml").read_text()
    assert "SELECT id FROM orders WHERE customer_id = :customer_id AND status = :status" in text
    assert """parameters.customer_id = { query = "VALUES ('42'), ('17')" }""" in text
    assert """parameters.status = { query = "VALUES ('it''s'), ('open')" }""" in text
    table = "CREATE TABLE orders (id int, customer_id int, status text);"
    uncork.write(
        text.replace("-- FILL IN: CREATE TABLE orders and INSERT with realistic rows", table), "slow.toml"
    )
    assert uncork("plan", "slow.toml").returncode == 0

    other = uncork("new", "other.toml", "--from", "last", "--template", "UPDATE  orders")
    assert other.returncode == 0, other.stderr
    assert "status = :status WHERE id = :id" in (uncork.folder / "other.toml").read_text()
    assert 'state = "reset"' in (uncork.folder / "other.toml").read_text()

    assert uncork("profile", "logs", "server.log", "-q", "--anonymize").returncode == 0
    assert uncork("new", "anonymous.toml", "--from", "last").returncode == 0
    text = (uncork.folder / "anonymous.toml").read_text()
    assert "customer_id = :customer_id and status = :status" in text.lower()
    assert "SELECT customer_id FROM orders WHERE customer_id IS NOT NULL ORDER BY 1" in text
    assert not any(value in text for value in ("'42'", "it''s", "'open'"))

    for words, message in (
        (("--from", "last", "--template", "nope"), "--template nope: run log-server-"),
        (("--template", "orders"), "--template works only with --from RUN"),
        (("--from", "last", "--change", "CREATE INDEX"), "--change CREATE INDEX: write NAME=SQL"),
        (("--from", "last", "--dsn", "host=127.0.0.1 port=1"), "cannot connect to the server"),
        (("--from", "nope"), "nope"),
    ):
        refused = uncork("new", "refused.toml", *words)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr
        assert "Traceback" not in refused.stderr and not (uncork.folder / "refused.toml").exists()
