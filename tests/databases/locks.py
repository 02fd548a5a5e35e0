"""Databases whose sessions wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event

from psycopg import Connection
from psycopg.errors import DeadlockDetected

from databases.scenario import COUNTER, Scenario, sends


def hold_and_work(connection: Connection, over: Event, _chance: Random) -> None:
    """Work for a long time in a transaction that has changed a row that others need."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        connection.execute("SELECT pg_sleep(0.8)")
        connection.execute("COMMIT")


def hold_and_call(connection: Connection, over: Event, _chance: Random) -> None:
    """Call another service in a transaction that has changed a row that others need."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("UPDATE counter SET n = 0 WHERE id = 1")
        over.wait(0.7)
        connection.execute("COMMIT")


def want_row(connection: Connection, over: Event, _chance: Random) -> None:
    """Update the row that another client has locked."""
    while not over.is_set():
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")


def sell(connection: Connection, over: Event, chance: Random) -> None:
    """Record a sale, after adding it to the total of the only shop."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("UPDATE shop_total SET sold = sold + %s WHERE shop = 1", (chance.randrange(9),))
        connection.execute("INSERT INTO sale (shop, price) VALUES (1, %s)", (chance.randrange(9),))
        connection.execute("SELECT count(*) FROM sale WHERE id > %s", (10**9,)).fetchall()
        connection.execute("COMMIT")


def number_invoices(connection: Connection, over: Event, _chance: Random) -> None:
    """Draw the next number from a table that each transaction locks."""
    while not over.is_set():
        connection.execute("BEGIN")
        row = connection.execute("SELECT last FROM numbering WHERE kind = 'invoice' FOR UPDATE").fetchone()
        last = row[0] if row else 0
        connection.execute("INSERT INTO sale (shop, price) VALUES (1, %s)", (last,))
        connection.execute("UPDATE numbering SET last = %s WHERE kind = 'invoice'", (last + 1,))
        connection.execute("COMMIT")


def take_job(skip: str) -> Callable[[Connection, Event, Random], None]:
    """Return a worker that takes the next job of a queue."""

    def client(connection: Connection, over: Event, _chance: Random) -> None:
        take = f"SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE {skip}"
        while not over.is_set():
            connection.execute("BEGIN")
            for (number,) in connection.execute(take.encode()).fetchall():
                connection.execute("SELECT pg_sleep(0.002)")
                connection.execute("UPDATE job SET state = 1 WHERE id = %s", (number,))
            connection.execute("COMMIT")

    return client


def lock_whole(connection: Connection, over: Event, chance: Random) -> None:
    """Change a row after locking its table."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("LOCK TABLE counter")
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s", (chance.randrange(200),))
        connection.execute("SELECT pg_sleep(0.005)")
        connection.execute("COMMIT")


def build_index(connection: Connection, over: Event, _chance: Random) -> None:
    """Build an index of a large table again and again."""
    while not over.is_set():
        connection.execute("CREATE INDEX sale_price ON sale (price, id)")
        connection.execute("DROP INDEX sale_price")
        over.wait(0.1)


def add_column(connection: Connection, over: Event, _chance: Random) -> None:
    """Change a table that a long transaction reads."""
    over.wait(0.3)
    while not over.is_set():
        connection.execute("ALTER TABLE counter ADD COLUMN IF NOT EXISTS note text")
        over.wait(0.2)


def read_long(connection: Connection, over: Event, _chance: Random) -> None:
    """Read a table in transactions that take long."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM counter").fetchall()
        connection.execute("SELECT pg_sleep(0.7)")
        connection.execute("COMMIT")


def lock_crosswise(first: int, second: int) -> Callable[[Connection, Event, Random], None]:
    """Return a client that updates two rows in its own order."""

    def client(connection: Connection, over: Event, _chance: Random) -> None:
        while not over.is_set():
            try:
                connection.execute("BEGIN")
                for number in (first, second):
                    connection.execute("UPDATE counter SET n = n + 1 WHERE id = %s", (number,))
                    connection.execute("SELECT pg_sleep(0.01)")
                connection.execute("COMMIT")
            except DeadlockDetected:
                connection.execute("ROLLBACK")

    return client


def transfer(connection: Connection, over: Event, chance: Random) -> None:
    """Execute the transaction of TPC-B, with many branches."""
    while not over.is_set():
        account, branch, delta = chance.randrange(100_000), chance.randrange(50), chance.randrange(-99, 99)
        connection.execute("BEGIN")
        connection.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (delta, account))
        connection.execute("SELECT balance FROM account WHERE id = %s", (account,)).fetchall()
        connection.execute(
            "UPDATE teller SET balance = balance + %s WHERE id = %s", (delta, 10 * branch + account % 10)
        )
        connection.execute("UPDATE branch SET balance = balance + %s WHERE id = %s", (delta, branch))
        connection.execute("INSERT INTO history (account, delta) VALUES (%s, %s)", (account, delta))
        connection.execute("COMMIT")


SALE = (
    "CREATE TABLE shop_total AS SELECT 1 AS shop, 0::bigint AS sold",
    "CREATE TABLE numbering AS SELECT 'invoice' AS kind, 0 AS last",
    "CREATE TABLE sale (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shop int, price int)",
)
COUNTED = (
    *SALE,
    "CREATE FUNCTION count_sale() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "UPDATE shop_total SET sold = sold + NEW.price WHERE shop = NEW.shop; RETURN NEW; END $$",
    "CREATE TRIGGER counting AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION count_sale()",
)
JOB = (
    "CREATE TABLE job AS SELECT n AS id, 0 AS state FROM generate_series(1, 50000) AS n",
    "ALTER TABLE job ADD PRIMARY KEY (id)",
    "CREATE INDEX job_open ON job (id) WHERE state = 0",
    "VACUUM ANALYZE job",
)

SCENARIOS = (
    Scenario(
        "a pile-up of locks",
        COUNTER,
        [("batch", hold_and_work), *[("shop", want_row)] * 3],
        "lock-wait",
        names=("batch",),
    ),
    Scenario(
        "a remote call while others wait for its row",
        COUNTER,
        [("batch", hold_and_call), *[("shop", want_row)] * 3],
        "lock-wait",
        names=("batch",),
        remedy=("before BEGIN or after COMMIT",),
        seldom=True,
    ),
    Scenario(
        "a row that all sessions count in",
        COUNTER,
        [("shop", want_row)] * 8,
        "hot-row",
        names=("counter",),
        remedy=("CREATE TABLE counter_part", "ON CONFLICT (id, part)"),
    ),
    Scenario(
        "a total that every transaction updates first",
        SALE,
        [("shop", sell)] * 8,
        "hot-row",
        names=("shop_total",),
        remedy=("shop_total last in the transaction", "CREATE TABLE shop_total_part"),
        seldom=True,
    ),
    Scenario(
        "a total that a trigger updates",
        COUNTED,
        [("shop", sends("INSERT INTO sale (shop, price) VALUES (1, 2)"))] * 8,
        "hot-row",
        names=("shop_total",),
        remedy=("CREATE TABLE shop_total_part",),
    ),
    Scenario(
        "numbers drawn from a locked row",
        SALE,
        [("shop", number_invoices)] * 8,
        "hot-row",
        names=("numbering",),
        remedy=("UPDATE ... RETURNING", "sequence"),
        seldom=True,
    ),
    Scenario(
        "workers that queue for the same job",
        JOB,
        [("worker", take_job(""))] * 6,
        "hot-row",
        names=("job",),
        remedy=("FOR UPDATE SKIP LOCKED",),
    ),
    Scenario(
        "a table locked as a whole",
        COUNTER,
        [*[("shop", lock_whole)] * 2, *[("other", want_row)] * 3],
        "explicit-table-lock",
        names=("counter", "LOCK TABLE"),
        remedy=("pg_advisory_xact_lock", "IN EXCLUSIVE MODE"),
    ),
    Scenario(
        "an index built while others write",
        (*SALE, "INSERT INTO sale (shop, price) SELECT 1, n % 1000 FROM generate_series(1, 300000) AS n"),
        [("migration", build_index), *[("shop", sends("INSERT INTO sale (shop, price) VALUES (2, 3)"))] * 3],
        "explicit-table-lock",
        names=("sale", "CREATE INDEX"),
        remedy=("CONCURRENTLY",),
        seldom=True,
    ),
    Scenario(
        "a change of a table behind a long transaction",
        COUNTER,
        [("reports", read_long), ("migration", add_column), *[("shop", want_row)] * 3],
        "explicit-table-lock",
        names=("counter", "ALTER TABLE"),
        remedy=("lock_timeout",),
    ),
    Scenario(
        "rows locked crosswise",
        (*COUNTER, "ALTER SYSTEM SET deadlock_timeout = '200ms'", "SELECT pg_reload_conf()"),
        [("shop", lock_crosswise(1, 2)), ("shop", lock_crosswise(2, 1))],
        "deadlock",
        names=("counter",),
        remedy=("in the same order", "ORDER BY id FOR UPDATE"),
    ),
    Scenario("workers that skip locked jobs", JOB, [("worker", take_job("SKIP LOCKED"))] * 4),
    Scenario(
        "transfers between accounts of many branches",
        (
            *(
                f"CREATE TABLE {name} WITH (fillfactor = 50) AS SELECT n AS id, 0::bigint AS balance "
                f"FROM generate_series(0, {rows} - 1) AS n"
                for name, rows in (("branch", 50), ("teller", 500), ("account", 100_000))
            ),
            *(f"ALTER TABLE {name} ADD PRIMARY KEY (id)" for name in ("branch", "teller", "account")),
            "CREATE TABLE history (account int, delta int)",
            "VACUUM ANALYZE",
        ),
        [("shop", transfer)] * 6,
    ),
)
