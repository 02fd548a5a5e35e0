"""What a real server logs of uncork's own watching, and of plans with parameters."""

from __future__ import annotations

import psycopg
import pytest

from fakes.answered import log_result
from uncork.analysis.log.evidence import evidence_of_log
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.model.results.log import LogRunFacts
from uncork.profile.logs import LogRequest, read_logs

pytestmark = pytest.mark.postgres
RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")
LOOKUPS = 30


@pytest.fixture(scope="module")
def server():
    """A server that logs everything, with PostgreSQL's own log_line_prefix, which names no application."""
    settings = {
        "log_min_duration_statement": 0,
        "log_line_prefix": "%m [%p] ",
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": 0,
        "auto_explain.log_parameter_max_length": -1,
    }
    server = EmbeddedServer(settings)
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE items (id int, name text)")
    yield server
    server.stop()


def logged(server):
    reading = read_logs(LogRequest(tuple(server.logs)))
    return log_result(RUN, reading.facts, reading.tables)


@pytest.mark.parametrize(("form", "column"), [("text", "id"), ("json", "name")])
def test_parameters_of_a_plan_are_no_part_of_the_statement(server, form, column):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(f"SET auto_explain.log_format = {form}")
        for number in range(3):
            text = f"SELECT {column}, 'x' AS form\n  FROM items WHERE id = %s AND name = %s"
            connection.execute(text, (number, "it's\nQuery Parameters: "))
    # The plan has the template of the statement that was sent.
    (template,) = (one for one in logged(server).templates if f"{column}, ? as form" in one.text)
    assert template.text == f"select {column}, ? as form from items where id = ? and name = ?"
    assert template.executions == 3
    (plan,) = (one for one in template.examples if one.kind == "plan")
    assert plan.parameters.startswith("$1 = '") and "Query Parameters: '" in plan.parameters
    if form == "text":
        assert plan.text.splitlines()[1].strip() == "FROM items WHERE id = $1 AND name = $2"
        assert "$1 = '" not in plan.text and "Seq Scan on items" in plan.text
    (executed,) = evidence_of_log(logged(server)).statements[template.number].plans
    scan = executed.root
    assert executed.source == "executed" and scan.relation == "items"
    assert scan.kind == "Seq Scan" and scan.condition("Filter").startswith("((id = '")


def test_watching_is_counted_and_left_out(server):
    before = logged(server)
    watch = ServerWatch(server.conninfo())
    names = "SELECT application_name FROM pg_stat_activity WHERE pid = %s"
    watch.begin_sampling()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True, application_name="shop") as connection:
            assert connection.execute(names, (watch.pid,)).fetchone() == ("uncork watch",)
        for _ in range(LOOKUPS):
            watch.look((), blockers=True)
    finally:
        watch.close()
    found = logged(server)
    assert found.own - before.own >= LOOKUPS
    new = {one.text for one in found.templates} - {one.text for one in before.templates}
    assert new == {"select application_name from pg_stat_activity where pid = ?"}
    assert found.findings == ()
    assert any("uncork watched the server are not counted" in warning for warning in found.warnings)
