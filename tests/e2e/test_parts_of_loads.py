"""Parts of one load by subprocess, on a real server: killed, merged, and without a lease."""

import json
import signal
import time
from datetime import UTC, datetime

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("load"), pytest.mark.thorough]
_READY_S = 8.0
"""Time for the processes of the parts to start, also beside other tests."""


@pytest.fixture(scope="module")
def watch():
    """Yield a connection to a server whose sequence `sent` counts what is sent."""
    server = EmbeddedServer({"max_connections": 30, "autovacuum": False, "shared_buffers": "32MB"})
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE sent")
        yield connection
    server.stop()


@pytest.fixture
def words(uncork, watch):
    """Yield the words of a load that counts on the server, from one."""
    (uncork.folder / "count.sql").write_text("SELECT nextval('sent');\n")
    watch.execute("ALTER SEQUENCE sent RESTART")
    at = watch.info
    return ("load", "sql", "-n", "-f", "count.sql", "-h", at.host, "-p", at.port, "-U", at.user, at.dbname)


def sent(watch):
    last, called = watch.execute("SELECT last_value, is_called FROM sent").fetchone()
    return last if called else 0


def test_parts_start_together_and_are_merged_though_one_is_killed(uncork, watch, words):
    start = time.time() + _READY_S
    same = (*words, "-c", 6, "-R", 150, "-T", 3, "--random-seed", 7, "--start-at")
    same = (*same, datetime.fromtimestamp(start, UTC).isoformat())
    parts = [uncork.start(*same, "--shard", f"{number}/3") for number in (1, 2, 3)]
    time.sleep(start + 1.6 - time.time())
    parts[2].send_signal(signal.SIGKILL)
    texts = [part.communicate(timeout=120) for part in parts]
    # On a busy machine, a part may still wait for an answer at its end: status 2, and "deadline".
    assert parts[2].returncode == -signal.SIGKILL, texts
    assert {part.returncode for part in parts[:2]} <= {0, 2}, texts

    merged = uncork("merge", *(run.name for run in uncork.runs), "--json")
    assert merged.returncode == 2, merged.stderr
    result = json.loads(merged.stdout)
    found = result["parts"]["parts"]
    assert {part["ended"] for part in found[:2]} <= {"complete", "deadline"}
    assert found[2]["ended"] == "killed"
    for part in found:
        assert part["planned"] == part["started"] + part["not_started"] + part["unknown"] > 100
    unknown = found[2]["unknown"]
    assert 0 < unknown < 600
    assert result["counts"]["started"] <= sent(watch) <= result["counts"]["started"] + unknown

    shown = uncork("report", "last")
    assert shown.returncode == 0
    assert "was killed after second 1" in shown.stdout and "3/3" in shown.stdout


def test_a_load_ends_when_nobody_renews_its_lease(uncork, watch, words):
    began = time.monotonic()
    done = uncork(*words, "-c", 2, "-R", 100, "-T", 30, "--lease", "lease")
    seconds, number = time.monotonic() - began, sent(watch)
    assert done.returncode == 2
    assert done.stdout.startswith("Lease ended after "), done.stdout
    assert 5 < seconds < 20
    assert 100 < number < 700
    time.sleep(0.3)
    assert sent(watch) == number
