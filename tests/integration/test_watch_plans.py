"""Generic plans of a real server, by EXPLAIN (GENERIC_PLAN) and by EXPLAIN EXECUTE of older versions."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.model.results.database import PlanNote
from uncork.report.database.document import build_database_document
from uncork.report.write.html import html_page
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


def profile(server, tmp_path, role):
    """Profile a server at work, as one of its roles."""
    over = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute(FIND, (7,))
                connection.execute(MOVE, (7, 8))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        address = resolve(f"{server.conninfo()} {role}")
        run = profile_database(tmp_path, address, seconds=0.5, rate_hz=20.0, command="uncork profile db")
        return run.result
    finally:
        over.set()
        worker.join()


def test_plans_are_shown_with_what_stands_out(server, tmp_path):
    result = profile(server, tmp_path, "")
    texts = {one.number: one.text for one in result.templates}
    plans = {texts[one.template]: one for one in result.plans}
    scan = plans["select id from parcels where place = ?"]
    assert scan.text.startswith("Seq Scan on parcels") and "Filter: (place = $1)" in scan.text
    assert scan.notes == (PlanNote("seq-scan", "parcels", 20_000.0, "(place = $1)"),)
    assert plans["update parcels set place = ? where id = ?"].text.startswith("Update on parcels")
    page = html_page(build_database_document(result))
    assert "What stands out in the plans" in page and "whether a sort or a hash needs temporary files" in page


def test_a_role_that_may_not_read_tables_learns_once_why_there_are_no_plans(server, tmp_path):
    result = profile(server, tmp_path, "user=monitoring")
    assert not any("parcels" in one.text for one in result.plans)
    (missing,) = (one for one in result.missing if "plans" in one.lost)
    assert "permission denied for table parcels" in missing.what
    assert missing.lost == "the plans of 2 of the costliest statements"


def test_nothing_is_executed_and_what_has_no_plan_is_skipped(server):
    watch = ServerWatch(server.conninfo())
    try:
        assert watch.generic_plan("VACUUM parcels") is None
        assert "does not exist" in watch.generic_plan("SELECT $1 FROM nowhere").reason
        several = watch.generic_plan("SELECT 1; DELETE FROM parcels")
        assert several.text is None and "multiple commands" in several.reason
        deleting = watch.generic_plan("DELETE FROM parcels WHERE id < $1")
        assert deleting.text.startswith("Delete on parcels")
        # The same name is free again, and further plans follow.
        assert watch.generic_plan("SELECT count(*) FROM parcels WHERE id = $1").text.startswith("Aggregate")
    finally:
        watch.close()
    with psycopg.connect(server.conninfo()) as connection:
        assert connection.execute("SELECT count(*) FROM parcels").fetchone() == (20_000,)
