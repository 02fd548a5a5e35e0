"""The queries and the tables of TPC-H, and clients that send the queries."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from psycopg import Connection, connect, errors, sql

__all__ = ["HERE", "QUERIES", "connected", "copy_database", "index_bytes", "load", "timed", "working"]

HERE = Path(__file__).parent
QUERIES = tuple(
    part.strip().rstrip(";")
    for part in re.split(r"-- query \d+\n", (HERE / "queries.sql").read_text("utf-8"))[1:]
)
_SECONDS = 3
"""Longest a query of the watched clients may take, as services limit it; two take minutes without indexes."""


@contextmanager
def connected(server: str, database: str) -> Iterator[Connection]:
    """Connect to a database of a server, with jit off: its time depends on estimates more than on indexes."""
    with connect(server, dbname=database, autocommit=True, application_name="tpch") as connection:
        connection.execute("SET jit = off")
        yield connection


def load(server: str, data: Path) -> None:
    """Create the databases `tpch_plain` (no keys) and `tpch_keyed` (primary keys) from files of dbgen."""
    with connected(server, "postgres") as every:
        for name in ("tpch_plain", "tpch_keyed"):
            every.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        every.execute("CREATE DATABASE tpch_plain")
    with connected(server, "tpch_plain") as plain:
        plain.execute((HERE / "schema.sql").read_text("utf-8"))
        for path in sorted(data.glob("*.tbl")):
            statement = sql.SQL("COPY {} FROM STDIN (DELIMITER '|')").format(sql.Identifier(path.stem))
            with plain.cursor().copy(statement) as rows, path.open("rb") as lines:
                for line in lines:
                    rows.write(line.removesuffix(b"|\n") + b"\n")
        plain.execute("CREATE EXTENSION pg_stat_statements")
        plain.execute("VACUUM (FREEZE, ANALYZE)")
    copy_database(server, "tpch_plain", "tpch_keyed", (HERE / "keys.sql").read_text("utf-8").split(";\n"))


def copy_database(server: str, source: str, name: str, indexes: Sequence[str]) -> None:
    """Copy a database, execute statements in the copy that create its indexes, and analyse it."""
    with connected(server, "postgres") as every:
        every.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        every.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source))
        )
    with connected(server, name) as copy:
        for statement in indexes:
            copy.execute(statement.encode())
        copy.execute("VACUUM (FREEZE, ANALYZE)")


def index_bytes(connection: Connection) -> int:
    """Return the size of the indexes that belong to no constraint."""
    row = connection.execute(
        "SELECT coalesce(sum(pg_relation_size(i.indexrelid)), 0)::bigint FROM pg_index AS i "
        "JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relnamespace = 'public'::regnamespace "
        "AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)"
    ).fetchone()
    return 0 if row is None else row[0]


def timed(connection: Connection, limit_s: float) -> list[float]:
    """Return the seconds of each query, at most `limit_s`, after which it is cancelled."""
    connection.execute(f"SET statement_timeout = '{limit_s}s'".encode())
    found = []
    for query in QUERIES:
        begun = time.perf_counter()
        with suppress(errors.QueryCanceled):
            connection.execute(query.encode()).fetchall()
        found.append(time.perf_counter() - begun)
    return found


@contextmanager
def working(server: str, database: str, clients: int = 2) -> Iterator[None]:
    """Let clients send the queries in random order, with short pauses, until the block ends."""
    over = Event()
    threads = [Thread(target=_client, args=(server, database, number, over)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _client(server: str, database: str, seed: int, over: Event) -> None:
    chance = random.Random(seed)
    with connected(server, database) as connection:
        connection.execute(f"SET statement_timeout = '{_SECONDS}s'".encode())
        while not over.is_set():
            for query in chance.sample(QUERIES, len(QUERIES)):
                if over.is_set():
                    return
                with suppress(errors.QueryCanceled):
                    connection.execute(query.encode()).fetchall()
                over.wait(0.02)
