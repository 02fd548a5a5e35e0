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
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pyarrow as pa
import pytest

from fakes.progress import STEP, after_steps
from uncork import _native
from uncork.engines.conninfo import resolve
from uncork.engines.places import cache_folder
from uncork.engines.postgres import embedded_server
from uncork.engines.postmaster import local_postmaster, postmaster_of
from uncork.errors import ConnectError, LoadError
from uncork.experiment.spec.batches import carry
from uncork.load.run import run_load
from uncork.load.sampler import Sampler
from uncork.load.trials import run_block, run_trial
from uncork.model.block import BlockRequest, SliceSize
from uncork.model.load import LoadScript, LoadSpec
from uncork.model.measurement import Outcome
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.model.system import GENERATOR, SERVER, Watch
from uncork.model.trial import Arm, Cell
from uncork.profile.system import system_use
from uncork.store.system import system_tables

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


STRATEGIES = ["rows", "transaction", "pipeline", "values", "unnest", "copy"]
COLUMNS = {"id": "integer", "name": "text", "raw": "bytea", "at": "timestamptz"}
INSERT = "INSERT INTO item SELECT * FROM :batch ON CONFLICT (id) DO NOTHING"
AWKWARD = ["plain", "a\tb\nc", 'quote " and \\', "{braces, comma}", "", None, "NULL", "\\N", "ünïcode", "'"]


@pytest.fixture
def batch_items(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS item")
        connection.execute(
            "CREATE TABLE item (id integer PRIMARY KEY, name text, raw bytea, at timestamptz, "
            "CHECK (name <> 'refused'))"
        )
        connection.execute("INSERT INTO item VALUES (0, 'known already')")
        yield connection
        connection.execute("DROP TABLE item")


def parameters(rows):
    return [
        [str(row) for row in range(rows)],
        [AWKWARD[row % len(AWKWARD)] for row in range(rows)],
        [f"\\x{row:04x}" for row in range(rows)],
        [f"2026-01-01 00:00:{row % 60:02d}+00" for row in range(rows)],
    ]


def send(server, strategy, table, *, rows, operations=1, protocol="prepared", texts=(INSERT,), **more):
    chunk = rows // 2 if strategy in ("values", "unnest") else None
    carried = carry("add", texts, COLUMNS, strategy=strategy, rows=rows, chunk=chunk)
    target = Target("postgres", asdict(resolve(server.conninfo())))
    request = LoadRequest(
        target=target,
        statements=carried.statements,
        parameters=table,
        transaction=carried.transaction,
        clients=1,
        threads=1,
        protocol=protocol,
        warmup_operations=0,
        operations=operations,
        duration_ns=None,
        deadline_ns=60_000_000_000,
        prepare="first use" if strategy == "copy" else "ahead",
        **more,
    )
    return carried, run_trial(request)


def left(items):
    query = "SELECT id, name, raw, at::text FROM item ORDER BY id"
    return items.execute(query).fetchall()


@pytest.mark.parametrize("protocol", ["prepared", "extended", "simple"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_leaves_the_same_rows(embedded, batch_items, strategy, protocol):
    if protocol == "simple" and strategy == "pipeline":
        pytest.skip("a pipeline needs the extended protocol")
    table = parameters(20)
    _, measured = send(embedded, strategy, table, rows=20, protocol=protocol)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    expected = [(0, "known already", None, None)]
    expected += [
        (int(id_), name, bytes.fromhex(raw[2:]), at)
        for id_, name, raw, at in zip(*(column[1:] for column in table), strict=True)
    ]
    assert left(batch_items) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_take_their_rows_in_turn_and_wait_as_often_as_they_say(embedded, batch_items, strategy):
    carried, measured = send(embedded, strategy, parameters(60), rows=20, operations=3)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    assert measured.succeeded == 3
    assert measured.round_trips == 3 * carried.round_trips
    assert batch_items.execute("SELECT count(*) FROM item").fetchone() == (60,)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failing_row_leaves_nothing_of_a_batch_but_of_single_commits(embedded, batch_items, strategy):
    table = parameters(20)
    table[1][10] = "refused"
    _, measured = send(embedded, strategy, table, rows=20)
    assert measured.outcome is Outcome.ERRORS
    assert measured.errors == {"23514": 1}
    found = {id_ for id_, *_ in left(batch_items)}
    if strategy == "rows":
        assert set(range(10)) <= found
        assert 10 not in found
    else:
        assert found == {0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_is_as_many_transactions_as_it_says(embedded, batch_items, strategy):
    batch_items.execute("CREATE TABLE IF NOT EXISTS seen (transaction xid8)")
    batch_items.execute("TRUNCATE seen")
    texts = ["INSERT INTO seen SELECT pg_current_xact_id() FROM :batch"]
    carried, measured = send(embedded, strategy, parameters(20), rows=20, texts=texts)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    distinct = batch_items.execute("SELECT count(DISTINCT transaction) FROM seen").fetchone()
    batch_items.execute("DROP TABLE seen")
    assert distinct == (carried.commits,)


def test_settings_go_with_the_connection(embedded, batch_items):
    texts = ["INSERT INTO item SELECT id, current_setting('synchronous_commit') FROM :batch WHERE id > 0"]
    send(embedded, "unnest", parameters(2), rows=2, texts=texts, settings={"synchronous_commit": "off"})
    assert left(batch_items)[1][1] == "off"


def test_settings_may_hold_spaces(embedded, batch_items):
    texts = ["INSERT INTO item SELECT id, current_setting('search_path') FROM :batch WHERE id > 0"]
    settings = {"search_path": "pg_catalog, public"}
    send(embedded, "unnest", parameters(2), rows=2, texts=texts, settings=settings)
    assert left(batch_items)[1][1] == "pg_catalog, public"


MS = 1_000_000
STRANGER = 65_533


@contextmanager
def as_stranger():
    """Give up the rights over other users' processes; without root there are none over root's own."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(STRANGER)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def use_of(series):
    return system_use(system_tables([({}, series)]))


def test_the_postmaster_is_found_over_a_socket_and_over_tcp(embedded):
    assert postmaster_of(embedded.conninfo()) == embedded.pid
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE over_tcp LOGIN PASSWORD 'secret'")
    words = {"host": "127.0.0.1", "user": "over_tcp", "password": "secret"}
    assert postmaster_of(psycopg.conninfo.make_conninfo(embedded.conninfo(), **words)) == embedded.pid


def test_a_process_here_that_bears_the_number_of_our_session_is_not_trusted():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as ours,
    ):
        link = SimpleNamespace(
            pgconn=SimpleNamespace(socket=ours.fileno()), info=SimpleNamespace(backend_pid=os.getpid())
        )
        assert local_postmaster(link) is None


def test_nobody_answers_for_a_server_that_is_not_there():
    assert postmaster_of("host=/nowhere port=1 dbname=x connect_timeout=1") is None


def test_a_load_tells_what_server_and_generator_used(embedded):
    script = LoadScript("count", 1, "SELECT count(*) FROM generate_series(1, 20000);\n")
    spec = LoadSpec(scripts=(script,), clients=2, operations_each=40)
    measured = run_load(spec, asdict(resolve(embedded.conninfo())), pid=embedded.pid)
    use = use_of(measured.system)
    totals = measured.totals
    counted = totals.server_user_ns + totals.server_system_ns
    assert 0.9 * counted <= use.cpu_ns(SERVER) <= counted + 5 * MS
    generator = totals.client_user_ns + totals.client_system_ns
    assert use.cpu_ns(GENERATOR) >= 0.9 * generator
    backends = next(one for one in use.processes if one.kind == "client backend")
    assert backends.processes >= 2
    assert backends.user_ns + backends.system_ns == backends.cpu_ns
    assert backends.voluntary_switches + backends.involuntary_switches > 0
    assert backends.rss_bytes > 1_000_000
    assert use.modes is not None
    assert sum(use.modes.values()) == pytest.approx(1)


def test_of_a_server_elsewhere_only_this_machine_is_told(embedded):
    spec = LoadSpec(scripts=(LoadScript("one", 1, "SELECT 1;\n"),), clients=1, operations_each=10)
    use = use_of(run_load(spec, asdict(resolve(embedded.conninfo()))).system)
    assert {one.role for one in use.processes} <= {GENERATOR}


def test_parallel_workers_and_their_kinds_are_told_apart(embedded):
    sampler = Sampler([Watch(SERVER, embedded.pid, children=True)], period_ns=10 * MS, memory=True)
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("SET debug_parallel_query = on")
        connection.execute("SELECT count(*) FROM generate_series(1, 500000)")
        connection.execute("SELECT pg_sleep(0.3)")
    use = use_of(sampler.stop())
    kinds = {one.kind for one in use.processes}
    assert "client backend" in kinds
    assert not any("postgres:" in kind or "[local]" in kind for kind in kinds)
    assert any(one.pss_bytes for one in use.processes)


def test_what_is_another_users_is_lacking_and_the_rest_is_told(embedded):
    watched = embedded.pid if os.geteuid() == 0 else 1
    with as_stranger():
        sampler = Sampler([Watch(SERVER, watched)], period_ns=10 * MS, memory=True)
        seen = sampler.stop()
    (lack,) = [one for one in seen.facts["lacks"] if one["what"].startswith("disk reads")]
    assert lack["what"] == "disk reads and writes of the server's processes"
    assert lack["reason"] == "they are another user's; run as that user or as root"
    assert seen.tables["system_processes"]["pid"].to_pylist() == [watched]
    assert seen.tables["system_samples"]["user_ns"].null_count == 0


CELL = Cell()
ARMS = (Arm("a"), Arm("a", again=True))
TABLE = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5000) AS n;
"""
MINUTE = 60 * 10**9
BLOCKS_MS = 10**6


@pytest.fixture(scope="module")
def blocks_server():
    server = embedded_server({"shared_buffers": "64MB"})
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore_all([(CELL, arm) for arm in ARMS])
    yield server
    server.stop()


def request(server, arm: Arm, sql: str, *, rows: int = 1000, **changes) -> LoadRequest:
    target = server.target(CELL, arm)
    facts = {"clients": 1, "threads": 1, "warmup_operations": 3, **changes}
    return LoadRequest(
        target=target,
        statements=(Statement("only", sql, (0,)),),
        parameters=[[str(number) for number in range(1, rows + 1)]],
        transaction=False,
        protocol="prepared",
        operations=None,
        duration_ns=None,
        deadline_ns=MINUTE,
        pin_cpu=target.cpu,
        **facts,
    )


def block(requests, size: SliceSize, cycles: int = 4, **changes) -> BlockRequest:
    arms = len(requests)
    order = tuple(tuple(range(arms))[:: 1 if cycle % 2 else -1] for cycle in range(cycles))
    return BlockRequest(tuple(requests), (size,) * arms, order, **changes)


def test_slices_add_up_to_what_each_arm_measured(blocks_server):
    requests = [request(blocks_server, arm, "SELECT f FROM t WHERE id = $1") for arm in ARMS]
    before = [blocks_server.snapshot(CELL, arm).queries for arm in ARMS]
    found = run_block(block(requests, SliceSize(duration_ns=5 * BLOCKS_MS, settle_ns=BLOCKS_MS)), sample=True)
    for arm, measured, queries in zip(ARMS, found.arms, before, strict=True):
        sent = measured.started + measured.settling + 3  # one statement each, also in the warm-up
        assert blocks_server.snapshot(CELL, arm).queries - queries == sent
    assert [one.cycle for one in found.slices] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one.arm for one in found.slices] == [1, 0, 0, 1, 1, 0, 0, 1]
    for place, measured in enumerate(found.arms):
        own = [one for one in found.slices if one.arm == place]
        assert measured.outcome == Outcome.COMPLETE
        assert measured.started == sum(one.started for one in own) > 4
        assert measured.elapsed_ns == sum(one.elapsed_ns for one in own) >= 20 * BLOCKS_MS
        assert measured.operation.sum_ns == sum(one.sum_ns for one in own)
        assert measured.rows == measured.succeeded
        assert measured.server_user_ns + measured.server_system_ns > 0
        assert measured.client_user_ns + measured.client_system_ns > 0
    assert found.arms[0].system is not None
    assert found.arms[1].system is None
    assert all(one.waited_ns is not None for one in found.slices)


def test_arms_that_write_leave_the_same_data_behind(blocks_server):
    requests = [
        request(blocks_server, arm, "INSERT INTO t VALUES (10000 + $1::int, 'y')", warmup_operations=5)
        for arm in ARMS
    ]
    found = run_block(block(requests, SliceSize(operations=25)), sample=False)
    assert [one.started for one in found.arms] == [100, 100]
    for arm in ARMS:
        assert blocks_server.column(CELL, arm, "SELECT count(*) FROM t WHERE id > 10000") == ["105"]
    blocks_server.restore_all([(CELL, arm) for arm in ARMS])
    for arm in ARMS:
        assert blocks_server.column(CELL, arm, "SELECT count(*) FROM t") == ["5000"]


def test_several_clients_on_several_threads_take_their_turn_together(blocks_server):
    requests = [
        request(blocks_server, arm, "SELECT f FROM t WHERE id = $1", clients=4, threads=2) for arm in ARMS
    ]
    found = run_block(block(requests, SliceSize(duration_ns=10 * BLOCKS_MS)), sample=False)
    assert all(one.outcome == Outcome.COMPLETE and one.started >= 16 for one in found.arms)


def test_a_statement_that_fails_is_counted_and_one_that_is_wrong_is_an_error(blocks_server):
    failing = [request(blocks_server, arm, "SELECT 1 / ($1::int - 4)") for arm in ARMS]
    found = run_block(block(failing, SliceSize(operations=5)), sample=False)
    assert [one.outcome for one in found.arms] == [Outcome.ERRORS] * 2
    assert [one.errors for one in found.arms] == [{"22012": 1}] * 2
    with pytest.raises(LoadError, match="no_such"):
        run_block(
            block([request(blocks_server, ARMS[0], "SELECT $1, no_such")], SliceSize(operations=1)),
            sample=False,
        )


def test_a_block_ends_when_its_time_is_over_but_not_between_two_cycles_that_belong_together(blocks_server):
    requests = [request(blocks_server, arm, "SELECT f FROM t WHERE id = $1") for arm in ARMS]
    size = SliceSize(duration_ns=5 * BLOCKS_MS)
    found = run_block(block(requests, size, cycles=100, limit_ns=35 * BLOCKS_MS), sample=False)
    assert len(found.slices) % 4 == 0
    assert 4 <= len(found.slices) < 100
