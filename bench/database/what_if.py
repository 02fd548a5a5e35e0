"""How often the planner chooses the same plan on a sparse copy as on the full data, and how exact sizes are.

``python bench/database/what_if.py`` creates the databases of tests/databases, and a sparse copy of each. It
plans the statements of their clients on both, without candidate indexes and with each one of many: a B-tree
on every column, GIN on arrays, documents and text, BRIN on times. ``--tpch FOLDER`` uses the tables that
``tpchgen-cli --scale-factor 0.1 --output-dir FOLDER`` wrote instead, and the queries in FOLDER/queries.json
(a list of the 22 texts, such as those of DuckDB's ``tpch_queries()``). Needs ``PYTHONPATH=python:tests``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Timer
from typing import Any

import psycopg

from databases import SCENARIOS
from databases.scenario import Scenario
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.sparse.copy import SETTINGS, SparseCopy, read_source_sizes
from uncork.engines.watch.planner import Planner
from uncork.engines.watch.session import WatchSession
from uncork.profile.plans.agreement import first_difference
from uncork.profile.plans.tree import plan_tree

_FULL = {"autovacuum": False, "shared_buffers": "512MB", "fsync": False, "max_wal_size": "16GB"}
_STATEMENTS = 12
_SECONDS = 1.0
"""Statements of each client to record, and the longest time for it."""
_TABLES = """
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25), r_comment varchar(152), x char(1));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25), n_regionkey int, n_comment varchar(152),
 x char(1));
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25), s_address varchar(40), s_nationkey int,
 s_phone char(15), s_acctbal numeric(15, 2), s_comment varchar(101), x char(1));
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25), c_address varchar(40), c_nationkey int,
 c_phone char(15), c_acctbal numeric(15, 2), c_mktsegment char(10), c_comment varchar(117), x char(1));
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55), p_mfgr char(25), p_brand char(10),
 p_type varchar(25), p_size int, p_container char(10), p_retailprice numeric(15, 2), p_comment varchar(23),
 x char(1));
CREATE TABLE partsupp (ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15, 2),
 ps_comment varchar(199), x char(1), PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int, o_orderstatus char(1),
 o_totalprice numeric(15, 2), o_orderdate date,
 o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79),
 x char(1));
CREATE TABLE lineitem (l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int,
 l_quantity numeric(15, 2), l_extendedprice numeric(15, 2),
 l_discount numeric(15, 2), l_tax numeric(15, 2), l_returnflag char(1),
 l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct char(25),
 l_shipmode char(10), l_comment varchar(44), x char(1), PRIMARY KEY (l_orderkey, l_linenumber));
"""
_COLUMNS = """
SELECT c.oid::regclass::text, quote_ident(a.attname), t.typname::text, t.typcategory = 'A'
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
   AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND a.attname <> 'x'
 ORDER BY 1, 2
"""


@dataclass
class Count:
    """How many plans are the same, and how far estimated sizes are from built ones."""

    same: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    sizes: list[tuple[str, str, int, int]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


class Recorder:
    """A connection that records the statements of a client instead of sending them."""

    description = None
    rowcount = 1

    def __init__(self, over: Event, texts: psycopg.ClientCursor[Any]) -> None:
        self._over, self._texts = over, texts
        self.statements: list[str] = []

    def execute(
        self, statement: bytes | str, parameters: Sequence[Any] | None = None, **_: object
    ) -> Recorder:
        """Record a statement with its values."""
        self.statements.append(self._texts.mogrify(statement, parameters))
        if len(self.statements) >= _STATEMENTS:
            self._over.set()
        return self

    def fetchall(self) -> list[tuple[int, ...]]:
        """Return one row of small numbers."""
        return [(1, 1, 1)]

    def fetchone(self) -> tuple[int, ...]:
        """Return one row of small numbers."""
        return (1, 1, 1)


def recorded(scenario: Scenario, connection: psycopg.Connection) -> list[str]:
    """Return the different statements that the clients of a scenario send."""
    found: list[str] = []
    for seed, (_, client) in enumerate(scenario.clients):
        over = Event()
        recorder = Recorder(over, psycopg.ClientCursor(connection))
        limit = Timer(_SECONDS, over.set)
        limit.start()
        with suppress(Exception):  # what it sent before is enough
            client(recorder, over, Random(seed))  # type: ignore[arg-type]
        limit.cancel()
        found += recorder.statements
    return list(dict.fromkeys(found))


def candidates(connection: psycopg.Connection) -> list[str]:
    """Return an index for every column of every table, in the methods that its type allows."""
    found = []
    for table, column, kind, array in connection.execute(_COLUMNS).fetchall():
        if kind not in ("json", "jsonb", "xml", "point") and not array:
            found.append(f"CREATE INDEX ON {table} ({column})")
        if kind == "jsonb":
            found.append(f"CREATE INDEX ON {table} USING gin ({column} jsonb_path_ops)")
        if array:
            found.append(f"CREATE INDEX ON {table} USING gin ({column})")
        if kind in ("text", "varchar"):
            found.append(f"CREATE INDEX ON {table} USING gin ({column} gin_trgm_ops)")
            found.append(f"CREATE INDEX ON {table} (lower({column}))")
        if kind in ("date", "timestamp", "timestamptz"):
            found.append(f"CREATE INDEX ON {table} USING brin ({column})")
    return [text.replace("INDEX ON", f"INDEX candidate_{place} ON") for place, text in enumerate(found)]


def compare(name: str, full: str, sparse: str, statements: Sequence[str], count: Count) -> None:
    """Compare the plans on a full database and on its sparse copy."""
    with (
        psycopg.connect(full, autocommit=True) as connection,
        closing(WatchSession(full)) as session,
    ):
        tried = candidates(connection)
        _, sizes = read_source_sizes(full)
        if sizes is None:
            raise SystemExit("the embedded server is too old to copy statistics from")
        copy = SparseCopy(sparse, sizes, tried)
        for place, reason in copy.reasons.items():
            print(f"{name}: {tried[place]}: {reason}")
        planner = Planner(session, 18)
        with copy.planning() as other:
            check(name, "no candidate", planner, other, statements, count, {})
            for place, text in enumerate(tried):
                if place not in copy.indexes:
                    continue
                ((index, pages),) = list(copy.indexes[place].items())[:1]
                try:
                    connection.execute(text)
                except psycopg.errors.ProgramLimitExceeded as error:
                    print(f"{name}: {text}: {error}")
                    continue
                rows = connection.execute("SELECT pg_relation_size(%s::regclass) / 8192", (index,)).fetchall()
                method = text.partition("USING ")[2].partition(" ")[0] or "btree"
                if rows[0][0] and pages:
                    count.sizes.append((method, f"{name}: {text}", pages, rows[0][0]))
                copy.show(copy.indexes[place])
                check(name, text, planner, other, statements, count, copy.indexes[place])
                connection.execute(f'DROP INDEX "{index}"')
        copy.close()


def check(
    name: str,
    text: str,
    planner: Planner,
    other: Planner,
    statements: Sequence[str],
    count: Count,
    indexes: dict[str, int],
) -> None:
    """Count statements with the same plan, and with the same use of a candidate."""
    for statement in statements:
        plans = [each.explain(statement, as_json=True) for each in (planner, other)]
        trees = [plan_tree(one.output) for one in plans if one is not None and one.output is not None]
        if len(trees) != 2 or trees[0] is None or trees[1] is None:
            if plans[0] is not None and plans[0].output:
                print(name, statement[:100], plans[1])
            continue
        used = [{node.index for node in tree.walk()} & set(indexes) for tree in trees]
        difference = first_difference(trees[0], trees[1])
        if not indexes:
            kinds = ["no candidate: plan"]
            same = [difference is None]
        else:
            kinds = ["candidate: plan", "candidate: use"]
            same = [difference is None, bool(used[0]) == bool(used[1])]
            if used[0] or used[1]:
                kinds.append("candidate that a plan uses: use")
                same.append(bool(used[0]) == bool(used[1]))
        for kind, agrees in zip(kinds, same, strict=True):
            count.all[kind] += 1
            count.same[kind] += agrees
        if difference is not None:
            costs = f"{trees[0].cost:.2f} and {trees[1].cost:.2f}"
            count.differences.append(f"{name}: {text}: {statement[:80]}: {difference.text}: {costs}")


def scenarios(full: EmbeddedServer, sparse: EmbeddedServer, count: Count, only: str, seconds: float) -> None:
    """Compare scenarios of tests/databases in a fixed random order, until the time is over."""
    end = time.monotonic() + seconds
    chosen = [one for one in SCENARIOS if only in one.name]
    Random(1).shuffle(chosen)
    for number, one in enumerate(chosen):
        if time.monotonic() > end:
            print(f"{number} of {len(chosen)} scenarios were compared")
            return
        print(one.name, flush=True)
        name = f"db{number}"
        for server in (full, sparse):
            with psycopg.connect(server.conninfo(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            for statement in ("CREATE EXTENSION IF NOT EXISTS pg_trgm", *one.setup):
                with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
                    connection.execute(statement.encode())
        empty(sparse.conninfo(name))
        with psycopg.connect(full.conninfo(name), autocommit=True) as connection:
            statements = recorded(one, connection)
        compare(one.name, full.conninfo(name), sparse.conninfo(name), statements, count)
        for server in (full, sparse):
            with psycopg.connect(server.conninfo(), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def empty(conninfo: str) -> None:
    """Remove all rows."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                "WHERE relkind IN ('r', 'p') AND nspname NOT LIKE 'pg\\_%' "
                "AND nspname <> 'information_schema'"
            ).fetchall()
        ]
        if tables:
            connection.execute(f"TRUNCATE {', '.join(tables)} CASCADE".encode())


def tpch(full: EmbeddedServer, sparse: EmbeddedServer, count: Count, folder: Path) -> None:
    """Compare the 22 queries of TPC-H."""
    for server in (full, sparse):
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            connection.execute(_TABLES)
    with psycopg.connect(full.conninfo(), autocommit=True) as connection:
        for path in sorted(folder.glob("*.tbl")):
            with (
                path.open("rb") as file,
                connection.cursor().copy(f"COPY {path.stem} FROM STDIN (DELIMITER '|')") as into,
            ):
                while part := file.read(1 << 20):
                    into.write(part)
        connection.execute("VACUUM ANALYZE")
    queries = [one.strip().rstrip(";") for one in json.loads((folder / "queries.json").read_text())]
    compare("tpch", full.conninfo(), sparse.conninfo(), queries, count)


def main() -> None:
    """Compare and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tpch", type=Path)
    parser.add_argument("--only", default="", help="scenarios with this text in their name")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no scenario after this time")
    given = parser.parse_args()
    full, sparse = EmbeddedServer(_FULL), EmbeddedServer(dict(SETTINGS))
    count = Count()
    try:
        full.start()
        sparse.start()
        if given.tpch is None:
            scenarios(full, sparse, count, given.only, given.seconds)
        else:
            tpch(full, sparse, count, given.tpch)
    finally:
        for server in (full, sparse):
            server.stop()
    for line in count.differences:
        print(line)
    for kind, many in count.all.items():
        print(f"{kind}: {count.same[kind]} of {many} ({count.same[kind] / many:.1%})")
    for method in sorted({one[0] for one in count.sizes}):
        found = [one for one in count.sizes if one[0] == method]
        large = [one for one in found if one[3] >= 10]
        errors = sorted(abs(math.log(one[2] / one[3])) for one in large)
        if errors:
            within = sum(error <= math.log(1.1) for error in errors)
            print(
                f"{method}: {within} of {len(errors)} sizes of 10 pages or more within 10 %; median error "
                f"{math.expm1(errors[len(errors) // 2]):.1%}, largest {math.expm1(errors[-1]):.1%}"
            )
            for one in sorted(large, key=lambda one: -abs(math.log(one[2] / one[3])))[:8]:
                print(f"  {one[1]}: {one[2]} instead of {one[3]} pages")


if __name__ == "__main__":
    main()
