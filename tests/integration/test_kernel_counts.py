"""A watched server with pg_stat_kcache: user and system time by template, and reads from disks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres
INSTALLED = Path("/usr/lib/postgresql/15/bin")
LIBRARY = INSTALLED.parent / "lib" / "pg_stat_kcache.so"
COUNT, SLEEP = "SELECT count(*) FROM generate_series(1, 300000)", "SELECT pg_sleep(0.01)"


@pytest.fixture(scope="module")
def server():
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


def test_processor_time_is_divided_by_template_and_mode(server, tmp_path):
    over = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute(COUNT)
                connection.execute(SLEEP)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        run = profile_database(
            tmp_path, resolve(server.conninfo()), seconds=1.0, rate_hz=10.0, command="uncork profile db"
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


def test_an_extension_that_cannot_be_read_is_named_with_the_reason(server, tmp_path):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_stat_kcache() FROM public")
        connection.execute("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    run = profile_database(
        tmp_path,
        resolve(f"{server.conninfo()} user=watcher"),
        seconds=0.2,
        rate_hz=10.0,
        command="uncork profile db",
    )
    missing = {one.what: one for one in run.result.missing}
    assert missing["pg_stat_kcache"].remedy.startswith("fix the server's error: permission denied")
    assert all(one.kernel is None for one in run.result.templates)
