"""Check the advice of `uncork profile db` on databases whose state is known: five healthy and five sick ones.

Each has real clients on a real PostgreSQL, and its own database on one server. A healthy database must get no
finding and no recommended step; a sick one must get the right finding first. With `--pg-bin` the server is an
installed PostgreSQL, otherwise the embedded one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event

import psycopg
from psycopg import Connection

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.database import DatabaseResult
from uncork.report.database.document import build_database_document
from uncork.workbench.profile.databases import profile_database

Client = Callable[[Connection, Event, Random], None]

SETTINGS = {"shared_buffers": "128MB", "autovacuum": True, "autovacuum_naptime": "1s"}
RATE_HZ = 20.0
ROWS = 100_000


@dataclass(frozen=True)
class Scenario:
    """A database, its clients by application name, and the rule that must come first (none if healthy)."""

    name: str
    setup: Sequence[str]
    clients: Sequence[tuple[str, Client]]
    expected: str = ""


# ---- healthy ----


def update_hot_rows(connection: Connection, over: Event, chance: Random) -> None:
    """Update rows of a small table, each in a transaction of its own."""
    while not over.is_set():
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s", (chance.randrange(200),))


def use_pool(connection: Connection, over: Event, chance: Random) -> None:
    """Behave like an application behind a pool that rolls back on return."""
    while not over.is_set():
        connection.execute("BEGIN")
        for _ in range(3):
            connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()
        connection.execute("ROLLBACK")
        over.wait(0.002)


def look_up(connection: Connection, over: Event, chance: Random) -> None:
    """Look up rows by their key."""
    while not over.is_set():
        connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()


def write_by_hand(connection: Connection, over: Event, chance: Random) -> None:
    """Execute a dozen different statements in each transaction."""
    while not over.is_set():
        connection.execute("BEGIN")
        for number in range(12):
            query = f"SELECT id AS part_{number} FROM item WHERE id = %s"  # noqa: S608 -- a number
            connection.execute(query, (chance.randrange(ROWS),)).fetchall()
        connection.execute("COMMIT")


def report(connection: Connection, over: Event, _chance: Random) -> None:
    """Run a large report now and then."""
    while not over.is_set():
        connection.execute(
            "SELECT day, region, count(*), sum(amount), avg(amount) FROM sale "
            "WHERE day BETWEEN %s AND %s GROUP BY day, region ORDER BY 4 DESC",
            (0, 300),
        ).fetchall()
        over.wait(1.0)


def work_off(connection: Connection, over: Event, chance: Random) -> None:
    """Use a table as a queue: insert, change and delete rows continuously."""
    while not over.is_set():
        number = chance.randrange(1, ROWS)
        connection.execute("INSERT INTO job (state, body) VALUES (0, repeat('x', 200))")
        connection.execute("UPDATE job SET state = state + 1 WHERE id = %s", (number,))
        connection.execute("DELETE FROM job WHERE id = %s", (chance.randrange(1, ROWS),))


# ---- sick ----


def hold_and_work(connection: Connection, over: Event, _chance: Random) -> None:
    """Work for a long time in a transaction that has changed a row that others need."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        connection.execute("SELECT pg_sleep(0.8)")
        connection.execute("COMMIT")


def want_row(connection: Connection, over: Event, _chance: Random) -> None:
    """Update the row that another client has locked."""
    while not over.is_set():
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")


def hold_and_forget(connection: Connection, over: Event, _chance: Random) -> None:
    """Change a row and leave the transaction open."""
    connection.execute("BEGIN")
    connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
    over.wait()
    connection.execute("ROLLBACK")


def search(connection: Connection, over: Event, chance: Random) -> None:
    """Search by a column without an index."""
    while not over.is_set():
        connection.execute("SELECT * FROM item WHERE customer = %s", (chance.randrange(20_000),)).fetchall()


def loop(connection: Connection, over: Event, chance: Random) -> None:
    """Fetch a list, then each of its rows separately, in one transaction."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("SELECT id FROM item LIMIT 500").fetchall()
        for _ in range(500):
            connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()
        connection.execute("COMMIT")


def loop_in_turn(connection: Connection, over: Event, chance: Random) -> None:
    """Fetch a list, then two statements for each of its rows, in one transaction."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("SELECT id FROM item LIMIT 40").fetchall()
        for _ in range(40):
            connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()
            connection.execute(
                "SELECT customer FROM item WHERE id = %s", (chance.randrange(ROWS),)
            ).fetchall()
        connection.execute("COMMIT")


def read_all(connection: Connection, over: Event, _chance: Random) -> None:
    """Read the rest of a table most of whose rows are deleted."""
    while not over.is_set():
        connection.execute("SELECT count(*), max(length(filler)) FROM gone").fetchall()


ITEM = (
    "CREATE TABLE item AS SELECT n AS id, n % 20000 AS customer, repeat('x', 60) AS note "
    "FROM generate_series(0, 99999) AS n",
    "ALTER TABLE item ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE item",
)
COUNTER = (
    "CREATE TABLE counter AS SELECT n AS id, 0 AS n FROM generate_series(0, 199) AS n",
    "ALTER TABLE counter ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE counter",
)

SCENARIOS = (
    Scenario("small hot tables", COUNTER, [("shop", update_hot_rows)] * 4),
    Scenario("rollbacks of a pool", ITEM, [("shop", use_pool)] * 3),
    Scenario("transactions written by hand", ITEM, [("shop", write_by_hand)] * 3),
    Scenario(
        "an unused unique index",
        (*ITEM, "CREATE UNIQUE INDEX item_once ON item (id, customer, note)"),
        [("shop", look_up)] * 3,
    ),
    Scenario(
        "an honest report",
        (
            *ITEM,
            "CREATE TABLE sale AS SELECT n % 365 AS day, n % 7 AS region, n * 0.01 AS amount "
            "FROM generate_series(1, 1000000) AS n",
            "VACUUM ANALYZE sale",
        ),
        [("reports", report), ("shop", look_up)],
    ),
    Scenario(
        "a busy table with dead rows",
        (
            "CREATE TABLE job (id serial PRIMARY KEY, state int, body text)",
            "INSERT INTO job (state, body) SELECT 0, repeat('x', 200) FROM generate_series(1, 25000)",
            "CREATE INDEX job_state ON job (state)",
            "VACUUM ANALYZE job",
        ),
        [("worker", work_off)] * 3,
    ),
    Scenario(
        "a pile-up of locks",
        COUNTER,
        [("batch", hold_and_work), *[("shop", want_row)] * 3],
        "lock-wait",
    ),
    Scenario("a missing index", ITEM, [("shop", search)] * 2, "missing-index"),
    Scenario("statements one by one", ITEM, [("shop", loop), ("other", look_up)], "one-by-one"),
    Scenario("two statements in turn for each row", ITEM, [("shop", loop_in_turn)] * 2, "one-by-one"),
    Scenario(
        "a forgotten transaction",
        COUNTER,
        [("batch", hold_and_forget), *[("shop", want_row)] * 2],
        "forgotten-transaction",
    ),
    Scenario(
        "a bloated table",
        (
            "CREATE TABLE gone AS SELECT n, repeat('x', 900) AS filler FROM generate_series(1, 60000) AS n",
            "DELETE FROM gone WHERE n % 10 <> 0",
            "VACUUM ANALYZE gone",
        ),
        [("reports", read_all)],
        "bloat",
    ),
)


def main() -> int:
    """Watch each database; print the findings; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg-bin", type=Path, help="programs of an installed PostgreSQL")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is watched")
    parser.add_argument("--times", type=int, default=1, help="how often each is watched")
    parser.add_argument("--only", default="", help="databases whose names have these words in them")
    options = parser.parse_args()
    server = EmbeddedServer(dict(SETTINGS), binaries=options.pg_bin)
    server.start()
    wrong = 0
    try:
        for number, scenario in enumerate(one for one in SCENARIOS if options.only in one.name):
            lay_out(server, scenario, f"db{number}")
            for _ in range(options.times):
                with tempfile.TemporaryDirectory() as folder:
                    result = watch_scenario(server, scenario, f"db{number}", Path(folder), options.seconds)
                right = is_right(scenario, result)
                wrong += not right
                print(f"{'ok   ' if right else 'WRONG'}  {scenario.name} ({result.server_version})")
                for line in told(result):
                    print(f"         {line}")
    finally:
        server.stop()
    print(f"{wrong} wrong")
    return 1 if wrong else 0


def is_right(scenario: Scenario, result: DatabaseResult) -> bool:
    """Return whether a sick database got the right advice, and a healthy one none."""
    first = result.findings[0].rule if result.findings else ""
    steps = build_database_document(result).steps
    return first == scenario.expected and bool(steps) == bool(scenario.expected) and not result.upkeep


def told(result: DatabaseResult) -> Iterator[str]:
    """Yield what a reader of the report sees first."""
    yield result.answer
    yield from (f"- {reason}" for reason in (*result.reasons, *result.upkeep))
    yield from (f"> {step.text}" for step in build_database_document(result).steps)


def lay_out(server: EmbeddedServer, scenario: Scenario, name: str) -> None:
    """Create a scenario's database."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    for statement in ("CREATE EXTENSION pg_stat_statements", *scenario.setup):
        # A session reports its row counts at its end at the latest, so VACUUM must come after that.
        with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
            connection.execute(statement.encode())


def watch_scenario(
    server: EmbeddedServer, scenario: Scenario, name: str, folder: Path, seconds: float
) -> DatabaseResult:
    """Watch a scenario's database while its clients work."""
    with at_work(server, scenario, name):
        address = resolve(server.conninfo(name))
        return profile_database(
            folder / "runs", address, seconds=seconds, rate_hz=RATE_HZ, command="uncork profile db"
        ).result


@contextmanager
def at_work(server: EmbeddedServer, scenario: Scenario, name: str) -> Iterator[None]:
    """Let clients work until the block ends; the first begins a moment before the others."""
    over = Event()
    failures: list[BaseException] = []

    def work(application: str, client: Client, seed: int) -> None:
        try:
            with psycopg.connect(server.conninfo(name), autocommit=True, application_name=application) as own:
                client(own, over, Random(seed))
        except BaseException as error:  # noqa: BLE001 -- the script reports a thread's failure
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(application, client, seed))
        for seed, (application, client) in enumerate(scenario.clients)
    ]
    try:
        for thread in threads:
            thread.start()
            time.sleep(0.1 if thread is threads[0] else 0)
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


if __name__ == "__main__":
    sys.exit(main())
