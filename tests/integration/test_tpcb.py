"""pgbench's tables on a real server: the same as `pgbench -i` makes, to the last byte and place."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import ConnectError, SetupError

pytestmark = pytest.mark.postgres

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

DEFINITIONS = """
SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, pg_get_expr(c.relpartbound, c.oid),
       pg_get_partkeydef(c.oid), pg_get_indexdef(i.indexrelid), i.indisprimary,
       (SELECT array_agg((a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef)::text
                         ORDER BY a.attnum)
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
       (SELECT array_agg(conname || pg_get_constraintdef(o.oid) ORDER BY conname)
          FROM pg_constraint o WHERE o.conrelid = c.oid)
  FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
 WHERE c.relname LIKE 'pgbench%' ORDER BY c.relname
"""

PAGES = """
SELECT relname, relpages, reltuples, relallvisible, pg_relation_size(oid), pg_relation_size(oid, 'vm')
  FROM pg_class WHERE relname LIKE 'pgbench%' ORDER BY relname
"""

STATISTICS = """
SELECT tablename, attname, null_frac, avg_width, n_distinct::numeric(9, 1), correlation::numeric(9, 1)
  FROM pg_stats WHERE tablename LIKE 'pgbench%' ORDER BY 1, 2
"""


@pytest.fixture(scope="module")
def pgbench() -> str:
    found = shutil.which("pgbench") or next(
        (str(path) for path in Path("/usr/lib/postgresql").glob("*/bin/pgbench")), None
    )
    if found is None:
        assert not os.environ.get("CI"), "CI must have pgbench to compare with"
        pytest.skip("pgbench is not installed: nothing to compare with")
    return found


@pytest.fixture
def conninfo(embedded):
    """A database of its own."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE tpcb")
        yield embedded.conninfo("tpcb")
        connection.execute("DROP DATABASE tpcb WITH (FORCE)")


def rows(conninfo: str, query: str) -> list[tuple]:
    with psycopg.connect(conninfo) as connection:
        return connection.execute(query).fetchall()


def contents(conninfo: str) -> dict[str, tuple]:
    """Count and digest the rows of each table, every column, and where they lie."""
    digest = "SELECT count(*), md5(string_agg(t.tableoid::regclass || t.ctid::text || t::text, E'\\n' "
    return {
        table: rows(conninfo, f"{digest} ORDER BY tableoid::regclass::text, ctid)) FROM {table} t")[0]
        for table in TABLES
    }


def described(conninfo: str) -> tuple:
    return contents(conninfo), rows(conninfo, DEFINITIONS), rows(conninfo, PAGES), rows(conninfo, STATISTICS)


def run_pgbench(pgbench: str, conninfo: str, *arguments: str) -> None:
    parts = conninfo_to_dict(conninfo)
    where = ["-h", str(parts["host"]), "-p", str(parts["port"]), "-U", str(parts["user"])]
    subprocess.run([pgbench, "-i", "-q", *where, *arguments, str(parts["dbname"])], check=True)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["-s", "2"], {"scale": 2}),
        (["-F", "80", "--foreign-keys"], {"scale": 1, "fillfactor": 80, "foreign_keys": True}),
        (["--unlogged-tables"], {"scale": 1, "unlogged": True}),
        (["-I", "dtGvp"], {"scale": 1, "steps": "dtGvp"}),
        (["--partitions", "3"], {"scale": 1, "partitions": 3}),
        (
            ["--partitions", "2", "--partition-method", "hash"],
            {"scale": 1, "partitions": 2, "partition_method": "hash"},
        ),
    ],
    ids=["plain", "fillfactor and foreign keys", "unlogged", "in the server", "range", "hash"],
)
def test_the_tables_are_those_of_pgbench(pgbench, conninfo, arguments, options):
    run_pgbench(pgbench, conninfo, *arguments)
    theirs = described(conninfo)
    tpcb.initialise(conninfo, **options)
    ours = described(conninfo)
    for ours_part, their_part in zip(ours, theirs, strict=True):
        assert ours_part == their_part


def test_the_result_names_each_step_and_its_time(conninfo):
    told: list[tpcb.Progress] = []
    done = tpcb.initialise(conninfo, scale=1, steps="dt gvp", foreign_keys=True, progress=told.append)
    assert [step.letter for step in done.steps] == list("dtgvpf")
    assert [step.name for step in done.steps][2] == "client-side generate"
    assert all(step.elapsed_ns > 0 for step in done.steps)
    assert done.elapsed_ns == sum(step.elapsed_ns for step in done.steps)
    assert [progress.rows for progress in told] == [100_000]
    assert tpcb.scale_of(conninfo) == 1


def test_filling_again_replaces_the_rows_and_keeps_the_keys(conninfo):
    tpcb.initialise(conninfo, scale=2, foreign_keys=True)
    tpcb.initialise(conninfo, scale=1, steps="g")
    assert {table: count for table, (count, _) in contents(conninfo).items()} == {
        "pgbench_accounts": 100_000,
        "pgbench_branches": 1,
        "pgbench_history": 0,
        "pgbench_tellers": 10,
    }
    assert len([row for row in rows(conninfo, DEFINITIONS) if row[7]]) == 3


def test_tables_that_somebody_made_with_other_types_are_filled_too(conninfo):
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE pgbench_accounts (aid bigint NOT NULL, bid int, abalance numeric, filler text);"
            "CREATE TABLE pgbench_tellers (tid bigint NOT NULL, bid smallint, tbalance int, filler text);"
            "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88));"
            "CREATE TABLE pgbench_history (tid int)"
        )
    tpcb.initialise(conninfo, scale=1, steps="gvp")
    assert rows(conninfo, "SELECT * FROM pgbench_accounts ORDER BY aid DESC LIMIT 1") == [(100_000, 1, 0, "")]
    assert rows(conninfo, "SELECT * FROM pgbench_tellers ORDER BY tid DESC LIMIT 1") == [(10, 1, 0, None)]


def test_tables_too_narrow_for_the_scale_are_refused_and_keep_their_rows(conninfo):
    tpcb.initialise(conninfo, scale=1)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("ALTER TABLE pgbench_tellers ALTER tid TYPE smallint")
    with pytest.raises(SetupError, match=r'step "g" .*: 40000 does not fit into a column of 2 bytes; put'):
        tpcb.initialise(conninfo, scale=4000, steps="g")
    assert tpcb.scale_of(conninfo) == 1


def test_the_data_outlives_a_crash():
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    try:
        tpcb.initialise(server.conninfo(), scale=1)
        before = contents(server.conninfo())
        server.crash()
        server.recover()
        assert contents(server.conninfo()) == before
    finally:
        server.stop()


# ---- what the server refuses ----


def test_a_step_without_the_one_that_it_needs_is_refused_with_the_remedy(conninfo):
    with pytest.raises(SetupError, match=r'step "g" \(client-side generate\): .*; put step t'):
        tpcb.initialise(conninfo, scale=1, steps="g")
    tpcb.initialise(conninfo, scale=1, steps="dt")
    with pytest.raises(SetupError, match=r'step "t".*"pgbench_history" already exists; put step d'):
        tpcb.initialise(conninfo, scale=1, steps="t")
    with pytest.raises(SetupError, match=r'step "f".*put step p'):
        tpcb.initialise(conninfo, scale=1, steps="f")
    tpcb.initialise(conninfo, scale=1, steps="p")
    with pytest.raises(SetupError, match=r'step "p".*multiple primary keys.*put steps d and t'):
        tpcb.initialise(conninfo, scale=1, steps="p")


def test_a_tablespace_that_is_not_there_is_said(conninfo):
    with pytest.raises(SetupError, match=r'step "t".*tablespace "no where" does not exist; name one'):
        tpcb.initialise(conninfo, scale=1, tablespace="no where")
    with pytest.raises(SetupError, match=r'step "p".*tablespace "nor here" does not exist'):
        tpcb.initialise(conninfo, scale=1, index_tablespace="nor here")


def test_a_role_without_the_right_is_refused_by_name(conninfo, embedded):
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        try:
            theirs = make_conninfo(conninfo, user="guest")
            with pytest.raises(
                SetupError, match=r'step "t".*permission denied.*the role is "guest"; connect as'
            ):
                tpcb.initialise(theirs, scale=1)
            tpcb.initialise(conninfo, scale=1, steps="dt")
            with pytest.raises(SetupError, match=r"permission denied.*pgbench_branches"):
                tpcb.scale_of(theirs)
        finally:
            connection.execute("DROP ROLE guest")


def test_the_scale_of_no_tables_or_empty_ones_is_refused_with_the_remedy(conninfo):
    with pytest.raises(
        SetupError, match=r'database "tpcb" has no pgbench tables; create them first: uncork load sql -i'
    ):
        tpcb.scale_of(conninfo)
    tpcb.initialise(conninfo, scale=1, steps="t")
    with pytest.raises(SetupError, match=r"empty; create them first: uncork load sql -i"):
        tpcb.scale_of(conninfo)


def test_a_database_that_is_not_there_is_a_connect_error(embedded):
    with pytest.raises(ConnectError, match='"nothing" does not exist'):
        tpcb.initialise(embedded.conninfo("nothing"), scale=1)


def test_a_connection_lost_on_the_way_is_a_connect_error(conninfo):
    def cut(_: tpcb.Progress) -> None:
        with psycopg.connect(conninfo, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'tpcb' AND pid <> pg_backend_pid()"
            )

    with pytest.raises(ConnectError, match=r'step "g" \(client-side generate\): the server went away'):
        tpcb.initialise(conninfo, scale=2, progress=cut)


def test_progress_that_raises_leaves_the_old_rows(conninfo):
    tpcb.initialise(conninfo, scale=1)

    def stop(_: tpcb.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tpcb.initialise(conninfo, scale=2, steps="g", progress=stop)
    assert tpcb.scale_of(conninfo) == 1
