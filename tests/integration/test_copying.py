"""A database is copied from its catalogue and its rows: everything is there, and the source was only read."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from uncork.engines.copying.chosen_settings import start_settings
from uncork.engines.copying.database import copy_source
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import ConnectError, SetupError, UsageError

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
