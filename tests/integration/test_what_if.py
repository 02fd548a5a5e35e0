"""A sparse copy: the planner chooses as on the source, without its rows."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.model.database.workload import CapturedStatement
from uncork.workbench.cure.what_if import what_if

pytestmark = pytest.mark.postgres
INSTALLED = Path("/usr/lib/postgresql/15/bin")
TABLES = (
    "CREATE TABLE parcel (id int, place int, code text, sent timestamptz, tags int[], kind int)",
    "CREATE TABLE place (id int PRIMARY KEY, name text)",
    *(f"ALTER TABLE {name} SET (autovacuum_enabled = off)" for name in ("parcel", "place")),
)
"""Autovacuum would draw another sample of the rows between two plans."""
ROWS = (
    "INSERT INTO parcel SELECT n, n * 7919 % 20000, md5(n::text), "
    "timestamptz '2026-01-01' + n * interval '1 min', "
    "ARRAY[n % 300, n % 7], n % 3 FROM generate_series(1, 60000) AS n",
    "INSERT INTO place SELECT n, 'place ' || n FROM generate_series(0, 19999) AS n",
)
INDEXES = ("ALTER TABLE parcel ADD PRIMARY KEY (id)", "CREATE INDEX parcel_sent ON parcel (sent)")
CANDIDATES = (
    "CREATE INDEX CONCURRENTLY on_place ON parcel (place)",
    "CREATE INDEX on_kind ON parcel (kind)",
    "CREATE UNIQUE INDEX on_code ON parcel (code)",
    "CREATE INDEX on_pair ON parcel (kind, place) INCLUDE (id)",
    "CREATE INDEX on_rare ON parcel (place) WHERE kind = 1",
    "CREATE INDEX on_lower ON parcel (lower(code))",
    "CREATE INDEX on_nothing ON parcel (missing)",
    "CREATE INDEX on_tags ON parcel USING gin (tags)",
    "CREATE INDEX on_range ON parcel USING brin (sent)",
)
STATEMENTS = (
    "SELECT * FROM parcel WHERE place = 7",
    "SELECT p.name FROM parcel JOIN place p ON p.id = parcel.place WHERE parcel.id BETWEEN 50 AND 90",
    "SELECT count(*) FROM parcel WHERE kind = 1 AND place < 40",
    "SELECT kind, count(*) FROM parcel GROUP BY kind",
    "SELECT id FROM parcel WHERE tags @> ARRAY[17]",
    "SELECT id FROM parcel WHERE lower(code) = 'x'",
    "SELECT * FROM parcel WHERE sent > '2026-01-03' ORDER BY sent LIMIT 3",
    "UPDATE parcel SET kind = 2 WHERE code = 'x'",
)


@pytest.fixture(scope="module")
def source(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE sparse_source")
    with psycopg.connect(embedded.conninfo("sparse_source"), autocommit=True) as connection:
        for one in (*TABLES, *ROWS, *INDEXES, "VACUUM ANALYZE"):
            connection.execute(one)
    yield embedded.conninfo("sparse_source")
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP DATABASE sparse_source WITH (FORCE)")


def captured(template, sql, *sets):
    return CapturedStatement(template, sql, sets or ((),), "executed", 1.0, 1.0, 0.1, ("parcel",), False)


def built(source, place):
    """Build a candidate on the source; return the plans of all statements, and the index's pages."""
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute("SET jit = off")
        connection.execute(CANDIDATES[place])
        index = CANDIDATES[place].split("ON parcel")[0].split()[-1]
        plans = [connection.execute(f"EXPLAIN (FORMAT JSON) {one}").fetchone()[0] for one in STATEMENTS]
        (pages,) = connection.execute(f"SELECT pg_relation_size('{index}') / 8192").fetchone()
        connection.execute(f"DROP INDEX {index}")
    return [one[0]["Plan"] for one in plans], pages


def indexes(plan):
    """Return the indexes in a plan of JSON."""
    below = {name for one in plan.get("Plans", ()) for name in indexes(one)}
    return {plan.get("Index Name")} - {None} | below


def test_candidates_are_used_as_if_they_were_built(source):
    statements = [captured(number, text) for number, text in enumerate(STATEMENTS)]
    result = what_if(source, CANDIDATES, statements)
    assert (result.reason, result.unplanned, result.missing) == ("", (), ())
    by_sql = {one.sql: one for one in result.candidates}
    assert by_sql[CANDIDATES[6]].reason == 'column "missing" does not exist'
    assert by_sql[CANDIDATES[6]].plans == ()
    for place in range(6):
        found = by_sql[CANDIDATES[place]]
        plans, pages = built(source, place)
        name = CANDIDATES[place].split(" ON parcel")[0].split()[-1]
        assert [bool(one.used) for one in found.plans] == [name in indexes(plan) for plan in plans], name
        assert found.pages == pytest.approx(pages, rel=0.1), name
        for one, plan in zip(found.plans, plans, strict=True):
            assert one.after == pytest.approx(plan["Total Cost"], rel=0.02), (name, one.plan)
    for place in (0, 7):
        assert by_sql[CANDIDATES[place]].used, CANDIDATES[place]
    assert by_sql[CANDIDATES[0]].plans[0].before > 10 * by_sql[CANDIDATES[0]].plans[0].after


@pytest.mark.skipif(not INSTALLED.is_dir(), reason="needs an older PostgreSQL")
def test_an_older_source_is_not_available():
    server = EmbeddedServer({}, binaries=INSTALLED)
    server.start()
    try:
        result = what_if(server.conninfo(), CANDIDATES, [])
    finally:
        server.stop()
    assert result.candidates == ()
    assert result.reason == "the source runs PostgreSQL 15, and statistics can be copied from 18 only"
