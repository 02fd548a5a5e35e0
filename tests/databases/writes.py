"""Databases that are written to badly."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import ITEM, ROWS, Scenario, sends

EVENT = ("CREATE TABLE event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind int, body text)",)


def commit_each(statement: str, *, begin: bool) -> Callable[[Connection, Event, Random], None]:
    """Return a client that commits after each row."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        number = 0
        while not over.is_set():
            number += 1
            if begin:
                connection.execute("BEGIN")
            connection.execute(statement.encode(), {"key": number % ROWS, "value": chance.randrange(9)})
            if begin:
                connection.execute("COMMIT")

    return client


def stage(connection: Connection, over: Event, chance: Random) -> None:
    """Put a few keys into a temporary table to join with it."""
    while not over.is_set():
        connection.execute("CREATE TEMP TABLE wanted (id int PRIMARY KEY)")
        keys = sorted({chance.randrange(ROWS) for _ in range(5)})
        connection.execute("INSERT INTO wanted SELECT unnest(%s::int[])", (keys,))
        connection.execute("SELECT array_agg(id) FROM wanted").fetchall()
        connection.execute("DROP TABLE wanted")


def copy_in(connection: Connection, over: Event, _chance: Random) -> None:
    """Load rows in bulk."""
    rows = b"1\tbody\n" * 20_000
    while not over.is_set():
        with connection.cursor().copy("COPY event (kind, body) FROM STDIN") as copy:
            copy.write(rows)


def set_constant(statement: str) -> Callable[[Connection, Event, Random], None]:
    """Return a client that writes values into the text of its statement, as some drivers do."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        while not over.is_set():
            connection.execute(statement.format(key=chance.randrange(ROWS)).encode())

    return client


def hold_flag(connection: Connection, over: Event, chance: Random) -> None:
    """Set a flag of a row, work, and clear it: with one template, and nearly all rows have it cleared."""
    while not over.is_set():
        key = chance.randrange(ROWS)
        for value in ("true", "false"):
            connection.execute(f"UPDATE device SET busy = {value} WHERE id = {key}".encode())
            connection.execute(f"SELECT serial FROM device WHERE id = {key}".encode()).fetchall()


DEVICE = (
    "CREATE TABLE device AS SELECT n AS id, CASE WHEN n % 1000 = 0 THEN 'lost' ELSE 'online' END AS state, "
    "false AS busy, md5(n::text) AS serial FROM generate_series(0, 99999) AS n",
    "ALTER TABLE device ADD PRIMARY KEY (id)",
    "CREATE INDEX device_serial ON device (serial)",
    "VACUUM ANALYZE device",
)
TAG = (
    "CREATE TABLE tag (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE)",
    "INSERT INTO tag (name) SELECT 'tag ' || n FROM generate_series(0, 999) AS n",
    "VACUUM ANALYZE tag",
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "rows inserted with a commit for each",
        EVENT,
        [("loader", commit_each("INSERT INTO event (kind, body) VALUES (%(value)s, 'x')", begin=False))],
        "row-by-row-commit",
        names=("loader", "event"),
        remedy=("commit once for many rows",),
    ),
    Scenario(
        "rows updated with a commit for each",
        ITEM,
        [("batch", commit_each("UPDATE item SET customer = %(value)s WHERE id = %(key)s", begin=True))],
        "row-by-row-commit",
        names=("batch", "item"),
        remedy=("commit once for many rows",),
        seldom=True,
    ),
    Scenario(
        "a temporary table for each request",
        ITEM,
        [("shop", stage)] * 3,
        "temporary-tables",
        names=("wanted",),
        remedy=("unnest", "ON COMMIT DELETE ROWS"),
    ),
    Scenario(
        "a trigger that sums up each row",
        (
            *EVENT,
            "CREATE TABLE total AS SELECT n AS kind, 0::bigint AS events FROM generate_series(0, 999) AS n",
            "ALTER TABLE total ADD PRIMARY KEY (kind)",
            "CREATE FUNCTION count_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "UPDATE total SET events = events + 1 WHERE kind = NEW.kind; RETURN NEW; END $$",
            "CREATE TRIGGER counting AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION count_event()",
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_functions = pl', current_database()); "
            "END $$",
        ),
        [
            (
                "loader",
                sends("INSERT INTO event (kind, body) SELECT n, 'x' FROM generate_series(0, 999) AS n"),
            )
        ],
        "row-trigger",
        names=("counting", "event"),
        remedy=("FOR EACH STATEMENT",),
    ),
    Scenario(
        "columns set to themselves",
        ITEM,
        [
            (
                "sync",
                sends("UPDATE item SET note = note WHERE id = %s", lambda chance: chance.randrange(ROWS)),
            )
        ]
        * 2,
        "redundant-update",
        names=("item", "note"),
        remedy=("FOR NO KEY UPDATE", "suppress_redundant_updates_trigger"),
    ),
    Scenario(
        "an upsert that only wants the row's number",
        TAG,
        [
            (
                "shop",
                sends(
                    "INSERT INTO tag (name) VALUES (%s) ON CONFLICT (name) "
                    "DO UPDATE SET name = EXCLUDED.name RETURNING id",
                    lambda chance: f"tag {chance.randrange(1000)}",
                ),
            )
        ]
        * 2,
        "redundant-update",
        names=("tag",),
        remedy=("DO NOTHING",),
    ),
    Scenario(
        "a state reported again and again",
        DEVICE,
        [("agent", set_constant("UPDATE device SET state = 'online' WHERE id = {key}"))] * 2,
        "redundant-update",
        names=("device", "state"),
        remedy=("AND state IS DISTINCT FROM $1", "suppress_redundant_updates_trigger"),
        versions=range(14, 100),
    ),
    Scenario("a flag set and cleared", DEVICE, [("worker", hold_flag)] * 3),
    Scenario("a bulk load", EVENT, [("loader", copy_in)]),
)
