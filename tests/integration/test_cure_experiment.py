"""An experiment about changes and captured statements runs on a real server, from a copy of a database."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import psycopg
import pytest

import uncork
from uncork.experiment.cure.arms import Arm, arms_of
from uncork.experiment.cure.handed import down_sql, up_sql
from uncork.experiment.cure.setups import CopyKeeps, setup_script
from uncork.experiment.cure.text import experiment_of_arms
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import Change, Net
from uncork.model.template_words import inline_statement
from uncork.workbench.cure.proving import rehearse
from uncork.workbench.cure.trials import measure_arms, without_violations

pytestmark = pytest.mark.postgres

ORDERS = """
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, state text NOT NULL, note text);
INSERT INTO orders SELECT n, n % 3000, CASE WHEN n % 2 = 0 THEN 'open' ELSE 'it''s paid' END, 'note'
  FROM generate_series(1, 30000) AS n;
CREATE VIEW notes AS SELECT note FROM orders;
"""
READ = CapturedStatement(
    1,
    "SELECT id FROM orders WHERE customer = $1 AND state = $2",
    tuple((str(n), "open" if n % 2 == 0 else "it's paid") for n in range(2, 20)),
    "executed", 1000, 2e6, 0.8, ("orders",), changes=False,
)  # fmt: skip
WRITE = CapturedStatement(
    2,
    "UPDATE orders SET note = $1 WHERE id = $2",
    tuple((f"new {n}", str(n)) for n in range(1, 40)),
    "seen", 500, 1e5, 0.2, ("orders",), changes=True,
)  # fmt: skip
DELETE = CapturedStatement(
    3, "DELETE FROM orders WHERE customer = $1", tuple((str(n),) for n in range(2, 20)),
    "drawn", 500, 1e6, 0.1, ("orders",), changes=True,
)  # fmt: skip
WORKLOAD = CapturedWorkload((READ, WRITE, DELETE), (), 60.0, 1.0)
FINDING = Finding(
    "missing-index", "x", ("orders",), Bill(1, 1, 1, 0.5), (1,),
    candidates=(
        Candidate("index", "Create an index.",
                  "CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer);",
                  "DROP INDEX CONCURRENTLY orders_customer_idx;"),
    ),
)  # fmt: skip


@pytest.fixture
def shop(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE cure_shop")
        with psycopg.connect(embedded.conninfo("cure_shop"), autocommit=True) as filling:
            filling.execute(ORDERS)
        yield embedded.conninfo("cure_shop")
        connection.execute("DROP DATABASE cure_shop WITH (FORCE)")


def test_an_index_is_measured_until_there_is_a_verdict_and_a_text_with_other_rows_is_refused(shop, tmp_path):
    arms, reason = arms_of(FINDING, WORKLOAD)
    assert reason == ""
    fewer = Arm("fewer", "statement", "", "", "", statements={1: f"{READ.sql} AND id < 20000"})
    text = experiment_of_arms(
        "cure", "Does it help?", shop, WORKLOAD.statements, [*arms, fewer], budget_s=1, precision=0.2
    )  # set-up takes longer than the budget
    told: list[str] = []
    found = measure_arms(tmp_path, text, shop, WORKLOAD.statements, 1, told.append)
    assert any("too few trials" in line for line in told)
    assert list(found.refused) == ["fewer"] and "answer" in found.refused["fewer"], found.refused
    read, write, delete = sorted(found.effects["orders_customer_idx"], key=lambda one: one.template)
    assert any(one.low is not None for one in (read, write, delete))
    assert read.ratio < 0.8 and 0.2 < write.ratio < 5.0
    assert delete.ratio < 0.8, "each set finds its rows again, because the DELETE is rolled back"


def test_a_change_that_does_not_end_is_refused_in_words_and_nothing_is_left(shop):
    arm = Arm("endless", "index", "", "", "", setup="SELECT pg_sleep(3600)")
    found = rehearse(shop, [arm], [READ], 0.2)
    assert found["endless"].error == "it did not end within 200 ms on the copy"
    with psycopg.connect(shop) as connection:
        rows = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'uncork%'")
        assert rows.fetchall() == []


def test_a_change_that_fails_is_refused_with_the_message_of_the_server(shop):
    arm = Arm("unique", "index", "", "", "", setup="CREATE UNIQUE INDEX ON orders (customer)")
    found = rehearse(shop, [arm], [READ], 5)
    assert found["unique"].error.startswith('could not create unique index "orders_customer_idx"')


def test_a_fillfactor_rewrites_a_table_in_the_order_of_its_rows(shop):
    script, tables = setup_script(
        "ALTER TABLE orders SET (fillfactor = 50); VACUUM (FULL, ANALYZE) orders;",
        undo="ALTER TABLE orders RESET (fillfactor);",
        billed=True,
    )
    assert tables == ("orders",)
    with psycopg.connect(shop, autocommit=True) as connection:
        size = "SELECT pg_relation_size('orders'), array_agg(id ORDER BY ctid) FROM orders"
        (before, rows), *_ = connection.execute(size).fetchall()
        connection.execute(script.encode())
        (after, same), *_ = connection.execute(size).fetchall()
    assert after > 1.8 * before
    assert rows == same


INDEXED = Change(
    "orders_customer_idx", "index", "Create an index.",
    "CREATE INDEX CONCURRENTLY orders_customer_idx ON public.orders (customer);",
    "DROP INDEX CONCURRENTLY public.orders_customer_idx;", "cured", "", Net(1, 0.5, 2, 3),
)  # fmt: skip
CHANGES = (
    INDEXED,
    Change("jit", "setting", "Turn jit off; it's slow.",
           "ALTER SYSTEM SET jit = off; SELECT pg_reload_conf();",
           "ALTER SYSTEM RESET jit; SELECT pg_reload_conf();", "cured", ""),
    Change("text", "statement", "Rewrite it.", "SELECT 1 WHERE $1 = ';'", "SELECT 2", "cured", ""),
    Change("fill", "ddl", "Leave space.",
           "ALTER TABLE orders SET (fillfactor = 80); VACUUM (FULL, ANALYZE) orders;",
           "ALTER TABLE orders RESET (fillfactor);", "cured", ""),
)  # fmt: skip
CATALOGUE = """
SELECT (SELECT array_agg(indexdef ORDER BY 1) FROM pg_indexes WHERE schemaname = 'public')::text,
       (SELECT setconfig FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
         WHERE datname = current_database())::text,
       (SELECT reloptions FROM pg_class WHERE relname = 'orders')::text
"""


def test_the_scripts_make_and_revert_the_changes_one_statement_at_a_time(shop):
    with psycopg.connect(shop, autocommit=True) as connection:

        def state():
            return connection.execute(CATALOGUE).fetchone()

        def run(script):
            for statement in statements_in(script):
                connection.execute(statement.encode())

        before = state()
        run(up_sql(CHANGES, "cure_shop"))
        indexes, settings, options = state()
        assert "orders_customer_idx" in indexes
        assert (settings, options) == ("{jit=off}", "{fillfactor=80}")
        run(down_sql(CHANGES, "cure_shop"))
        assert state() == before

        connection.execute("CREATE INDEX orders_customer_idx ON orders (customer)")
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_customer_idx'::regclass"
        )
        *_, check = statements_in(up_sql([INDEXED], "cure_shop"))
        with pytest.raises(psycopg.Error, match="orders_customer_idx is invalid") as failed:
            connection.execute(check.encode())
        assert "DROP INDEX CONCURRENTLY" in failed.value.diag.message_hint


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_executes_both_scripts(shop, tmp_path):
    with psycopg.connect(shop, autocommit=True) as connection:
        before = connection.execute(CATALOGUE).fetchone()
        for name, script in (("up", up_sql(CHANGES, "cure_shop")), ("down", down_sql(CHANGES, "cure_shop"))):
            file = tmp_path / f"{name}.sql"
            file.write_text(script)
            command = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", shop, "-f", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
            assert (connection.execute(CATALOGUE).fetchone() == before) == (name == "down")


LOADED = """
CREATE TABLE parcel (id int PRIMARY KEY, depot int, batch int, state int);
CREATE TABLE route AS SELECT n AS depot, n % 40 AS truck FROM generate_series(0, 1999) AS n;
ANALYZE route;
INSERT INTO parcel SELECT n, n % 2000, 1, 0 FROM generate_series(1, 60000) AS n;
"""
COUNT = CapturedStatement(
    1,
    "SELECT count(*) FROM parcel JOIN route ON route.depot = parcel.depot + 0 "
    "WHERE batch = $1 AND state = $2 AND truck = $3",
    tuple(("1", "0", str(n)) for n in range(8)),
    "executed", 1000, 2e8, 1.0, ("parcel", "route"), changes=False,
)  # fmt: skip
STALE = Finding(
    "stale-statistics", "x", ("parcel",), Bill(1, 1, 1, 0.5), (1,),
    candidates=(Candidate("maintenance", "Analyse parcel.", "ANALYZE parcel;"),),
)  # fmt: skip


@pytest.mark.thorough
def test_analyze_is_measured_against_a_table_without_statistics(shop, tmp_path):
    with psycopg.connect(shop, autocommit=True) as connection:
        if connection.info.server_version < 180000:
            pytest.skip("statistics can be restored from PostgreSQL 18 on")
        connection.execute(LOADED)
    workload = CapturedWorkload((COUNT,), (), 60.0, 1.0)
    arms, reason = arms_of(STALE, workload, CopyKeeps(statistics=True, pages=False))
    assert reason == ""
    text = experiment_of_arms("cure", "Does it help?", shop, [COUNT], arms, budget_s=8, precision=0.2)
    found = uncork.run(text, dsn=shop, runs=tmp_path)
    (effect,) = found.result.comparisons
    assert effect.ratio < 0.7


def test_values_that_violate_a_foreign_key_are_left_out_and_counted(shop):
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE TABLE part (n int REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")
        connection.execute("INSERT INTO part VALUES (5), (7)")
    some = replace(WRITE, sql="DELETE FROM orders WHERE id = $1", sets=(("4",), ("5",), ("6",), ("7",)))
    none = replace(some, template=3, sets=(("5",), ("7",)))
    found, left_out = without_violations(shop, CapturedWorkload((READ, some, none), (), 60.0, 1.0))
    assert found.statements == (READ, replace(some, sets=(("4",), ("6",))))
    (missing,) = found.missing
    assert missing.template == 3 and 'violates foreign key constraint "part_n_fkey"' in missing.reason
    (counted,) = left_out
    assert (
        counted.what == "2 of 4 sets of values of DELETE FROM orders WHERE id = $1"
        and "part_n_fkey" in counted.lost
    )
    with psycopg.connect(shop) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (30000,)


def test_captured_keys_that_were_deleted_meanwhile_are_replaced_by_those_of_rows(shop):
    gone = replace(WRITE, sql="DELETE FROM orders WHERE id = $1", sets=(("90001",), ("90002",)), rows=1.0)
    some = replace(
        gone,
        template=3,
        sql="UPDATE orders SET note = $1 WHERE state = 'open' AND id = ANY ($2)",
        sets=(("a", "{90001}"), ("b", "{90002,90003}")),
        rows=3.0,
    )
    none = replace(gone, template=4, sql="DELETE FROM orders WHERE customer = $1 AND state = 'lost'")
    found, said = without_violations(shop, CapturedWorkload((gone, some, none), (), 60.0, 1.0))
    keys, lists = found.statements
    assert keys.origin == "rows" and len(keys.sets) == 24
    assert all(1 <= int(value) <= 30000 for (value,) in keys.sets)
    assert {note for note, _ in lists.sets} == {"a", "b"}
    assert all(
        int(one) % 2 == 0
        for _, listed in lists.sets
        for one in listed.strip("{}").replace('"', "").split(",")
    )
    assert {listed.count(",") for _, listed in lists.sets} == {2}
    (missing,) = found.missing
    assert missing.template == 4 and "changes no row" in missing.reason
    texts = [gone.sql, some.sql]
    assert [one.what for one in said] == [f"the captured values of {inline_statement(sql)}" for sql in texts]


def test_rewriting_a_table_is_measured_on_a_copy_with_its_bloat(shop, tmp_path):
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE TABLE wide (n int PRIMARY KEY, note text)")
        connection.execute("INSERT INTO wide SELECT n, repeat('x', 200) FROM generate_series(1, 60000) AS n")
        connection.execute("DELETE FROM wide WHERE n % 20 <> 0")
        connection.execute("VACUUM (ANALYZE) wide")
    read = replace(READ, sql="SELECT count(note) FROM wide", sets=((),), origin="none", tables=("wide",))
    change = Candidate("maintenance", "Rewrite it.", "VACUUM (FULL, ANALYZE) wide;")
    finding = replace(STALE, rule="bloat", objects=("wide",), candidates=(change,))
    keeps = CopyKeeps(statistics=True, pages=True)
    arms, reason = arms_of(finding, CapturedWorkload((read,), (), 60.0, 1.0), keeps)
    assert reason == ""
    text = experiment_of_arms("cure", "Does it help?", shop, [read], arms, budget_s=5, precision=0.2)
    found = uncork.run(text, dsn=shop, runs=tmp_path)
    (effect,) = found.result.comparisons
    assert effect.ratio < 0.7
