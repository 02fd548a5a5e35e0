"""Limits that a real server reached, and a prepared transaction, as a role without rights sees them."""

from contextlib import ExitStack

import psycopg
import pytest

from fakes.answered import log_result
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.log import LogRunFacts
from uncork.profile.logs import LogRequest, read_logs
from uncork.report.findings import finding_headline
from uncork.report.headline import fits
from uncork.workbench.profile.databases import profile_database

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]
RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")
SETTINGS = {
    "max_connections": 20,
    "max_prepared_transactions": 2,
    "temp_file_limit": "256kB",
    "work_mem": "64kB",
    "log_line_prefix": "%m [%p] ",
}
ROLES = 17
"""Connections for roles that are no superusers: 20 without the three reserved ones."""


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(dict(SETTINGS))
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE shop LOGIN")
        connection.execute("CREATE ROLE poor LOGIN")
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def fresh_log(server, tmp_path):
    """Begin each test with an empty log."""
    server.take_log(tmp_path / "earlier.log")


def as_role(server, name):
    return server.conninfo().replace("user=uncork", f"user={name}")


def watched(server, tmp_path):
    address = resolve(as_role(server, "poor"))
    return profile_database(
        tmp_path / "runs", address, seconds=0.5, rate_hz=20.0, command="uncork profile db"
    ).result


def found(result, rule):
    return [one for one in result.findings if one.rule == rule]


def logged(server):
    reading = read_logs(LogRequest((server.logs[0],)))
    return log_result(RUN, reading.facts, reading.tables)


def test_a_healthy_server_is_far_from_its_limits(server, tmp_path):
    with psycopg.connect(as_role(server, "shop")):
        result = watched(server, tmp_path)
    assert result.connections == 1
    assert result.horizons == ()
    assert result.findings == ()
    assert found(logged(server), "connection-limit") == []


def test_connections_are_counted_until_the_server_refuses_one(server, tmp_path):
    with ExitStack() as stack:
        for _ in range(ROLES - 1):
            stack.enter_context(psycopg.connect(as_role(server, "shop")))
        result = watched(server, tmp_path)
        (near,) = found(result, "connection-limit")
        assert near.headline == "16 of 17 connections are open, so the server will soon refuse more"
        assert "max_connections = 40" in near.candidates[-1].sql
        stack.enter_context(psycopg.connect(as_role(server, "shop")))
        for _ in range(3):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(as_role(server, "shop"))
    (one,) = found(logged(server), "connection-limit")
    assert one.headline == "The server refused 3 connections: all connections were taken"
    assert "remaining connection slots" in one.evidence[1]
    assert fits(finding_headline(one))


def test_a_role_has_a_limit_of_its_own(server):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute('CREATE ROLE "Batch job" LOGIN CONNECTION LIMIT 1')
    conninfo = psycopg.conninfo.make_conninfo(server.conninfo(), user="Batch job")
    with psycopg.connect(conninfo), pytest.raises(psycopg.OperationalError):
        psycopg.connect(conninfo)
    (own,) = found(logged(server), "connection-limit")
    assert (own.objects, own.cost) == (("Batch job",), "1 refused connection")


def test_a_statement_beyond_the_limit_of_temporary_files_is_named(server):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for _ in range(2):
            with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
                connection.execute(
                    "SELECT md5(n::text) AS hash FROM generate_series(1, 50000) AS n ORDER BY 1"
                )
    (one,) = found(logged(server), "temporary-file-limit")
    assert one.headline.startswith("Temporary files of 2 statements exceeded temp_file_limit (256 kB)")
    assert one.statement.startswith("SELECT md5")
    assert "temp_file_limit = '512kB'" in one.candidates[1].sql


def test_a_prepared_transaction_keeps_dead_rows(server, tmp_path):
    steps = (
        "CREATE TABLE ticket AS SELECT n AS id, 0 AS n FROM generate_series(1, 10000) AS n",
        "BEGIN; INSERT INTO ticket VALUES (0, 0); PREPARE TRANSACTION 'order 17'",
        "SET synchronous_commit = off; UPDATE ticket SET n = 1",
        "UPDATE ticket SET n = 2",
    )
    for step in steps:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute(step)
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "DO $$ BEGIN FOR i IN 1..10000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$"
        )
        connection.execute("VACUUM ANALYZE ticket")
    result = watched(server, tmp_path)
    assert [(one.kind, one.name, one.user) for one in result.horizons] == [
        ("prepared transaction", "order 17", "uncork")
    ]
    (one,) = found(result, "vacuum-held-back")
    assert one.headline.startswith("VACUUM keeps dead rows of ticket for prepared transaction order 17, open")
    assert one.bill is None
    assert "ROLLBACK PREPARED 'order 17'" in one.candidates[0].text
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("ROLLBACK PREPARED 'order 17'")
        connection.execute("VACUUM ticket")
    after = watched(server, tmp_path)
    assert after.horizons == ()
    assert found(after, "vacuum-held-back") == []
