"""pgbench's tables, and a pooler before them."""

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
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from uncork.analysis.load.result import build_load_result
from uncork.engines import tpcb
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import server_account
from uncork.engines.source_tables import read_tables
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.pooler import PoolerConsole
from uncork.errors import ConnectError, SetupError
from uncork.model.load import LoadScript, LoadSpec
from uncork.profile.logs import LogRequest, read_logs
from uncork.requests.jobs import LoadJob, ServerOptions
from uncork.workbench.load import advising
from uncork.workbench.load.sessions import new_load
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

DEFINITIONS = """
SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, pg_get_expr(c.relpartbound, c.oid),
       pg_get_partkeydef(c.oid), pg_get_indexdef(i.indexrelid), i.indisprimary,
       (SELECT array_agg((a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef)::text
                         ORDER BY a.attnum)
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
       (SELECT array_agg(conname || pg_get_constraintdef(o.oid) ORDER BY conname)
          FROM pg_constraint o WHERE o.conrelid = c.oid)
  FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
 WHERE c.relname LIKE 'pgbench%' ORDER BY c.relname
"""

PAGES = """
SELECT relname, relpages, reltuples, relallvisible, pg_relation_size(oid), pg_relation_size(oid, 'vm')
  FROM pg_class WHERE relname LIKE 'pgbench%' ORDER BY relname
"""

STATISTICS = """
SELECT tablename, attname, null_frac, avg_width, n_distinct::numeric(9, 1), correlation::numeric(9, 1)
  FROM pg_stats WHERE tablename LIKE 'pgbench%' ORDER BY 1, 2
"""


@pytest.fixture(scope="module")
def pgbench() -> str:
    found = shutil.which("pgbench") or next(
        (str(path) for path in Path("/usr/lib/postgresql").glob("*/bin/pgbench")), None
    )
    if found is None:
        assert not os.environ.get("CI"), "CI must have pgbench to compare with"
        pytest.skip("pgbench is not installed: nothing to compare with")
    return found


@pytest.fixture
def conninfo(embedded):
    """A database of its own."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE tpcb")
        yield embedded.conninfo("tpcb")
        connection.execute("DROP DATABASE tpcb WITH (FORCE)")


def rows(conninfo: str, query: str) -> list[tuple]:
    with psycopg.connect(conninfo) as connection:
        return connection.execute(query).fetchall()


def contents(conninfo: str) -> dict[str, tuple]:
    """Count and digest the rows of each table, every column, and where they lie."""
    digest = "SELECT count(*), md5(string_agg(t.tableoid::regclass || t.ctid::text || t::text, E'\\n' "
    return {
        table: rows(conninfo, f"{digest} ORDER BY tableoid::regclass::text, ctid)) FROM {table} t")[0]
        for table in TABLES
    }


def described(conninfo: str) -> tuple:
    return contents(conninfo), rows(conninfo, DEFINITIONS), rows(conninfo, PAGES), rows(conninfo, STATISTICS)


def run_pgbench(pgbench: str, conninfo: str, *arguments: str) -> None:
    parts = conninfo_to_dict(conninfo)
    where = ["-h", str(parts["host"]), "-p", str(parts["port"]), "-U", str(parts["user"])]
    subprocess.run([pgbench, "-i", "-q", *where, *arguments, str(parts["dbname"])], check=True)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["-s", "2"], {"scale": 2}),
        (["-F", "80", "--foreign-keys"], {"scale": 1, "fillfactor": 80, "foreign_keys": True}),
        (["--unlogged-tables"], {"scale": 1, "unlogged": True}),
        (["-I", "dtGvp"], {"scale": 1, "steps": "dtGvp"}),
        (["--partitions", "3"], {"scale": 1, "partitions": 3}),
        (
            ["--partitions", "2", "--partition-method", "hash"],
            {"scale": 1, "partitions": 2, "partition_method": "hash"},
        ),
    ],
    ids=["plain", "fillfactor and foreign keys", "unlogged", "in the server", "range", "hash"],
)
def test_the_tables_are_those_of_pgbench(pgbench, conninfo, arguments, options):
    run_pgbench(pgbench, conninfo, *arguments)
    theirs = described(conninfo)
    tpcb.initialise(conninfo, **options)
    ours = described(conninfo)
    for ours_part, their_part in zip(ours, theirs, strict=True):
        assert ours_part == their_part


def test_the_result_names_each_step_and_its_time(conninfo):
    told: list[tpcb.Progress] = []
    done = tpcb.initialise(conninfo, scale=1, steps="dt gvp", foreign_keys=True, progress=told.append)
    assert [step.letter for step in done.steps] == list("dtgvpf")
    assert [step.name for step in done.steps][2] == "client-side generate"
    assert all(step.elapsed_ns > 0 for step in done.steps)
    assert done.elapsed_ns == sum(step.elapsed_ns for step in done.steps)
    assert [progress.rows for progress in told] == [100_000]
    assert tpcb.scale_of(conninfo) == 1


def test_filling_again_replaces_the_rows_and_keeps_the_keys(conninfo):
    tpcb.initialise(conninfo, scale=2, foreign_keys=True)
    tpcb.initialise(conninfo, scale=1, steps="g")
    assert {table: count for table, (count, _) in contents(conninfo).items()} == {
        "pgbench_accounts": 100_000,
        "pgbench_branches": 1,
        "pgbench_history": 0,
        "pgbench_tellers": 10,
    }
    assert len([row for row in rows(conninfo, DEFINITIONS) if row[7]]) == 3


def test_tables_that_somebody_made_with_other_types_are_filled_too(conninfo):
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE pgbench_accounts (aid bigint NOT NULL, bid int, abalance numeric, filler text);"
            "CREATE TABLE pgbench_tellers (tid bigint NOT NULL, bid smallint, tbalance int, filler text);"
            "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88));"
            "CREATE TABLE pgbench_history (tid int)"
        )
    tpcb.initialise(conninfo, scale=1, steps="gvp")
    assert rows(conninfo, "SELECT * FROM pgbench_accounts ORDER BY aid DESC LIMIT 1") == [(100_000, 1, 0, "")]
    assert rows(conninfo, "SELECT * FROM pgbench_tellers ORDER BY tid DESC LIMIT 1") == [(10, 1, 0, None)]


def test_tables_too_narrow_for_the_scale_are_refused_and_keep_their_rows(conninfo):
    tpcb.initialise(conninfo, scale=1)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("ALTER TABLE pgbench_tellers ALTER tid TYPE smallint")
    with pytest.raises(SetupError, match=r'step "g" .*: 40000 does not fit into a column of 2 bytes; put'):
        tpcb.initialise(conninfo, scale=4000, steps="g")
    assert tpcb.scale_of(conninfo) == 1


def test_the_data_outlives_a_crash():
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    try:
        tpcb.initialise(server.conninfo(), scale=1)
        before = contents(server.conninfo())
        server.crash()
        server.recover()
        assert contents(server.conninfo()) == before
    finally:
        server.stop()


# ---- what the server refuses ----


def test_a_step_without_the_one_that_it_needs_is_refused_with_the_remedy(conninfo):
    with pytest.raises(SetupError, match=r'step "g" \(client-side generate\): .*; put step t'):
        tpcb.initialise(conninfo, scale=1, steps="g")
    tpcb.initialise(conninfo, scale=1, steps="dt")
    with pytest.raises(SetupError, match=r'step "t".*"pgbench_history" already exists; put step d'):
        tpcb.initialise(conninfo, scale=1, steps="t")
    with pytest.raises(SetupError, match=r'step "f".*put step p'):
        tpcb.initialise(conninfo, scale=1, steps="f")
    tpcb.initialise(conninfo, scale=1, steps="p")
    with pytest.raises(SetupError, match=r'step "p".*multiple primary keys.*put steps d and t'):
        tpcb.initialise(conninfo, scale=1, steps="p")


def test_a_tablespace_that_is_not_there_is_said(conninfo):
    with pytest.raises(SetupError, match=r'step "t".*tablespace "no where" does not exist; name one'):
        tpcb.initialise(conninfo, scale=1, tablespace="no where")
    with pytest.raises(SetupError, match=r'step "p".*tablespace "nor here" does not exist'):
        tpcb.initialise(conninfo, scale=1, index_tablespace="nor here")


def test_a_role_without_the_right_is_refused_by_name(conninfo, embedded):
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        try:
            theirs = make_conninfo(conninfo, user="guest")
            with pytest.raises(
                SetupError, match=r'step "t".*permission denied.*the role is "guest"; connect as'
            ):
                tpcb.initialise(theirs, scale=1)
            tpcb.initialise(conninfo, scale=1, steps="dt")
            with pytest.raises(SetupError, match=r"permission denied.*pgbench_branches"):
                tpcb.scale_of(theirs)
        finally:
            connection.execute("DROP ROLE guest")


def test_the_scale_of_no_tables_or_empty_ones_is_refused_with_the_remedy(conninfo):
    with pytest.raises(
        SetupError, match=r'database "tpcb" has no pgbench tables; create them first: uncork load sql -i'
    ):
        tpcb.scale_of(conninfo)
    tpcb.initialise(conninfo, scale=1, steps="t")
    with pytest.raises(SetupError, match=r"empty; create them first: uncork load sql -i"):
        tpcb.scale_of(conninfo)


def test_a_database_that_is_not_there_is_a_connect_error(embedded):
    with pytest.raises(ConnectError, match='"nothing" does not exist'):
        tpcb.initialise(embedded.conninfo("nothing"), scale=1)


def test_a_connection_lost_on_the_way_is_a_connect_error(conninfo):
    def cut(_: tpcb.Progress) -> None:
        with psycopg.connect(conninfo, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'tpcb' AND pid <> pg_backend_pid()"
            )

    with pytest.raises(ConnectError, match=r'step "g" \(client-side generate\): the server went away'):
        tpcb.initialise(conninfo, scale=2, progress=cut)


def test_progress_that_raises_leaves_the_old_rows(conninfo):
    tpcb.initialise(conninfo, scale=1)

    def stop(_: tpcb.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tpcb.initialise(conninfo, scale=2, steps="g", progress=stop)
    assert tpcb.scale_of(conninfo) == 1


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
