"""A real server is watched under load; its workload is captured, written, and sent again."""

from __future__ import annotations

import re
import threading
from collections import Counter
from itertools import count

import psycopg
import pytest

import uncork
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import UsageError
from uncork.store.loads import LoadReader
from uncork.workbench.cure.capture import captured_workload
from uncork.workbench.cure.files import README, write_workload
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres

SHOP = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
  id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customer, state text NOT NULL,
  made timestamptz NOT NULL, note text, tags text[]
);
CREATE TABLE "Person" (
  id int PRIMARY KEY, "E-Mail" varchar(60), code text, born timestamp, payload jsonb, tags int[],
  words jsonb, story text, during int4range, net inet
);
INSERT INTO "Person"
  SELECT n, 'Person' || n || '@Example.com', n::text, timestamp '2000-01-01' + n * interval '1 hour',
         jsonb_build_object('kind', n % 50), ARRAY[n % 30, 100 + n % 70],
         jsonb_build_array('word' || n % 30), 'a tale' || n % 40,
         int4range(n, n + 1 + n % 5), '10.0.0.0'::inet + n
    FROM generate_series(1, 20000) AS n;
CREATE TABLE parcel AS SELECT n AS id, 'kind ' || n % 20 AS kind FROM generate_series(1, 2000) AS n;
CREATE VIEW known_parcel AS SELECT id, kind AS sort FROM parcel WHERE kind IS NOT NULL;
CREATE SEQUENCE calls;
CREATE FUNCTION changed(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT nextval(''calls'') || $1';
CREATE ROLE clerk;
CREATE TABLE bill AS SELECT n AS id, n % 90 AS shop FROM generate_series(1, 2000) AS n;
ALTER TABLE bill ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON bill USING (shop = 7);
GRANT SELECT ON bill TO clerk;
INSERT INTO customer SELECT n, 'O''Hara:' || n FROM generate_series(1, 500) AS n;
INSERT INTO orders
  SELECT n, 1 + n % 500, CASE n % 10 WHEN 0 THEN 'open' ELSE 'shipped' END,
         timestamptz '2026-01-01' + n * interval '1 minute', CASE WHEN n % 2 = 0 THEN 'gift' END
    FROM generate_series(1, 5000) AS n;
"""
BOUND = (
    "SELECT name FROM customer WHERE id = %s",
    "SELECT date_trunc('day', made), pg_sleep(0.03) FROM orders WHERE id = %s",
    "SELECT id FROM known_parcel WHERE sort = %s",
    "SELECT o.id FROM orders AS o JOIN customer AS c ON c.id = o.customer "
    "WHERE c.name = %s AND o.state = %s AND length(o.state) = %s::float8",
)

SECURED = "SELECT id FROM bill WHERE id > %s"
SLOW = "(SELECT pg_sleep(0.03)) IS NOT NULL"
"""So that samples see the text, and with it the constants that are always the same."""
COMPARED = {
    """SELECT id FROM "Person" AS p WHERE lower(p."E-Mail") = %s""": r"person\d+@example\.com",
    f"""SELECT id FROM "Person" WHERE {SLOW} AND payload ->> 'kind' = %s""": r"\d\d?",
    """SELECT id FROM "Person" WHERE payload @> %s::jsonb""": r'\{"kind": \d\d?\}',
    """SELECT id FROM "Person" WHERE payload ? %s""": "kind",
    """SELECT id FROM "Person" WHERE %s::int = ANY (tags)""": r"\d+",
    """SELECT id FROM "Person" WHERE tags @> %s::int[]""": r"\{\d+\}",
    """SELECT id FROM "Person" WHERE tags && ARRAY[%s::int]""": r"\d+",
    """SELECT id FROM "Person" WHERE tags = %s::int[]""": r"\{\d+,\d+\}",
    f"""SELECT id FROM "Person" WHERE {SLOW} AND date_trunc('day', born) = %s::timestamp""": r".* 00:00:00",
    """SELECT id FROM "Person" WHERE code::int = %s::int""": r"\d+",
    """SELECT id FROM "Person" WHERE words @> %s::jsonb""": r'\["word\d\d?"\]',
    """SELECT id FROM "Person" WHERE words ? %s""": r"word\d\d?",
    f"""SELECT id FROM "Person" WHERE {SLOW}
        AND to_tsvector('simple', story) @@ plainto_tsquery('simple', %s)""": r"a|tale\d\d?",
    """SELECT id FROM "Person" WHERE during @> %s::int""": r"\d+",
    """SELECT id FROM "Person" WHERE during && %s::int4range""": r"\[\d+,\d+\)",
    """SELECT id FROM "Person" WHERE net <<= %s::inet""": r"10\.0\.\d+\.\d+",
}
"""Statements whose values are in no statistics, and what their values look like."""
FORBIDDEN = """SELECT id FROM "Person" WHERE changed(code) = %s AND id < 2"""
GIVEN = (
    *("x", "7", '{"kind": 7}', "kind", 7, [7], 7, [7, 107], "2000-01-05", 7, '["word7"]', "word7"),
    *("tale7", 7, "[7,9)", "10.0.1.0/24"),
)
SENT = (
    "SELECT id FROM orders WHERE state = 'open' AND customer IN ({0}, 7, 9) ORDER BY made DESC LIMIT 5",
    "SELECT date_trunc('day', made), count(*) FROM orders WHERE customer = {0} GROUP BY 1 -- {0}",
    "SELECT name FROM customer WHERE name LIKE 'O''Hara:{0}%'",
    "UPDATE orders SET note = 'say \"hi\" :there \\o/' WHERE id = {0}",
    "INSERT INTO orders (id, customer, state, made) VALUES ({1}, {0}, 'open', now())",
    "SELECT id FROM orders WHERE tags = '{{a,b}}' OR id = {0}",
    "VACUUM customer",
)


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(
        {"shared_preload_libraries": "pg_stat_statements", "track_activity_query_size": 512}
    )
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute(SHOP)
        connection.execute("VACUUM ANALYZE")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def watched(server, tmp_path_factory):
    """The run of a watch while a client sends every kind of statement."""
    over = threading.Event()

    def work():
        clerk = psycopg.connect(f"{server.conninfo()} options='-c role=clerk'", autocommit=True)
        with clerk, psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for number in count(10_000):
                if over.is_set():
                    return
                connection.execute(BOUND[0], (number % 500,))
                connection.execute(BOUND[1], (7,))
                connection.execute(BOUND[2], (f"kind {number % 20}",))
                connection.execute(BOUND[3], ("O'Hara:7", "open", 4))
                clerk.execute(SECURED, (number % 500,))
                if number % 4 == 0:
                    connection.execute(FORBIDDEN, ("x",))
                    for text, value in zip(COMPARED, GIVEN, strict=True):
                        connection.execute(text, (value,))
                for text in SENT:
                    connection.pgconn.exec_(text.format(1 + number % 500, number).encode())
                connection.pgconn.exec_(
                    f"SELECT pg_sleep(0.02), {number}, name FROM customer WHERE id = 3".encode()
                )

    worker = threading.Thread(target=work)
    worker.start()
    try:
        return profile_database(
            tmp_path_factory.mktemp("runs"),
            resolve(server.conninfo()),
            seconds=2.0,
            rate_hz=50.0,
            command="uncork profile db",
        ).folder
    finally:
        over.set()
        worker.join()


def test_a_watched_workload_is_captured_written_and_sent_again(server, watched, tmp_path):
    workload = captured_workload(watched, server.conninfo())
    by_text = {one.sql: one for one in workload.statements}
    found = by_text["SELECT name FROM customer WHERE id = $1"]
    assert (found.origin, found.tables, found.changes) == ("drawn", ("customer",), False)
    assert len({int(value) // 50 for (value,) in found.sets}) == 10, "the values spread over all customers"
    written = by_text["SELECT date_trunc('day', made), pg_sleep(0.03) FROM orders WHERE id = $1"]
    assert written.origin == "drawn", "a text of a session shows what is always the same"
    beneath = by_text["SELECT id FROM known_parcel WHERE sort = $1"]
    assert len({kind for (kind,) in beneath.sets if kind.startswith("kind ")}) > 10
    joined = next(one for one in workload.statements if "JOIN customer" in one.sql)
    assert joined.origin == "rows"
    with psycopg.connect(server.conninfo()) as connection:
        found_rows = [connection.execute(BOUND[3].encode(), each).rowcount for each in joined.sets]
    assert min(found_rows) > 0, "the values are those of a row and of the row that it refers to"
    (slow,) = (one for one in workload.statements if "pg_sleep(0.02)" in one.sql)
    assert slow.origin == "seen" and len(slow.sets) >= 3
    (stored,) = (one for one in workload.statements if one.sql.startswith("INSERT"))
    assert stored.changes and "clock_timestamp()" in stored.sql
    origins = [_drawn(workload, text, like) for text, like in COMPARED.items()]
    assert origins == ["drawn"] * len(COMPARED)
    (forbidden,) = (one.reason for one in workload.missing if "changed" in one.text)
    assert "calls the function changed, and uncork executes only immutable functions" in forbidden
    reasons = Counter(one.reason.split(":")[0] for one in workload.missing)
    assert reasons["it is a utility statement, or the grammar rejects its text"] == 1
    assert sum(one.share for one in (*workload.statements, *workload.missing)) == pytest.approx(1.0)

    folder = tmp_path / "mix"
    scripts = write_workload(workload, folder)
    assert len(scripts) <= 128 and "executions a second" in (folder / README).read_text()
    with pytest.raises(UsageError, match="not empty"):
        write_workload(workload, folder)
    run = uncork.load_sql(
        dsn=server.conninfo(),
        script=str(folder),
        clients=2,
        transactions=50,
        runs=tmp_path / "runs",
        progress=False,
    )
    assert (run.result.counts.succeeded, run.result.counts.failed) == (100, 0)
    sent = {one["name"].split("-")[1]: one["weight"] for one in LoadReader(run.folder).plan()["scripts"]}
    assert len(sent) == len(workload.statements) and min(sent.values()) > 100


def _drawn(workload, text, like):
    """Return the origin of a statement's values, which come from many rows and look like real ones."""
    (found,) = (one for one in workload.statements if one.sql == text.replace("%s", "$1"))
    assert all(re.fullmatch(like, value) for (value,) in found.sets), found.sets
    assert len(set(found.sets)) > 5 or like == "kind"
    return found.origin


def test_a_copy_cannot_execute_what_a_policy_adds_a_condition_to(watched):
    whole = captured_workload(watched, None)
    (found,) = (one for one in whole.statements if "bill" in one.sql)
    workload = captured_workload(watched, None, for_copy=True)
    (missing,) = (one for one in workload.missing if one.template == found.template)
    assert missing.reason.startswith("policy own of table bill adds a condition to it for role clerk")
    assert workload.statements == tuple(one for one in whole.statements if one != found)


def test_a_stored_run_is_enough(watched):
    alone = captured_workload(watched, None)
    found = next(one for one in alone.statements if one.sql == "SELECT name FROM customer WHERE id = $1")
    assert len({int(value) // 50 for (value,) in found.sets}) == 10
    (reason,) = (one.reason for one in alone.missing if "lower" in one.text)
    assert "without a connection to the database" in reason
