"""Healthy databases: the advice must find nothing."""

from __future__ import annotations

from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import COUNTER, ITEM, ROWS, Scenario


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
            query = f"SELECT id AS part_{number} FROM item WHERE id = %s"
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
        seldom=True,
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
)
