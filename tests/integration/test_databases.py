"""The run's databases: built, restored to the very same pages, warmed, and dropped; nothing else touched."""

from __future__ import annotations

import json
import os
import socket

import psycopg
import pytest
from psycopg import sql

from uncork.engines import process
from uncork.engines.postgres import embedded_server, existing_server
from uncork.errors import ConnectError, ServerCrash, SetupError
from uncork.model.trial import Arm, Cell

pytestmark = pytest.mark.postgres

CELL = Cell((("rows", "10"),))
ARM = Arm("a")
TABLE = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5000) AS n;
"""
MINUTE = 60 * 10**9


@pytest.fixture(scope="module")
def server():
    server = embedded_server({"shared_buffers": "64MB"})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def built(server):
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore(CELL, ARM)
    return server


def count(server, query: str) -> str | None:
    return server.column(CELL, ARM, query)[0]


def test_restoring_undoes_what_a_trial_changed(built):
    with built.open(CELL, ARM) as connection:
        connection.execute("DELETE FROM t WHERE id <= 100")
    assert count(built, "SELECT count(*) FROM t") == "4900"
    built.restore(CELL, ARM)
    assert count(built, "SELECT count(*) FROM t") == "5000"


def test_restored_data_is_vacuumed_and_analysed(built):
    assert count(built, "SELECT relallvisible > 0 FROM pg_class WHERE relname = 't'") == "t"
    assert count(built, "SELECT count(*) FROM pg_stats WHERE tablename = 't'") == "2"


def test_warming_reads_every_table_and_index_into_the_cache(built):
    built.restore(CELL, ARM)
    built.warm(CELL, ARM)
    with built.open(CELL, ARM) as connection:
        connection.execute("CREATE EXTENSION pg_buffercache")
        cached = connection.execute(
            "SELECT c.relname, count(*) * 8192 = pg_relation_size(c.oid) FROM pg_buffercache b "
            "JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.relforknumber = 0 "
            "AND b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "WHERE c.relname IN ('t', 't_pkey') GROUP BY c.oid, c.relname"
        ).fetchall()
    assert dict(cached) == {"t": True, "t_pkey": True}
    built.restore(CELL, ARM)


def test_an_sql_error_in_the_set_up_names_its_line(server):
    with pytest.raises(
        SetupError, match=r'line 2: relation "nope" does not exist \(SQLSTATE 42P01\): INSERT'
    ):
        server.build(Cell((("x", "1"),)), "a", "SELECT 1;\nINSERT INTO nope VALUES (1);", {}, MINUTE)


def test_a_set_up_that_takes_too_long_is_ended(server):
    with pytest.raises(SetupError, match="statement timeout"):
        server.build(Cell((("x", "2"),)), "a", "SELECT pg_sleep(10)", {}, 200_000_000)


def test_a_variants_settings_hold_in_its_database(server):
    cell = Cell((("x", "3"),))
    server.build(cell, "a", "CREATE TABLE t (id int)", {"work_mem": "9MB", "enable_seqscan": False}, MINUTE)
    server.restore(cell, ARM)
    assert server.column(cell, ARM, "SHOW work_mem") == ["9MB"]
    assert server.column(cell, ARM, "SHOW enable_seqscan") == ["off"]


def test_a_setting_of_the_whole_server_cannot_be_a_variants(server):
    with pytest.raises(SetupError, match=r"move it to \[server.settings\]"):
        server.build(Cell((("x", "4"),)), "a", "SELECT 1", {"shared_buffers": "1GB"}, MINUTE)


def test_explain_gives_text_and_shape_and_undoes_the_statement(built):
    plan = built.explain(CELL, ARM, "delete", "DELETE FROM t WHERE id = $1", ["7"], {})
    assert "Delete on t" in plan.text
    assert plan.shape.splitlines()[:2] == ["Delete on t", "  Index Scan using t_pkey on t"]
    assert "Index Cond: (id = ?)" in plan.shape
    assert plan.buffers > 0
    assert count(built, "SELECT count(*) FROM t") == "5000"
    built.restore(CELL, ARM)


def test_a_utility_statement_has_no_plan(built):
    assert built.explain(CELL, ARM, "vacuum", "VACUUM t", [], {}) is None


def test_sizes_name_tables_and_indexes_with_depth(built):
    found = {relation.name: relation for relation in built.relations(CELL, ARM)}
    assert found["t"].kind == "table"
    assert found["t"].rows == 5000
    assert found["t_pkey"].table == "t"
    assert found["t_pkey"].depth == 1
    assert found["t"].bytes > found["t_pkey"].bytes > 0


def test_snapshots_count_what_one_arm_did(built):
    before = built.snapshot(CELL, ARM)
    with built.open(CELL, ARM) as connection, connection.transaction():
        connection.execute("UPDATE t SET f = 'y' WHERE id = 1")
    after = built.snapshot(CELL, ARM)
    assert after.queries - before.queries == 3, "BEGIN, UPDATE, COMMIT; not what uncork asks itself"
    assert after.wal_records > before.wal_records
    assert after.shared_hit + after.shared_read > before.shared_hit + before.shared_read
    built.restore(CELL, ARM)


def test_snapshots_count_updated_rows_if_asked(built):
    before = built.snapshot(CELL, ARM, updates=True)
    with built.open(CELL, ARM) as connection:
        connection.execute("UPDATE t SET f = 'y' WHERE id = 1")
        connection.execute("UPDATE t SET id = id + 100000 WHERE id = 2")
    after = built.snapshot(CELL, ARM, updates=True)
    assert (after.updated - before.updated, after.hot_updated - before.hot_updated) in {(2, 0), (2, 1)}
    assert built.snapshot(CELL, ARM).updated is None
    built.restore(CELL, ARM)


def test_a_server_that_dies_is_a_crash_and_not_a_usage_error(built):
    built.crash()
    with pytest.raises(ServerCrash, match="went away"):
        built.snapshot(CELL, ARM)
    built.recover()
    assert count(built, "SELECT count(*) FROM t") == "5000"


# ---- an existing server ----


@pytest.fixture
def role(embedded):
    """A role of its own on the embedded server, reached over TCP with a password."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE tenant LOGIN PASSWORD 'p w' CREATEDB")
        connection.execute("CREATE DATABASE theirs OWNER tenant")
        yield connection, f"host=127.0.0.1 port={embedded.port} user=tenant dbname=theirs password='p w'"
        connection.execute("DROP DATABASE theirs")
        connection.execute("DROP ROLE tenant")


def databases(connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_an_existing_server_gets_databases_of_our_own_and_loses_them_again(role):
    connection, dsn = role
    before = databases(connection)
    server = existing_server(dsn)
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore(CELL, ARM)
    server.warm(CELL, ARM)
    made = databases(connection) - before
    assert made and all(name.startswith("uncork_") for name in made)
    assert server.target(CELL, ARM).connection["password"] == "p w"
    assert "p w" not in repr(server.target(CELL, ARM))
    assert not server.restartable
    server.stop()
    assert databases(connection) == before


def test_the_database_named_in_the_dsn_is_not_touched(role):
    _, dsn = role
    server = existing_server(dsn)
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.stop()
    with psycopg.connect(dsn) as theirs:
        query = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert theirs.execute(query).fetchone() == (0,)
        assert theirs.execute("SELECT count(*) FROM pg_extension").fetchone() == (1,)


def test_statements_are_counted_where_the_server_does_and_never_told_as_none(embedded, role):
    connection, dsn = role
    with psycopg.connect(embedded.conninfo(), dbname="theirs", autocommit=True) as theirs:
        assert _counted(dsn) is None, "pg_stat_statements is loaded, but not in the database that is named"
        theirs.execute("CREATE EXTENSION pg_stat_statements")
    assert _counted(dsn) == 1
    connection.execute("ALTER ROLE tenant SET pg_stat_statements.track = 'none'")
    assert _counted(dsn) is None


def _counted(dsn):
    """Return how many statements are counted for one that an arm's database is sent; None if they are not."""
    server = existing_server(dsn)
    server.start()
    try:
        server.build(CELL, "a", TABLE, {}, MINUTE)
        server.restore(CELL, ARM)
        before = server.snapshot(CELL, ARM).queries
        assert server.column(CELL, ARM, "SELECT count(*) FROM t") == ["5000"]
        after = server.snapshot(CELL, ARM).queries
    finally:
        server.stop()
    return None if before is None else after - before


def test_a_role_that_may_not_create_databases_is_refused_with_the_remedy(role):
    connection, dsn = role
    connection.execute("ALTER ROLE tenant NOCREATEDB")
    server = existing_server(dsn)
    with pytest.raises(SetupError, match=r'ALTER ROLE "tenant" CREATEDB'):
        server.start()
    server.stop()


def test_a_wrong_password_is_said_without_it(role):
    _, dsn = role
    with pytest.raises(ConnectError, match="password authentication failed") as caught:
        existing_server(dsn.replace("p w", "wrong one")).start()
    assert "wrong one" not in str(caught.value)


def test_databases_of_a_killed_run_are_dropped_at_the_next_start(role):
    connection, dsn = role
    connection.execute("SET ROLE tenant")
    connection.execute("CREATE DATABASE uncork_dead01_t0")
    connection.execute("CREATE DATABASE uncork_other1_t0")
    connection.execute("RESET ROLE")
    owner = json.dumps(
        {"host": socket.gethostname(), "owner": {**process.identity(os.getpid()), "pid": 2**22 + 1}}
    )
    connection.execute(sql.SQL("COMMENT ON DATABASE uncork_dead01_t0 IS {}").format(owner))
    server = existing_server(dsn)
    server.start()
    server.stop()
    left = {name for name in databases(connection) if name.startswith("uncork_")}
    connection.execute("DROP DATABASE uncork_other1_t0")
    assert left == {"uncork_other1_t0"}, "what we did not make stays"


@pytest.mark.parametrize("configured", ["on", "off"])
def test_only_a_set_up_does_not_wait_for_the_disk(configured):
    server = embedded_server({"shared_buffers": "16MB", "fsync": configured})
    server.start()
    try:
        for step, expected in (
            (server.begin_setup, "off"),
            (server.end_setup, configured),
            (server.restart, configured),
        ):
            step()
            assert server.control.execute("SHOW fsync").fetchone() == (expected,)
    finally:
        server.stop()
