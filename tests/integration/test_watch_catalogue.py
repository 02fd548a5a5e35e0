"""The catalogue of a real server, as far as watched statements use it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from uncork.analysis.database.result import session_rates_of
from uncork.analysis.database.schema import catalogue_of
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.catalogue import CatalogueScope
from uncork.engines.watch.connection import ServerWatch
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.store.profile_tables import read_evidence
from uncork.workbench.profile.databases import profile_database

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
