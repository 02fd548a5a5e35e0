"""`--anonymize`: no value of the data is in any file of a run, though the server's plans and logs have it."""

from __future__ import annotations

import threading

import psycopg
import pyarrow.parquet as pq
import pytest

from uncork.engines.embedded import EmbeddedServer

pytestmark = pytest.mark.postgres

NAME, NUMBER = "Zanzibar", 47110815
BROKEN = f"first line\n{NAME} middle line\n{NAME}''s last line"
SENT = (
    f"SELECT count(*), '{NAME}' FROM customer, pg_sleep(0.02) WHERE email = '{NAME}' AND id < {NUMBER} "
    f"/* path='%2F{NAME}' */",
    f"SELECT note FROM customer WHERE account = {NUMBER} AND note <> '{BROKEN}'",
    f"SELECT id, pg_sleep(0.02) FROM customer WHERE account = {NUMBER + 1} OR account = {NUMBER} LIMIT 1",
    f"SELECT to_date('{NAME}', 'YYYY') FROM pg_sleep(0.01)",
)
BOUND = "SELECT id FROM customer WHERE email = %s AND account > %s /* path='%%2FZanzibar' */"


@pytest.fixture
def server():
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
                connection.execute(BOUND, (NAME, NUMBER))

    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE customer (id int, email text, account int, note text)")
        connection.execute(
            "INSERT INTO customer SELECT n, CASE WHEN n %% 3 = 0 THEN %s ELSE n::text END, "
            "CASE WHEN n %% 2 = 0 THEN %s ELSE n END, %s FROM generate_series(1, 3000) AS n",
            (NAME, NUMBER, NAME),
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
            place = min((text.find(value) for value in (NAME, str(NUMBER)) if value in text), default=-1)
            if place >= 0:
                found.append((str(path.relative_to(folder)), text[max(0, place - 60) : place + 60]))
                break
    return found


def test_no_value_of_the_data_is_in_any_file(uncork, server):
    assert uncork("profile", "db", server.conninfo(), "--for", "2s", "-q").returncode == 0
    (plain,) = uncork.runs
    told = " ".join(path for path, _ in where_values_are(plain))
    tables = ("database_plans", "database_texts", "database_columns", "database_activity")
    assert [table for table in tables if table not in told] == [], told

    done = uncork("profile", "db", server.conninfo(), "--for", "2s", "--anonymize", "--full")
    assert done.returncode == 0, done.stderr
    watched = max(uncork.runs, key=lambda folder: folder.stat().st_mtime_ns)
    assert watched != plain
    advised = uncork("advise", watched.name)
    assert advised.returncode == 0, advised.stderr
    rows = uncork("sql", watched.name, "SELECT source, plan FROM database_plans", "--json").stdout
    assert "(email = ?::text)" in rows and '"seen"' in rows and "Index" in rows

    log = uncork.folder / "server.log"
    log.write_bytes(b"".join(path.read_bytes() for path in server.logs))
    assert NAME in log.read_text()
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
        assert NAME not in text and str(NUMBER) not in text
