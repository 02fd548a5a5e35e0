"""Databases whose columns have a costly type."""

from __future__ import annotations

from random import Random

from databases.scenario import SMALL, Scenario, sends


def kind(chance: Random) -> str:
    """Return a kind of event."""
    return f"kind{chance.randrange(50)}"


DOCUMENT = (
    "json_build_object('user', n, 'kind', 'kind' || n % 50, 'tags', json_build_array('a', 'b'), "
    "'body', repeat('lorem ipsum ', 20))"
)


def events(column: str) -> tuple[str, ...]:
    """Return the set-up of a table of events with a column for documents."""
    return (
        f"CREATE TABLE event (id int, day int, payload {column})",
        f"INSERT INTO event SELECT n, n / 500, {DOCUMENT}::text::{column} "
        "FROM generate_series(1, 50000) AS n",
        "CREATE INDEX event_day ON event (day)",
        "VACUUM ANALYZE event",
    )


def owners(column: str) -> tuple[str, ...]:
    """Return the set-up of two tables that a key of this type joins."""
    return (
        f"CREATE TABLE owner AS SELECT md5(n::text)::uuid::{column} AS id, n % 10 AS region "
        "FROM generate_series(1, 30000) AS n",
        f"CREATE TABLE device AS SELECT md5((n % 30000 + 1)::text)::uuid::{column} AS owner, n AS load "
        "FROM generate_series(1, 60000) AS n",
        "CREATE INDEX owner_id ON owner (id)",
        "CREATE INDEX device_owner ON device (owner)",
        "VACUUM ANALYZE owner",
        "VACUUM ANALYZE device",
    )


def day(chance: Random) -> int:
    """Return a day of the table of events."""
    return chance.randrange(100)


def purchases(default: str) -> tuple[str, ...]:
    """Return the set-up of a table with an index on a key of type uuid."""
    return (
        f"CREATE TABLE purchase (id uuid DEFAULT {default}, amount int, note text)",
        "INSERT INTO purchase (amount, note) SELECT n, repeat('x', 60) FROM generate_series(1, 200000) AS n",
        "ALTER TABLE purchase ADD PRIMARY KEY (id) INCLUDE (note)",
        "VACUUM ANALYZE purchase",
    )


BUY = sends(
    "INSERT INTO purchase (amount, note) SELECT n, repeat('x', 60) FROM generate_series(1, 50) AS n",
    before=("SET synchronous_commit = off",),
)

SUM = "SELECT sum((payload{} ->> 'user')::int) FROM event WHERE day BETWEEN %s AND 99"
JOIN = sends("SELECT o.region, sum(d.load) FROM owner o JOIN device d ON d.owner = o.id GROUP BY o.region")

SCENARIOS = (
    Scenario(
        "documents of the type json",
        events("json"),
        [("shop", sends(SUM.format(""), day))] * 3,
        "json-parsed",
        names=("payload", "event"),
        remedy=("TYPE jsonb",),
    ),
    Scenario(
        "documents in a column of text",
        events("text"),
        [("shop", sends(SUM.format("::jsonb"), day))] * 3,
        "json-parsed",
        names=("payload", "event"),
        remedy=("TYPE jsonb",),
        seldom=True,
    ),
    Scenario(
        "documents of the type jsonb",
        events("jsonb"),
        [("shop", sends(SUM.format(""), day))] * 3,
        seldom=True,
    ),
    Scenario(
        "keys of text that are UUIDs",
        owners("text"),
        [("shop", JOIN)] * 3,
        "wide-types",
        remedy=("TYPE uuid",),
    ),
    Scenario("keys of the type uuid", owners("uuid"), [("shop", JOIN)] * 3),
    Scenario(
        "random keys in an index larger than shared buffers",
        purchases("gen_random_uuid()"),
        [("shop", BUY)] * 3,
        "random-keys",
        names=("purchase.id",),
        remedy=("version 7",),
        settings=SMALL,
    ),
    Scenario(
        "keys in the order of time",
        purchases("uuidv7()"),
        [("shop", BUY)] * 3,
        versions=range(18, 100),
        settings=SMALL,
        seldom=True,
    ),
)
