"""Cures on a real PostgreSQL: what is measured on a copy, and what is handed over."""

from __future__ import annotations

import shutil
import subprocess
import time
import tomllib
from dataclasses import replace

import psycopg
import pytest

import uncork
from fakes.cures import proven_cure
from uncork.experiment.cure.arms import Arm, arms_of
from uncork.experiment.cure.handed import down_sql, up_sql
from uncork.experiment.cure.setups import CopyKeeps, setup_script
from uncork.experiment.cure.text import experiment_of_arms
from uncork.experiment.cure.transactions import transaction_arms
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.transaction import CapturedTransaction
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import Change, Net
from uncork.model.template_words import inline_statement
from uncork.report.cure.answer import answer_cure
from uncork.workbench.cure.handing import hand_over_application
from uncork.workbench.cure.loops import LoopProver, loop_plan
from uncork.workbench.cure.proving import rehearse
from uncork.workbench.cure.transactions import plan_variants
from uncork.workbench.cure.trials import Allowance, measure_arms, without_violations
from uncork.workbench.cure.variants import VariantProver, pool_plan

pytestmark = pytest.mark.postgres


def allowed(seconds):
    """Allow a measurement of some seconds, and on a busy machine as long as it takes."""
    return Allowance(seconds, time.monotonic() + 600)


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
    text = experiment_of_arms("cure", "Does it help?", shop, [COUNT], arms, budget_s=25, precision=0.2)
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
    text = experiment_of_arms("cure", "Does it help?", shop, [read], arms, budget_s=20, precision=0.2)
    found = uncork.run(text, dsn=shop, runs=tmp_path)
    (effect,) = found.result.comparisons
    assert effect.ratio < 0.7


LOOPS_READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n),) for n in range(1, 41)), "drawn", 36e5, 3e4, 0.9,
    ("item",), changes=False,
)  # fmt: skip
OTHER = replace(LOOPS_READ, template=2, sql="SELECT 1", sets=((),), share=0.1, mean_ns=3e3)
LOOPS_WORKLOAD = CapturedWorkload((LOOPS_READ, OTHER), (), 60.0, 1.0)


def finding(*numbers):
    candidate = Candidate("client", "Fetch many.", habit="loops in a transaction")
    return Finding("any", "shop looks up", ("shop",), Bill(1, 1, 1, 0.9), numbers, candidates=(candidate,))


@pytest.fixture(scope="module")
def copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE loops")
    with psycopg.connect(embedded.conninfo("loops"), autocommit=True) as own:
        own.execute(
            "CREATE TABLE item AS SELECT n AS id, 'note ' || n AS note FROM generate_series(1, 900) n"
        )
        own.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
        own.execute("VACUUM ANALYZE item")
    return embedded.conninfo("loops")


@pytest.mark.thorough
def test_a_loop_of_lookups_is_measured_against_one_statement_and_handed_over(copy, tmp_path):
    plan, reason = loop_plan(finding(1), LOOPS_WORKLOAD)
    assert plan is not None and not reason
    tried = LoopProver(tmp_path, copy, LOOPS_WORKLOAD, lambda _: None).of_finding(plan, allowed(3))
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    best = tried.changes[0]
    assert best.name == "s1-one-statement" and best.sql.endswith("WHERE id = ANY ($1);")
    assert best.net.before == pytest.approx(108 + 10.8)
    (effect,) = best.effects
    assert effect.ratio < 1 and effect.after_ns < effect.before_ns
    assert any(text.startswith("The rows were the same for 40 sets") for text in best.assumed)
    tried = replace(tried, state="cured", best=best.name)

    (handed,) = hand_over_application(
        tmp_path, replace(proven_cure(), tried=(tried,), chosen=None), "dbname=shop"
    )
    folder = tmp_path / "application" / best.name
    assert handed.path.endswith(f"application/{best.name}")
    assert (folder / "before.sql").read_text() == f"{LOOPS_READ.sql};\n"
    assert 'copy_of = "dbname=shop"' in (folder / "experiment.toml").read_text()
    assert "unnest" in (folder / "experiment.toml").read_text()


def test_what_cannot_be_proven_is_not_planned(copy, tmp_path):
    assert loop_plan(finding(7), LOOPS_WORKLOAD) == (None, "It was not captured.")
    plan, reason = loop_plan(finding(2), LOOPS_WORKLOAD)
    assert plan is None and "no parameter" in reason
    assert loop_plan(replace(finding(1), candidates=()), LOOPS_WORKLOAD) == (None, "")
    gone = replace(LOOPS_READ, sql="SELECT note FROM gone WHERE id = $1")
    plan, _ = loop_plan(finding(1), replace(LOOPS_WORKLOAD, statements=(gone,)))
    tried = LoopProver(tmp_path, copy, LOOPS_WORKLOAD, lambda _: None).of_finding(plan, allowed(1))
    assert (tried.state, tried.reason) == ("refused", "The server does not know the type of parameter $1.")


def test_a_pipeline_is_the_baseline_of_the_bulk_statement(copy, tmp_path):
    (candidate,) = finding(1).candidates
    pipelined = replace(finding(1), candidates=(replace(candidate, habit="pipelines"),))
    plan, _ = loop_plan(pipelined, LOOPS_WORKLOAD)
    tried = LoopProver(tmp_path, copy, LOOPS_WORKLOAD, lambda _: None).of_finding(plan, allowed(2))
    assert {one.name for one in tried.changes} == {"s1-one-statement", "s1-one-statement-lateral"}, (
        tried.reason
    )
    (run,) = {name for one in tried.changes for name in one.runs[-1:]}
    text = (tmp_path / run / "experiment.toml").read_text()
    assert 'batching = "pipeline"' in text.partition("[variants.s1")[0]


POOLING_READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n),) for n in range(1, 41)), "drawn", 36e4, 3e4, 0.9,
    ("item",), changes=False,
)  # fmt: skip
POOLING_WRITE = replace(
    POOLING_READ, template=2, sql="UPDATE item SET note = $2 WHERE id = $1", changes=True, share=0.1
)
POOLING_WRITE = replace(POOLING_WRITE, sets=tuple((str(n), f"it's {n}") for n in range(1, 41)))
KEEP = Candidate("client", "Keep connections.", habit="connects", per_hour=36e4)
OFTEN = Finding("any", "shop connects", ("shop",), Bill(1080, 540, 2160, 0.9), candidates=(KEEP,))


@pytest.fixture(scope="module")
def pooling_copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE pooling")
    with psycopg.connect(embedded.conninfo("pooling"), autocommit=True) as own:
        own.execute(
            "CREATE TABLE item AS SELECT n AS id, 'note ' || n AS note FROM generate_series(1, 900) n"
        )
        own.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
        own.execute("VACUUM ANALYZE item")
    return embedded.conninfo("pooling")


@pytest.mark.thorough
def test_kept_connections_are_measured_against_new_ones_and_handed_over(pooling_copy, tmp_path):
    workload = CapturedWorkload((POOLING_READ, POOLING_WRITE), (), 60.0, 1.0)
    plan, reason = pool_plan(OFTEN, workload)
    assert plan is not None and not reason
    tried = VariantProver(tmp_path, pooling_copy, lambda _: None).of_finding(
        plan, allowed(20)
    )  # it ends when the gain is known
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    (change,) = tried.changes
    (effect,) = change.effects
    assert effect.ratio < 0.9 and effect.after_ns < effect.before_ns
    assert effect.after_cpu_ns < effect.before_cpu_ns
    assert change.net.before >= change.net.saved > 0

    found = replace(proven_cure(), tried=(replace(tried, state="cured"),), chosen=None)
    assert answer_cure(found).answer.startswith("Keep connections open in a pool of the application: each ")
    (handed,) = hand_over_application(tmp_path, found, "host=db.example dbname=shop")
    assert handed.path.endswith("application/pool")
    folder = tmp_path / "application" / "pool"
    assert "open a connection, and send\n" + POOLING_READ.sql in (folder / "before.sql").read_text()
    experiment = tomllib.loads((folder / "experiment.toml").read_text())
    assert experiment["variants"]["current"]["connections"] == "new"
    assert "shop = host=db.example port=5432 dbname=shop" in (folder / "README.md").read_text()


@pytest.mark.thorough
def test_what_is_not_about_connections_is_not_planned():
    workload = CapturedWorkload((POOLING_READ,), (), 60.0, 1.0)
    assert pool_plan(replace(OFTEN, candidates=()), workload) == (None, "")
    plan, reason = pool_plan(OFTEN, replace(workload, statements=()))
    assert plan is None and "No statement was captured" in reason


TRANSACTIONS_COUNT = CapturedStatement(
    1, "UPDATE total SET sold = sold + $1 WHERE shop = $2", (("1", "1"),), "seen", 36e4, 3e6, 0.9, ("total",),
    changes=True,
)  # fmt: skip
SALE = replace(
    TRANSACTIONS_COUNT,
    template=2,
    sql="INSERT INTO sale (price) VALUES ($1)",
    sets=(("3",),),
    tables=("sale",),
)
PAUSES = Candidate("client", "Call the bank before BEGIN.", habit="pauses")
PARTS = Candidate(
    "ddl",
    "Split sold of total.",
    habit="counts in one row",
    sql="CREATE TABLE total_part AS SELECT shop, 0::smallint AS part, sold FROM total;\n"
    "ALTER TABLE total_part ADD PRIMARY KEY (shop, part);\n"
    "INSERT INTO total_part (shop, part, sold) VALUES ($1, (random() * 15)::int, 1)\n"
    "ON CONFLICT (shop, part) DO UPDATE SET sold = total_part.sold + excluded.sold;",
)
HOT = Finding("hot-row", "Sessions queue", ("total", "sold"), Bill(9000, 8000, 9900, 0.9), templates=(1,))


@pytest.fixture(scope="module")
def transactions_copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE holding")
    with psycopg.connect(embedded.conninfo("holding"), autocommit=True) as own:
        own.execute("CREATE TABLE total AS SELECT 1 AS shop, 0::bigint AS sold")
        own.execute("CREATE TABLE sale (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, price int)")
        own.execute("VACUUM ANALYZE")
    return embedded.conninfo("holding")


def plan(*candidates):
    pauses_ns = (0.0, 15e6, 0.0)
    found = CapturedTransaction((TRANSACTIONS_COUNT, SALE), pauses_ns, 36e3, 100e6, 4, "samples")
    finding = replace(HOT, candidates=candidates)
    arms, reason = transaction_arms(finding, found)
    assert not reason
    return plan_variants(finding, found, arms)


@pytest.mark.thorough
def test_transactions_that_queue_for_a_row_are_measured_in_other_ways(transactions_copy, tmp_path):
    tried = VariantProver(tmp_path, transactions_copy, lambda _: None).of_finding(
        plan(PAUSES, PARTS), allowed(6)
    )
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    outside, parts = tried.changes
    (effect,) = outside.effects
    assert effect.clients == 4
    assert effect.before_ns > 45e6  # three others pause while they hold the row
    assert effect.ratio < 0.7 and effect.after_ns < effect.before_ns
    assert parts.effects[0].ratio < 0.9  # the sums on both sides were equal, or it would be refused
    assert parts.sql.startswith("-- Once, while nothing changes the counter:\nCREATE TABLE total_part")

    best = replace(tried, state="cured", best=outside.name)
    found = replace(proven_cure(), tried=(best,), chosen=None)
    assert answer_cure(found).answer.startswith("Move the slow step of application total before")
    (handed,) = hand_over_application(tmp_path, found, "host=db.example dbname=shop")
    assert handed.path.endswith("application/pause-outside")
    folder = tmp_path / "application" / "pause-outside"
    before, after = ((folder / name).read_text() for name in ("before.sql", "after.sql"))
    assert before.startswith("BEGIN;\nUPDATE total") and "-- The application does something else" in before
    assert after.startswith("-- The application does something else for 15.0 ms.\nBEGIN;")
    experiment = tomllib.loads((folder / "experiment.toml").read_text())
    assert experiment["workloads"]["s1"]["sql"][2] == "\\sleep 15000 us"
    assert "Each transaction takes " in (folder / "README.md").read_text()
