"""Engines behind a Python driver: real DuckDB and SQLite; ClickHouse and MariaDB where they are to be had."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import pytest

from uncork.engines import process
from uncork.engines.drivers.dbapi import MYSQL_DSN, DbapiEngine, remove_folders
from uncork.engines.drivers.dbapi_load import Child
from uncork.engines.places import server_account, servers_folder
from uncork.errors import LoadError, SetupError
from uncork.model.answer import canonical
from uncork.model.engine import engine_kind
from uncork.model.measurement import Outcome
from uncork.model.request import LoadRequest, Statement
from uncork.model.trial import Arm, Cell

CELL, ONE, OTHER = Cell(), Arm("one"), Arm("one", again=True)
SECOND = 10**9
MADE = {
    "duckdb": "CREATE TABLE t(id integer, f text);\nINSERT INTO t SELECT n, 'x' || n FROM range(1, 101) a(n)",
    "sqlite": """CREATE TABLE t (id integer PRIMARY KEY, f text);
INSERT INTO t WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100)
SELECT n, 'x' || n FROM r""",
    "clickhouse": """CREATE TABLE t (id Int32, f String) ENGINE = MergeTree ORDER BY id;
INSERT INTO t SELECT number + 1, concat('x', toString(number + 1)) FROM numbers(100);""",
    "mysql": """CREATE TABLE t (id integer PRIMARY KEY, f text);
INSERT INTO t WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100)
SELECT n, concat('x', n) FROM r;""",
    "dbapi:sqlite3": "CREATE TABLE t (id integer, f text);\n"
    + "\n".join(f"INSERT INTO t VALUES ({n}, 'x{n}');" for n in range(1, 101)),
}
SMALL = ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M", "--innodb-use-native-aio=0"]
"""A MariaDB server that takes little disk and memory, and no slots for asynchronous I/O."""
OPTIONS = {"dbapi:sqlite3": {"database": "{folder}/data.db"}}


@pytest.fixture(scope="module")
def mariadb():
    """Return the address of a server: the one that is named, or one of our own."""
    if os.environ.get(MYSQL_DSN):
        yield os.environ[MYSQL_DSN]
        return
    server, make = (
        shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin"),
        shutil.which("mariadb-install-db"),
    )
    if server is None or make is None or shutil.which("my_print_defaults") is None:
        pytest.skip(f"no MariaDB server on the PATH (mariadb-server), and {MYSQL_DSN} is not set")
    folder = Path(tempfile.mkdtemp(prefix="mariadb-", dir=servers_folder()))
    folder.chmod(0o711)
    account = server_account()
    data = folder / "data"
    data.mkdir()
    as_account = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.change else {}
    if account.change:
        os.chown(data, account.uid, account.gid)
    made = subprocess.run(
        [
            make,
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            *SMALL,
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        **as_account,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            [
                server,
                "--no-defaults",
                f"--datadir={data}",
                f"--socket={data}/s.sock",
                f"--port={port}",
                "--bind-address=127.0.0.1",
                *SMALL,
            ],
            stdout=log,
            stderr=log,
            cwd="/",
            **as_account,
        )
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert started.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield f"mysql://root@127.0.0.1:{port}"
    finally:
        started.terminate()
        started.wait(30)
        shutil.rmtree(folder)


@pytest.fixture(params=list(MADE))
def engine(request, monkeypatch):
    kind = engine_kind(request.param)
    if importlib.util.find_spec(kind.module) is None:
        pytest.skip(f"{kind.module} is not installed (requirements/engines.txt)")
    if kind.name == "mysql":
        monkeypatch.setenv(MYSQL_DSN, request.getfixturevalue("mariadb"))
    engine = DbapiEngine(kind, OPTIONS.get(kind.name, {}))
    lacking = engine.start()
    assert lacking is None
    yield engine
    engine.stop()
    assert not list(servers_folder().glob("db-*"))


@pytest.fixture
def filled(engine):
    engine.build(CELL, "one", MADE[engine.kind.name], {}, 60 * SECOND)
    for arm in (ONE, OTHER):
        engine.restore(CELL, arm)
    return engine


def request(engine, *statements, parameters=(), **changes):
    made = tuple(Statement(f"s{n}", sql, columns) for n, (sql, columns) in enumerate(statements))
    facts = {
        "target": engine.target(CELL, ONE),
        "statements": made,
        "parameters": parameters,
        "transaction": False,
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "warmup_operations": 5,
        "operations": 40,
        "duration_ns": None,
        "deadline_ns": 60 * SECOND,
        "numbers": frozenset({0}),
    }
    return LoadRequest(**{**facts, **changes})


def run(engine, *statements, **changes):
    return engine.run(CELL, ONE, request(engine, *statements, **changes))


LOOKUP = ("SELECT f FROM t WHERE id = $1", (0,))
IDS = ([str(n) for n in range(1, 46)],)


def identities(found):
    assert found.started == found.succeeded + found.failed
    assert found.failed == sum(found.errors.values())
    assert found.operation is None or found.operation.executions == found.succeeded


@pytest.mark.parametrize("clients", [1, 3])
def test_a_load_counts_every_operation_and_times_it(filled, clients):
    found = run(filled, LOOKUP, parameters=IDS, clients=clients)
    assert (found.outcome, found.message) == (Outcome.COMPLETE, None)
    assert (found.started, found.rows) == (40, 40)
    identities(found)
    assert 0 < found.operation.min_ns <= found.operation.p50_ns <= found.operation.max_ns
    assert found.operation.max_ns <= found.elapsed_ns
    assert found.operation.sum_ns <= found.elapsed_ns * clients
    assert [one.name for one in found.latencies] == ["s0"]
    shared = filled.embedded
    assert (found.client_user_ns is None, found.server_user_ns is None) == (shared, not shared)


def test_a_load_ends_by_time_as_well(filled):
    found = run(filled, LOOKUP, parameters=IDS, operations=None, duration_ns=SECOND // 5)
    assert found.outcome == Outcome.COMPLETE
    assert found.started > 3
    assert found.elapsed_ns >= SECOND // 5
    identities(found)


def test_errors_are_counted_by_their_name_and_the_engine_stays(filled):
    bad = ("SELECT f FROM nowhere WHERE id = $1", (0,))
    with pytest.raises(LoadError, match="nowhere"):
        run(filled, bad, parameters=IDS)
    found = run(filled, bad, parameters=IDS, warmup_operations=0)
    assert found.outcome == Outcome.ERRORS
    assert "nowhere" in found.message
    assert (found.started, found.failed) == (40, 40)
    identities(found)


def test_answers_come_in_the_form_that_all_engines_share(filled):
    asked = request(filled, ("SELECT id, f, NULL FROM t WHERE id = $1", (0,)), parameters=IDS, operations=2)
    found = filled.answers(CELL, ONE, asked)
    assert [(one.operation, one.rows) for one in found] == [
        (1, (("=1", "'x1", None),)),
        (2, (("=2", "'x2", None),)),
    ]
    assert filled.column(CELL, ONE, "SELECT f FROM t WHERE id < 3 ORDER BY id") == ["x1", "x2"]


def test_what_a_trial_writes_is_gone_after_restoring_and_other_arms_never_see_it(filled):
    if filled.kind.name == "clickhouse":
        change = ("INSERT INTO t VALUES (1000, 'y')", ())
    else:
        change = ("UPDATE t SET f = 'y' WHERE id = $1", (0,))
    count = "SELECT count(*) FROM t WHERE f = 'y'"
    found = run(filled, change, parameters=IDS if change[1] else (), operations=3, warmup_operations=0)
    assert found.outcome == Outcome.COMPLETE, found.message
    assert filled.column(CELL, ONE, count) == ["3"]
    assert filled.column(CELL, OTHER, count) == ["0"]
    filled.restore(CELL, ONE)
    assert filled.column(CELL, ONE, count) == ["0"]


def test_trials_of_a_round_share_the_clients_process_and_a_restart_ends_it(filled, monkeypatch):
    started = []

    class Counted(Child):
        def __init__(self, job):
            super().__init__(job)
            started.append((job["kind"], self.pid))

    monkeypatch.setattr("uncork.engines.drivers.dbapi_load.Child", Counted)
    for clients in (2, 2):
        found = run(filled, LOOKUP, parameters=IDS, clients=clients)
        assert (found.outcome, found.started) == (Outcome.COMPLETE, 40)
    loads = [pid for kind, pid in started if kind == "load"]
    assert len(loads) == (1 if filled.embedded else 2)
    filled.restart()
    assert not any(Path(f"/proc/{pid}").exists() for pid in loads)
    run(filled, LOOKUP, parameters=IDS)
    assert len(started) == len(loads) + 1


def test_clients_that_stay_let_others_open_the_files(filled):
    run(filled, LOOKUP, parameters=IDS)
    assert filled.column(CELL, ONE, "SELECT count(*) FROM t") == ["100"], "no process holds the files"
    assert run(filled, LOOKUP, parameters=IDS).started == 40


def test_set_up_that_fails_is_told_with_its_line_and_the_words_of_the_engine(engine):
    script = MADE[engine.kind.name].rstrip(";") + ";\n\n-- here\nSELEC 1;"
    line = script.count("\n") + 1
    with pytest.raises(
        SetupError, match=rf"set-up of variant one: line {line}: .*(?i:selec|syntax).*: SELEC 1;$"
    ):
        engine.build(CELL, "one", script, {}, 60 * SECOND)


def test_a_plan_is_the_engines_own(filled):
    plan = filled.explain(CELL, ONE, "s0", "SELECT f FROM t WHERE id = 7", [], {})
    if not filled.kind.explain:
        assert plan is None
        return
    assert plan.text
    assert "7" not in plan.shape
    assert filled.explain(CELL, ONE, "s0", "DELETE FROM t", [], {}) is None, "EXPLAIN ANALYZE would do it"


def test_sizes_are_those_of_the_files(filled):
    sizes = filled.relations(CELL, ONE)
    assert bool(sizes) == filled.embedded
    assert all(size.bytes > 100 for size in sizes)


def test_several_statements_are_timed_each_and_as_a_transaction(filled):
    if filled.kind.name in ("clickhouse", "dbapi:sqlite3"):
        pytest.skip("it has no transactions of that kind")
    both = [LOOKUP, ("SELECT count(*) FROM t", ())]
    found = run(filled, *both, parameters=IDS, transaction=True)
    assert found.outcome == Outcome.COMPLETE, found.message
    assert [(one.name, one.executions) for one in found.latencies] == [("s0", 40), ("s1", 40)]
    assert sum(one.sum_ns for one in found.latencies) <= found.operation.sum_ns
    assert found.rows == 80


# ---- one engine ----


def started(name, **options):
    engine = DbapiEngine(engine_kind(name), options)
    assert engine.start() is None
    return engine


@pytest.fixture
def duckdb():
    engine = started("duckdb")
    engine.build(CELL, "one", MADE["duckdb"], {"threads": 1}, 60 * SECOND)
    engine.restore(CELL, ONE)
    yield engine
    engine.stop()


SLOW = ("SELECT count(*) FROM range(1000000000000) a(n) WHERE hash(n) = 1", ())


def test_a_trial_that_takes_too_long_is_cut_short_and_says_what_it_had_begun(duckdb):
    found = run(duckdb, SLOW, operations=3, warmup_operations=0, deadline_ns=SECOND // 2)
    assert found.outcome == Outcome.DEADLINE
    assert (found.started, found.succeeded, found.errors) == (1, 0, {"unfinished": 1})
    identities(found)


def test_an_engine_that_dies_is_a_lost_connection_with_its_last_words(duckdb, monkeypatch):
    begun = []

    class Dying(Child):
        def tell(self, line):
            super().tell(line)
            if line == "go":
                begun.append(self.pid)
                self._process.kill()

    monkeypatch.setattr("uncork.engines.drivers.dbapi_load.Child", Dying)
    found = run(duckdb, SLOW, operations=3, warmup_operations=0)
    assert found.outcome == Outcome.CONNECTION_LOST
    assert "the engine's process ended (signal 9" in found.message
    assert begun
    assert not Path(f"/proc/{begun[0]}").exists()


def test_settings_hold_in_every_session_of_a_variant(duckdb):
    assert duckdb.column(CELL, ONE, "SELECT current_setting('threads')") == ["1"]
    with pytest.raises(SetupError, match="nonsense"):
        duckdb.build(CELL, "two", MADE["duckdb"], {"nonsense": 1}, 60 * SECOND)


@pytest.mark.skipif(importlib.util.find_spec("pytz") is None, reason="DuckDB gives moments with pytz only")
def test_values_of_duckdb_meet_those_of_postgres(duckdb):
    query = """SELECT 1.50::decimal(9, 2), true, DATE '2024-03-31', TIMESTAMP '2024-03-31 00:30:00',
                      TIMESTAMPTZ '2024-03-31 05:45:00+05:45', 'a'::blob, 0.1::double, 12::hugeint"""
    (row,) = duckdb.answers(CELL, ONE, request(duckdb, (query, ()), operations=1))[0].rows
    expected = [
        Decimal("1.5"),
        1,
        datetime.date(2024, 3, 31),
        datetime.datetime(2024, 3, 31, 0, 30),
        datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC),
        b"a",
        0.1,
        12,
    ]
    assert row == tuple(map(canonical, expected))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "dbapi:no_such_driver",
            {},
            r"driver no_such_driver is not installed .*: install the package",
        ),
        ("mysql", {"host": "127.0.0.1", "port": 1}, r"it cannot be used: .*127\.0\.0\.1"),
    ],
)
def test_what_is_not_to_be_had_is_told_with_the_reason(name, options, words, monkeypatch):
    kind = engine_kind(name)
    if name == "mysql" and importlib.util.find_spec(kind.module) is None:
        pytest.skip("pymysql is not installed (requirements/engines.txt)")
    monkeypatch.setenv(MYSQL_DSN, "mysql://somebody:s3cret@127.0.0.1:1")
    engine = DbapiEngine(kind, options)
    reason = engine.start()
    engine.stop()
    assert re.search(words, reason), reason
    assert "s3cret" not in reason


@pytest.mark.parametrize("dsn", ["", "nonsense", "mysql://h:port"])
def test_an_address_that_is_none_is_told(dsn, monkeypatch):
    if importlib.util.find_spec("pymysql") is None:
        pytest.skip("pymysql is not installed (requirements/engines.txt)")
    monkeypatch.setenv(MYSQL_DSN, dsn)
    assert f"set {MYSQL_DSN} to mysql://" in DbapiEngine(engine_kind("mysql"), {}).start()


def test_folders_of_runs_that_were_killed_are_removed():
    folder = servers_folder() / "db-left"
    folder.mkdir()
    gone = {**process.identity(os.getpid()), "pid": 2**22 + 1}
    (folder / "owner.json").write_text(json.dumps({"owner": gone}))
    os.utime(folder, (0, 0))
    assert remove_folders() == [folder]
