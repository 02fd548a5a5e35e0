"""The embedded server: it starts unprivileged, obeys settings, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from fakes.reapers import ends, kill_with_reaper, reaper_of
from uncork.engines import process
from uncork.engines.embedded import EmbeddedServer, _resident, emptied, other_runs, remove_leftovers
from uncork.engines.places import servers_folder
from uncork.errors import SetupError
from uncork.spawn.reaper import start_of

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
