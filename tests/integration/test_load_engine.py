"""The load engine against a real PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from fakes.progress import STEP, after_steps
from uncork import _native
from uncork.engines.places import cache_folder
from uncork.errors import ConnectError, LoadError

pytestmark = pytest.mark.postgres

NOBODY = 65534
PASSWORD = "open sesame"


@dataclass(frozen=True)
class Server:
    """A running server, and how to reach it."""

    host: str
    port: int
    pid: int
    user: str = "tester"
    password: str | None = None

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            dbname="postgres",
            password=self.password,
            autocommit=True,
        )


@contextlib.contextmanager
def running_server():
    """Start the embedded server in a temporary folder; stop it and remove the folder afterwards.

    The only place here that knows how a server is started.
    """
    cache = str(cache_folder())
    binaries = Path(_native.install_postgres(cache)) / "bin"
    folder = Path(tempfile.mkdtemp(prefix="uc-"))
    folder.chmod(0o755)
    identity = {}
    if os.geteuid() == 0:
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        os.chown(folder, NOBODY, NOBODY)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    log = (folder / "log").open("wb")
    initdb = [binaries / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"]
    subprocess.run([*initdb, "--no-locale"], check=True, stdout=log, stderr=log, cwd=folder, **identity)
    rules = "".join(
        f"{kind} all {method}user {address} {name}\n"
        for method, name in (("scram", "scram-sha-256"), ("md5", "md5"), ("clear", "password"))
        for kind, address in (("local", ""), ("host", "127.0.0.1/32"))
    )
    everyone = "local all all trust\nhost all all 127.0.0.1/32 trust\n"
    (data / "pg_hba.conf").write_text(rules + everyone)
    settings = {
        "unix_socket_directories": str(folder),
        "listen_addresses": "127.0.0.1",
        "port": port,
        "fsync": "off",
        "max_connections": 40,
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [binaries / "postgres", "-D", data, *options]
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **identity)
    server = Server(host=str(folder), port=port, pid=process.pid)
    try:
        for _ in range(200):
            with contextlib.suppress(psycopg.OperationalError), server.connect():
                break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(30)
        log.close()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server():
    with running_server() as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL)")
            for method in ("scram", "md5", "clear"):
                connection.execute(
                    f"SET password_encryption = '{'md5' if method == 'md5' else 'scram-sha-256'}'"
                )
                connection.execute(f"CREATE ROLE {method}user LOGIN PASSWORD '{PASSWORD}'")
        yield server


@pytest.fixture
def items(server):
    """A table of a thousand items, filled anew for each test."""
    with server.connect() as connection:
        connection.execute("TRUNCATE item")
        connection.execute("INSERT INTO item SELECT n, 'item ' || n FROM generate_series(0, 999) n")
    return server


SELECT = {"name": "select", "sql": "SELECT id, name FROM item WHERE id = $1", "parameters": [0]}


def load(server, *statements, table=None, **changes):
    plan = {
        "connection": {
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "database": "postgres",
            "password": server.password,
            "options": "",
            "connect_timeout_ns": 5_000_000_000,
            "sslmode": "prefer",
        },
        "driver": "postgres",
        "clients": 2,
        "threads": 1,
        "protocol": "prepared",
        "scripts": [
            {
                "name": "script",
                "weight": 1,
                "statements": list(statements or [SELECT]),
                "transaction": changes.pop("transaction", False),
            }
        ],
        "warmup_operations": 4,
        "stop": {"operations": 100},
        "deadline_ns": 60_000_000_000,
        "digest": "none",
        "watch_pid": None,
        "fake": None,
    }
    connection = changes.pop("connection", {})
    plan.update(changes)
    plan["connection"].update(connection)
    if table is None:
        table = numbers(range(1000))
    totals, rows, *_ = _native.run_load(json.dumps(plan).encode(), table)
    totals = json.loads(totals)
    assert totals["started"] == totals["succeeded"] + totals["failed"]
    kept = (row for row in pa.table(rows).to_pylist() if row["kind"] in ("statement", "operation"))
    return totals, {row["name"]: row for row in kept}


def numbers(values):
    return pa.table({"n": pa.array([None if v is None else str(v) for v in values], pa.string())})


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_statements_are_carried_out_and_counted(items, protocol):
    table = pa.table(
        {"id": pa.array([str(n) for n in range(1000, 1200)]), "name": pa.array(["it's $1 \\"] * 200)}
    )
    insert = {"name": "insert", "sql": "INSERT INTO item VALUES ($1, $2)", "parameters": [0, 1]}
    select = {"name": "select", "sql": "SELECT id FROM item WHERE id IN ($1, 0)", "parameters": [0]}
    delete = {"name": "delete", "sql": "DELETE FROM item WHERE id = $1 AND name = $2", "parameters": [0, 1]}
    totals, rows = load(items, insert, select, delete, table=table, protocol=protocol, transaction=True)
    assert totals["outcome"] == "complete"
    assert (totals["started"], totals["succeeded"], totals["errors"]) == (100, 100, {})
    assert totals["rows"] == 400
    assert totals["warmup_failed"] == 0
    assert {name: row["rows"] for name, row in rows.items()} == {
        "insert": 100,
        "select": 200,
        "delete": 100,
        "operation": 400,
    }
    steps = sum(rows[name]["sum_ns"] for name in ("insert", "select", "delete"))
    assert 0 < steps < rows["operation"]["sum_ns"]
    assert rows["select"]["min_ns"] <= rows["select"]["p50_ns"] <= rows["select"]["max_ns"]
    assert totals["sent_bytes"] > 0
    assert totals["received_bytes"] > 0
    assert totals["connections"]["opened"] == 2
    assert totals["connections"]["max_ns"] > 0
    with items.connect() as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (1000,)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_null_and_typed_parameters_arrive(items, protocol):
    statement = {"name": "s", "sql": "SELECT 1 WHERE $1::int IS NULL", "parameters": [0]}
    totals, _ = load(items, statement, table=numbers([None, 5]), protocol=protocol)
    assert totals["rows"] == 50


def test_operations_use_rows_in_turn_and_warm_up_comes_first(items):
    delete = {"name": "delete", "sql": "DELETE FROM item WHERE id = $1", "parameters": [0]}
    totals, _ = load(items, delete, warmup_operations=10, stop={"operations": 20}, clients=3, threads=2)
    assert totals["rows"] == 20
    with items.connect() as connection:
        assert connection.execute("SELECT min(id) FROM item").fetchone() == (30,)


def test_tcp_works_as_the_socket_does(items):
    totals, _ = load(items, connection={"host": "localhost"}, threads=2, clients=4)
    assert totals["succeeded"] == 100


@pytest.mark.parametrize("host", ["socket", "127.0.0.1"])
@pytest.mark.parametrize("method", ["scram", "md5", "clear"])
def test_passwords_are_proved_and_wrong_ones_refused(items, method, host):
    with items.connect() as connection:
        connection.execute(f"GRANT ALL ON item TO {method}user")
    host = items.host if host == "socket" else host
    member = replace(items, host=host, user=f"{method}user", password=PASSWORD)
    assert load(member)[0]["succeeded"] == 100
    with pytest.raises(ConnectError, match=f"{method}user.*28P01") as caught:
        load(replace(member, password="wrong secret"))
    assert "wrong secret" not in str(caught.value)
    with pytest.raises(ConnectError, match="password"):
        load(replace(member, password=None))


def test_refusals_say_why(server):
    with pytest.raises(ConnectError, match="3D000"):
        load(server, connection={"database": "nowhere"})
    with pytest.raises(ConnectError, match="cannot connect to"):
        load(server, connection={"port": 1})
    with pytest.raises(ConnectError, match="TLS"):
        load(server, connection={"host": "localhost", "sslmode": "require"})
    with pytest.raises(ConnectError, match="53300"):
        load(server, clients=60)


def test_errors_are_counted_by_state_and_do_not_stop_the_trial(items):
    insert = {"name": "insert", "sql": "INSERT INTO item VALUES ($1, 'new')", "parameters": [0]}
    divide = {"name": "divide", "sql": "SELECT 1 / ($1::int % 4)", "parameters": [0]}
    for transaction in (False, True):
        with items.connect() as connection:
            connection.execute("DELETE FROM item WHERE id >= 500")
        # Ids 400 to 499 are taken; of the others every fourth divides by zero.
        totals, rows = load(
            items,
            insert,
            divide,
            table=numbers(range(400, 800)),
            warmup_operations=0,
            stop={"operations": 200},
            transaction=transaction,
        )
        assert totals["outcome"] == "complete"
        assert totals["errors"] == {"23505": 100, "22012": 25}
        assert (totals["succeeded"], totals["failed"]) == (75, 125)
        assert "SQLSTATE" in totals["first_error"]
        assert (rows["insert"]["executions"], rows["insert"]["errors"]) == (200, 100)
        assert (rows["divide"]["executions"], rows["divide"]["errors"]) == (100, 25)
        with items.connect() as connection:
            kept = connection.execute("SELECT count(*) FROM item WHERE id >= 500").fetchone()
        assert kept == ((75,) if transaction else (100,))


def test_warm_up_errors_are_told(items):
    broken = {"name": "broken", "sql": "SELECT 1 / $1::int", "parameters": [0]}
    totals, _ = load(
        items, broken, table=numbers([0, 0, 1, 1, 1]), warmup_operations=2, stop={"operations": 3}
    )
    assert (totals["warmup_failed"], totals["failed"]) == (2, 0)
    assert "division by zero" in totals["first_error"]


def test_a_statement_that_cannot_be_prepared_is_refused(server):
    broken = {"name": "broken", "sql": "SELECT nothing FROM nowhere", "parameters": []}
    with pytest.raises(LoadError, match=r'"broken".*nowhere.*42P01.*character 21'):
        load(server, broken)
    syntax = {"name": "syntax", "sql": "SELEKT 1", "parameters": []}
    with pytest.raises(LoadError, match="42601"):
        load(server, syntax)
    totals, _ = load(server, syntax, protocol="extended")
    assert totals["errors"] == {"42601": 100}


def test_copy_from_stdin_fails_without_hanging(items):
    copy = {"name": "copy", "sql": "COPY item FROM STDIN", "parameters": []}
    for protocol in ("simple", "extended", "prepared"):
        totals, _ = load(items, copy, protocol=protocol, stop={"operations": 5})
        assert totals["errors"] == {"57014": 5}


def test_large_answers_and_requests_pass(items):
    table = pa.table({"text": pa.array(["x" * 3_000_000, "y"])})
    echo = {"name": "echo", "sql": "SELECT $1::text", "parameters": [0]}
    for digest in ("none", "ordered"):
        totals, _ = load(items, echo, table=table, stop={"operations": 4}, warmup_operations=0, digest=digest)
        assert totals["succeeded"] == 4
        assert totals["sent_bytes"] > 6_000_000
        assert totals["received_bytes"] > 6_000_000


def test_equal_answers_have_equal_digests(items):
    def digest(sql, mode="multiset", **changes):
        statement = {"name": "s", "sql": sql, "parameters": [0]}
        return load(items, statement, digest=mode, **changes)[0]["digest"]

    up = "SELECT id, name FROM item WHERE id % 100 = $1::int % 100 ORDER BY id"
    down = up + " DESC"
    expected = digest(up)
    assert len(expected) == 32
    assert digest(down) == expected
    assert digest(down, "ordered") != digest(up, "ordered")
    assert digest(up, "ordered") == digest(up, "ordered", protocol="simple")
    for changes in ({"clients": 5, "threads": 2}, {"protocol": "simple"}, {"protocol": "extended"}):
        assert digest(up, **changes) == expected
    assert digest(up.replace("id, name", "id AS a, name AS b")) == expected
    assert digest(up.replace("id, name", "id")) != expected
    assert digest(up.replace("% 100 =", "% 50 =")) != expected
    with items.connect() as connection:
        connection.execute("UPDATE item SET name = 'changed' WHERE id = 7")
    assert digest(up) != expected


def test_the_server_cost_is_read(items):
    heavy = {"name": "heavy", "sql": "SELECT sum(n) FROM generate_series(1, 20000) n", "parameters": []}
    totals, _ = load(items, heavy, watch_pid=items.pid, stop={"duration_ns": 300_000_000})
    server = totals["server"]
    assert server["user_ns"] + server["system_ns"] == server["total_ns"]
    assert 0.1e9 < server["total_ns"] < 2 * totals["elapsed_ns"]
    assert totals["elapsed_ns"] >= 300_000_000
    assert totals["client_user_ns"] + totals["client_system_ns"] > 0
    assert totals["steal_ns"] >= 0
    with pytest.raises(LoadError, match="no process"):
        load(items, watch_pid=2**22 + 1)


def test_the_deadline_ends_a_trial_and_the_query(items):
    sleep = {"name": "sleep", "sql": "SELECT pg_sleep(60)", "parameters": []}
    for warmup, started in ((0, 2), (2, 0)):
        begin = time.monotonic()
        totals, _ = load(items, sleep, warmup_operations=warmup, deadline_ns=300_000_000)
        assert time.monotonic() - begin < 30
        assert totals["outcome"] == "deadline"
        assert (totals["started"], totals["failed"]) == (started, started)
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    with items.connect() as connection:
        for _ in range(40):
            if connection.execute(asleep).fetchone() == (0,):
                return
            time.sleep(0.05)
        assert connection.execute(asleep).fetchone() == (0,)


def test_a_closed_connection_is_an_outcome(items):
    step = {"name": "step", "sql": STEP, "parameters": []}

    def terminate():
        with items.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'uncork'"
            )

    with after_steps(items.connect, 10, terminate):
        totals, _ = load(items, step, stop={"duration_ns": 20_000_000_000})
    assert totals["outcome"] == "connection lost"
    assert "57P01" in totals["message"]
    assert totals["succeeded"] > 0
    assert totals["failed"] > 0


def test_a_server_killed_in_mid_load_is_an_outcome():
    with running_server() as server:
        step = {"name": "step", "sql": STEP, "parameters": []}
        with after_steps(server.connect, 10, lambda: os.kill(server.pid, signal.SIGQUIT)):
            totals, _ = load(server, step, stop={"duration_ns": 20_000_000_000}, watch_pid=server.pid)
        assert totals["outcome"] == "connection lost"
        assert totals["succeeded"] > 0


def test_control_c_stops_a_trial(items):
    sleep = {"name": "sleep", "sql": "SELECT pg_sleep(60)", "parameters": []}
    threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        load(items, sleep, warmup_operations=0)
    assert time.monotonic() - begin < 30
