"""Watches that cannot read everything: a refused schema, an index dropped meanwhile, a lost server."""

from __future__ import annotations

import threading
from contextlib import suppress

import psycopg
import pytest

from uncork.analysis.advice.result import advice_of
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.profile.missing import find_missing
from uncork.report.advice.document import answer_advice, build_advice_document
from uncork.report.database.document import build_database_document
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres


def test_a_role_without_the_extensions_schema_learns_what_to_grant(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE poor LOGIN")
        connection.execute("CREATE DATABASE closed")
    conninfo = f"{embedded.conninfo()} dbname=closed"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA monitoring; CREATE EXTENSION pg_stat_statements SCHEMA monitoring")
    server = ServerWatch(f"{conninfo} user=poor")
    try:
        facts = server.facts()
    finally:
        server.close()
    assert facts["statements"] == "permission denied for schema monitoring"
    watch = {"server": facts, "snapshots": {}, "catalogue": {}, "system": None}
    missing = {one.what: one.remedy for one in find_missing(watch, file_waits=0.0)}
    assert missing["pg_stat_statements"] == 'GRANT USAGE ON SCHEMA "monitoring" TO "poor"'


def test_an_index_that_is_dropped_while_it_is_read_is_left_out(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE rebuilt (a int PRIMARY KEY, b int)")
        connection.execute("CREATE INDEX rebuilt_b ON rebuilt (b)")
        server = ServerWatch(embedded.conninfo())
        try:
            block = server.facts()["block_size"]
            server._session.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            server._session.execute("SELECT count(*) FROM pg_index")
            connection.execute("DROP INDEX rebuilt_b")
            snapshot = server.snapshot(whole=True)
            found = snapshot.with_details(server.details(snapshot, ()), block).tables["database_indexes"]
        finally:
            server.close()
            connection.execute("DROP TABLE rebuilt")
    assert {one["name"] for one in found if one["name"].startswith("rebuilt")} == {"rebuilt_pkey"}


def test_a_lost_connection_is_no_proof_of_health(tmp_path):
    server = EmbeddedServer({})
    server.start()

    def sleep_until_lost():
        with suppress(psycopg.Error), psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while True:
                connection.execute("SELECT pg_sleep(0.2)")

    sleeper = threading.Thread(target=sleep_until_lost)
    sleeper.start()
    try:
        lost = profile_database(
            tmp_path,
            resolve(server.conninfo()),
            seconds=60.0,
            rate_hz=20.0,
            command="uncork profile db",
            show=lambda _: server.crash(),
        )
    finally:
        server.stop()
        sleeper.join()
    assert not any("No change is needed" in one for one in lost.result.reasons)
    advice = answer_advice(advice_of([lost.folder], "uncork advise", "1"))
    assert advice.answer == "The connection to the server was lost, so most faults cannot be found."
    for document in (build_database_document(lost.result), build_advice_document(advice)):
        assert [one.text for one in document.steps] == ["Watch the server again to its end:"]
