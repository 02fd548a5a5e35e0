"""Whole databases are copied: as a template where no session is connected, else by pg_dump."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psycopg
import pytest

from uncork.engines import database_copy
from uncork.engines.connecting import connect_to_watch
from uncork.engines.database_copy import dump_programs
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postgres import existing_server
from uncork.errors import ConnectError, SetupError
from uncork.model.trial import Arm, Cell

pytestmark = pytest.mark.postgres

CELL, ARM = Cell(()), Arm("a")
MINUTE = 60 * 10**9
SHOP = """
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
            filling.execute(SHOP)
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
    assert target.build_base(shop) == "as a template"
    target.build(CELL, "a", "CREATE INDEX added ON orders (note)", {}, MINUTE)
    target.build(CELL, "b", "", {}, MINUTE)
    for arm in (ARM, Arm("b")):
        target.restore(CELL, arm)
        assert target.column(CELL, arm, "SELECT count(*) FROM orders") == ["500"]
    assert target.column(CELL, ARM, "SELECT to_regclass('added')") == ["added"]
    assert target.column(CELL, Arm("b"), "SELECT to_regclass('added')") == [None]
    target.stop()
    assert "shop" in names(embedded)
    assert not [name for name in names(embedded) if name.startswith("uncork_")]


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
def test_a_database_of_another_server_is_dumped_and_restored(target):
    source = EmbeddedServer({"shared_buffers": "32MB"}, binaries=OLDER)
    source.start()
    try:
        with psycopg.connect(source.conninfo(), autocommit=True) as connection:
            connection.execute(SHOP)
            assert dump_programs(15) is not None
            assert target.build_base(source.conninfo()).startswith("by pg_dump and pg_restore 1")
    finally:
        source.stop()
    target.build(CELL, "a", "", {}, MINUTE)
    target.restore(CELL, ARM)
    assert target.column(CELL, ARM, "SELECT count(*) FROM orders WHERE state = 'open'") == ["500"]
    assert target.column(CELL, ARM, "SELECT nextval('orders_id_seq')") == ["501"]
    assert target.column(CELL, ARM, "SELECT count(*) FROM paid") == ["0"]
