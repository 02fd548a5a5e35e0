"""From a slow statement on a server to a verdict on an index: profile db, new --from, plan, run."""

from __future__ import annotations

import threading

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer

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
    ran = uncork("run", "slow.toml", "--budget", "20s", "--expect", "index=faster")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "faster" in ran.stdout


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
