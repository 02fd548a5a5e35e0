"""What a watch reads beside the sessions: the catalogue, plans, and the kernel's counts."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from fakes.cures import index_change, proven_cure
from uncork.analysis.database.evidence import statement_plans, unplanned
from uncork.analysis.database.result import session_rates_of, stored_database_result
from uncork.analysis.database.schema import catalogue_of
from uncork.cli.app import app
from uncork.diagnosis.evidence import Statement
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.catalogue import CatalogueScope
from uncork.engines.watch.connection import ServerWatch
from uncork.model.database.workload import CapturedStatement
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.profile.plans.tree import plan_tree
from uncork.report.database.document import build_database_document
from uncork.report.write.html import html_page
from uncork.store.tables import read_evidence
from uncork.workbench.cure.handing import write_cure
from uncork.workbench.cure.what_if import what_if
from uncork.workbench.profile.database_plans import Candidate, find_plans
from uncork.workbench.profile.databases import profile_database, record_database
from uncork.workbench.run_record import draft, start_run

pytestmark = pytest.mark.postgres

INSTALLED = Path("/usr/lib/postgresql/15/bin")
FIND, MOVE = "SELECT id FROM parcels WHERE place = %s", "UPDATE parcels SET place = %s WHERE id = %s"


@pytest.fixture(scope="module", params=[None, INSTALLED], ids=["own", "installed"])
def server(request):
    """A server with a table, and a role that may see statistics and cannot read the table."""
    found = EmbeddedServer({"shared_preload_libraries": "pg_stat_statements"}, binaries=request.param)
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE parcels (id int PRIMARY KEY, place int)")
        connection.execute("INSERT INTO parcels SELECT n, n FROM generate_series(1, 20000) AS n")
        connection.execute("CREATE ROLE monitoring LOGIN")
        connection.execute("GRANT pg_monitor TO monitoring")
        connection.execute("VACUUM ANALYZE parcels")
    yield found
    found.stop()


@contextmanager
def working(server, *statements):
    """Execute statements again and again until the block ends."""
    over = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                for statement, values in statements:
                    connection.execute(statement, values)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def watched(server, tmp_path, role="", seconds=0.5, **options):
    """Profile a server, as one of its roles."""
    address = resolve(f"{server.conninfo()} {role}")
    return profile_database(
        tmp_path, address, seconds=seconds, rate_hz=20.0, command="uncork profile db", **options
    )


# ---- the catalogue ----

SHOP = """
CREATE SCHEMA "Shop";
CREATE TABLE "Shop".customer (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);
CREATE TABLE "Shop".orders (
  id bigserial PRIMARY KEY, customer int REFERENCES "Shop".customer ON DELETE CASCADE, state text COLLATE "C",
  total numeric(10,2) DEFAULT 0 CHECK (total >= 0), gross numeric GENERATED ALWAYS AS (total * 1.2) STORED
) WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off);
CREATE TABLE "Shop".unused (id int PRIMARY KEY);
CREATE TABLE "Shop".event (day date NOT NULL, note text) PARTITION BY RANGE (day);
CREATE UNLOGGED TABLE "Shop".event_2026 PARTITION OF "Shop".event
  FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE FUNCTION "Shop".discount(n numeric) RETURNS numeric LANGUAGE sql IMMUTABLE
  BEGIN ATOMIC SELECT n / 2; END;
CREATE FUNCTION "Shop".not_called() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW "Shop".large AS SELECT id, total FROM "Shop".orders WHERE total > 10;
CREATE VIEW "Shop".largest AS SELECT id FROM "Shop".large WHERE total > 50;
INSERT INTO "Shop".customer (email) SELECT 'person' || n || '@example.org' FROM generate_series(1, 40) AS n;
INSERT INTO "Shop".orders (customer, state, total)
  SELECT n % 40 + 1, CASE WHEN n % 4 = 0 THEN 'paid' END, n % 100 FROM generate_series(1, 2000) AS n;
ANALYZE "Shop".customer, "Shop".orders;
CREATE FUNCTION "Shop".touch() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM 'host=h password=hidden'; NEW.state := coalesce(NEW.state, 'new'); RETURN NEW; END $$;
CREATE TRIGGER touched BEFORE INSERT OR UPDATE ON "Shop".orders FOR EACH ROW EXECUTE FUNCTION "Shop".touch();
"""
BUY = (
    'INSERT INTO "Shop".orders (customer, total) SELECT 1, "Shop".discount(id) FROM "Shop".largest LIMIT 1',
    (),
)
LOG = ("INSERT INTO \"Shop\".event VALUES ('2026-02-02', 'x')", ())


@pytest.fixture
def shop(server):
    """The server with a schema that has something of everything."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(SHOP)
        connection.execute("ALTER ROLE monitoring SET work_mem = '8MB'")
        connection.execute("ALTER ROLE monitoring SET app.secret = 'hidden'")
        connection.execute("ALTER DATABASE postgres SET track_functions = 'pl'")
        yield server
        connection.execute('DROP SCHEMA "Shop" CASCADE')
        connection.execute("ALTER ROLE monitoring RESET ALL")
        connection.execute("ALTER DATABASE postgres RESET ALL")


def read_catalogue(run):
    facts, tables = read_evidence(run.folder, (*DATABASE_TABLES, *CATALOGUE_TABLES, *SYSTEM_TABLES))
    assert facts["catalogue"]["failed"] == {}
    return catalogue_of(tables, facts)


def test_the_catalogue_of_what_statements_use_is_stored(shop, tmp_path):
    with working(shop, BUY, LOG):
        run = watched(shop, tmp_path, seconds=1.5)  # sessions report their counters once a second
    found = read_catalogue(run)
    columns = {name: found.column("Shop.orders", name) for name in ("id", "state", "total", "gross")}
    assert columns["state"].null_fraction == pytest.approx(0.75) and columns["state"].collation == "C"
    assert columns["state"].common == (("paid", pytest.approx(0.25)),)
    total = columns["total"]
    assert (total.type, total.storage_type, total.default) == ("numeric", "numeric(10,2)", "0")
    assert len(total.common) == 10 and columns["id"].correlation == pytest.approx(1.0)
    assert columns["id"].bounds[0] == "1" and columns["id"].bounds[-1] == "2000"
    assert len(columns["id"].bounds) == 10
    assert (columns["gross"].generated, found.column("Shop.customer", "id").generated) == (
        "stored",
        "identity",
    )
    # Neighbours by foreign keys count as used, other unused tables do not.
    assert set(found.columns) == {"Shop.orders", "Shop.customer", "Shop.event", "Shop.event_2026"}
    (key,) = (one for one in found.constraints if one.kind == "foreign key")
    assert (key.table, key.columns, key.referred, key.on_delete) == (
        *("Shop.orders", ("customer",), "Shop.customer", "cascade"),
    )
    primary = next(
        one for one in found.constraints if (one.table, one.kind) == ("Shop.orders", "primary key")
    )
    assert (primary.columns, primary.index) == (("id",), "Shop.orders_pkey")
    assert {"unique", "check"} <= {one.kind for one in found.constraints}
    (trigger,) = found.triggers
    assert (trigger.timing, trigger.per_row, trigger.events) == ("before", True, ("insert", "update"))
    functions = {one.name: one for one in found.functions}
    assert set(functions) == {"Shop.touch", "Shop.discount"} and trigger.function == "Shop.touch"
    assert functions["Shop.touch"].calls > 0 and functions["Shop.discount"].calls is None
    assert "password=***" in functions["Shop.touch"].source and "n /" in functions["Shop.discount"].source
    views = {one.name: one.definition for one in found.views}
    assert set(views) == {"Shop.largest", "Shop.large"} and 'FROM "Shop".large' in views["Shop.largest"]
    options = found.options["Shop.orders"]
    assert options.options == {
        "fillfactor": "70",
        "autovacuum_enabled": "off",
        "toast.autovacuum_enabled": "off",
    }
    assert found.options["Shop.event"].partition_key == "RANGE (day)"
    part = found.options["Shop.event_2026"]
    assert (part.parent, part.bounds[:10], part.persistence) == ("Shop.event", "FOR VALUES", "unlogged")
    # As new sessions have them: uncork itself turns jit off, and has timeouts.
    settings = {name: found.setting(name) for name in ("jit", "lock_timeout", "track_functions", "work_mem")}
    assert settings == {"jit": "on", "lock_timeout": "0", "track_functions": "pl", "work_mem": "4MB"}
    assert len(found.settings) > 60 and found.setting("lc_collate")
    roles = {(one.role, one.name): one.value for one in found.role_settings}
    assert roles["monitoring", "work_mem"] == "8MB" and roles["monitoring", "app.secret"] == ""
    assert found.processors and found.memory_bytes
    rates = session_rates_of(run.result)
    assert rates.commits > 0 and rates.rollbacks == 0 and rates.opened is not None


def test_values_of_columns_are_left_out_on_request(shop, tmp_path):
    with working(shop, BUY):
        found = read_catalogue(watched(shop, tmp_path, anonymous=True))
    assert all(one.common == one.bounds == () for table in found.columns.values() for one in table)
    assert found.column("Shop.orders", "state").null_fraction == pytest.approx(0.75)


def test_what_a_locked_table_defines_is_left_out(shop):
    watch = ServerWatch(shop.conninfo())
    try:
        with psycopg.connect(shop.conninfo()) as holder:
            (oid,) = holder.execute("SELECT '\"Shop\".orders'::regclass::oid").fetchone()
            holder.execute('LOCK TABLE "Shop".orders')
            found = watch.catalogue(CatalogueScope({oid: ("Shop", "orders")}, ["largest"]))
    finally:
        watch.close()
    assert found.failed == {}
    assert {row["default"] for row in found.tables["database_columns"]} == {""}
    assert {row["definition"] for row in found.tables["database_constraints"]} == {""}
    definitions = {row["name"]: row["definition"] for row in found.tables["database_views"]}
    assert definitions["large"] is None and "Shop" in definitions["largest"]


SECURED = """
CREATE FUNCTION "Shop".me() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE POLICY own ON "Shop".customer TO reading USING (id = "Shop".me());
CREATE POLICY changes ON "Shop".orders AS RESTRICTIVE FOR UPDATE
  USING (customer IN (SELECT id FROM "Shop".customer));
CREATE POLICY kept ON "Shop".unused USING (true);
ALTER TABLE "Shop".customer ENABLE ROW LEVEL SECURITY;
ALTER TABLE "Shop".orders ENABLE ROW LEVEL SECURITY, OWNER TO owning;
"""


def test_policies_are_read_with_the_roles_that_they_apply_to(shop):
    watch = ServerWatch(shop.conninfo())
    roles = ["member", "owning", "bypassing", "postgres"]
    try:
        with psycopg.connect(shop.conninfo()) as connection:
            connection.execute("CREATE ROLE reading; CREATE ROLE member IN ROLE reading; CREATE ROLE owning")
            connection.execute("CREATE ROLE bypassing BYPASSRLS IN ROLE reading")
            connection.execute(SECURED)
            connection.commit()
            found = connection.execute(
                "SELECT oid, relname FROM pg_class WHERE relnamespace = '\"Shop\"'::regnamespace"
                " AND relname IN ('customer', 'orders', 'unused')"
            ).fetchall()
            scope = CatalogueScope({oid: ("Shop", name) for oid, name in found}, [], roles=roles)
            free = watch.catalogue(scope)
            connection.execute('LOCK TABLE "Shop".customer')
            locked = watch.catalogue(scope)
            connection.rollback()
            connection.execute('ALTER TABLE "Shop".orders OWNER TO CURRENT_USER')
            connection.execute('DROP POLICY own ON "Shop".customer')
            connection.execute("DROP ROLE reading, member, owning, bypassing")
    finally:
        watch.close()
    assert free.failed == locked.failed == {}
    own, changes = free.tables["database_policies"]
    assert (own["name"], own["command"], own["permissive"], own["volatile"]) == ("own", "all", True, True)
    assert (changes["name"], changes["command"], changes["permissive"]) == ("changes", "update", False)
    assert own["condition"] == '(id = "Shop".me())' and not changes["volatile"]
    assert json.loads(own["roles"]) == ["member"] and json.loads(changes["roles"]) == ["member"]
    assert {row["condition"] for row in locked.tables["database_policies"]} == {""}


def test_a_role_that_may_not_read_tables_learns_that_statistics_are_missing(shop, tmp_path):
    with working(shop, BUY):
        run = watched(shop, tmp_path, "user=monitoring")
    (missing,) = (one for one in run.result.missing if "statistics" in one.lost)
    assert missing.what == "the right to read the tables"
    found = read_catalogue(run)
    assert found.column("Shop.orders", "total").null_fraction is None
    assert found.setting("work_mem") == "8MB"


EXPLAINED = (
    "WITH few AS MATERIALIZED (SELECT place, count(*) AS n FROM parcels GROUP BY place) "
    "SELECT *, (SELECT max(id) FROM parcels p WHERE p.place = few.place) FROM few "
    "WHERE n > (SELECT avg(n) FROM few) AND place NOT IN (SELECT id FROM parcels WHERE id < 9)",
    "SELECT a.place, b.id FROM parcels a LEFT JOIN parcels b ON b.id = a.place AND b.place > 3 "
    "WHERE a.id IN (3, 4) OR a.place < 9 ORDER BY b.id DESC, lower(a.place || ', \nx') LIMIT 5",
    "SELECT place, id, count(*) FROM parcels GROUP BY ROLLUP (place, id)",
    "SELECT id FROM parcels EXCEPT SELECT place FROM parcels",
    "INSERT INTO parcels SELECT g, 1 FROM generate_series(1, 3) g WHERE g > 2 "
    "ON CONFLICT (id) DO UPDATE SET place = 2 WHERE parcels.place > 1",
    "DELETE FROM parcels a USING parcels b WHERE a.id = b.place AND b.id BETWEEN 3 AND 5",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
)
SENT = "SELECT count(*) FROM parcels WHERE md5(place::text || repeat('x', 300)) < 'a' AND place > 17"
FIND, MOVE = "SELECT id FROM parcels WHERE place = %s", "UPDATE parcels SET place = %s WHERE id = %s"


@pytest.fixture(scope="module", params=[None, INSTALLED], ids=["own", "installed"])
def plans_server(request):
    """A server with a table, and a role that may see statistics and cannot read the table."""
    found = EmbeddedServer({"shared_preload_libraries": "pg_stat_statements"}, binaries=request.param)
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE parcels (id int PRIMARY KEY, place int)")
        connection.execute("INSERT INTO parcels SELECT n, n FROM generate_series(1, 20000) AS n")
        connection.execute(
            "CREATE TABLE moves AS SELECT n AS id, "
            " timestamptz '2026-01-01' + n * interval '1 minute' AS moved,"
            " CASE WHEN n % 100 = 0 THEN 'lost' || n % 3 ELSE 'found' END AS state "
            "FROM generate_series(1, 20000) AS n"
        )
        connection.execute(
            "CREATE INDEX moves_moved ON moves (moved); CREATE INDEX moves_state ON moves (state)"
        )
        connection.execute("CREATE ROLE monitoring LOGIN")
        connection.execute("GRANT pg_monitor TO monitoring")
        connection.execute("VACUUM ANALYZE")
    yield found
    found.stop()


def profile(server, tmp_path, role):
    """Profile a server at work, as one of its roles."""
    over = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute(FIND, (7,))
                connection.execute(MOVE, (7, 8))
                connection.pgconn.exec_(SENT.encode())

    worker = threading.Thread(target=work)
    worker.start()
    try:
        address = resolve(f"{server.conninfo()} {role}")
        run = profile_database(tmp_path, address, seconds=0.5, rate_hz=20.0, command="uncork profile db")
        return run.result
    finally:
        over.set()
        worker.join()


def test_plans_are_shown(plans_server, tmp_path):
    result = profile(plans_server, tmp_path, "")
    texts = {one.number: one.text for one in result.templates}
    plans = {texts[one.template]: one for one in result.plans}
    scan = plans["select id from parcels where place = ?"]
    assert scan.text.startswith("Seq Scan on parcels") and "Filter: (place = $1)" in scan.text
    assert plans["update parcels set place = ? where id = ?"].text.startswith("Update on parcels")
    (folder,) = tmp_path.glob("*/facts.json")
    _, tables = read_evidence(folder.parent, DATABASE_TABLES)
    seen = [one for one in statement_plans(tables["database_plans"].to_pylist()) if one.source == "seen"]
    assert ["place > 17" in one.text for one in seen] == [True]
    page = html_page(build_database_document(result))
    assert "Filter: (place = $1)" in page and "whether a sort or a hash needs temporary files" in page


def test_a_role_that_may_not_read_tables_learns_once_why_there_are_no_plans(plans_server, tmp_path):
    result = profile(plans_server, tmp_path, "user=monitoring")
    assert not any("parcels" in one.text for one in result.plans)
    unplanned = {one.why: one for one in result.unplanned}
    assert len(unplanned["not readable"].templates) == 2 and len(unplanned["not writable"].templates) == 1
    assert result.answer.startswith('Role "monitoring" may not read the tables of statements with ')
    assert 'GRANT pg_read_all_data TO "monitoring" gives it the plans.' in result.answer


def test_nothing_is_executed_and_what_has_no_plan_is_skipped(plans_server):
    watch = ServerWatch(plans_server.conninfo())
    try:
        with watch.planning() as planner:
            assert planner.explain("VACUUM parcels", as_json=False) is None
            assert "does not exist" in planner.explain("SELECT $1 FROM nowhere", as_json=False).reason
            several = planner.explain("SELECT 1; DELETE FROM parcels", as_json=False)
            assert several.output is None and "multiple commands" in several.reason
            deleting = planner.explain("/* app */ DELETE FROM parcels WHERE id < $1", as_json=False)
            assert deleting.output.startswith("Delete on parcels")
            # The same name is free again, and further plans follow.
            counting = planner.explain("SELECT count(*) FROM parcels WHERE id = $1", as_json=True)
            assert plan_tree(counting.output).children[0].index == "parcels_pkey"
    finally:
        watch.close()
    with psycopg.connect(plans_server.conninfo()) as connection:
        assert connection.execute("SELECT count(*) FROM parcels").fetchone() == (20_000,)


def planned(server, statements):
    """Return the plans of statements as they are stored; the first text of each is the normalized one."""
    watch = ServerWatch(server.conninfo())
    try:
        rows = find_plans(watch, [Candidate(n, *one) for n, one in enumerate(statements)], {})
    finally:
        watch.close()
    plans = statement_plans({**row, "template": row["query_id"]} for row in rows)
    return rows, {n: [one for one in plans if one.template == n] for n in range(len(statements))}


def test_parameters_get_values_of_sessions_or_of_statistics(plans_server):
    recent = "SELECT count(*) FROM moves WHERE moved >= date $1 AND moved < $2"
    by_state = "SELECT moved FROM moves WHERE state = $1 ORDER BY moved LIMIT $2"
    sent = "SELECT moved FROM moves WHERE state = 'lost1' ORDER BY moved LIMIT 5"
    statements = [
        (recent,),
        (by_state, (), 3.0),
        (by_state, (sent, sent.replace("lost1", "O''Hara \\"), "SELECT 1; DELETE FROM moves")),
        ("SELECT count(*) FROM moves WHERE id = ANY ($1) AND state LIKE $2",),
        ("SELECT $1 + $2",),
        ("SELECT count(*) FROM moves",),
        (sent, (sent,)),
        ("UPDATE moves SET state = $1 WHERE moved BETWEEN $2 AND $3",),
    ]
    rows, plans = planned(plans_server, statements)
    # ``date $1`` is rewritten. The values are at the end of the histogram; the generic plan guesses 0.5 %.
    assert [one.source for one in plans[0]] == ["generic", "drawn"]
    generic, drawn = (next(one for one in plan.root.walk() if one.relation == "moves") for plan in plans[0])
    assert "$1" in generic.condition("Index Cond") and drawn.index == "moves_moved"
    assert "2026-01-14" in drawn.condition("Index Cond") and generic.rows == 100 < drawn.rows < 2000
    # The most common value is found by the order, a rare one by its own index.
    assert [(one.source, one.root.children[0].kind) for one in plans[1][1:]] == [
        ("drawn", "Index Scan"),
        ("drawn", "Sort"),
    ]
    assert plans[1][1].root.rows == 3
    assert "(state = 'found'::text)" in plans[1][1].text
    assert [one.source for one in plans[2]] == ["generic", "seen"]
    assert "lost1" in plans[2][1].text
    assert [one.source for one in plans[3]] == ["generic", "drawn"]
    assert "{" in plans[3][1].text and "~~ $1" in plans[3][1].text
    assert plans[4] == [] and [row["reason"] for row in rows if row["query_id"] == 4] == [
        "operator is not unique: unknown + unknown"
    ]
    assert [[one.source for one in plans[n]] for n in (5, 6, 7)] == [
        ["generic"],
        ["seen"],
        ["generic", "drawn"],
    ]
    assert plans[7][1].root.strategy == "Update"
    with psycopg.connect(plans_server.conninfo()) as connection:
        assert connection.execute("SELECT count(*), max(state) FROM moves").fetchone() == (20_000, "lost2")
    seen = {n: Statement(n, one[0], plans=tuple(plans[n])) for n, one in enumerate(statements)}
    texts = {n: replace(one, text=one.text.replace("$1", "?")) for n, one in seen.items()}
    stored = [{**row, "template": row["query_id"]} for row in rows]
    (missing,) = unplanned(stored, texts, {}, (), {"role": "app", "number": 15})
    assert (missing.why, missing.templates) == ("no values", (4,))


def test_json_and_text_of_the_same_plan_are_read_as_the_same_tree(plans_server):
    with psycopg.connect(plans_server.conninfo()) as connection:
        connection.execute("SET jit = off; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0")
        for statement in EXPLAINED:
            ((plan,),) = connection.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}").fetchall()
            lines = connection.execute(f"EXPLAIN (VERBOSE) {statement}").fetchall()
            text = "\n".join(line for (line,) in lines)
            assert plan_tree(json.dumps(plan)) == plan_tree(text) is not None, text


SINCE_FIND = "SELECT count(*) FROM visits WHERE visitor = %s"


@pytest.fixture
def since_server():
    """A server that an application of another role than uncork's asks for rows without an index."""
    found = EmbeddedServer({"shared_preload_libraries": "pg_stat_statements"})
    found.start()
    over = threading.Event()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements; CREATE ROLE app LOGIN")
        connection.execute(
            "CREATE TABLE visits AS SELECT n AS visitor, n % 7 AS page FROM generate_series(1, 100000) AS n"
        )
        connection.execute("GRANT SELECT ON visits TO app; ANALYZE visits")

    def work():
        with psycopg.connect(f"{found.conninfo()} user=app", autocommit=True) as connection:
            while not over.is_set():
                connection.execute(SINCE_FIND, (7,))

    worker = threading.Thread(target=work)
    worker.start()
    yield found
    over.set()
    worker.join()
    found.stop()


def test_one_command_compares_the_changed_statements_with_those_before_a_cure(since_server, tmp_path):
    address = resolve(since_server.conninfo())
    before = record_database(tmp_path, address, seconds=1.0, rate_hz=20.0, command="uncork cure")
    texts = {one.text: one.number for one in stored_database_result(before.folder).templates}
    number = texts["select count(*) from visits where visitor = ?"]
    effects = tuple(replace(one, template=number) for one in index_change().effects)
    cured = proven_cure()
    cured = replace(cured, chosen=replace(cured.chosen, effects=effects))
    manifest = draft(
        kind="cure", name="cure", question="cure", server="", options={"watched": before.folder.name}
    )
    with start_run(tmp_path, manifest, undone="nothing was stored") as run:
        write_cure(run.folder, cured)
        run.end("complete", "complete", 1)
    with psycopg.connect(since_server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE INDEX ON visits (visitor)")
        connection.execute("SELECT pg_stat_statements_reset()")
    words = ["--for", "1s", "-q", "--runs", str(tmp_path), "--since", "last"]
    done = CliRunner().invoke(app, ["profile", "db", since_server.conninfo(), *words])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert text.startswith('"select count(*) from visits where visitor = ?" is ')
    assert " times faster: " in text and "Statements that the cure changed, before → after" in text
    assert "One watch on each side cannot show how much such watches differ." in text
    assert "for turn" not in text and "uncork cure" not in text


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
# None is about the least values: the planner asks a built index for them, and a sample may lack them.
STATEMENTS = (
    "SELECT * FROM parcel WHERE place = 7",
    "SELECT p.name FROM parcel JOIN place p ON p.id = parcel.place WHERE parcel.id BETWEEN 5050 AND 5090",
    "SELECT count(*) FROM parcel WHERE kind = 1 AND place BETWEEN 4000 AND 4039",
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


LIBRARY = INSTALLED.parent / "lib" / "pg_stat_kcache.so"
COUNT, SLEEP = "SELECT count(*) FROM generate_series(1, 300000)", "SELECT pg_sleep(0.01)"


@pytest.fixture(scope="module")
def kernel_server():
    """A server whose database counts with pg_stat_kcache."""
    if not LIBRARY.exists():
        assert not os.environ.get("CI"), "CI installs pg_stat_kcache"
        pytest.skip("pg_stat_kcache is not installed")
    settings = {
        "shared_preload_libraries": "pg_stat_statements,pg_stat_kcache",
        "max_parallel_workers_per_gather": 0,
    }
    found = EmbeddedServer(settings, binaries=INSTALLED)
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_stat_kcache")
        connection.execute(COUNT)
    yield found
    found.stop()


def test_processor_time_is_divided_by_template_and_mode(kernel_server, tmp_path):
    over = threading.Event()

    def work():
        with psycopg.connect(kernel_server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute(COUNT)
                connection.execute(SLEEP)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        run = profile_database(
            tmp_path,
            resolve(kernel_server.conninfo()),
            seconds=1.0,
            rate_hz=10.0,
            command="uncork profile db",
        )
    finally:
        over.set()
        worker.join()
    assert not run.trouble and not any("kcache" in one.what for one in run.result.missing)
    found = {one.text: one for one in run.result.templates}
    count, sleep = found["select count(*) from generate_series(?, ?)"], found["select pg_sleep(?)"]
    used = count.kernel.user_ns + count.kernel.system_ns
    assert 0 < used <= 1.05 * count.statements.execution_ns
    assert used > 20 * (sleep.kernel.user_ns + sleep.kernel.system_ns)
    assert sleep.statements.execution_ns > 0.01e9 * sleep.statements.calls
    assert run.result.kernel_whole_ns is not None


def test_an_extension_that_cannot_be_read_is_named_with_the_reason(kernel_server, tmp_path):
    with psycopg.connect(kernel_server.conninfo(), autocommit=True) as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_stat_kcache() FROM public")
        connection.execute("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    run = profile_database(
        tmp_path,
        resolve(f"{kernel_server.conninfo()} user=watcher"),
        seconds=0.2,
        rate_hz=10.0,
        command="uncork profile db",
    )
    missing = {one.what: one for one in run.result.missing}
    assert missing["pg_stat_kcache"].remedy.startswith("fix the server's error: permission denied")
    assert all(one.kernel is None for one in run.result.templates)
