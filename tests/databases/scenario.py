"""What a database of known health is: its tables, its clients, and what the advice must say of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event

import psycopg
from psycopg import Connection

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.model.database.finding import Finding
from uncork.model.results.database import DatabaseResult
from uncork.report.database.document import build_database_document
from uncork.report.findings import finding_headline
from uncork.report.headline import fits
from uncork.workbench.profile.databases import profile_database

Client = Callable[[Connection, Event, Random], None]
Draw = Callable[[Random], object]

SMALL = {"shared_buffers": "8MB", "wal_buffers": "16MB", "max_wal_size": "256MB"}
"""Settings of a server whose memory is as small beside its tables as that of a larger one."""
SETTINGS = {"shared_buffers": "128MB", "autovacuum": True, "autovacuum_naptime": "1s"}
RATE_HZ = 20.0
_READY_S = 60.0
"""How long clients may take for what they send once."""
ROWS = 100_000
MOST_SHARE = 0.05
"""The largest share of the time that a finding may have on a healthy database."""


@dataclass(frozen=True)
class Scenario:
    """A database, its clients by application name, and what the advice must find first.

    `expected` is the rule of the first finding; it is empty if the database is healthy. Its headline must
    have all `names` in it, and one of its candidates all texts of `remedy` in its SQL or its text. `versions`
    are the major versions of PostgreSQL that have the fault. `compiled` requires a server that can compile
    statements (jit). With `settings`, the database is on a server with these settings, which it shares only
    with scenarios that have the same; with `standby`, that server has a standby with those settings. A
    `seldom` one is left out of the tests, which have a similar one; bench/database_advice.py watches it.
    """

    name: str
    setup: Sequence[str]
    clients: Sequence[tuple[str, Client]]
    expected: str = ""
    names: Sequence[str] = ()
    remedy: Sequence[str] = ()
    versions: range = field(default=range(13, 100))
    compiled: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    standby: Mapping[str, object] | None = None
    seldom: bool = False


def sends(statement: str, *draws: Draw, pause: float = 0.0, before: Sequence[str] = ()) -> Client:
    """Return a client that sends one statement again and again; each parameter is drawn anew.

    `before` are statements that it sends once; then it is `ready`.
    """
    ready = Event()

    def client(connection: Connection, over: Event, chance: Random) -> None:
        for one in before:
            connection.execute(one.encode())
        ready.set()
        while not over.is_set():
            cursor = connection.execute(statement.encode(), [draw(chance) for draw in draws] or None)
            if cursor.description is not None:
                cursor.fetchall()
            if pause:
                over.wait(pause)

    client.ready = ready
    return client


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


def faults(scenario: Scenario, result: DatabaseResult) -> list[str]:
    """Return what is wrong with the advice about a watched scenario; nothing if it is right."""
    steps = build_database_document(result).steps
    found = judged(scenario, result.findings)
    if not scenario.expected:
        return [*found, *(one.text for one in steps)]
    return found + ([] if steps or not result.findings else ["there is no step"])


def judged(scenario: Scenario, findings: Sequence[Finding]) -> list[str]:
    """Return what is wrong with the findings about a scenario; nothing if they are right."""
    if not scenario.expected:
        large = [one.headline for one in findings if one.bill and one.bill.share > MOST_SHARE]
        return large + [one.headline for one in findings if one.bill is None]
    if not findings:
        return ["there is no finding"]
    first = findings[0]
    text = "\n".join(f"{one.text} {one.sql}" for one in first.candidates)
    found = [] if first.rule == scenario.expected else [f"the first finding is {first.rule}"]
    found += [f"the headline does not name {name}" for name in scenario.names if name not in first.headline]
    found += [f"no candidate says {part}" for part in scenario.remedy if part not in text]
    return found + ([] if fits(finding_headline(first)) else [f"the headline is too long: {first.headline}"])


def told(result: DatabaseResult) -> Iterator[str]:
    """Yield what a reader of the report sees first."""
    yield result.answer
    yield from (f"- {reason}" for reason in result.reasons)
    yield from (f"> {step.text} {step.command}" for step in build_database_document(result).steps)


def applies(server: EmbeddedServer, scenario: Scenario) -> bool:
    """Return whether a server can have the fault of a scenario."""
    with psycopg.connect(server.conninfo()) as connection:
        if scenario.compiled and connection.execute("SELECT pg_jit_available()").fetchone() != (True,):
            return False
        return connection.info.server_version // 10_000 in scenario.versions


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
    """Let clients work until the block ends; the first begins a moment before the others.

    The block begins when all have sent what they send once.
    """
    over = Event()
    ready = [one.ready for _, one in scenario.clients if hasattr(one, "ready")]
    for one in ready:
        one.clear()
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
        until = time.monotonic() + _READY_S
        for one in ready:
            one.wait(max(0.0, until - time.monotonic()))
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
