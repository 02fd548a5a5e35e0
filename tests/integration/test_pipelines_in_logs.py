"""A real server's log of a client that sends rows in a pipeline, and of one that waits for each answer."""

from __future__ import annotations

import time

import psycopg
import pytest

from fakes.answered import log_result
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.log import LogRunFacts
from uncork.profile.logs import LogRequest, read_logs

pytestmark = pytest.mark.postgres
RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")
ROWS = 2_000
PIPELINE, LOOP = (f"INSERT INTO {name} (name, score) VALUES (%s, %s)" for name in ("sent", "waited"))


def test_a_pipeline_is_told_from_a_loop_that_waits_for_each_answer():
    server = EmbeddedServer({"log_min_duration_statement": 0, "log_line_prefix": "%m [%p] %q%u@%d %a "})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for name in ("sent", "waited"):
                connection.execute(f"CREATE TABLE {name} (name text, score int)".encode())
            with connection.transaction():  # psycopg's executemany uses a pipeline
                rows = [(f"cve {number}", number) for number in range(ROWS)]
                connection.cursor().executemany(PIPELINE, rows)
            with connection.transaction():
                for number in range(ROWS):
                    connection.execute(LOOP, (f"cve {number}", number))
                    time.sleep(1e-4)  # as a round trip through a network takes
        reading = read_logs(LogRequest(tuple(server.logs)))
    finally:
        server.stop()
    templates = log_result(RUN, reading.facts, reading.tables).templates
    rows = {one.text.split()[2]: one.repetition for one in templates if one.text.startswith("insert")}
    found = {name.partition("(")[0]: row for name, row in rows.items() if row is not None}
    assert {name: (row.executions, row.pipelined) for name, row in found.items()} == {
        "sent": (ROWS, True),
        "waited": (ROWS, False),
    }
