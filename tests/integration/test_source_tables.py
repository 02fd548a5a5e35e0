"""Tables of a database are described, and created again elsewhere with rows that follow their statistics."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from uncork.engines.source_tables import read_tables
from uncork.experiment.draft import table_sql

pytestmark = pytest.mark.postgres

SOURCE = """
CREATE SCHEMA shop;
CREATE TYPE shop.state AS ENUM ('open', 'paid');
CREATE DOMAIN amount AS numeric(10, 2) CHECK (VALUE >= 0);
CREATE TABLE shop."Order" (
    id bigint PRIMARY KEY, code uuid UNIQUE, customer int NOT NULL, state shop.state,
    note varchar(12) NOT NULL, "when" timestamptz NOT NULL, day date,
    flag boolean, details jsonb NOT NULL, tags text[], raw bytea,
    total amount, place point, twice numeric GENERATED ALWAYS AS (total * 2) STORED
);
INSERT INTO shop."Order" (id, code, customer, state, note, "when", day, flag, details, tags, raw, total)
SELECT n, md5(n::text)::uuid, 100 + n % 50, (ARRAY['open', 'paid', NULL, 'open'])[1 + n % 4]::shop.state,
       'n' || n % 9,
       timestamptz '2026-01-01' + n * interval '1 hour', date '2026-01-01' + n % 30, n % 3 = 0,
       '{}', '{a}', 'x', n % 100
  FROM generate_series(1, 4000) AS n;
CREATE INDEX ON shop."Order" (customer, "when" DESC) WHERE state = 'open';
CREATE VIEW seen AS SELECT * FROM shop."Order";
CREATE TABLE plain (a int);
CREATE TABLE odd (r int4range NOT NULL);
ANALYZE
"""
SHAPE = """
SELECT attname, format_type(atttypid, NULL), attnotnull, attgenerated
  FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0 ORDER BY attnum
"""
FACTS = """
SELECT count(*), count(DISTINCT customer), min(customer), max(customer), count(DISTINCT note),
       count(state)
  FROM {}
"""


@pytest.fixture(scope="module")
def databases(embedded):
    names = ("source_tables", "source_copy")
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        for name in names:
            control.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(embedded.conninfo(names[0]), autocommit=True) as connection:
        for statement in SOURCE.split(";\n"):
            connection.execute(statement)
    yield [embedded.conninfo(name) for name in names]
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        for name in names:
            control.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_table_is_created_again_with_its_columns_indexes_and_the_spread_of_its_values(databases):
    source, copy = databases
    (table,) = read_tables(source, ["shop.Order"])
    assert (table.unknown, table.rows) == (None, 4000)
    script = table_sql(table, 2000, {"customer", "state", "when"})
    with psycopg.connect(source) as old, psycopg.connect(copy) as new:
        new.execute("CREATE SCHEMA shop")
        new.execute(script.encode())
        before, after = (one.execute(FACTS.format('shop."Order"')).fetchone() for one in (old, new))
        assert before == (4000, 50, 100, 149, 9, 3000)
        assert after[0] == 2000
        assert 45 <= after[1] <= 50 and after[2] >= 100 and after[3] <= 149  # the same customers
        assert 7 <= after[4] <= 9
        assert 1400 < after[5] < 1600  # a quarter has no state
        shapes = [one.execute(SHAPE.format('shop."Order"')).fetchall() for one in (old, new)]
        plain = [[row for row in rows if row[0] != "total"] for rows in shapes]  # a domain becomes its type
        assert plain[0] == plain[1]
        indexes = [
            one.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'shop' ORDER BY 1").fetchall()
            for one in (old, new)
        ]
        assert indexes[0] == indexes[1]
        digest = "SELECT md5(string_agg(o::text, '' ORDER BY id)) FROM shop.\"Order\" o"
        first = new.execute(digest).fetchone()
        new.rollback()
        new.execute("CREATE SCHEMA shop")
        new.execute(script.encode())
        assert new.execute(digest).fetchone() == first  # every variant gets the same rows
        new.rollback()


def test_what_cannot_be_copied_has_a_reason(databases, embedded):
    source, _ = databases
    view, missing, odd = read_tables(source, ["seen", "no_such", "odd"])
    assert view.unknown == "it is not a table; define what it reads"
    assert missing.unknown == "the database has no such table"
    assert odd.unknown is None and table_sql(odd, 10, ()) is None
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
        (secret,) = read_tables(make_conninfo(source, user="stranger"), ["plain"])
        connection.execute("DROP ROLE stranger")
    assert secret.unknown == "this role may not read it"
