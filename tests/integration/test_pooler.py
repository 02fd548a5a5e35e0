"""A watch through PgBouncer sees what a direct one sees, and leaves nothing behind in the pooled session."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from uncork.analysis.load.result import build_load_result
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import server_account
from uncork.engines.source_tables import read_tables
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole
from uncork.errors import ConnectError
from uncork.model.load import LoadScript, LoadSpec
from uncork.profile.logs import LogRequest, read_logs
from uncork.requests.jobs import LoadJob, ServerOptions
from uncork.workbench.load import advising
from uncork.workbench.load.sql import new_load
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres
INSTALLED = Path("/usr/lib/postgresql/15/bin")
FIND, COUNT = "SELECT id FROM parcels WHERE place = %s", "UPDATE visits SET n = n + 1"
STATE = (
    "SELECT current_setting('default_transaction_read_only'), current_setting('statement_timeout'), "
    "current_setting('lock_timeout'), current_setting('jit'), (SELECT count(*) FROM pg_prepared_statements)"
)


@pytest.fixture(scope="module", params=[None, INSTALLED], ids=["own", "installed"])
def server(request):
    """A server with a table without an index on `place`, and a counter that an application updates."""
    settings = {"shared_preload_libraries": "pg_stat_statements", "log_min_duration_statement": 0}
    found = EmbeddedServer(settings, binaries=request.param)
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute(
            "CREATE TABLE parcels AS SELECT n AS id, n AS place FROM generate_series(1, 20000) AS n"
        )
        connection.execute("CREATE TABLE visits AS SELECT 0 AS n")
        connection.execute("VACUUM ANALYZE")
    yield found
    found.stop()


@dataclass(frozen=True)
class Pooler:
    """A running PgBouncer: the connection strings of a database and of its console, and its log."""

    conninfo: str
    console: str
    log: Path


@pytest.fixture
def pooled(pooler):
    """The connection string of a pool of one session; the parameter is its mode."""
    return pooler.conninfo


@pytest.fixture
def pooler(server, request):
    """A PgBouncer that logs its statistics each second; the parameter is its mode."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        assert not os.environ.get("CI"), "CI installs PgBouncer"
        pytest.skip("PgBouncer is not installed")
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    address, account = resolve(server.conninfo()), server_account()
    folder = tempfile.TemporaryDirectory()
    Path(folder.name).chmod(0o777)  # PgBouncer does not run as root
    file = Path(folder.name) / "pgbouncer.ini"
    file.write_text(
        f"[databases]\n* = host={address.host} port={address.port} user={address.user}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {request.param}\ndefault_pool_size = {2 if request.param == 'session' else 1}\n"
        f"logfile = {folder.name}/pgbouncer.log\nstats_period = 1\nadmin_users = {address.user}\n"
    )
    user = {"user": account.name} if account.change else {}
    bouncer = subprocess.Popen([program, "-q", file], stderr=subprocess.DEVNULL, **user)
    conninfo = f"host=127.0.0.1 port={port} dbname={address.database} user={address.user}"
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(conninfo).close()
                break
            except psycopg.OperationalError:
                assert bouncer.poll() is None and time.monotonic() < deadline
        console = conninfo.replace(f"dbname={address.database}", "dbname=pgbouncer")
        yield Pooler(conninfo, console, Path(folder.name) / "pgbouncer.log")
    finally:
        bouncer.terminate()
        bouncer.wait()
        folder.cleanup()


@pytest.mark.parametrize("pooler", ["transaction", "session"], indirect=True)
def test_a_watch_through_a_pooler_leaves_the_pooled_session_as_it_was(pooled, server, tmp_path):
    over = threading.Event()
    failures = []

    def work():
        try:
            with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
                while not over.is_set():
                    connection.execute(FIND, (7,))
                    connection.execute(COUNT)
        except psycopg.Error as error:
            failures.append(str(error))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        run = profile_database(
            tmp_path / "runs", resolve(pooled), seconds=1.0, rate_hz=20.0, command="uncork profile db"
        )
    finally:
        over.set()
        worker.join()
    assert not failures and not run.trouble
    texts = {one.number: one.text for one in run.result.templates}
    plans = {texts[one.template]: one.text for one in run.result.plans}
    assert "Filter: (place = $1)" in plans["select id from parcels where place = ?"]
    assert any("not through a pooler" in one.remedy for one in run.result.missing)
    assert run.result.settings is not None
    with psycopg.connect(pooled, autocommit=True) as connection:
        assert connection.execute(STATE).fetchone() == ("off", "0", "0", "on", 0)


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_queries_through_a_pooler_are_read_only_and_end_in_time(pooled):
    watch = ServerWatch(pooled)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        watch._session.execute(COUNT)
    watch._session.set(statement_timeout="20ms")
    with pytest.raises(psycopg.errors.QueryCanceled):
        watch._session.execute("SELECT FROM pg_sleep(9)")  # no statement that a test watches
    watch.close()


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_tables_are_described_through_a_pooler(pooled):
    missing, found = read_tables(pooled, ("nowhere", "parcels"))
    assert missing.unknown and [one.name for one in found.columns] == ["id", "place"]


@pytest.mark.parametrize("pooler", ["statement"], indirect=True)
def test_a_pool_of_statements_is_refused(pooled):
    with pytest.raises(ConnectError, match=r"statement pooling.*connect to the server itself"):
        ServerWatch(pooled)


@pytest.mark.parametrize("pooler", ["session"], indirect=True)
def test_a_pooler_that_refuses_options_is_named(pooled):
    with pytest.raises(ConnectError, match="ignore_startup_parameters"):
        ServerWatch(f"{pooled} options='-c geqo=off'")


@contextmanager
def three_clients(pooler):
    """Let three clients take turns on the one connection of a pool, so that two of them wait."""
    over = threading.Event()

    def work():
        with psycopg.connect(pooler.conninfo, autocommit=True, prepare_threshold=None) as connection:
            while not over.is_set():
                connection.execute("SELECT pg_sleep(0.04)")

    workers = [threading.Thread(target=work) for _ in range(3)]
    for one in workers:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in workers:
            one.join()


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_console_and_log_agree_on_how_many_clients_wait(pooler):
    console = PoolerConsole(pooler.console)
    with three_clients(pooler), closing(console):
        time.sleep(0.3)
        before = console.counts()
        time.sleep(2.2)
        after = console.counts()
    elapsed_us = (after.at_ns - before.at_ns) / 1000
    waiting = (after.wait_us - before.wait_us) / elapsed_us
    # On a busy machine, the clients are late.
    assert 1.3 < waiting < 2.1
    assert (after.transaction_us - before.transaction_us) / elapsed_us == pytest.approx(waiting + 1, abs=0.3)
    assert 10 < after.transactions - before.transactions <= 60
    logged = read_logs(LogRequest((pooler.log,))).facts["pool"]["pool wait"]
    assert logged["max"] / 1e6 == pytest.approx(waiting, abs=0.5)


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_a_server_is_no_console(pooler):
    with pytest.raises(ConnectError, match=r"not the console of PgBouncer.*write dbname=pgbouncer"):
        PoolerConsole(pooler.conninfo)


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_a_profile_of_a_service_reads_the_console(pooler, server, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    words = ["--watch-only", "--for", "4s", "--postgres", server.conninfo(), "--pooler", pooler.console]
    command = [sys.executable, "-m", "uncork", "profile", "service", url, *words, "--no-code", "--json"]
    with three_clients(pooler):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pool = json.loads(done.stdout)["pool"]
    assert 1.3 < pool["waiting"] < 2.1
    assert 0.04e9 <= pool["transaction_ns"] - pool["wait_ns"] < 0.08e9


@pytest.mark.parametrize("server", [None], indirect=True)
@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_the_wait_for_a_pool_and_parsing_are_steps_of_a_load(pooler, server, tmp_path, monkeypatch):
    monkeypatch.setattr(advising, "_WATCHED_NS", 1_000_000_000)
    script = LoadScript("wait", 1, "SELECT pg_sleep(0.02);\n")
    job = LoadJob(
        spec=LoadSpec(scripts=(script,), clients=4, protocol="extended", operations_each=12),
        server=ServerOptions(dsn=pooler.conninfo),
        tables=None,
        needs_tables=False,
        scale=None,
        vacuum="none",
        command="uncork load sql",
        advise=True,
        postgres=server.conninfo(),
        pooler=pooler.console,
        logs=tuple(server.logs),
    )
    session = new_load(tmp_path / "runs", job)
    session.run(None, lambda _: None)
    result = build_load_result(session.folder)
    steps = {one.name: one for one in result.steps}
    assert sum(one.share for one in result.steps) == pytest.approx(1)
    assert result.step_gaps == () and result.missing == ()
    # One of four clients has the connection; on a busy machine, the others also wait for processors.
    assert 0.6 < steps["pool"].share < 0.8
    # A sleep of 20 ms, estimated: what was counted while the server was watched stands for the whole load.
    assert 0.0195e9 < steps["execute"].ns < 0.05e9 and 0 < steps["parse"].ns < 0.02e9
    assert result.database.startswith(f"uncork@{resolve(server.conninfo()).host}")


@pytest.mark.parametrize("server", [None], indirect=True)
@pytest.mark.parametrize("pooler", ["session"], indirect=True)
def test_a_load_ends_although_its_clients_share_sessions(pooler, tmp_path):
    script = LoadScript("wait", 1, "SELECT pg_sleep(0.02);\n")
    job = LoadJob(
        spec=LoadSpec(scripts=(script,), clients=4, duration_ns=500_000_000),
        server=ServerOptions(dsn=pooler.conninfo),
        tables=None,
        needs_tables=False,
        scale=None,
        vacuum="none",
        command="uncork load sql",
    )
    session = new_load(tmp_path / "runs", job)
    session.run(None, lambda _: None)
    result = build_load_result(session.folder)
    assert result.run.outcome == "complete" and result.counts.failed == 0
    # Two clients have the two sessions until they have finished, then the others.
    assert result.run.elapsed_ns < 20e9
