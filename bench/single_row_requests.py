"""Check that requests that each write one row are no batch, and that loops over many rows are found.

The healthy databases are generated: six schemas, 4 to 16 clients whose requests each write one row, with and
without reads around the write, with and without an explicit transaction, at full speed and with pauses. None
may be told to write many rows at once. The loaders are one to three sessions that write row by row; each must
be told. With `--pg-bin` the server is an installed PostgreSQL, otherwise an embedded one. With `--cure`,
cure each database instead: no cure of a healthy one may change how its clients send rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from threading import Event

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from psycopg import Connection

import uncork
from databases.scenario import Client, Scenario, at_work, lay_out, watch_scenario
from databases.started import Servers
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import StoreError
from uncork.model.database.finding import Candidate

ROWS = 5_000
TO_BATCH = ("commits each", "loops", "loops in a transaction")
"""What a client does whose candidate is to send many rows at once."""


@dataclass(frozen=True)
class Schema:
    """Tables, the statement that a request writes with, and the reads around it; each has one parameter."""

    name: str
    setup: Sequence[str]
    write: str
    reads: Sequence[str]


def filled(table: str, columns: str, values: str) -> Sequence[str]:
    """Return the statements that create a table with rows, whose numbers are `n`."""
    return (
        f"CREATE TABLE {table} ({columns})",
        f"INSERT INTO {table} SELECT {values} FROM generate_series(1, {ROWS}) AS n",  # noqa: S608
        f"VACUUM ANALYZE {table}",
    )


SCHEMAS = (
    Schema(
        "events",
        (
            *filled("device", "id int PRIMARY KEY, name text", "n, 'device ' || n"),
            "CREATE TABLE event (id bigserial PRIMARY KEY, device int, kind text, at timestamptz)",
        ),
        "INSERT INTO event (device, kind, at) VALUES (%s, 'open', now())",
        ("SELECT name FROM device WHERE id = %s", "SELECT count(*) FROM device WHERE id < %s % 50"),
    ),
    Schema(
        "orders",
        (
            *filled("customer", "id int PRIMARY KEY, city text", "n, 'city ' || n % 90"),
            "CREATE TABLE purchase (id bigserial PRIMARY KEY, customer int REFERENCES customer, total int)",
            "CREATE INDEX ON purchase (customer)",
        ),
        "INSERT INTO purchase (customer, total) VALUES (%s, 12) RETURNING id",
        ("SELECT city FROM customer WHERE id = %s", "SELECT sum(total) FROM purchase WHERE customer = %s"),
    ),
    Schema(
        "sessions",
        filled("login", "id int PRIMARY KEY, last_used timestamptz, hits int DEFAULT 0", "n, now(), 0"),
        "UPDATE login SET last_used = now() WHERE id = %s",
        ("SELECT last_used FROM login WHERE id = %s", "SELECT hits FROM login WHERE id = %s"),
    ),
    Schema(
        "counters",
        filled("page", "path int PRIMARY KEY, views bigint", "n, 0"),
        "UPDATE page SET views = views + 1 WHERE path = %s",
        ("SELECT views FROM page WHERE path = %s", "SELECT max(views) FROM page WHERE path <= %s % 20"),
    ),
    Schema(
        "audit",
        (
            *filled("account", "id int PRIMARY KEY, owner text", "n, md5(n::text)"),
            "CREATE TABLE audit (at timestamptz DEFAULT clock_timestamp(), account int, action jsonb)",
        ),
        'INSERT INTO audit (account, action) VALUES (%s, \'{"did": "read"}\')',
        ("SELECT owner FROM account WHERE id = %s", "SELECT id FROM account WHERE id = %s + 1"),
    ),
    Schema(
        "chat",
        (
            *filled("room", "id int PRIMARY KEY, topic text", "n, 'topic ' || n"),
            "CREATE TABLE message (id bigserial PRIMARY KEY, room int, body text, at timestamptz)",
            "CREATE INDEX ON message (room, id)",
        ),
        "INSERT INTO message (room, body, at) VALUES (%s, repeat('hello ', 20), now())",
        (
            "SELECT topic FROM room WHERE id = %s",
            "SELECT body FROM message WHERE room = %s ORDER BY id DESC LIMIT 20",
        ),
    ),
)


def requests(before: Sequence[str], write: str, after: Sequence[str], *, begin: bool, pause: float) -> Client:
    """Return a client that serves requests, each of which writes one row."""
    statements = [each.replace("%s % ", "%s %% ").encode() for each in (*before, write, *after)]

    def client(connection: Connection, over: Event, chance: Random) -> None:
        while not over.is_set():
            key = chance.randrange(1, ROWS)
            if begin:
                connection.execute("BEGIN")
            for statement in statements:
                cursor = connection.execute(statement, (key,))
                if cursor.description is not None:
                    cursor.fetchall()
            if begin:
                connection.execute("COMMIT")
            if pause:
                over.wait(chance.expovariate(1 / pause))

    return client


def healthy() -> Iterator[Scenario]:
    """Yield 48 databases whose requests each write one row."""
    chance = Random(40)
    for schema in SCHEMAS:
        first, second = schema.reads
        around: dict[str, tuple[Sequence[str], Sequence[str]]] = {
            "alone": ((), ()),
            "after a read": ((first,), ()),
            "before a read": ((), (second,)),
            "between reads": ((first,), (second,)),
        }
        for words, (before, after) in around.items():
            for begin in (False, True):
                clients = chance.choice((4, 6, 8, 12, 16))
                pause = chance.choice((0.0, 0.0, 0.002, 0.02))
                client = requests(before, schema.write, after, begin=begin, pause=pause)
                where = "in a transaction" if begin else "committed at once"
                pace = f"{clients} clients, pause {pause * 1e3:.0f} ms"
                name = f"{schema.name}: a write {words}, {where}, {pace}"
                yield Scenario(name, schema.setup, [("web", client)] * clients)


def loaders() -> Iterator[Scenario]:
    """Yield databases in which one to three sessions write rows one by one."""
    for place, schema in enumerate(SCHEMAS):
        for begin in (False, True):
            sessions = 1 + (2 * place + begin) % 3
            client = requests((), schema.write, (), begin=begin, pause=0.0)
            where = "a transaction each" if begin else "committed at once"
            name = f"{schema.name}: rows one by one, {where}, {sessions} sessions"
            yield Scenario(name, schema.setup, [("loader", client)] * sessions, "row-by-row-commit")


def main() -> int:
    """Judge each database; print what is wrong; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg-bin", type=Path, help="programs of an installed PostgreSQL")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is watched")
    parser.add_argument("--only", default="", help="databases whose names have these words in them")
    parser.add_argument("--every", type=int, default=1, help="only every so many of them")
    parser.add_argument("--cure", action="store_true", help="cure each database instead of watching it")
    options = parser.parse_args()
    cured = partial(_cured, pg_bin=options.pg_bin)
    told: Callable[[EmbeddedServer, Scenario, str, float], list[str]] = cured if options.cure else _advised
    wrong = {True: 0, False: 0}
    count = {True: 0, False: 0}
    chosen = [one for one in (*healthy(), *loaders()) if options.only in one.name][:: options.every]
    with Servers(options.pg_bin) as servers:
        for number, scenario in enumerate(chosen):
            server = servers.of(scenario)
            lay_out(server, scenario, f"db{number}")
            begun = time.monotonic()
            batches = told(server, scenario, f"db{number}", options.seconds)
            sick = bool(scenario.expected)
            count[sick] += 1
            wrong[sick] += bool(batches) != sick
            word = "ok   " if bool(batches) == sick else "WRONG"
            print(f"{word}  {scenario.name} ({time.monotonic() - begun:.1f} s)", flush=True)
            for line in batches:
                print(f"         {line}")
    print(f"healthy: {wrong[False]} of {count[False]} told to batch")
    print(f"loaders: {wrong[True]} of {count[True]} not found")
    return 1 if any(wrong.values()) else 0


def batching(candidates: Sequence[Candidate]) -> bool:
    """Return whether one of the changes is to send many rows at once."""
    return any(one.habit in TO_BATCH for one in candidates)


def _advised(server: EmbeddedServer, scenario: Scenario, name: str, seconds: float) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        result = watch_scenario(server, scenario, name, Path(folder), seconds)
    return [f"{one.rule}: {one.headline}" for one in result.findings if batching(one.candidates)]


def _cured(
    server: EmbeddedServer, scenario: Scenario, name: str, seconds: float, pg_bin: Path | None
) -> list[str]:
    with tempfile.TemporaryDirectory() as folder, at_work(server, scenario, name):
        run = uncork.cure(
            server.conninfo(name), runs=folder, budget="60s", lasting=f"{seconds}s", pg_bin=pg_bin
        )
        try:
            tried = run.result.tried
        except StoreError:  # there was nothing to cure
            return []
    batches = [one for one in tried if batching(one.finding.candidates)]
    return [f"{one.state}: {one.finding.headline}" for one in batches]


if __name__ == "__main__":
    sys.exit(main())
