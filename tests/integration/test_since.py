"""After a cure: statements of a real server before and after its change, by one command."""

from __future__ import annotations

import threading
from dataclasses import replace

import psycopg
import pytest
from typer.testing import CliRunner

from fakes.cures import index_change, proven_cure
from uncork.analysis.database.result import stored_database_result
from uncork.cli.app import app
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.workbench.cure.handing import write_cure
from uncork.workbench.profile.databases import record_database
from uncork.workbench.run_record import draft, start_run

pytestmark = pytest.mark.postgres
FIND = "SELECT count(*) FROM visits WHERE visitor = %s"


@pytest.fixture
def server():
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
                connection.execute(FIND, (7,))

    worker = threading.Thread(target=work)
    worker.start()
    yield found
    over.set()
    worker.join()
    found.stop()


def test_one_command_compares_the_changed_statements_with_those_before_a_cure(server, tmp_path):
    address = resolve(server.conninfo())
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
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE INDEX ON visits (visitor)")
        connection.execute("SELECT pg_stat_statements_reset()")
    words = ["--for", "1s", "-q", "--runs", str(tmp_path), "--since", "last"]
    done = CliRunner().invoke(app, ["profile", "db", server.conninfo(), *words])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert text.startswith('"select count(*) from visits where visitor = ?" is ')
    assert " times faster: " in text and "Statements that the cure changed, before → after" in text
    assert "One watch on each side cannot show how much such watches differ." in text
    assert "for turn" not in text and "uncork cure" not in text
