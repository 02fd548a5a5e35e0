"""Plans of a real server, by EXPLAIN (GENERIC_PLAN) and by EXPLAIN EXECUTE of older versions."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from uncork.analysis.database.evidence import statement_plans, unplanned
from uncork.diagnosis.evidence import Statement
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.model.tables.database import DATABASE_TABLES
from uncork.profile.plans.tree import plan_tree
from uncork.report.database.document import build_database_document
from uncork.report.write.html import html_page
from uncork.store.profile_tables import read_evidence
from uncork.workbench.profile.database_plans import Candidate, find_plans
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres
INSTALLED = Path("/usr/lib/postgresql/15/bin")
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
def server(request):
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


def test_plans_are_shown(server, tmp_path):
    result = profile(server, tmp_path, "")
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


def test_a_role_that_may_not_read_tables_learns_once_why_there_are_no_plans(server, tmp_path):
    result = profile(server, tmp_path, "user=monitoring")
    assert not any("parcels" in one.text for one in result.plans)
    unplanned = {one.why: one for one in result.unplanned}
    assert len(unplanned["not readable"].templates) == 2 and len(unplanned["not writable"].templates) == 1
    assert result.answer.startswith('Role "monitoring" may not read the tables of statements with ')
    assert 'GRANT pg_read_all_data TO "monitoring" gives it the plans.' in result.answer


def test_nothing_is_executed_and_what_has_no_plan_is_skipped(server):
    watch = ServerWatch(server.conninfo())
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
    with psycopg.connect(server.conninfo()) as connection:
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


def test_parameters_get_values_of_sessions_or_of_statistics(server):
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
    rows, plans = planned(server, statements)
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
    with psycopg.connect(server.conninfo()) as connection:
        assert connection.execute("SELECT count(*), max(state) FROM moves").fetchone() == (20_000, "lost2")
    seen = {n: Statement(n, one[0], plans=tuple(plans[n])) for n, one in enumerate(statements)}
    texts = {n: replace(one, text=one.text.replace("$1", "?")) for n, one in seen.items()}
    stored = [{**row, "template": row["query_id"]} for row in rows]
    (missing,) = unplanned(stored, texts, {}, (), {"role": "app", "number": 15})
    assert (missing.why, missing.templates) == ("no values", (4,))


def test_json_and_text_of_the_same_plan_are_read_as_the_same_tree(server):
    with psycopg.connect(server.conninfo()) as connection:
        connection.execute("SET jit = off; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0")
        for statement in EXPLAINED:
            ((plan,),) = connection.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}").fetchall()
            lines = connection.execute(f"EXPLAIN (VERBOSE) {statement}").fetchall()
            text = "\n".join(line for (line,) in lines)
            assert plan_tree(json.dumps(plan)) == plan_tree(text) is not None, text
