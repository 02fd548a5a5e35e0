"""Scripts of pgbench, and recorded sessions, on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import uncork
from fakes.progress import STEP, after_steps
from uncork import _native
from uncork.cli.app import app
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import LoadError
from uncork.load.builtin import SCRIPTS
from uncork.model.database.recording import TRANSACTIONS

pytestmark = pytest.mark.postgres

SECOND = 1_000_000_000
PROTOCOLS = ("simple", "extended", "prepared")


@pytest.fixture(scope="module")
def server():
    server = EmbeddedServer({"shared_buffers": "64MB", "max_connections": 40, "fsync": "off"})
    server.start()
    try:
        with connect(server) as connection:
            for table, key, rows in (
                ("branches", "bid", 1),
                ("tellers", "tid", 10),
                ("accounts", "aid", 1000),
            ):
                balance = table[0] + "balance"
                connection.execute(f"CREATE TABLE pgbench_{table} ({key} int PRIMARY KEY, {balance} int)")
                connection.execute(
                    f"INSERT INTO pgbench_{table} SELECT n, 0 FROM generate_series(1, {rows}) n"
                )
            connection.execute(
                "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp)"
            )
        yield server
    finally:
        server.stop()


def connect(server):
    return psycopg.connect(server.conninfo(), autocommit=True)


@pytest.fixture
def seen(server):
    """An empty table that scripts write to."""
    with connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS seen")
        connection.execute("CREATE TABLE seen (number bigserial, client int, value text)")

        def rows(sql="SELECT client, value FROM seen ORDER BY number"):
            return connection.execute(sql).fetchall()

        yield rows


def plan(server, *texts, **changes):
    scripts = [{"name": f"s{n}", "weight": 1, "text": text} for n, text in enumerate(texts)]
    connection = {
        "host": server.host,
        "port": server.port,
        "user": "uncork",
        "database": "postgres",
        "connect_timeout_ns": 5 * SECOND,
        "sslmode": "disable",
    }
    return {
        "connection": connection,
        "driver": "postgres",
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "scripts": scripts,
        "prepare": "first use",
        "on_lost": "reconnect",
        "stop": {"operations_each": 1},
        "deadline_ns": 60 * SECOND,
        **changes,
    }


def load(server, *texts, table=None, **changes):
    text = json.dumps(plan(server, *texts, **changes))
    totals, rows, series, *_ = _native.run_load(text.encode(), pa.table({}) if table is None else table)
    totals = json.loads(totals)
    assert totals["started"] == totals["succeeded"] + totals["failed"]
    if totals["arrivals"] is not None:
        assert totals["arrivals"] == totals["started"] + totals["skipped"] + totals["unsent"]
    return totals, pa.table(rows).to_pylist(), pa.table(series).to_pylist()


def row(rows, kind):
    return next(row for row in rows if row["kind"] == kind)


# ---- the language ----


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_variables_conditions_and_captured_rows(server, seen, protocol):
    script = r"""
        \set n 3 * 7
        SELECT :n + 1 AS next, 'text'::text AS word \gset got_
        \if :got_next = 22
          INSERT INTO seen (client, value) VALUES (:client_id, :got_word || :n);
        \else
          INSERT INTO seen (client, value) VALUES (-1, 'never');
        \endif
        SELECT 5 AS five \; SELECT 6 AS six \aset
        \set sum :five + :six
        INSERT INTO seen (client, value) VALUES (:sum, :given);
    """
    if protocol != "simple":
        script = script.replace(
            r"SELECT 5 AS five \; SELECT 6 AS six \aset", r"SELECT 5 AS five, 6 AS six \aset"
        )
    given = "given" if protocol != "simple" else "'given'"
    script = script.replace(":got_word ||", "'text'::text ||") if protocol == "simple" else script
    totals, rows, _ = load(server, script, protocol=protocol, variables={"given": given})
    assert totals["errors"] == {}, totals["first_error"]
    assert seen() == [(0, "text21"), (11, "given")]
    lines = [r["line"] for r in rows if r["kind"] == "statement"]
    assert lines == sorted(lines)
    assert totals["statements"] == sum(r["executions"] for r in rows if r["kind"] == "statement")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["tpcb-like", "simple-update", "select-only"])
def test_the_built_in_scripts_keep_their_books(server, protocol, name):
    with connect(server) as connection:
        connection.execute("UPDATE pgbench_accounts SET abalance = 0")
        connection.execute("TRUNCATE pgbench_history")
    text = SCRIPTS[name].text.replace("100000 * :scale", "1000 * :scale")
    totals, rows, _ = load(
        server, text, protocol=protocol, clients=4, threads=2, stop={"operations_each": 50}, max_tries=1
    )
    assert totals["errors"] == {}, totals["first_error"]
    assert totals["succeeded"] == 200
    with connect(server) as connection:
        accounts, history = connection.execute(
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts), "
            "(SELECT coalesce(sum(delta), 0) FROM pgbench_history)"
        ).fetchone()
    assert accounts == history
    assert row(rows, "script")["executions"] == 200


def test_sleep_takes_its_time_and_other_clients_do_not_wait(server):
    totals, rows, _ = load(server, "\\sleep 200 ms\nSELECT 1;", clients=20, stop={"operations_each": 2})
    # One after the other they would take 8 s.
    assert 0.4 * SECOND <= totals["elapsed_ns"] < 6 * SECOND
    assert row(rows, "operation")["min_ns"] >= 200_000_000
    assert row(rows, "statement")["p50_ns"] < 200_000_000


def test_a_pipeline_takes_one_round_trip_and_fails_as_a_whole(server, seen):
    script = r"""
        \startpipeline
        INSERT INTO seen (client, value) VALUES (:client_id, 'a');
        INSERT INTO seen (client, value) VALUES (:client_id, 'b');
        SELECT 1 / :divisor;
        \endpipeline
    """
    for protocol in ("extended", "prepared"):
        totals, _, _ = load(
            server, script, variables={"divisor": "1"}, protocol=protocol, stop={"operations": 3}
        )
        assert (totals["succeeded"], totals["round_trips"], totals["statements"]) == (3, 3, 9)
    assert len(seen()) == 12
    totals, _, _ = load(server, script, variables={"divisor": "0"}, stop={"operations": 3})
    assert totals["errors"] == {"22012": 3}
    assert len(seen()) == 12
    with pytest.raises(LoadError, match="-M extended"):
        load(server, script, variables={"divisor": "1"}, protocol="simple")


def test_several_operations_on_one_connection_keep_their_order(server, seen):
    script = r"""
        \set n random(1, 1000)
        BEGIN;
        INSERT INTO seen (client, value) VALUES (:client_id, :n);
        END;
    """
    totals, _, _ = load(server, script, pipeline_depth=8, clients=2, stop={"operations_each": 40})
    assert (totals["succeeded"], totals["statements"], totals["errors"]) == (80, 240, {})
    assert len(seen()) == 80
    with pytest.raises(LoadError, match="pipeline depth"):
        load(server, "SELECT 1 AS a \\gset", pipeline_depth=2)


def test_serialization_failures_are_tried_again_with_the_same_values(server, seen):
    script = r"""
        \set n random(1, 1000000)
        BEGIN ISOLATION LEVEL SERIALIZABLE;
        SELECT sum(abalance) FROM pgbench_accounts;
        UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1;
        INSERT INTO seen (client, value) VALUES (:client_id, :n);
        END;
    """
    totals, _, series = load(
        server, script, clients=4, stop={"operations_each": 25}, max_tries=0, latency_limit_ns=30 * SECOND,
        interval_ns=SECOND, seed=5,
    )  # fmt: skip
    assert totals["errors"] == {}, totals["first_error"]
    assert totals["retries"].keys() == {"40001"}
    assert totals["retried"] > 0
    assert sum(r["retries"] for r in series) == sum(totals["retries"].values())
    tried_again = seen("SELECT client, value FROM seen ORDER BY client, number")
    load(server, "TRUNCATE seen;")
    load(server, script, stop={"operations_each": 25}, max_tries=1, seed=5)
    alone = seen("SELECT client, value FROM seen ORDER BY client, number")
    assert [pair for pair in tried_again if pair[0] == 0] == alone
    totals, _, _ = load(server, script, clients=4, stop={"operations_each": 25}, max_tries=1)
    assert totals["errors"].keys() == {"40001"}


def test_the_same_seed_sends_the_same_requests_in_the_same_order(server, seen):
    scripts = [
        f"\\set a random(1, 100000)\nINSERT INTO seen (client, value) VALUES (:client_id, '{kind}' || :a);"
        for kind in "ab"
    ]

    def requests(**changes):
        load(server, "TRUNCATE seen;")
        load(server, *scripts, clients=3, protocol="simple", stop={"operations_each": 60}, **changes)
        found = {}
        for client, value in seen():
            found.setdefault(client, []).append(value)
        return found

    first, second, other = requests(seed=7), requests(seed=7, threads=2), requests(seed=8)
    for client in range(3):
        assert len(first[client]) == 60
        assert first[client] == second[client]
        assert first[client] != other[client]


@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
def test_the_same_seed_draws_what_pgbench_draws(server, seen, tmp_path):
    script = (
        r"\set a random(1, 1000000)" "\n" r"\set b random_zipfian(1, 1000, 1.5)" "\n"
        r"\set c random_gaussian(1, 1000, 4)" "\n" r"\set d permute(:a, 5000000)" "\n"
        "INSERT INTO seen (client, value) VALUES (:client_id, concat_ws(' ', :a, :b, :c, :d));\n"
    )  # fmt: skip
    file = tmp_path / "script.sql"
    file.write_text(script)
    pgbench = shutil.which("pgbench")
    command = [pgbench, "-n", "-c", "3", "-t", "30", "--random-seed=42", "-f", file, "-h", server.host]
    options = ["-p", str(server.port), "-U", "uncork", "postgres"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    theirs = seen("SELECT client, value FROM seen ORDER BY client, number")
    load(server, "TRUNCATE seen;")
    load(server, script, clients=3, seed=42, stop={"operations_each": 30}, protocol="simple")
    assert seen("SELECT client, value FROM seen ORDER BY client, number") == theirs
    assert len(theirs) == 90


def test_what_a_script_does_wrong_is_told_with_file_and_line(server):
    for text, message in (
        ("SELECT 1;\n\\sett a 1", r"s0:2: .*sett"),
        ("\\set a 1 +", r"s0:1: "),
        ("\\if true\nSELECT 1;", r"s0:.*\\endif"),
        ("\\setshell a echo 1", r"s0:1: .*setshell"),
    ):
        with pytest.raises(LoadError, match=message):
            load(server, text)
    totals, _, _ = load(server, "SELECT 1;\n\\set a 1 / 0\n", stop={"operations": 4})
    assert totals["errors"] == {"script": 4}
    assert "s0:2: division by zero" in totals["first_error"]
    totals, _, _ = load(server, "SELECT 1 WHERE false \\gset", stop={"operations": 2})
    assert totals["errors"] == {"script": 2}


# ---- batches ----


def batch(rows, times, form, *, pipelined=False):
    return {"rows": rows, "times": times, "form": form, "pipelined": pipelined}


STRATEGIES = {
    "rows": [("INSERT INTO item VALUES ($1, $2)", batch(1, 100, "scalar"))],
    "pipeline": [("INSERT INTO item VALUES ($1, $2)", batch(1, 100, "scalar", pipelined=True))],
    "values": [
        (
            "INSERT INTO item VALUES " + ",".join(f"(${2 * n + 1},${2 * n + 2})" for n in range(50)),
            batch(50, 2, "values"),
        )
    ],
    "unnest": [("INSERT INTO item SELECT * FROM unnest($1::int[], $2::text[])", batch(100, 1, "arrays"))],
    "copy": [
        ("CREATE TEMP TABLE batch (LIKE item)", None),
        ("COPY batch FROM STDIN", batch(100, 1, "copy")),
        ("INSERT INTO item SELECT * FROM batch", None),
        ("DROP TABLE batch", None),
    ],
}
TRIPS = {"rows": 100, "pipeline": 1, "values": 2, "unnest": 1, "copy": 4}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_leaves_the_same_rows_behind(server, strategy, protocol):
    names = ["tab\there", 'quo"te', "back\\slash", None, "NULL", "new\nline", ""]
    table = pa.table(
        {
            "id": [str(n) for n in range(300)],
            "name": pa.array([names[n % len(names)] for n in range(300)], pa.string()),
        }
    )
    with connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS item")
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text)")
    statements = [
        {"name": f"{strategy}{n}", "sql": sql, "parameters": [0, 1] if taken else [], "batch": taken}
        for n, (sql, taken) in enumerate(STRATEGIES[strategy])
    ]
    scripts = [{"name": strategy, "weight": 1, "statements": statements}]
    changes = {"scripts": scripts, "table": table, "protocol": protocol, "stop": {"operations": 3}}
    if strategy == "pipeline" and protocol == "simple":
        with pytest.raises(LoadError, match="extended or the prepared"):
            load(server, **changes)
        return
    totals, rows, _ = load(server, **changes)
    assert totals["errors"] == {}, totals["first_error"]
    assert totals["round_trips"] == 3 * TRIPS[strategy]
    assert row(rows, "operation")["executions"] == 3
    with connect(server) as connection:
        found = connection.execute("SELECT id, name FROM item ORDER BY id").fetchall()
    assert found == [(n, names[n % len(names)]) for n in range(300)]


def test_a_failing_copy_leaves_the_connection_usable(server):
    statements = [
        {"name": "copy", "sql": "COPY nowhere FROM STDIN", "parameters": [0], "batch": batch(2, 1, "copy")}
    ]
    scripts = [{"name": "s", "weight": 1, "statements": statements}]
    table = pa.table({"a": ["1", "2"]})
    totals, _, _ = load(server, scripts=scripts, table=table, stop={"operations": 3})
    assert totals["errors"] == {"42P01": 3}
    assert totals["connections"]["opened"] == 1


@pytest.mark.parametrize("arrivals", [None, {"kind": "constant", "rate": 2000}], ids=["closed", "open"])
def test_a_load_whose_transactions_all_fail_ends_after_a_second(server, arrivals):
    broken = [{"name": "s", "weight": 1, "text": "SELECT * FROM nowhere"}]
    stop = {"duration_ns": 20 * 10**9}
    totals, _, _ = load(server, scripts=broken, stop=stop, give_up=True, arrivals=arrivals)
    assert totals["outcome"] == "nothing succeeded"
    assert totals["message"] == totals["first_error"]
    assert 10**9 <= totals["elapsed_ns"] < 15 * 10**9
    assert totals["failed"] == totals["started"] >= 100


# ---- open loops ----


def test_an_open_loop_keeps_its_rate_and_measures_its_own_lateness(server):
    totals, rows, series = load(
        server,
        "SELECT 1;",
        clients=20,
        arrivals={"kind": "poisson", "rate": 500},
        stop={"duration_ns": 2 * SECOND},
        interval_ns=SECOND // 2,
    )
    assert totals["arrivals"] == pytest.approx(1000, abs=160)
    assert totals["skipped"] == 0
    assert 0 < row(rows, "lateness")["executions"] <= totals["started"]
    assert row(rows, "operation")["sum_ns"] >= row(rows, "service")["sum_ns"]
    assert sum(r["succeeded"] for r in series) == totals["succeeded"]


def test_an_open_loop_grows_its_connections_and_names_the_servers_limit(server):
    changes = {"arrivals": {"kind": "constant", "rate": 200}, "stop": {"duration_ns": SECOND}}
    totals, _, _ = load(server, "SELECT pg_sleep(0.1);", max_clients=20, **changes)
    assert 10 <= totals["connections"]["most"] <= 20
    assert totals["errors"] == {}
    changes["stop"] = {"duration_ns": 4 * SECOND}
    totals, _, _ = load(server, "SELECT pg_sleep(0.5);", max_clients=200, **changes)
    assert totals["connect_errors"].keys() == {"53300"}
    assert totals["outcome"] == "complete"
    assert totals["connections"]["most"] <= 40
    assert totals["unsent"] > 0


def test_a_stopped_server_is_seen_by_those_who_arrive_meanwhile(server):
    stop, length = 0.5, 5

    def stall():
        time.sleep(2)
        processes = [server.pid, *children(server.pid)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        time.sleep(stop)
        for process in processes:
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=stall)
    thread.start()
    _, rows, _ = load(
        server,
        "SELECT 1;",
        clients=4,
        max_clients=4,
        arrivals={"kind": "constant", "rate": 1000},
        stop={"duration_ns": length * SECOND},
    )
    thread.join()
    # 10 % of arrivals wait, evenly from 0 to 0.5 s: 1 % wait for more than 0.45 s; on a machine that stands
    # still by itself they wait for longer. The service time does not know.
    operation, service = row(rows, "operation"), row(rows, "service")
    assert operation["p99_ns"] >= 0.9 * stop * SECOND * 0.98
    assert service["p90_ns"] < 0.5 * operation["p99_ns"]


def children(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


# ---- faults ----


def test_a_lost_connection_is_counted_and_opened_again(server):
    script = "BEGIN;\nSELECT 1;\n\\sleep 60 ms\nSELECT 2;\nEND;"
    with connect(server) as connection:
        connection.execute("ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '30ms'")
    try:
        totals, _, _ = load(server, script, clients=2, stop={"operations_each": 4})
    finally:
        with connect(server) as connection:
            connection.execute("ALTER DATABASE postgres RESET idle_in_transaction_session_timeout")
    assert totals["errors"] == {"25P03": 8}
    assert totals["connections"]["lost"] == 8
    assert totals["connections"]["opened"] >= 8
    assert totals["outcome"] == "complete"


def test_statement_timeouts_are_counted(server):
    options = plan(server)["connection"] | {"options": "-c statement_timeout=20"}
    totals, _, _ = load(server, "SELECT pg_sleep(1);", connection=options, stop={"operations": 3})
    assert totals["errors"] == {"57014": 3}
    assert totals["connections"]["lost"] == 0


def test_each_operation_may_have_a_connection_of_its_own(server):
    totals, rows, _ = load(server, "SELECT 1;", connect_each=True, clients=3, stop={"operations_each": 5})
    assert totals["succeeded"] == 15
    assert totals["connections"]["opened"] >= 15
    assert row(rows, "connect")["executions"] >= 12


def test_refused_connections_are_a_result(server):
    for changes, code in (({"port": 1}, "08001"), ({"database": "nowhere"}, "3D000")):
        connection = plan(server)["connection"] | changes
        totals, _, _ = load(server, "SELECT 1;", connection=connection)
        assert totals["outcome"] == "refused"
        assert totals["connect_errors"] == {code: 1}
        assert totals["message"]


def test_a_server_killed_in_mid_run_ends_the_run_with_what_there_is():
    server = EmbeddedServer({"shared_buffers": "16MB"})
    server.start()
    try:
        with after_steps(lambda: connect(server), 40, lambda: os.kill(server.pid, signal.SIGQUIT)):
            totals, _, _ = load(
                server, STEP + ";", clients=4, stop={"duration_ns": 3 * SECOND}, interval_ns=SECOND
            )
        assert totals["elapsed_ns"] < 15 * SECOND
        assert totals["succeeded"] >= 36
        assert sum(totals["errors"].values()) == 4
        # Out of reach; before that, for a moment, it hangs up on newcomers or says that it goes down.
        assert totals["connect_errors"]
        assert totals["connect_errors"].keys() <= {"08001", "08006", "57P03"}
    finally:
        server.stop()


def test_an_interrupted_load_keeps_what_it_has(server):
    with after_steps(lambda: connect(server), 20, lambda: signal.raise_signal(signal.SIGINT)):
        totals, _, _ = load(server, STEP + ";", stop={"duration_ns": 60 * SECOND}, keep_interrupted=True)
    assert totals["outcome"] == "interrupted"
    assert totals["succeeded"] >= 19


# ---- the log ----


def test_the_log_has_a_line_for_each_operation_as_pgbench_writes_it(server, tmp_path):
    log = {"path": str(tmp_path / "log"), "sample": 1.0}
    load(server, "SELECT 1;", clients=4, threads=2, stop={"operations_each": 10}, log=log)
    lines = (tmp_path / "log").read_text().splitlines() + (tmp_path / "log.1").read_text().splitlines()
    fields = [[int(field) for field in line.split()] for line in lines]
    assert len(fields) == 40
    assert {(client, number) for client, number, *_ in fields} == {
        (c, n) for c in range(4) for n in range(10)
    }
    assert all(abs(line[4] + line[5] / 1e6 - time.time()) < 60 for line in fields)
    log |= {"aggregate_ns": SECOND}
    load(server, "SELECT 1;", stop={"operations_each": 10}, log=log)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.split()[1] == "10"
    with pytest.raises(LoadError, match="cannot write the log"):
        load(server, "SELECT 1;", log={"path": "/nowhere/log", "sample": 1.0})


TABLES = """
CREATE TABLE account (id int PRIMARY KEY, balance numeric NOT NULL);
CREATE TABLE entry (id bigserial PRIMARY KEY, account int, note text UNIQUE, at float8[]);
INSERT INTO account SELECT n, 100 FROM generate_series(1, 10) AS n;
"""
PAUSE = 0.15
SUMS = """
SELECT (SELECT array_agg(a ORDER BY id) FROM account AS a), array_agg((account, note, at) ORDER BY note)
FROM entry
"""
NOTES = ("it's :x\\n", None, "a 'b' $1", "")


def replay_connect(server, database="postgres"):
    return psycopg.connect(server.conninfo(database), autocommit=True)


def pay(connection, cursor, number, pause):
    """Hold a row of an account while the client does something else."""
    with connection.transaction():
        cursor.execute("UPDATE account SET balance = balance - %s WHERE id = 1", (number,))
        time.sleep(pause)
        cursor.execute(
            "INSERT INTO entry (account, note, at) VALUES (%s, %s, '{1,2}')", (number, NOTES[number])
        )


@pytest.fixture(scope="module")
def replay_server():
    found = EmbeddedServer({"log_min_duration_statement": 0, "log_line_prefix": "%m [%p] %q%u@%d "})
    found.start()
    with replay_connect(found) as connection:
        connection.execute(TABLES)
        for copy in ("copy", "again", "mixed", "bound"):
            connection.execute(f"CREATE DATABASE {copy} TEMPLATE postgres STRATEGY FILE_COPY")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def recorded(replay_server, tmp_path_factory):
    """The recording of two sessions, the second of which waits for a lock of the first."""
    folder = tmp_path_factory.mktemp("recorded")
    held = threading.Event()

    def second():
        with replay_connect(replay_server) as connection:
            cursor = psycopg.ClientCursor(connection)
            held.wait()
            pay(connection, cursor, 2, 0)
            cursor.execute("SELECT balance::text FROM account WHERE id IN (1, 2) AND balance > 1.5")
            pay(connection, cursor, 3, 0)

    thread = threading.Thread(target=second)
    thread.start()
    with replay_connect(replay_server) as connection:
        with connection.transaction():
            connection.execute("UPDATE account SET balance = balance - %s WHERE id = 1", (1,))
            held.set()
            time.sleep(PAUSE)
            connection.execute("INSERT INTO entry (account, note, at) VALUES (%s, %s, %s)", (1, None, [1.5]))
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        connection.execute("SET application_name = 'x'")
        thread.join()
        pay(connection, connection.cursor(), 0, 0.01)
    done = CliRunner().invoke(
        app,
        [
            "capture",
            "--sessions",
            *map(str, replay_server.logs),
            "-o",
            str(folder / "rec"),
            "-d",
            "postgres",
            "-q",
        ],
    )
    assert done.exit_code == 0, done.output
    return folder / "rec", done.output


def test_a_recording_has_transactions_and_says_what_is_missing(recorded):
    folder, said = recorded
    assert "Recorded 5 transactions of 2 sessions" in said
    readme = (folder / "README.md").read_text()
    assert f"uncork load sql --replay {folder.name}" in readme
    for reason in ("they failed", "SET and the like change the session", "several statements in one message"):
        assert reason in readme
    assert len((folder / TRANSACTIONS).read_text().splitlines()) == 5
    scripts = [one.read_text() for one in sorted(folder.glob("*.sql"))]
    assert any(
        "UPDATE account SET balance = balance - :p2_1 WHERE id = 1;\n\\sleep :w3 us" in one for one in scripts
    )


def test_a_replay_leaves_the_same_rows_and_waits_for_the_same_locks(replay_server, recorded, tmp_path):
    run = uncork.load_sql(replay_server.conninfo("copy"), replay=str(recorded[0]), jobs=2, runs=tmp_path)
    counts, settings = run.result.counts, run.result.settings
    assert (counts.arrivals, counts.succeeded, counts.failed) == (5, 5, 0)
    assert (settings.recorded, settings.clients, settings.arrivals) == ("replay", 2, "trace")
    assert "diverged" not in " ".join(run.result.warnings)
    with replay_connect(replay_server) as source, replay_connect(replay_server, "copy") as copy:
        assert copy.execute(SUMS).fetchone() == source.execute(SUMS).fetchone()
    # The first pause holds the row for which the second session waits.
    assert run.result.run.elapsed_ns > PAUSE * 1e9
    assert run.result.operation.max_ns > 0.8 * PAUSE * 1e9


def test_a_slower_replay_takes_longer_and_a_second_one_diverges(replay_server, recorded, tmp_path):
    run = uncork.load_sql(replay_server.conninfo("again"), replay=str(recorded[0]), speed=0.5, runs=tmp_path)
    assert run.result.counts.succeeded == 5
    assert run.result.run.elapsed_ns > 2 * PAUSE * 1e9
    # The notes of the second replay exist already.
    second = uncork.load_sql(
        replay_server.conninfo("again"), replay=str(recorded[0]), speed=20, runs=tmp_path
    )
    failed = second.result.counts.failed
    assert failed == second.result.counts.errors["23505"] > 0
    assert f"The replay diverged: {failed} of 5 transactions failed" in " ".join(second.result.warnings)


def test_a_recording_is_a_mix_at_any_rate(replay_server, recorded, tmp_path):
    with replay_connect(replay_server, "mixed") as connection:
        connection.execute("ALTER TABLE entry DROP CONSTRAINT entry_note_key")
    run = uncork.load_sql(
        replay_server.conninfo("mixed"), script=str(recorded[0]), rate=100, time="1s", runs=tmp_path
    )
    assert run.result.counts.failed == 0 and run.result.counts.succeeded > 50
    assert run.result.settings.recorded == "mix"
    with replay_connect(replay_server, "mixed") as connection:
        (notes,) = connection.execute("SELECT array_agg(DISTINCT note) FROM entry").fetchone()
    assert set(notes) <= set(NOTES) and len(notes) > 2


def test_shorter_transactions_let_more_clients_work(replay_server, recorded, tmp_path):
    shutil.copytree(recorded[0], tmp_path / "rec")
    file = tmp_path / "rec" / TRANSACTIONS
    paused = [one for one in file.read_text().splitlines() if json.loads(one)["took_us"] > PAUSE * 1e6]
    held = next(one for one in paused if int(json.loads(one)["values"]["w3"]) > PAUSE * 1e6 / 2)
    file.write_text(held)
    done = {
        short: uncork.load_sql(
            replay_server.conninfo("mixed"),
            script=str(tmp_path / "rec"),
            clients=4,
            time="2s",
            short_transactions=short,
            runs=tmp_path,
        ).result.counts.succeeded
        for short in (False, True)
    }
    # With the pause inside, one client after the other holds the row; with it before, all pause together.
    assert done[True] > 1.5 * done[False] > 0


def test_parameters_can_be_bound_as_the_application_did(replay_server, recorded, tmp_path):
    with pytest.raises(uncork.errors.UsageError, match="leave out -M"):
        uncork.load_sql(
            replay_server.conninfo("bound"), replay=str(recorded[0]), protocol="prepared", runs=tmp_path
        )
    shutil.copytree(recorded[0], tmp_path / "rec")
    file = tmp_path / "rec" / TRANSACTIONS
    lines = [one for one in file.read_text().splitlines() if not re.search(r'"t\d+_?\d*":', one)]
    file.write_text("\n".join(lines))
    for protocol in ("prepared", "extended"):
        with replay_connect(replay_server, "bound") as connection:
            connection.execute("TRUNCATE entry")
        run = uncork.load_sql(
            replay_server.conninfo("bound"), replay=str(tmp_path / "rec"), protocol=protocol, runs=tmp_path
        )
        assert run.result.counts.failed == 0 and run.result.counts.succeeded == len(lines) == 2
        with replay_connect(replay_server, "bound") as connection:
            rows = connection.execute("SELECT account, note, at FROM entry ORDER BY account").fetchall()
        assert rows == [(0, NOTES[0], [1.0, 2.0]), (1, None, [1.5])]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "LOG:  statement: SELECT 1",
            "none of the statements in the log has its duration: set log_min_duration_statement",
        ),
        ("LOG:  checkpoint starting: time", "the log has no statements with their durations"),
        ("LOG:  duration: 1.000 ms  statement: VACUUM", "1 of them because VACUUM is not sent again"),
    ],
)
def test_a_log_without_transactions_is_refused(tmp_path, lines, message):
    log = tmp_path / "server.log"
    log.write_text(f"2026-01-01 10:00:00.123 UTC [7] {lines}\n")
    done = CliRunner().invoke(app, ["capture", "--sessions", str(log), "-o", str(tmp_path / "out"), "-q"])
    assert done.exit_code == 1 and message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_whole_seconds_show_no_pauses(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(
        "".join(
            f"2026-01-01 10:00:0{second} UTC [7] LOG:  duration: 1.000 ms  statement: SELECT {second}\n"
            for second in range(5)
        )
    )
    done = CliRunner().invoke(app, ["capture", "--sessions", str(log), "-o", str(tmp_path / "out"), "-q"])
    assert done.exit_code == 1 and "use %m instead of %t" in str(done.exception)


LINE = "{} UTC [7] LOG:  duration: 1.000 ms  statement: SELECT 1\n"
RECORD = (
    '{} UTC,"app","shop",7,"[local]",65f.7,1,"SELECT",2026-01-01 09:00:00 UTC,3/1,0,LOG,00000,'
    '"duration: 1.000 ms  statement: SELECT 1",,,,,,,,,"psql","client backend",,0\n'
)


@pytest.mark.parametrize(
    ("name", "form", "choice"),
    [("copy.log", LINE, "of one server, without copies"), ("server.csv", RECORD, "in one format")],
)
def test_files_that_overlap_in_time_are_refused(tmp_path, name, form, choice):
    for path, entry in ((tmp_path / "server.log", LINE), (tmp_path / name, form)):
        path.write_text("".join(entry.format(f"2026-01-01 10:0{minute}:00.123") for minute in range(5)))
    words = ["capture", "--sessions", str(tmp_path), "-o", str(tmp_path / "out"), "-q"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert str(done.exception).endswith(f"each session sent its statements: name only files {choice}")
    assert not (tmp_path / "out").exists()
