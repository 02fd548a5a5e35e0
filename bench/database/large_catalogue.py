"""How long `uncork profile db` takes on a database with very many tables and statements, and its peak memory.

``python bench/database/large_catalogue.py --tables 50000 --templates 5000`` fills an embedded server with
small tables (a primary key each, further indexes on every fourth, foreign keys on every second), keeps a
client busy with that many different statements, profiles the server for 5 s, and prints the time until the
report, uncork's peak memory, and the time of uncork's own statements on the server. ``--serve`` only fills
the server, prints its connection string and waits; ``--dsn`` profiles a server filled so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from uncork.engines.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
BATCH = 500
"""Tables created in one transaction: each of their relations takes a lock."""
ISLAND = 100
"""Tables that foreign keys connect. The tables of the first tenth form one chain instead."""
_SETTINGS = {
    "shared_buffers": "512MB",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": 20_000,
    "max_locks_per_transaction": 1024,
    "autovacuum": "off",
    "fsync": "off",
}


@contextmanager
def filled(tables: int) -> Iterator[str]:
    """Yield the connection string of a server with so many tables."""
    server = EmbeddedServer(_SETTINGS)
    server.start()
    try:
        fill(server.conninfo(), tables)
        yield server.conninfo()
    finally:
        server.stop()


def fill(conninfo: str, tables: int) -> None:
    """Create the tables with a few rows each, and analyze them."""
    begun = time.monotonic()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute("SET synchronous_commit = off")
        for first in range(0, tables, BATCH):
            with connection.transaction():
                for number in range(first, min(tables, first + BATCH)):
                    connection.execute(_table(number, tables).encode())
            if first % (20 * BATCH) == 0:
                print(f"{first} tables after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        connection.execute("ANALYZE")


def _table(number: int, tables: int) -> str:
    other = number - 1 if number < tables // 10 else number // ISLAND * ISLAND
    link = f"REFERENCES t{other}" if number % 2 and other != number else ""
    index = f"CREATE INDEX ON t{number} (label, created); " if number % 4 == 0 else ""
    columns = f"id int PRIMARY KEY, other int {link}, label text NOT NULL, created timestamptz DEFAULT now()"
    rows = "SELECT n, NULL, 'label ' || n % 3 FROM generate_series(1, 5) AS n"
    return f"CREATE TABLE t{number} ({columns}); {index}INSERT INTO t{number} {rows}"


def work(conninfo: str, tables: int, templates: int, over: threading.Event) -> None:
    """Execute so many different statements again and again."""
    with psycopg.connect(conninfo, autocommit=True, application_name="work") as connection:
        while not over.is_set():
            for number in range(templates):
                table = number * 7919 % tables
                # Without an alias: PostgreSQL 18 identifies a table in a statement by its alias.
                condition = f"id = {number % 5} AND label <> 'x' AND created > '2000-01-01'"
                query = f"SELECT id, label AS c{number} FROM t{table} WHERE {condition}"  # noqa: S608
                connection.execute(query.encode())
                if over.is_set():
                    return


def measure(conninfo: str, tables: int, templates: int, seconds: int) -> None:
    """Profile the server under load, and print what that took."""
    over = threading.Event()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_statements_reset()")
        client = threading.Thread(target=work, args=(conninfo, tables, templates, over))
        client.start()
        try:
            with tempfile.TemporaryDirectory() as folder:
                command = ["profile", "db", conninfo, "--for", f"{seconds}s", "--json", "--quiet"]
                command += ["--html", f"{folder}/report.html", "--runs", folder]
                begun = time.monotonic()
                child = subprocess.Popen(
                    [sys.executable, "-m", "uncork", *command],
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                )
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
                elapsed = time.monotonic() - begun
        finally:
            over.set()
            client.join()
        print(f"exit status {child.returncode}, {elapsed:.1f} s, of them {seconds} s of the watch")
        print(f"peak memory {usage.ru_maxrss / 1024:.0f} MiB, CPU {usage.ru_utime + usage.ru_stime:.1f} s")
        rows = connection.execute(
            "SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 100), calls, total_exec_time, "
            "max_exec_time FROM pg_stat_statements WHERE query LIKE '%/* uncork */%' ORDER BY 3 DESC"
        ).fetchall()
        print(f"on the server {sum(row[2] for row in rows):.0f} ms:")
        for text, calls, total, longest in rows[:12]:
            print(f"  {total:8.1f} ms in {calls:4d} calls, at most {longest:7.1f} ms: {text}")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", type=int, default=50_000)
    parser.add_argument("--templates", type=int, default=5_000)
    parser.add_argument("--for", dest="seconds", type=int, default=5)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--dsn")
    given = parser.parse_args()
    if given.dsn:
        measure(given.dsn, given.tables, given.templates, given.seconds)
        return
    with filled(given.tables) as conninfo:
        if not given.serve:
            measure(conninfo, given.tables, given.templates, given.seconds)
            return
        print(conninfo, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
