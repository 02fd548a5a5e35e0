"""Servers that uncork starts, and their databases."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from fakes.reapers import ends, kill_with_reaper, reaper_of
from uncork.engines import process
from uncork.engines.embedded import EmbeddedServer, _resident, emptied, other_runs, remove_leftovers
from uncork.engines.places import servers_folder
from uncork.engines.postgres import embedded_server, existing_server
from uncork.engines.setting_check import binaries_here
from uncork.errors import ConnectError, ServerCrash, SetupError, UsageError
from uncork.experiment.plan.server_settings import OF_A_SERVER
from uncork.experiment.spec.schema import parse_spec
from uncork.model.trial import Arm, Cell
from uncork.model.verdict import Verdict
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source
from uncork.spawn.reaper import processes, start_of
from uncork.store.layout import read_manifest
from uncork.store.query import RunReader
from uncork.workbench.documents.experiments import read_experiment
from uncork.workbench.experiment.resolution import LEAST_BUDGET_NS, measure_resolution
from uncork.workbench.experiment.session import new_run

pytestmark = pytest.mark.postgres


def folders() -> set[Path]:
    return set(servers_folder().glob("pg-*"))


@pytest.fixture
def apart(tmp_path_factory, monkeypatch):
    """A folder for servers that no other test uses, reachable by an unprivileged user, with a short path."""
    folder = Path(f"/var/tmp/uct-{os.getpid()}-{time.monotonic_ns() % 10**6}")
    monkeypatch.setenv("UNCORK_SERVERS", str(folder))
    yield folder
    for left in folder.glob("*"):
        assert not left.exists(), f"{left} was left behind"
    folder.rmdir()


def test_it_never_runs_as_root(embedded):
    assert embedded.pid is not None
    status = Path(f"/proc/{embedded.pid}/status").read_text()
    uid = int(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])
    assert uid != 0


def test_it_has_the_contrib_modules_that_uncork_uses(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        available = {name for (name,) in connection.execute("SELECT name FROM pg_available_extensions")}
        connection.execute("LOAD 'auto_explain'")
    assert {"pg_stat_statements", "pg_buffercache", "pgstattuple", "pg_prewarm"} <= available


def test_it_listens_on_loopback_only_and_asks_for_a_password_there(embedded):
    with psycopg.connect(embedded.conninfo()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=embedded.port, user="uncork", dbname="postgres")


def test_its_socket_folder_is_closed_to_others(embedded):
    assert Path(embedded.host).stat().st_mode & 0o077 == 0


def test_a_restart_leaves_nothing_in_memory_if_asked(apart):
    server = EmbeddedServer({"shared_buffers": "16MB"})
    server.start()
    try:
        with psycopg.connect(server.conninfo()) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT n, repeat('x', 500) FROM generate_series(1, 40000) n"
            )
            (table,) = connection.execute("SELECT pg_relation_filepath('t')").fetchone()
        file = Path(server.host).parent / "data" / table
        server.restart()
        assert in_memory(file) > 0.9
        server.restart(cold=True)
        assert in_memory(file) < 0.1
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (40000,)
        assert in_memory(file) > 0.9
    finally:
        server.stop()


def in_memory(path):
    with path.open("rb") as file:
        ((pages, found),) = _resident(file.fileno())
    return found / pages


def test_files_that_live_in_memory_cannot_be_dropped():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        (Path(folder) / "file").write_bytes(b"x" * 100_000)
        assert emptied(Path(folder)) == 1


def test_a_shared_folder_of_servers_is_left_as_it_is_but_can_be_passed(tmp_path, monkeypatch):
    for mode, left in ((0o1777, 0o1777), (0o700, 0o711), (0o755, 0o755)):
        tmp_path.chmod(mode)
        monkeypatch.setenv("UNCORK_SERVERS", str(tmp_path))
        assert servers_folder() == tmp_path
        assert stat.S_IMODE(tmp_path.stat().st_mode) == left


def test_settings_reach_the_server_and_strings_are_quoted(apart):
    server = EmbeddedServer({"work_mem": "7MB", "application_name": "it's", "jit": False})
    server.start()
    try:
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
            assert connection.execute("SHOW jit").fetchone() == ("off",)
            reset = "SELECT reset_val FROM pg_settings WHERE name = 'application_name'"
            assert connection.execute(reset).fetchone() == ("it's",)
    finally:
        server.stop()


def test_a_setting_that_does_not_exist_is_one_clear_error_and_leaves_nothing(apart):
    with pytest.raises(SetupError, match=r'did not start.*unrecognized configuration parameter "no_such"'):
        EmbeddedServer({"no_such": 1}).start()
    assert folders() == set()


def test_a_taken_port_is_said_and_leaves_nothing(apart):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"cannot listen on port {port}: Address already in use"):
            EmbeddedServer({}, port=port).start()
    assert folders() == set()


def test_binaries_of_an_installed_postgresql_serve_as_well(apart):
    installed = Path("/usr/lib/postgresql/15/bin")
    if not installed.is_dir():
        assert not os.environ.get("CI"), "CI installs PostgreSQL 15"
        pytest.skip("PostgreSQL 15 is not installed")
    server = EmbeddedServer({"shared_preload_libraries": ""}, binaries=installed)
    server.start()
    try:
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.info.server_version // 10000 == 15
    finally:
        server.stop()


def test_initdb_runs_once_and_its_cluster_is_closed_to_others(embedded, apart, tmp_path, monkeypatch):
    binaries = Path(f"/proc/{embedded.pid}/exe").resolve().parent
    monkeypatch.setenv("UNCORK_CACHE", str(tmp_path))
    seen = []
    for _ in range(2):
        server = EmbeddedServer({}, binaries=binaries)
        server.start()
        try:
            with psycopg.connect(server.conninfo(), autocommit=True) as connection:
                seen.append(
                    connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
                )
                connection.execute("CREATE TABLE mine (id int)")
        finally:
            server.stop()
    assert seen[0] == seen[1], "the second one is a copy, taken before the first one ran"
    (kept,) = (tmp_path / "clusters").iterdir()
    assert kept.stat().st_uid == os.geteuid()
    assert kept.stat().st_mode & 0o077 == 0
    assert not (kept / "postmaster.pid").exists()


def test_a_folder_without_binaries_is_named(tmp_path):
    with pytest.raises(SetupError, match=r"there is no initdb in .*--pg-bin"):
        EmbeddedServer({}, binaries=tmp_path).start()


def test_a_restart_is_a_new_process_on_the_same_data(apart):
    server = EmbeddedServer({})
    server.start()
    try:
        first = server.pid
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (id int)")
        server.restart()
        assert server.pid not in (None, first)
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    finally:
        server.stop()


def test_it_comes_back_after_a_crash_with_what_was_committed(apart):
    server = EmbeddedServer({})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS id")
        server.crash()
        assert not server.alive
        server.recover()
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1,)
    finally:
        server.stop()


OWNER = (
    "import time\n"
    "from uncork.engines.embedded import EmbeddedServer\n"
    "server = EmbeddedServer({}); server.start(); print(server.pid, flush=True); time.sleep(600)\n"
)


def test_a_server_ends_with_a_killed_process_though_a_backend_is_busy(apart):
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        postmaster = int(owner.stdout.readline())
        began = start_of(postmaster)
        (folder,) = folders()
        where = {"host": str(folder / "socket"), "port": port_of(folder), "user": "uncork"}
        with closing(psycopg.connect(dbname="postgres", autocommit=True, **where)) as connection:
            backend = connection.info.backend_pid
            backend_began = start_of(backend)
            connection.pgconn.send_query(b"DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$")
            waiting = reaper_of(owner.pid)
            reaper_began = start_of(waiting)
            owner.kill()
            assert ends(postmaster, began) and ends(backend, backend_began)
    assert ends(waiting, reaper_began)
    assert folders() == set()


def port_of(folder: Path) -> int:
    (lock,) = (folder / "socket").glob(".s.PGSQL.*.lock")
    return int(lock.name.split(".")[3])


def test_the_leftover_of_a_killed_process_is_ended_and_removed(apart):
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        postmaster = int(owner.stdout.readline())
        assert remove_leftovers() == [], "its owner lives"
        assert other_runs() == 1
        kill_with_reaper(owner.pid)
    assert Path(f"/proc/{postmaster}").exists()
    (folder,) = folders()
    assert remove_leftovers() == [folder]
    assert not folder.exists()
    assert other_runs() == 0
    assert not Path(f"/proc/{postmaster}/exe").exists() or "Z" in Path(f"/proc/{postmaster}/stat").read_text()


def test_a_process_that_merely_bears_the_old_number_is_left_alone(apart):
    folder = servers_folder() / "pg-old"
    (folder / "data").mkdir(parents=True)
    own = {**process.identity(os.getpid()), "start": 1}
    (folder / "owner.json").write_text(json.dumps({"owner": own, "server": own}))
    assert remove_leftovers() == [folder]


def test_its_log_is_taken_in_parts_that_hold_what_was_done_until_then(apart, tmp_path):
    server = EmbeddedServer({"shared_buffers": "32MB", "log_min_duration_statement": 0})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for number in range(3):
                connection.execute(f"SELECT {number} AS part".encode())
                server.take_log(tmp_path / f"{number}.log")
    finally:
        server.stop()
    parts = [(tmp_path / f"{number}.log").read_bytes() for number in range(3)]
    for number, part in enumerate(parts):
        found = [one for one in range(3) if f"SELECT {one} AS part".encode() in part]
        assert found == [number]
        assert b"\0" not in part
    assert b"ready to accept connections" in parts[0]


CELL = Cell((("rows", "10"),))
ARM = Arm("a")
TABLE = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5000) AS n;
"""
MINUTE = 60 * 10**9


@pytest.fixture(scope="module")
def server():
    server = embedded_server({"shared_buffers": "64MB"})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def built(server):
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore(CELL, ARM)
    return server


def count(server, query: str) -> str | None:
    return server.column(CELL, ARM, query)[0]


def test_restoring_undoes_what_a_trial_changed(built):
    with built.open(CELL, ARM) as connection:
        connection.execute("DELETE FROM t WHERE id <= 100")
    assert count(built, "SELECT count(*) FROM t") == "4900"
    built.restore(CELL, ARM)
    assert count(built, "SELECT count(*) FROM t") == "5000"


def test_restored_data_is_vacuumed_and_analysed(built):
    assert count(built, "SELECT relallvisible > 0 FROM pg_class WHERE relname = 't'") == "t"
    assert count(built, "SELECT count(*) FROM pg_stats WHERE tablename = 't'") == "2"


def test_warming_reads_every_table_and_index_into_the_cache(built):
    built.restore(CELL, ARM)
    built.warm(CELL, ARM)
    with built.open(CELL, ARM) as connection:
        connection.execute("CREATE EXTENSION pg_buffercache")
        cached = connection.execute(
            "SELECT c.relname, count(*) * 8192 = pg_relation_size(c.oid) FROM pg_buffercache b "
            "JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.relforknumber = 0 "
            "AND b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "WHERE c.relname IN ('t', 't_pkey') GROUP BY c.oid, c.relname"
        ).fetchall()
    assert dict(cached) == {"t": True, "t_pkey": True}
    built.restore(CELL, ARM)


def test_an_sql_error_in_the_set_up_names_its_line(server):
    with pytest.raises(
        SetupError, match=r'line 2: relation "nope" does not exist \(SQLSTATE 42P01\): INSERT'
    ):
        server.build(Cell((("x", "1"),)), "a", "SELECT 1;\nINSERT INTO nope VALUES (1);", {}, MINUTE)


def test_a_set_up_that_takes_too_long_is_ended(server):
    with pytest.raises(SetupError, match="statement timeout"):
        server.build(Cell((("x", "2"),)), "a", "SELECT pg_sleep(10)", {}, 200_000_000)


def test_a_variants_settings_hold_in_its_database(server):
    cell = Cell((("x", "3"),))
    server.build(cell, "a", "CREATE TABLE t (id int)", {"work_mem": "9MB", "enable_seqscan": False}, MINUTE)
    server.restore(cell, ARM)
    assert server.column(cell, ARM, "SHOW work_mem") == ["9MB"]
    assert server.column(cell, ARM, "SHOW enable_seqscan") == ["off"]


def test_a_setting_of_the_whole_server_cannot_be_a_variants(server):
    with pytest.raises(SetupError, match=r"move it to \[server.settings\]"):
        server.build(Cell((("x", "4"),)), "a", "SELECT 1", {"shared_buffers": "1GB"}, MINUTE)


def test_explain_gives_text_and_shape_and_undoes_the_statement(built):
    plan = built.explain(CELL, ARM, "delete", "DELETE FROM t WHERE id = $1", ["7"], {})
    assert "Delete on t" in plan.text
    assert plan.shape.splitlines()[:2] == ["Delete on t", "  Index Scan using t_pkey on t"]
    assert "Index Cond: (id = ?)" in plan.shape
    assert plan.buffers > 0
    assert count(built, "SELECT count(*) FROM t") == "5000"
    built.restore(CELL, ARM)


def test_a_utility_statement_has_no_plan(built):
    assert built.explain(CELL, ARM, "vacuum", "VACUUM t", [], {}) is None


def test_sizes_name_tables_and_indexes_with_depth(built):
    found = {relation.name: relation for relation in built.relations(CELL, ARM)}
    assert found["t"].kind == "table"
    assert found["t"].rows == 5000
    assert found["t_pkey"].table == "t"
    assert found["t_pkey"].depth == 1
    assert found["t"].bytes > found["t_pkey"].bytes > 0


def test_snapshots_count_what_one_arm_did(built):
    before = built.snapshot(CELL, ARM)
    with built.open(CELL, ARM) as connection, connection.transaction():
        connection.execute("UPDATE t SET f = 'y' WHERE id = 1")
    after = built.snapshot(CELL, ARM)
    assert after.queries - before.queries == 3, "BEGIN, UPDATE, COMMIT; not what uncork asks itself"
    assert after.wal_records > before.wal_records
    assert after.shared_hit + after.shared_read > before.shared_hit + before.shared_read
    built.restore(CELL, ARM)


def test_snapshots_count_updated_rows_if_asked(built):
    before = built.snapshot(CELL, ARM, updates=True)
    with built.open(CELL, ARM) as connection:
        connection.execute("UPDATE t SET f = 'y' WHERE id = 1")
        connection.execute("UPDATE t SET id = id + 100000 WHERE id = 2")
    after = built.snapshot(CELL, ARM, updates=True)
    assert (after.updated - before.updated, after.hot_updated - before.hot_updated) in {(2, 0), (2, 1)}
    assert built.snapshot(CELL, ARM).updated is None
    built.restore(CELL, ARM)


def test_a_server_that_dies_is_a_crash_and_not_a_usage_error(built):
    built.crash()
    with pytest.raises(ServerCrash, match="went away"):
        built.snapshot(CELL, ARM)
    built.recover()
    assert count(built, "SELECT count(*) FROM t") == "5000"


# ---- an existing server ----


@pytest.fixture
def role(embedded):
    """A role of its own on the embedded server, reached over TCP with a password."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE tenant LOGIN PASSWORD 'p w' CREATEDB")
        connection.execute("CREATE DATABASE theirs OWNER tenant")
        yield connection, f"host=127.0.0.1 port={embedded.port} user=tenant dbname=theirs password='p w'"
        connection.execute("DROP DATABASE theirs")
        connection.execute("DROP ROLE tenant")


def databases(connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_an_existing_server_gets_databases_of_our_own_and_loses_them_again(role):
    connection, dsn = role
    before = databases(connection)
    server = existing_server(dsn)
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore(CELL, ARM)
    server.warm(CELL, ARM)
    made = databases(connection) - before
    assert made and all(name.startswith("uncork_") for name in made)
    assert server.target(CELL, ARM).connection["password"] == "p w"
    assert "p w" not in repr(server.target(CELL, ARM))
    assert not server.restartable
    server.stop()
    assert databases(connection) == before


def test_the_database_named_in_the_dsn_is_not_touched(role):
    _, dsn = role
    server = existing_server(dsn)
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.stop()
    with psycopg.connect(dsn) as theirs:
        query = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert theirs.execute(query).fetchone() == (0,)
        assert theirs.execute("SELECT count(*) FROM pg_extension").fetchone() == (1,)


def test_statements_are_counted_where_the_server_does_and_never_told_as_none(embedded, role):
    connection, dsn = role
    with psycopg.connect(embedded.conninfo(), dbname="theirs", autocommit=True) as theirs:
        assert _counted(dsn) is None, "pg_stat_statements is loaded, but not in the database that is named"
        theirs.execute("CREATE EXTENSION pg_stat_statements")
    assert _counted(dsn) == 1
    connection.execute("ALTER ROLE tenant SET pg_stat_statements.track = 'none'")
    assert _counted(dsn) is None


def _counted(dsn):
    """Return how many statements are counted for one that an arm's database is sent; None if they are not."""
    server = existing_server(dsn)
    server.start()
    try:
        server.build(CELL, "a", TABLE, {}, MINUTE)
        server.restore(CELL, ARM)
        before = server.snapshot(CELL, ARM).queries
        assert server.column(CELL, ARM, "SELECT count(*) FROM t") == ["5000"]
        after = server.snapshot(CELL, ARM).queries
    finally:
        server.stop()
    return None if before is None else after - before


def test_a_role_that_may_not_create_databases_is_refused_with_the_remedy(role):
    connection, dsn = role
    connection.execute("ALTER ROLE tenant NOCREATEDB")
    server = existing_server(dsn)
    with pytest.raises(SetupError, match=r'ALTER ROLE "tenant" CREATEDB'):
        server.start()
    server.stop()


def test_a_wrong_password_is_said_without_it(role):
    _, dsn = role
    with pytest.raises(ConnectError, match="password authentication failed") as caught:
        existing_server(dsn.replace("p w", "wrong one")).start()
    assert "wrong one" not in str(caught.value)


def test_databases_of_a_killed_run_are_dropped_at_the_next_start(role):
    connection, dsn = role
    connection.execute("SET ROLE tenant")
    connection.execute("CREATE DATABASE uncork_dead01_t0")
    connection.execute("CREATE DATABASE uncork_other1_t0")
    connection.execute("RESET ROLE")
    owner = json.dumps(
        {"host": socket.gethostname(), "owner": {**process.identity(os.getpid()), "pid": 2**22 + 1}}
    )
    connection.execute(sql.SQL("COMMENT ON DATABASE uncork_dead01_t0 IS {}").format(owner))
    server = existing_server(dsn)
    server.start()
    server.stop()
    left = {name for name in databases(connection) if name.startswith("uncork_")}
    connection.execute("DROP DATABASE uncork_other1_t0")
    assert left == {"uncork_other1_t0"}, "what we did not make stays"


@pytest.mark.parametrize(
    ("configured", "in_setup", "more"),
    [("on", "off", {}), ("off", "off", {}), ("on", "on", {"allow_alter_system": "off"})],
)
def test_only_a_set_up_does_not_wait_for_the_disk(configured, in_setup, more):
    server = embedded_server({"shared_buffers": "16MB", "fsync": configured, **more})
    server.start()
    try:
        for step, expected in (
            (server.begin_setup, in_setup),
            (server.end_setup, configured),
            (server.restart, configured),
        ):
            step()
            assert server.control.execute("SHOW fsync").fetchone() == (expected,)
    finally:
        server.stop()


OTHER = re.compile(
    r"File Locations|Authentication|Connections and Authentication / (SSL|Connection)|Logging|Recovery"
    r"|Standby|Sending Servers / *$|Sending Servers|Primary Server|Error Handling|Platform Compatibility"
)
"""Groups of settings that decide nothing that an experiment measures, or that uncork sets itself."""


@pytest.mark.parametrize("binaries", [None, Path("/usr/lib/postgresql/15/bin")])
def test_no_setting_of_a_whole_server_is_missing(embedded, binaries):
    program = binaries_here(binaries) / "postgres"
    described = subprocess.run(
        [program, "--describe-config"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split("\t") for line in described.splitlines() if line.count("\t") > 2]
    whole = {name: group for name, context, group, *_ in rows if context in ("postmaster", "sighup")}
    assert len(whole) > 100
    assert {
        name for name, group in whole.items() if name not in OF_A_SERVER and not OTHER.search(group)
    } == set()
    others = {name for name, context, *_ in rows if context not in ("postmaster", "sighup")}
    assert others & OF_A_SERVER == set()


def test_the_doctor_resolves_a_short_and_a_long_statement_over_several_lives_of_a_server():
    found = measure_resolution(ServerChoice(), LEAST_BUDGET_NS)
    assert found.restarts
    assert found.rounds >= 3
    short, long = found.statements
    assert short.operation_ns < 1e6 < long.operation_ns
    for one in found.statements:
        assert one.cycle > 0.0
        assert all(width is not None and 0.0 < width < 2.0 for width in one.half_widths)
        assert one.half_widths[0] > one.half_widths[-1]
    assert "PostgreSQL" in found.server


FILE = """
[experiment]
name = "apart"
question = "Is the other server slower?"

[variants.baseline]
baseline = true
server = "baseline"

[variants.candidate]
server = "candidate"

[setup]
sql = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 2000)"
shared = true

[workloads.count]
sql = "SELECT count(*) FROM t WHERE id > :id"
operations = 20
parameters.id = { generator = { kind = "uniform", min = 1, max = 20 } }

[stop]
budget = "8s"
blocks = 2
minimum_rounds = 3
maximum_rounds = 3
precision = "90%"
"""


@pytest.fixture(scope="module")
def servers():
    started = {
        "baseline": EmbeddedServer({"shared_buffers": "16MB"}),
        "candidate": EmbeddedServer({"shared_buffers": "16MB", "enable_seqscan": False}),
    }
    for server in started.values():
        server.start()
    yield {name: server.conninfo() for name, server in started.items()}
    for server in started.values():
        server.stop()


def source(text=FILE):
    return Source(parse_spec(text, file="x", read=str, overrides={}), text, {}, Options())


def apart_databases(conninfo):
    with psycopg.connect(conninfo) as connection:
        return [name for (name,) in connection.execute("SELECT datname FROM pg_database ORDER BY 1")]


def test_each_variant_is_measured_on_its_server(servers, tmp_path):
    before = {name: apart_databases(conninfo) for name, conninfo in servers.items()}
    with_secret = {name: f"{conninfo} password=secret" for name, conninfo in servers.items()}
    session = new_run(tmp_path, source(), ServerChoice(apart=with_secret))
    during = {}
    with closing(session.events()) as events:
        for _ in events:
            if len(during) < 2:
                during = {
                    name: set(apart_databases(one)) - set(before[name]) for name, one in servers.items()
                }
    assert {name: apart_databases(conninfo) for name, conninfo in servers.items()} == before
    result = read_experiment(session.folder)
    assert result.comparisons[0].value is not None
    shapes = {plan.variant: plan.shape for plan in result.plans}
    assert ("Index" in shapes["baseline"], "Index" in shapes["candidate"]) == (False, True)
    assert {size.variant for size in result.sizes} == {"baseline", "candidate"}
    assert result.environment["server of candidate"]["kind"].startswith("existing")
    with closing(RunReader(session.folder)) as reader:
        assert reader.manifest.unit == "block"
        assert reader.manifest.server.startswith("existing: baseline: ")
        (blind,) = reader.ask("SELECT count(*) FROM trials WHERE server_user_ns IS NULL")[1]
    assert blind == (0,), "the processes of both servers are seen"
    kept = b"".join(path.read_bytes() for path in session.folder.rglob("*.*") if path.is_file())
    assert b"secret" not in kept


OWN = """
[variants.small]
settings = { shared_buffers = "16MB", work_mem = "3MB" }

[variants.same_server]
settings = { shared_buffers = "16MB", work_mem = "5MB" }

[variants.too_large]
settings = { max_connections = 250, shared_buffers = "1000TB" }

[checks.buffers]
sql = "SHOW shared_buffers"

[checks.memory]
sql = "SHOW work_mem"

[server.settings]
shared_buffers = "24MB"
"""


def test_variants_with_settings_of_a_whole_server_have_servers_of_their_own(tmp_path):
    text = re.sub(r'server = ".*"\n', "", FILE).replace("[variants.candidate]\n", "") + OWN
    text = text.replace("shared = true", "").replace("8s", "15s")
    before = living_servers()
    session = new_run(tmp_path, source(text), ServerChoice())
    servers = set()
    with closing(session.events()) as events:
        for _ in events:
            servers |= living_servers() - before
    assert living_servers() == before
    (attempt,) = read_manifest(session.folder).attempts
    # Two servers, which restart for each round; those of the preparation may have ended between two events.
    assert len(servers) in (2 * attempt.rounds, 2 * (attempt.rounds + 1))
    result = read_experiment(session.folder)
    found = {(one.variant, one.name): one.value for one in result.data_checks}
    assert [found[name, "buffers"] for name in ("baseline", "small", "same_server")] == ["24MB"] + [
        "16MB"
    ] * 2
    assert [found[name, "memory"] for name in ("small", "same_server")] == ["3MB", "5MB"]
    compared = {one.variant: one.value for one in result.comparisons}
    assert compared["small"] is not None and compared["same_server"] is not None
    (absent,) = (one for one in result.comparisons if one.variant == "too_large")
    assert absent.verdict is Verdict.SKIPPED and "shared_buffers" in absent.reason
    with closing(RunReader(session.folder)) as reader:
        assert reader.manifest.unit == "round"


def living_servers():
    """Return the servers that this process started."""
    names = {one: Path(f"/proc/{one.pid}/cmdline") for one in processes() if one.parent == os.getpid()}
    found = set()
    for one, path in names.items():
        with suppress(OSError):
            found |= {(one.pid, one.start)} if b"/postgres\0" in path.read_bytes() else set()
    return found


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (
            {"dsn": "host=a"},
            r"variants.small.settings.shared_buffers: it applies to a whole server, and uncork",
        ),
        ({"port": 5555}, r"so the variant has a server of its own; leave out --port"),
    ],
)
def test_a_server_that_uncork_cannot_configure_is_refused(tmp_path, choice, told):
    text = (
        FILE.replace('server = "baseline"\n', "")
        .replace("candidate", "small")
        .replace('server = "small"', 'settings = { shared_buffers = "16MB" }')
    )
    with pytest.raises(UsageError, match=told):
        new_run(tmp_path, source(text), ServerChoice(**choice))
    assert not list(tmp_path.iterdir())


def test_a_server_that_nobody_names_is_told(tmp_path):
    with pytest.raises(UsageError, match=r'variants.baseline.server: there is no server "baseline"'):
        new_run(tmp_path, source(), ServerChoice())
    assert not list(tmp_path.iterdir())
