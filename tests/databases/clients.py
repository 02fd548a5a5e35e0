"""Databases whose clients are the fault: loops, forgotten transactions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event

import psycopg
from psycopg import Connection

from databases.scenario import COUNTER, ITEM, ROWS, Scenario, sends


def hold_and_forget(connection: Connection, over: Event, _chance: Random) -> None:
    """Change a row and leave the transaction open."""
    connection.execute("BEGIN")
    connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
    over.wait()
    connection.execute("ROLLBACK")


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


def want_row(connection: Connection, over: Event, _chance: Random) -> None:
    """Update the row that another client has locked."""
    while not over.is_set():
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")


def look_up(connection: Connection, over: Event, chance: Random) -> None:
    """Look up rows by their key."""
    while not over.is_set():
        connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()


def list_orders(connection: Connection, over: Event, chance: Random) -> None:
    """Fetch orders of a customer, then the product of each, without a transaction."""
    while not over.is_set():
        query = "SELECT id, product FROM orders WHERE customer = %s"
        for _, product in connection.execute(query, (chance.randrange(2_000),)).fetchall():
            connection.execute("SELECT name, md5(body) FROM product WHERE id = %s", (product,)).fetchall()


def list_and_look_up(connection: Connection, over: Event, chance: Random) -> None:
    """Show lists, and single rows, independently of each other."""
    while not over.is_set():
        if chance.random() < 0.1:
            query = "SELECT id, product FROM orders WHERE customer = %s"
            connection.execute(query, (chance.randrange(2_000),)).fetchall()
        connection.execute(
            "SELECT name, md5(body) FROM product WHERE id = %s", (chance.randrange(200),)
        ).fetchall()


def call_remotely(connection: Connection, over: Event, chance: Random) -> None:
    """Call another service in the middle of a transaction."""
    while not over.is_set():
        number = chance.randrange(ROWS)
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM item WHERE id = %s", (number,)).fetchall()
        over.wait(0.12)
        connection.execute("UPDATE item SET note = 'paid' WHERE id = %s", (number,))
        connection.execute("COMMIT")


def map_objects(connection: Connection, over: Event, chance: Random) -> None:
    """Work like an application with an object-relational mapper, which needs a moment for each statement."""
    while not over.is_set():
        connection.execute("BEGIN")
        for name in ("id", "customer", "note"):
            query = f"SELECT {name} FROM item WHERE id = %s"
            connection.execute(query.encode(), (chance.randrange(ROWS),)).fetchall()
            over.wait(0.004)
        connection.execute("COMMIT")


def connect_each_time(connection: Connection, over: Event, chance: Random) -> None:
    """Open a connection for each request."""
    address = connection.info.dsn
    while not over.is_set():
        with psycopg.connect(address, autocommit=True, application_name="shop") as own:
            own.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()


def write_in_loop(statement: str) -> Callable[[Connection, Event, Random], None]:
    """Return a client that writes many rows in a transaction, one by one."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        while not over.is_set():
            connection.execute("BEGIN")
            for _ in range(400):
                connection.execute(statement.encode(), {"key": chance.randrange(ROWS), "value": "y" * 20})
            connection.execute("COMMIT")

    return client


ORDERS = (
    "CREATE TABLE product AS SELECT n AS id, 'product ' || n AS name, repeat('x', 300000) AS body "
    "FROM generate_series(0, 199) AS n",
    "ALTER TABLE product ADD PRIMARY KEY (id)",
    "CREATE TABLE orders AS SELECT n AS id, n % 2000 AS customer, n % 199 AS product "
    "FROM generate_series(0, 79999) AS n",
    "ALTER TABLE orders ADD PRIMARY KEY (id)",
    "CREATE INDEX orders_customer ON orders (customer)",
    "ALTER TABLE orders ADD FOREIGN KEY (product) REFERENCES product (id)",
    "VACUUM ANALYZE orders, product",
)

SCENARIOS = (
    Scenario("statements one by one", ITEM, [("shop", loop), ("other", look_up)], "one-by-one"),
    Scenario(
        "two statements in turn for each row", ITEM, [("shop", loop_in_turn)] * 2, "one-by-one", seldom=True
    ),
    Scenario(
        "a forgotten transaction",
        COUNTER,
        [("batch", hold_and_forget), *[("shop", want_row)] * 2],
        "forgotten-transaction",
    ),
    Scenario(
        "a product looked up for each order",
        ORDERS,
        [("shop", list_orders)] * 3,
        "lookup-loop",
        names=("product",),
        remedy=("= ANY ($1)",),
    ),
    Scenario("lookups beside lists", ORDERS, [("shop", list_and_look_up)] * 3),
    Scenario(
        "rows updated one by one in a transaction",
        ITEM,
        [("batch", write_in_loop("UPDATE item SET note = %(value)s WHERE id = %(key)s"))],
        "one-by-one",
        names=("item", "batch"),
        remedy=("UPDATE ... FROM unnest",),
    ),
    Scenario(
        "a remote call inside a transaction",
        ITEM,
        [("shop", call_remotely)] * 4,
        "slow-step-in-transaction",
        names=("shop",),
        remedy=("before BEGIN or after COMMIT",),
    ),
    Scenario("objects mapped in transactions", ITEM, [("shop", map_objects)] * 4),
    Scenario(
        "a connection for each request",
        ITEM,
        [("shop", connect_each_time)] * 3,
        "connection-per-request",
        names=("shop",),
        remedy=("PgBouncer",),
        versions=range(14, 100),
    ),
    Scenario(
        "lookups by many clients",
        ITEM,
        [("shop", sends("SELECT * FROM item WHERE id = %s", lambda chance: chance.randrange(ROWS)))] * 8,
        seldom=True,
    ),
)
