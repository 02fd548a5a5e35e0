"""Databases whose sessions wait for locks that are neither rows nor tables."""

from __future__ import annotations

from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import ITEM, ROWS, Client, Scenario, sends

MESSAGE = ("CREATE TABLE message (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text)",)
TOLD = (
    *MESSAGE,
    "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "PERFORM pg_notify('changed', NEW.id::text); RETURN NULL; END $$",
    "CREATE TRIGGER telling AFTER INSERT ON message FOR EACH ROW EXECUTE FUNCTION tell()",
)
ACCOUNT = (
    "CREATE TABLE account WITH (fillfactor = 50) AS SELECT n AS id, 0 AS n FROM generate_series(0, 999) AS n",
    "ALTER TABLE account ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE account",
)
PUT = (
    *ACCOUNT,
    "CREATE FUNCTION put(first int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
    "FOR one IN first .. first + 99 LOOP "
    "BEGIN UPDATE account SET n = account.n + 1 WHERE id = one; "
    "EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$",
    "CREATE FUNCTION add_up() RETURNS void LANGUAGE plpgsql AS $$ BEGIN FOR one IN 1 .. 500 LOOP "
    "PERFORM sum(n) FROM account WHERE id BETWEEN 100 AND 199; END LOOP; END $$",
)
INDEXED = tuple(
    statement
    for table in ("customer", "contract", "address")
    for statement in (
        f"CREATE TABLE {table} AS SELECT n AS id, n % 50 AS kind, n % 70 AS place "
        "FROM generate_series(1, 5000) AS n",
        f"ALTER TABLE {table} ADD PRIMARY KEY (id)",
        "DO $$ BEGIN FOR one IN 1..24 LOOP EXECUTE format("
        f"'CREATE INDEX {table}_%s ON {table} (kind, (place + %s))', one, one); END LOOP; END $$",
        f"VACUUM ANALYZE {table}",
    )
)


def lead(working: bool) -> Client:
    """Return a client that wants to lead: the first one works, the others wait until it is gone."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        if not working:
            connection.execute("SET statement_timeout = '30s'")
        connection.execute("SELECT pg_advisory_lock(7)")
        while not over.is_set() and working:
            connection.execute("SELECT * FROM item WHERE id = %s", (chance.randrange(ROWS),)).fetchall()
        connection.execute("SELECT pg_advisory_unlock(7)")

    return client


def take_turns(connection: Connection, over: Event, chance: Random) -> None:
    """Change any row, but let only one session do so at a time."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(42)")
        connection.execute("UPDATE account SET n = n + 1 WHERE id = %s", (chance.randrange(1_000),))
        connection.execute("SELECT pg_sleep(0.003)")
        connection.execute("COMMIT")


def notify(connection: Connection, over: Event, _chance: Random) -> None:
    """Record a message and announce it, in one transaction."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("INSERT INTO message (body) VALUES ('x')")
        connection.execute("NOTIFY changed, 'message'")
        connection.execute("COMMIT")


def stay_open(connection: Connection, over: Event, _chance: Random) -> None:
    """Keep a transaction open, and send a statement now and then."""
    connection.execute("BEGIN")
    connection.execute("UPDATE account SET n = 0 WHERE id = 999")
    while not over.is_set():
        connection.execute("SELECT 1")
        over.wait(0.3)
    connection.execute("COMMIT")


def record(connection: Connection, over: Event, chance: Random) -> None:
    """Record a message after reading another one, in one transaction."""
    while not over.is_set():
        connection.execute("BEGIN")
        connection.execute("SELECT body FROM message WHERE id = %s", (chance.randrange(1_000),)).fetchall()
        connection.execute("INSERT INTO message (body) VALUES ('x')")
        connection.execute("COMMIT")


def find_many(connection: Connection, over: Event, chance: Random) -> None:
    """Send many statements at a time, each of which is planned anew."""
    find = "SELECT * FROM customer JOIN contract USING (id) JOIN address USING (id) WHERE customer.id = {}"
    while not over.is_set():
        statements = ";".join(find.format(chance.randrange(5_000)) for _ in range(50))
        connection.execute(statements.encode())


INSERT = sends("INSERT INTO message (body) VALUES ('x')")
SCENARIOS = (
    Scenario(
        "a trigger that notifies of each row",
        TOLD,
        [("shop", INSERT)] * 8,
        "notify-commits",
        names=("tell", "NOTIFY"),
        remedy=("one process",),
    ),
    Scenario(
        "transactions that notify",
        MESSAGE,
        [("shop", notify)] * 8,
        "notify-commits",
        names=("shop", "NOTIFY"),
        remedy=("one process",),
        seldom=True,
    ),
    Scenario(
        "one process that notifies beside many that write",
        MESSAGE,
        [("notifier", notify), *[("shop", record)] * 5],
        seldom=True,
    ),
    Scenario(
        "sessions that take turns by an advisory lock",
        ACCOUNT,
        [("shop", take_turns)] * 6,
        "advisory-lock",
        names=("shop",),
        remedy=("hashtextextended",),
    ),
    Scenario(
        "spare sessions that wait for their turn to lead",
        ITEM,
        [
            ("leader", lead(working=True)),
            *[("leader", lead(working=False))] * 2,
            ("shop", sends("SELECT * FROM item WHERE id = %s", lambda chance: chance.randrange(ROWS))),
        ],
        seldom=True,
    ),
    Scenario(
        "snapshots that overflow with subtransactions",
        PUT,
        [
            ("report", stay_open),
            *[("loader", sends("SELECT put(%s)", lambda chance: 100 * chance.randrange(9)))] * 4,
            *[("shop", sends("SELECT add_up()"))] * 4,
        ],
        "subtransactions",
        names=("put",),
        remedy=("without EXCEPTION",),
        seldom=True,
    ),
    Scenario(
        "statements that lock dozens of tables and indexes",
        INDEXED,
        [("shop", find_many)] * 8,
        "lock-manager",
        remedy=("Prepare the statement",),
        seldom=True,
    ),
)
