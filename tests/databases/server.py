"""Servers whose settings are the fault, and the same work on a server without it."""

from __future__ import annotations

from random import Random

from databases.scenario import ITEM, ROWS, SMALL, Scenario, sends

OFTEN = {"max_wal_size": "32MB", "min_wal_size": "32MB"}
UNSAFE = {"fsync": False, "wal_buffers": "32kB"}
APPLIED = {"synchronous_standby_names": "*", "synchronous_commit": "remote_apply"}
DELAYED = {"recovery_min_apply_delay": "50ms"}
"""Delays each commit on the standby. With remote_apply, commits of the primary wait for that."""

READINGS = 100_000
METER = (
    "CREATE TABLE meter (id int, reading int, place text) WITH (fillfactor = 80)",
    f"INSERT INTO meter SELECT n, 0, repeat('x', 300) FROM generate_series(1, {READINGS}) AS n",
    "ALTER TABLE meter ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE meter",
)
PARTS = 200_000
PART = (
    "CREATE TABLE part AS SELECT n AS id, n % 7 AS kind, repeat('x', 80) AS note "
    f"FROM generate_series(1, {PARTS}) AS n",
    "ALTER TABLE part ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE part",
)
EVENT = ("CREATE TABLE event (kind int, body text)",)
INVOICE = ("CREATE TABLE invoice (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, amount int)",)


def some_meters(chance: Random) -> list[int]:
    """Return the keys of rows of the table `meter`."""
    return sorted(chance.sample(range(1, READINGS + 1), 100))


def some_parts(chance: Random) -> list[int]:
    """Return the keys of rows of the table `part`."""
    return sorted(chance.sample(range(1, PARTS + 1), 200))


RECORD = sends("UPDATE meter SET reading = reading + 1 WHERE id = ANY (%s)", some_meters)
LIST = sends("SELECT id, kind, length(note) FROM part WHERE id = ANY (%s)", some_parts)
LOAD = sends("INSERT INTO event SELECT n % 9, repeat('x', 100) FROM generate_series(1, 2000) AS n")
LOOK_UP = sends("SELECT * FROM item WHERE id = %s", lambda chance: chance.randrange(ROWS))
PAY = sends(
    "INSERT INTO invoice (amount) SELECT n + %s FROM generate_series(1, 5) AS n",
    lambda chance: chance.randrange(100),
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "checkpoints that the amount of WAL forces",
        METER,
        [("meters", RECORD)] * 3,
        "checkpoints",
        names=("max_wal_size (32MB)",),
        remedy=("max_wal_size",),
        versions=range(14, 100),
        settings=OFTEN,
    ),
    Scenario("the same updates with room for WAL", METER, [("meters", RECORD)] * 3, seldom=True),
    Scenario(
        "lookups in a table larger than shared buffers",
        PART,
        [("shop", LIST)] * 3,
        "shared-buffers",
        names=("8MB",),
        remedy=("shared_buffers",),
        settings=SMALL,
    ),
    Scenario("lookups in a table that shared buffers hold", PART, [("shop", LIST)] * 3, seldom=True),
    Scenario(
        "WAL buffers of four pages",
        EVENT,
        [("loader", LOAD)] * 4,
        "wal-buffers",
        names=("wal_buffers",),
        remedy=("wal_buffers = '64MB'",),
        versions=range(14, 100),
        settings=UNSAFE,
    ),
    Scenario(
        "the same inserts with WAL buffers of the usual size", EVENT, [("loader", LOAD)] * 3, seldom=True
    ),
    Scenario(
        "a server that does not wait for its disk",
        ITEM,
        [("shop", LOOK_UP)] * 2,
        "crash-unsafe",
        names=("fsync",),
        remedy=("fsync = on",),
        settings=UNSAFE,
    ),
    Scenario(
        "commits that wait until a standby has applied them",
        INVOICE,
        [("shop", PAY)] * 4,
        "slow-commits",
        names=("standby",),
        remedy=("synchronous_commit = on",),
        settings=APPLIED,
        standby=DELAYED,
    ),
)
