"""The queries and the tables of TPC-H, and clients that send the queries."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from psycopg import Connection, connect, errors, sql

HERE = Path(__file__).parent
QUERIES = tuple(
    part.strip().rstrip(";")
    for part in re.split(r"-- query \d+\n", (HERE / "queries.sql").read_text("utf-8"))[1:]
)
STATES = {"plain": (), "keyed": ("keys.sql",), "foreign": ("keys.sql", "foreign.sql")}
"""The files whose statements create the indexes that the database has at first."""
_SECONDS = 3
"""Longest a query of the watched clients may take, as services limit it; two take minutes without indexes."""


@contextmanager
def connected(server: str, database: str) -> Iterator[Connection]:
    """Connect to a database of a server, with jit off: its time depends on estimates more than on indexes."""
    with connect(server, dbname=database, autocommit=True, application_name="tpch") as connection:
        connection.execute("SET jit = off")
        yield connection


def load(server: str, data: Path) -> None:
    """Create a database for each state, `tpch_plain` and so on, from files of dbgen."""
    with connected(server, "postgres") as every:
        every.execute("DROP DATABASE IF EXISTS tpch_plain WITH (FORCE)")
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
    for state, files in STATES.items():
        if files:
            statements = [(HERE / name).read_text("utf-8") for name in files]
            copy_database(server, "tpch_plain", f"tpch_{state}", statements)


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


def index_sizes(connection: Connection) -> dict[str, int]:
    """Return the bytes of each index of a database, by its name."""
    return dict(
        connection.execute(
            "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index "
            "JOIN pg_class AS c ON c.oid = indrelid WHERE c.relnamespace = 'public'::regnamespace"
        ).fetchall()
    )


def seconds_of(connection: Connection, query: str, limit_s: float) -> float:
    """Return the seconds of a query, about `limit_s` if it takes longer, after which it is cancelled."""
    connection.execute(f"SET statement_timeout = '{limit_s}s'".encode())
    begun = time.perf_counter()
    with suppress(errors.QueryCanceled):
        connection.execute(query.encode()).fetchall()
    return time.perf_counter() - begun


@contextmanager
def working(server: str, database: str, clients: int = 2) -> Iterator[None]:
    """Let clients send the queries in random order, with short pauses, until the block ends.

    Raises what a client raised.
    """
    over = Event()
    with ThreadPoolExecutor(clients) as threads:
        sent = [threads.submit(_client, server, database, number, over) for number in range(clients)]
        try:
            yield
        finally:
            over.set()
        for one in sent:
            one.result()


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
