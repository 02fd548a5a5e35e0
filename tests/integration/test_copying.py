"""Copies of a database: their definitions, rows and answers."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from uncork.engines import database_copy, setting_check
from uncork.engines.connecting import connect_to_watch
from uncork.engines.copying.chosen_settings import start_settings
from uncork.engines.copying.database import copy_source
from uncork.engines.copying.scratch import ScratchDatabase, unstable_columns
from uncork.engines.database_copy import dump_programs
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postgres import embedded_server, existing_server
from uncork.engines.setting_check import extensions_lacking, libraries_to_load
from uncork.engines.source_tables import read_tables
from uncork.errors import ConnectError, SetupError, UsageError
from uncork.experiment.cure.loops import batches_of, many_rows
from uncork.experiment.draft import table_sql
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.workload import CapturedStatement
from uncork.model.trial import Arm, Cell
from uncork.profile.shapes.all_rows import body_for_all_rows
from uncork.workbench.cure.loops import compare_rows

pytestmark = pytest.mark.postgres

FIXTURES = Path(__file__).parents[1] / "fixtures" / "copying"
SHOP = (FIXTURES / "shop.sql").read_text()
DEFINITIONS = [line for line in (FIXTURES / "definitions.sql").read_text().splitlines() if line[:2] != "--"]
LEFT_OUT = re.compile(r"pg_toast|dblink|elsewhere|\bfar\b")
CLOSED = (
    'SELECT count(*) FROM "Odd ""Schéma"."order" o LEFT JOIN customers c ON c.id = o.customer'
    " WHERE c.id IS NULL",
    "SELECT count(*) FROM customers c LEFT JOIN customers p ON p.id = c.parent"
    " WHERE p.id IS NULL AND c.parent IS NOT NULL",
    "SELECT count(*) FROM notes n LEFT JOIN events e ON (e.at, e.id) = (n.event, n.id)"
    " WHERE e.at IS NULL AND n.event IS NOT NULL",
)
PLANS = (
    "SELECT * FROM customers WHERE id = 17",
    'SELECT name FROM customers c JOIN "Odd ""Schéma"."order" o ON o.customer = c.id'
    " WHERE body LIKE '%beef%'",
    "SELECT * FROM events WHERE at BETWEEN '2024-07-01' AND '2024-07-05' AND note = 'e40'",
)


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer({"shared_buffers": "64MB", "log_line_prefix": "%d "})
    found.start()
    try:
        with psycopg.connect(found.conninfo(), autocommit=True) as control:
            control.execute("CREATE DATABASE shop")
            with psycopg.connect(found.conninfo("shop"), autocommit=True) as filling:
                filling.execute(SHOP)
                filling.execute("VACUUM (ANALYZE)")
            control.execute("ALTER DATABASE shop SET random_page_cost = 1.3")
            control.execute("ALTER DATABASE shop SET search_path = public, pg_temp")
            control.execute("ALTER DATABASE shop SET log_statement = 'all'")
        yield found
    finally:
        found.stop()


def copied(server, name, **options):
    options = {"disk": 10**10, "told": lambda message: None, **options}
    return copy_source(server.conninfo("shop"), server.conninfo(name), **options)


def connect(server, name):
    return psycopg.connect(server.conninfo(name), autocommit=True)


def definitions(connection):
    connection.execute("SET search_path = ''")
    found = [
        sorted(re.sub(r"(stxoid|oid)=\d+", "", str(text)) for (text,) in connection.execute(query.encode()))
        for query in DEFINITIONS
    ]
    return [[text for text in texts if not LEFT_OUT.search(text)] for texts in found]


def checksums(connection):
    query = (
        'SELECT format(\'SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text COLLATE "C")), count(*)'
        " FROM ONLY %I.%I t', relnamespace::regnamespace::text, relname), oid::regclass::text FROM pg_class"
        " WHERE relkind IN ('r', 'm') AND oid >= 16384 AND relispopulated ORDER BY 2"
    )
    query = query.replace(
        "relnamespace::regnamespace::text", "(SELECT nspname FROM pg_namespace n WHERE n.oid = relnamespace)"
    )
    return {
        name: connection.execute(statement.encode()).fetchone()
        for statement, name in connection.execute(query.encode()).fetchall()
    }


def test_definitions_rows_and_plans_of_a_copy_are_those_of_the_source(server):
    messages = []
    facts = copied(server, "Copy ü", told=messages.append)
    with connect(server, "shop") as source, connect(server, "Copy ü") as copy:
        for one in (source, copy):
            one.execute("SET log_statement = 'none'")
        for statement in PLANS:
            before, after = (
                one.execute(f"EXPLAIN {statement}".encode()).fetchall() for one in (source, copy)
            )
            assert after == before
        for before, after in zip(definitions(source), definitions(copy), strict=True):
            assert after == before
        assert checksums(copy) == checksums(source)
        assert copy.execute("SELECT nextval('public.numbers')").fetchone() == (
            source.execute("SELECT last_value + 3 FROM public.numbers").fetchone()
        )
    with connect(server, "Copy ü") as copy:
        assert copy.execute("SHOW random_page_cost").fetchone() == ("1.3",)
        assert copy.execute("SHOW search_path").fetchone() == ("public, pg_temp",)
    assert not facts.sampled and all(table.whole for table in facts.tables)
    rows = {table.name: table.rows for table in facts.tables}
    assert rows['Odd "Schéma.order'] == 6000 and rows["public.e1b"] + rows["public.e1a"] == 214
    assert facts.bytes == sum(table.bytes for table in facts.tables) > 1_000_000
    assert [one.what for one in facts.missing] == [
        "extension dblink",
        "foreign server elsewhere",
        "foreign table public.far",
        "publication changes",
        "text search configuration public.own",
        "row security of table public.customers",
        "roles and privileges",
        "dead rows and free space",
    ]
    assert messages[0] == "creating 12 tables" and messages[-1] == "analysing the copy"


def test_the_source_receives_only_reading_statements_in_one_transaction(server, tmp_path):
    server.take_log(tmp_path / "before.log")
    copied(server, "logged", tables=["seen"])
    server.take_log(tmp_path / "copy.log")
    lines = [line for line in (tmp_path / "copy.log").read_text().splitlines() if line.startswith("shop ")]
    statements = [
        found[1] for line in lines if (found := re.search(r"LOG:  (?:statement|execute \S+): *(.*)", line))
    ]
    assert statements[0].startswith("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    assert statements[-1] == "COMMIT"
    first = {re.split(r"\W", statement.strip() or "SELECT")[0] for statement in statements}
    assert first == {"BEGIN", "SET", "SELECT", "SAVEPOINT", "COPY", "RELEASE", "COMMIT"}
    assert [statement for statement in statements if statement.startswith("COPY")] == [
        'COPY "public"."seen" ("id", "what") TO STDOUT'
    ]
    with connect(server, "logged") as copy:
        assert copy.execute("SELECT count(*) FROM seen").fetchone() == (2,)
        assert copy.execute("SELECT count(*) FROM customers").fetchone() == (0,)


def test_a_sample_is_closed_under_foreign_keys_and_chosen_alike_each_time(server):
    facts = copied(server, "sample", disk=500_000)
    copied(server, "again", disk=500_000)
    assert facts.sampled
    rows = {table.name: (table.rows, table.source_rows) for table in facts.tables}
    assert 0 < rows['Odd "Schéma.order'][0] < 2000 and rows['Odd "Schéma.order'][1] == 6000
    assert 0 < rows["public.customers"][0] < 3000 and rows["public.seen"] == (2, 2)
    assert not [one for one in facts.missing if one.what.startswith(("foreign key", "constraint", "index"))]
    with connect(server, "sample") as copy, connect(server, "again") as again:
        for query in CLOSED:
            assert copy.execute(query.encode()).fetchone() == (0,)
        valid = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated"
        assert copy.execute(valid).fetchone() == again.execute(valid).fetchone() != (0,)
        assert checksums(copy) == checksums(again)


CHAIN = """
CREATE TABLE versions (id int PRIMARY KEY, before int REFERENCES versions, item int, filler text);
CREATE TABLE items (id int PRIMARY KEY, newest int REFERENCES versions, filler text);
ALTER TABLE versions ADD FOREIGN KEY (item) REFERENCES items DEFERRABLE;
INSERT INTO items SELECT n, NULL, repeat('x', 90) FROM generate_series(1, 4000) n;
INSERT INTO versions SELECT n, nullif(n - 1, 0), 1 + n * 7 % 4000, repeat('x', 90)
  FROM generate_series(1, 8000) n;
UPDATE items SET newest = 1 + id * 13 % 8000;
CREATE FUNCTION only_here(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
  IF n > 2500 AND current_database() <> 'chain' THEN RAISE 'not on a copy'; END IF; RETURN n; END$$;
CREATE TABLE local (id int, here int GENERATED ALWAYS AS (only_here(id)) STORED);
INSERT INTO local SELECT generate_series(1, 5000);
CREATE TABLE zero (); CREATE TABLE last AS SELECT 1 AS one;
CREATE TABLE indexed AS SELECT n FROM generate_series(1, 9) n;
CREATE INDEX expressed ON indexed (only_here(n));
CREATE STATISTICS guessed ON only_here(n + 2500) FROM indexed;
"""


def test_chains_and_cycles_of_foreign_keys_end_and_a_table_that_the_copy_refuses_is_named(server):
    with connect(server, "postgres") as control:
        control.execute("CREATE DATABASE chain")
    with connect(server, "chain") as source:
        source.execute(CHAIN)
        source.execute("ANALYZE")
    facts = copy_source(
        server.conninfo("chain"), server.conninfo("ended"), disk=600_000, told=lambda message: None
    )
    missing = {one.what: one.why for one in facts.missing}
    assert facts.sampled and missing["rows of table public.local"] == "not on a copy"
    assert missing["planner statistics of public.indexed"] == "not on a copy"
    assert not [what for what in missing if "foreign key" in what]
    assert [
        what for what in missing if re.fullmatch(r'\d+ references "before" of table public.versions', what)
    ]
    rows = {table.name: table.rows for table in facts.tables}
    assert rows["public.last"] == 1 and "public.local" not in rows
    with connect(server, "ended") as copy:
        assert copy.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone() == (3,)
        assert 1000 < rows["public.versions"] < 8000 and 500 < rows["public.items"] < 4000


def test_a_table_that_cannot_be_read_is_named_and_the_rest_is_copied(server):
    conninfo = make_conninfo(server.conninfo("shop"), user="reader")
    with connect(server, "shop") as owner:
        owner.execute("GRANT SELECT ON seen, events, e1a, e1b, e2, base TO reader")
    facts = copy_source(conninfo, server.conninfo("partly"), disk=10**9, told=lambda message: None)
    missing = {one.what: one.why for one in facts.missing}
    assert missing["rows of table public.secret"] == "the role may not read it"
    assert missing["rows of table public.customers"] == "the role may not read it"
    assert {table.name for table in facts.tables} == {
        f"public.{name}" for name in ("seen", "e1a", "e1b", "e2", "base")
    }


def test_what_cannot_be_copied_is_refused_in_one_sentence_and_nothing_is_left(server):
    with pytest.raises(ConnectError, match="cannot connect to the server"):
        copy_source("host=127.0.0.1 port=1 dbname=x", server.conninfo("n"), disk=1, told=lambda message: None)
    with pytest.raises(UsageError, match='the source has no table "absent"'):
        copied(server, "none", tables=["absent"])
    with pytest.raises(SetupError, match="database shop has tables already; name a database that does not"):
        copied(server, "shop")
    killed = []

    def kill(message):
        if message.startswith("copying rows of public.customers"):
            with connect(server, "postgres") as control:
                query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'shop'"
                killed.extend(control.execute(query).fetchall())

    with pytest.raises(SetupError) as error:
        copied(server, "broken", told=kill)
    assert killed == [(True,)]
    assert str(error.value) == (
        "the source stopped the copy: terminating connection due to administrator command; nothing was "
        "changed there; start the copy again"
    )
    with connect(server, "shop") as owner, owner.transaction():
        owner.execute("LOCK TABLE customers")
        with pytest.raises(SetupError, match="another session has locked a table"):
            copied(server, "locked")
    with connect(server, "postgres") as control:
        names = {name for (name,) in control.execute("SELECT datname FROM pg_database")}
        assert not names & {"n", "none", "broken", "locked"}
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'"
        assert control.execute(sessions).fetchone() == (0,)


def test_settings_that_need_a_start_are_returned_for_the_server(server):
    settings = start_settings(server.conninfo("shop"))
    assert settings["shared_buffers"] == "64MB" and "random_page_cost" not in settings


def test_a_copy_has_the_statistics_of_the_source_and_lacks_those_it_lacks(server):
    asked = (
        "SELECT relname, relpages, reltuples FROM pg_class WHERE relname LIKE 'stale%' ORDER BY 1",
        "SELECT to_jsonb(s) FROM pg_stats s WHERE tablename LIKE 'stale%' ORDER BY tablename, attname",
    )
    with psycopg.connect(server.conninfo("shop"), autocommit=True) as source:
        if source.info.server_version < 180000:
            pytest.skip("statistics can be restored from PostgreSQL 18 on")
        source.execute("CREATE TABLE stale (id int PRIMARY KEY, state text)")
        source.execute("CREATE INDEX stale_low ON stale (lower(state))")
        source.execute("INSERT INTO stale SELECT n, 'State ' || n % 7 FROM generate_series(1, 9000) AS n")
        source.execute("ANALYZE stale")
        source.execute("INSERT INTO stale SELECT n, 'new' FROM generate_series(9001, 30000) AS n")
        source.execute("CREATE TABLE stale_never AS SELECT n FROM generate_series(1, 30000) AS n")
        try:
            facts = copied(server, "with_statistics")
            expected = [source.execute(one).fetchall() for one in asked]
        finally:
            source.execute("DROP TABLE stale, stale_never")
    assert facts.source_statistics
    assert not [one for one in facts.missing if "stale" in one.what]
    with psycopg.connect(server.conninfo("with_statistics"), autocommit=True) as copy:
        assert [copy.execute(one).fetchall() for one in asked] == expected
        assert copy.execute("SELECT count(*) FROM stale_never").fetchone() == (30000,)
    assert [row[2] for row in expected[0] if row[0] in ("stale", "stale_never")] == [9000, -1]
    assert len(expected[1]) == 3
    assert not copied(server, "sampled_statistics", disk=1).source_statistics


CELL, ARM = Cell(()), Arm("a")
MINUTE = 60 * 10**9
COPIED_SHOP = """
CREATE TYPE state AS ENUM ('open', 'paid');
CREATE TABLE orders (id bigserial PRIMARY KEY, state state DEFAULT 'open', note text);
INSERT INTO orders (note) SELECT 'note ' || n FROM generate_series(1, 500) AS n;
CREATE VIEW paid AS SELECT * FROM orders WHERE state = 'paid'
"""
OLDER = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def shop(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
        with psycopg.connect(embedded.conninfo("shop"), autocommit=True) as filling:
            filling.execute(COPIED_SHOP)
        yield embedded.conninfo("shop")
        connection.execute("DROP DATABASE shop WITH (FORCE)")


@pytest.fixture
def target(embedded, shop):
    server = existing_server(shop)  # its own session in that database must not prevent the copy
    server.start()
    yield server
    server.stop()


def names(embedded):
    with psycopg.connect(embedded.conninfo()) as connection:
        return [name for (name,) in connection.execute("SELECT datname FROM pg_database ORDER BY 1")]


def test_every_variant_begins_with_a_copy_as_a_template(embedded, shop, target):
    before = names(embedded)
    assert "shop" in before
    assert target.build_base(shop) == "as a template"
    target.build(CELL, "a", "CREATE INDEX added ON orders (note)", {}, MINUTE)
    target.build(CELL, "b", "", {}, MINUTE)
    for arm in (ARM, Arm("b")):
        target.restore(CELL, arm)
        assert target.column(CELL, arm, "SELECT count(*) FROM orders") == ["500"]
    assert target.column(CELL, ARM, "SELECT to_regclass('added')") == ["added"]
    assert target.column(CELL, Arm("b"), "SELECT to_regclass('added')") == [None]
    target.stop()
    assert names(embedded) == before


def test_every_variant_has_the_settings_of_the_copied_database_unless_it_sets_them(embedded, shop, target):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        for setting in ("work_mem = '64kB'", "random_page_cost = 1.3", "search_path = app, public"):
            connection.execute(f"ALTER DATABASE shop SET {setting}")
    target.build_base(shop)
    target.build(CELL, "a", "", {}, MINUTE)
    target.build(CELL, "b", "", {"work_mem": "1MB"}, MINUTE)
    found = []
    for arm in (ARM, Arm("b")):
        target.restore(CELL, arm)
        target.restore(CELL, arm)
        names = ("work_mem", "random_page_cost", "search_path")
        found.append([target.column(CELL, arm, f"SHOW {name}")[0] for name in names])
    assert found == [["64kB", "1.3", "app, public"], ["1MB", "1.3", "app, public"]]


def test_a_database_in_use_needs_a_dump_and_the_message_names_both_ways_out(shop, target, monkeypatch):
    monkeypatch.setattr(database_copy, "dump_programs", lambda major: None)
    with psycopg.connect(shop), pytest.raises(SetupError) as error:
        target.build_base(shop)
    assert str(error.value) == (
        "cannot copy database shop: 1 other session is connected to it, and no pg_dump of PostgreSQL 18 is "
        "installed; stop the service, or install the client programs of PostgreSQL 18"
    )
    with pytest.raises(ConnectError):
        target.build_base("host=127.0.0.1 port=1 dbname=shop")


def test_an_extension_that_only_the_copied_database_has_is_not_missed_afterwards(embedded, shop):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP EXTENSION IF EXISTS pg_stat_statements")
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
    server = existing_server(shop)
    server.start()
    try:
        assert "pg_stat_statements" not in server.facts()["server"]
        assert server.build_base(shop) == "as a template"
        server.build(CELL, "a", "SELECT 1", {}, MINUTE)
        server.restore(CELL, ARM)
        server.snapshot(CELL, ARM)
        assert server.facts()["server"]["pg_stat_statements"].startswith("not available")
    finally:
        server.stop()


def test_a_watch_that_is_just_ending_does_not_prevent_a_template(shop, target, monkeypatch):
    monkeypatch.setattr(database_copy, "dump_programs", lambda major: None)
    watching = connect_to_watch(shop)
    ending = threading.Timer(0.3, watching.close)
    ending.start()
    try:
        assert target.build_base(shop) == "as a template"
    finally:
        ending.join()


@pytest.mark.skipif(not OLDER.is_dir() and not os.environ.get("CI"), reason="there is no PostgreSQL 15 here")
def test_definitions_and_rows_of_a_copy_on_an_older_server_are_those_of_the_source():
    of_18 = " half int GENERATED ALWAYS AS (id / 2),"
    assert of_18 in SHOP
    older = EmbeddedServer({"shared_buffers": "64MB"}, binaries=OLDER)
    older.start()
    try:
        with psycopg.connect(older.conninfo(), autocommit=True) as control:
            control.execute("CREATE DATABASE shop")
        with connect(older, "shop") as filling:
            filling.execute(SHOP.replace(of_18, "").encode())
        copied(older, "copy")
        with connect(older, "shop") as source, connect(older, "copy") as copy:
            for before, after in zip(definitions(source), definitions(copy), strict=True):
                assert after == before
            assert checksums(copy) == checksums(source)
    finally:
        older.stop()


@pytest.mark.skipif(not OLDER.is_dir() and not os.environ.get("CI"), reason="there is no PostgreSQL 15 here")
def test_a_database_of_another_server_is_dumped_and_restored(target):
    source = EmbeddedServer({"shared_buffers": "32MB"}, binaries=OLDER)
    source.start()
    try:
        with psycopg.connect(source.conninfo(), autocommit=True) as connection:
            connection.execute(COPIED_SHOP)
            assert dump_programs(15) is not None
            assert target.build_base(source.conninfo()).startswith("by pg_dump and pg_restore 1")
    finally:
        source.stop()
    target.build(CELL, "a", "", {}, MINUTE)
    target.restore(CELL, ARM)
    assert target.column(CELL, ARM, "SELECT count(*) FROM orders WHERE state = 'open'") == ["500"]
    assert target.column(CELL, ARM, "SELECT nextval('orders_id_seq')") == ["501"]
    assert target.column(CELL, ARM, "SELECT count(*) FROM paid") == ["0"]


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


def test_what_a_server_has_not_got_is_told(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        assert extensions_lacking(control, ["pg_prewarm"]) is None
        assert extensions_lacking(control, []) is None
        told = extensions_lacking(control, ["pg_prewarm", "no_such_extension"])
        assert told == "the extension no_such_extension is not installed on the server"


def test_a_library_that_is_not_loaded_is_told(embedded, monkeypatch):
    monkeypatch.setitem(setting_check.LIBRARIES, "pg_prewarm", "pg_prewarm")
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        told = extensions_lacking(control, ["pg_prewarm"])
        assert "add pg_prewarm to shared_preload_libraries, and restart the server" in told
        assert libraries_to_load(control, ["pg_prewarm", "no_such_extension"]) == ["pg_prewarm"]


def test_a_server_of_our_own_loads_it(monkeypatch):
    monkeypatch.setitem(setting_check.LIBRARIES, "pg_prewarm", "pg_prewarm")
    server = embedded_server({"shared_buffers": "32MB"})
    server.start()
    try:
        assert server.lacking("a") is None
        assert server.lacking("a", ["pg_prewarm"]) is None
        lacking = server.lacking("b", ["no_such_extension"])
        assert lacking == "the extension no_such_extension is not installed on the server"
        server.restart()
        loaded = server.facts()["server"]
        assert loaded
        assert server.lacking("a", ["pg_prewarm"]) is None
    finally:
        server.stop()


BODIES = {
    "a count": "UPDATE total SET events = events + 1 WHERE kind = NEW.kind;",
    "a sum that may be null": "UPDATE total AS t SET sum = t.sum - NEW.amount, seen = now() "
    "WHERE NEW.place = t.kind;",
    "a sum from null on": "UPDATE total SET sum = coalesce(sum, 0) + NEW.kind "
    "WHERE kind = NEW.place AND region = 'a';",
    "one row for all": "UPDATE site SET n = n + 2;",
    "an exact decimal": "UPDATE total SET paid = paid + NEW.price WHERE kind = NEW.kind;",
    "a line of a log": "INSERT INTO line (kind, what) VALUES (NEW.kind, 'got ' || NEW.amount::text);",
    "only new ones": "INSERT INTO known (place) VALUES (NEW.place) ON CONFLICT DO NOTHING;",
    "a row that appears": "INSERT INTO seen (kind, n) VALUES (NEW.kind, 1) "
    "ON CONFLICT (kind) DO UPDATE SET n = seen.n + 1;",
    "a sum that appears": "INSERT INTO seen AS s (kind, n, at) VALUES (NEW.kind, NEW.amount, now()) "
    "ON CONFLICT (kind) DO UPDATE SET n = s.n + EXCLUDED.n, at = now();",
    "two of them": "UPDATE site SET n = n + NEW.kind; INSERT INTO line (kind) VALUES (NEW.kind);",
}
SCHEMA = """
CREATE TABLE event (kind integer NOT NULL, place integer, amount integer, price numeric(8,2));
CREATE TABLE total
  (kind integer, region text, events bigint, sum integer, paid numeric(8,2), seen timestamptz);
CREATE TABLE site (n integer);
CREATE TABLE line (kind integer, what text);
CREATE TABLE known (place integer UNIQUE);
CREATE TABLE seen (kind integer PRIMARY KEY, n bigint, at timestamptz);
"""
WRITTEN = ("total", "site", "line", "known", "seen")
_LEFT = "SELECT to_jsonb(t) - '{{at,seen}}'::text[] AS whole FROM {} AS t ORDER BY 1"  # but for times
NUMBER = st.one_of(st.none(), st.integers(-3, 3))
ROWS = st.lists(
    st.tuples(st.integers(0, 3), NUMBER, NUMBER, st.one_of(st.none(), st.sampled_from(["1.25", "-0.50"])))
)


@pytest.fixture(scope="module")
def control(embedded):
    with psycopg.connect(embedded.conninfo("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE triggers")
    with psycopg.connect(embedded.conninfo("triggers"), autocommit=True) as own:
        own.execute(SCHEMA)
        yield own
    with psycopg.connect(embedded.conninfo("postgres"), autocommit=True) as admin:
        admin.execute("DROP DATABASE triggers")


@pytest.fixture(scope="module")
def columns(control):
    found = {}
    for table, name, kind, stored, not_null in control.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL), format_type(a.atttypid, a.atttypmod), "
        "a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
    ):
        one = ColumnFacts(table, 1, 1, name, kind, stored, not_null, "", "", "")
        found.setdefault(table, []).append(one)
    return found


@pytest.mark.parametrize("name", BODIES)
def test_both_triggers_leave_the_same(name, control, columns):
    body = f"BEGIN {BODIES[name]} RETURN NEW; END"
    turned = body_for_all_rows(body, "new", "event", columns)
    assert turned is not None
    assert turned.joins == ("WHERE" in BODIES[name])
    both = (("FOR EACH ROW", body), ("REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT", turned.source))

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(batches=st.lists(ROWS, max_size=3))
    def same(batches):
        left, checked = [], []
        for how, source in both:
            with control.transaction(force_rollback=True):
                control.execute(
                    "INSERT INTO total SELECT n, v.*, '2000-01-01' FROM generate_series(0, 2) AS n, "
                    "(VALUES ('a', 0, NULL, 0), ('b', 5, 7, 1.5)) AS v; INSERT INTO site VALUES (0)"
                )
                control.execute(
                    f"CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $body$ {source} $body$"
                )
                control.execute(f"CREATE TRIGGER acting AFTER INSERT ON event {how} EXECUTE FUNCTION act()")
                for rows in batches:
                    control.execute(
                        "INSERT INTO event "
                        "SELECT * FROM unnest(%s::int[], %s::int[], %s::int[], %s::numeric[])",
                        [[one[place] for one in rows] for place in range(4)],
                    )
                left.append([control.execute(_LEFT.format(table)).fetchall() for table in WRITTEN])
                checked.append(control.execute(turned.check).fetchall())
        assert left[0] == left[1]
        assert checked[0] == checked[1]

    same()


TABLES = """
CREATE TABLE event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind int, body text,
  at timestamptz DEFAULT now());
CREATE TABLE total AS SELECT n AS kind, 0 AS events FROM generate_series(0, 9) AS n;
CREATE FUNCTION tally() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE total SET events = events + 1 WHERE kind = NEW.kind; RETURN NEW; END $$;
CREATE TRIGGER tallying AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION tally();
CREATE TABLE item AS SELECT n AS id, n % 7 AS customer, 'note ' || n AS note
  FROM generate_series(1, 500) AS n;
"""


@pytest.fixture(scope="module")
def scratch(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE answers")
    with psycopg.connect(embedded.conninfo("answers"), autocommit=True) as own:
        own.execute(TABLES)
    with ScratchDatabase(embedded.conninfo("answers")) as found:
        yield found


def captured(sql, sets):
    changes = not sql.startswith("SELECT")
    return CapturedStatement(1, sql, tuple(sets), "drawn", 1, 1, 1, ("item",), changes)


def compared(scratch, sql, sets, many=None):
    """Return the difference between single statements and each way to send many rows."""
    types = dict(enumerate(scratch.parameter_types(sql), start=1))
    ways = many_rows(sql, types)
    batches = batches_of(captured(sql, sets), types, ways)
    return [compare_rows(scratch, one if many is None else many, batches) for one in ways]


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("INSERT INTO event (kind, body) VALUES ($1, $2)", [(str(n % 5), "it's") for n in range(20)]),
        ("UPDATE item SET note = $1, customer = $2 WHERE id = $3",
         [(None if n == 3 else f"a\\\"{n}", "1", str(n)) for n in range(1, 25)]),
        ("UPDATE item SET customer = customer + $1 WHERE id = $2", [("5", str(n)) for n in range(1, 25)]),
        ("DELETE FROM item WHERE id = $1 AND customer < $2", [(str(n), str(n % 9)) for n in range(1, 25)]),
        ("SELECT note FROM item WHERE id = $1", [(str(n),) for n in range(490, 520)]),
        ("SELECT customer, count(*) FROM item WHERE customer = $1 GROUP BY 1", [(str(n),) for n in range(9)]),
        ("SELECT id FROM item WHERE customer = $1 AND id > $2 ORDER BY id LIMIT 2",
         [(str(n % 7), str(n)) for n in range(30)]),
    ],
)  # fmt: skip
def test_one_statement_for_many_rows_does_what_the_single_ones_do(scratch, sql, sets):
    found = compared(scratch, sql, sets)
    assert [one.error for one in found] == [""] * len(found)
    assert all(one.compared >= 4 for one in found)


def test_times_are_left_out_and_named(scratch):
    (found,) = compared(scratch, "INSERT INTO event (kind, body) VALUES ($1, $2)", [("1", "x"), ("2", "y")])
    assert found.left_out == {"event.at"}


def test_what_an_earlier_statement_changed_is_not_compared(scratch):
    """The server reports a session's changes at most once a second, and shows them to it until then."""
    scratch.left_behind(["UPDATE item SET note = note"])
    assert scratch.left_behind(["UPDATE total SET events = 1"]).rows.keys() == {"total"}


def test_other_rows_are_found(scratch):
    sql = "UPDATE item SET note = $1 WHERE id = $2"
    (way,) = many_rows(sql, {1: "text", 2: "integer"})
    wrong = replace(way, sql=way.sql.replace("id = batch.p2", "id = batch.p2 + 1"))
    sets = [(f"new {n}", str(n)) for n in range(1, 25)]
    (found,) = compared(scratch, sql, sets, wrong)
    assert found.error == "It leaves other rows in item than the single statements"
    read = "SELECT note FROM item WHERE id = $1"
    lookup = many_rows(read, {1: "integer"})[0]
    twice = replace(lookup, sql=f"{lookup.sql} OR id = 1")
    found = compared(scratch, read, [(str(n),) for n in range(2, 30)], twice)[0]
    assert found.error.startswith("It returns 21 rows, but")


def test_a_refused_statement_is_an_error_in_the_servers_words(scratch):
    with pytest.raises(SetupError, match="does not exist"):
        scratch.parameter_types("SELECT nothing FROM item WHERE id = $1")
    assert scratch.parameter_types("SELECT 1 FROM item WHERE id = $1 AND note = $2") == ("integer", "text")
    first = scratch.left_behind(["UPDATE item SET note = note"])
    assert not unstable_columns(first, scratch.left_behind(["UPDATE item SET note = note"]))
