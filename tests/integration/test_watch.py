"""A watched server: what is told of its sessions equals what they did."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from uncork.analysis.advice.result import advice_of
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import ConnectError, ServerCrash
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.profile.missing import find_missing
from uncork.profile.transactions import LOG_EVENTS
from uncork.report.advice.document import answer_advice, build_advice_document
from uncork.report.database.document import build_database_document
from uncork.report.database.tables import clocks_table
from uncork.workbench.documents.databases import read_database
from uncork.workbench.profile.database_watch import watch
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres

INSTALLED = Path("/usr/lib/postgresql/15/bin")
SECONDS = 4.0
RATE = 20.0
WIDE = "SELECT n, repeat('x', 900) AS filler FROM generate_series(1, 60000) AS n"


def connect(server, application, **options):
    return psycopg.connect(server.conninfo(), autocommit=True, application_name=application, **options)


@pytest.fixture(scope="module")
def busy():
    """A server with little memory and its counters on."""
    settings = {
        "shared_buffers": "16MB",
        "max_parallel_workers_per_gather": 0,
        "track_wal_io_timing": True,
    }
    server = EmbeddedServer(settings)
    server.start()
    with connect(server, "setup") as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")
        connection.execute("INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100) AS n")
        connection.execute(
            "CREATE TABLE wide AS SELECT n, repeat('x', 900) AS filler FROM generate_series(1, 60000) AS n"
        )
        connection.execute("CREATE TABLE journal (id bigserial PRIMARY KEY, line text)")
    with connect(server, "setup") as connection:  # a session's counts of rows are known when it has ended
        connection.execute("VACUUM ANALYZE")
    yield server
    server.stop()


@contextmanager
def load(*workers):
    """Let workers run, each in its thread, until the block ends; they are told by an event."""
    over = threading.Event()
    failures = []

    def guarded(worker):
        try:
            worker(over)
        except BaseException as error:  # noqa: BLE001 -- a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []


def profile(server, tmp_path, *, seconds=SECONDS, rate=RATE, conninfo=None, show=None):
    address = resolve(conninfo or server.conninfo())
    return profile_database(
        tmp_path / "runs",
        address,
        seconds=seconds,
        rate_hz=rate,
        command="uncork profile db",
        show=show,
    )


def error_of(share, samples):
    """Return how far a share may be off by sampling alone: four standard errors of so many samples."""
    return 4 * math.sqrt(max(share * (1 - share), 1 / samples) / samples)


def seconds_of(result):
    return (result.watch.ended_us - result.watch.begun_us) / 1e6


def of_class(result, name):
    return sum(node.sessions for node in result.tree.children if node.name == name)


def syncs_wal(tree):
    return sum(event.share for node in tree.children for event in node.children if event.name in LOG_EVENTS)


def check_sums(node):
    if node.children:
        assert sum(child.sessions for child in node.children) == pytest.approx(node.sessions)
    for child in node.children:
        check_sums(child)


# ---- where the time goes ----


def test_a_pile_up_of_locks_is_told_with_who_holds_it_up(busy, tmp_path):
    ready = threading.Barrier(4)

    def batch(over):
        with connect(busy, "batch") as connection:
            connection.execute("BEGIN")
            connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
            ready.wait()
            over.wait()
            connection.execute("COMMIT")

    def shop(over):
        with connect(busy, "shop") as connection:
            ready.wait()
            connection.execute("UPDATE accounts SET balance = balance - 5 WHERE id = 1")

    with load(batch, shop, shop):
        ready.wait()
        wait_until(busy, "wait_event_type = 'Lock'", 2)
        result = profile(busy, tmp_path).result
    check_sums(result.tree)
    # Two wait and one is idle in transaction in every sample: there is nothing random in it.
    assert of_class(result, "Lock") == pytest.approx(2.0)
    assert of_class(result, IDLE) == pytest.approx(1.0)
    assert result.tree.sessions == pytest.approx(3.0)
    (blocker,) = result.blockers
    assert (blocker.application, blocker.state, blocker.most) == ("batch", IDLE, 2)
    assert blocker.sessions == pytest.approx(2.0)
    assert blocker.text == "update accounts set balance = balance + ? where id = ?"
    assert {waiter.application for waiter in blocker.waiters} == {"shop"}
    assert result.answer.startswith("Application batch left a transaction idle")
    assert "3.00 sessions were busy on average: 67 % waiting for locks" in result.answer
    assert result.templates[0].text == "update accounts set balance = balance - ? where id = ?"
    assert [(one.name, one.sessions) for one in result.applications] == [
        ("shop", pytest.approx(2.0)),
        ("batch", pytest.approx(1.0)),
    ]


def wait_until(server, condition, number):
    with connect(server, "setup") as connection:
        while True:
            row = connection.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {condition}").fetchone()
            if row[0] >= number:
                return
            time.sleep(0.01)


def test_shares_of_a_script_that_sleeps_and_holds_are_within_the_error_of_sampling(busy, tmp_path):
    """One session is idle in transaction for 60 ms, asleep on the server for 60 ms, and so on."""
    steps = []

    def script(over):
        with connect(busy, "script") as connection:
            while not over.is_set():
                connection.execute("BEGIN")
                begun = time.time()
                over.wait(0.06)
                held = time.time()
                connection.execute("SELECT pg_sleep(0.06)")
                slept = time.time()
                connection.execute("COMMIT")
                steps.extend([(IDLE, begun, held), ("Timeout", held, slept)])

    with load(script):
        watched = profile(busy, tmp_path, rate=37.0).result  # no multiple of the script's own period
    begun, ended = watched.watch.begun_us / 1e6, watched.watch.ended_us / 1e6
    for name in (IDLE, "Timeout"):
        truth = sum(
            max(0.0, min(end, ended) - max(start, begun)) for kind, start, end in steps if kind == name
        ) / (ended - begun)
        assert 0 < truth < 1
        assert of_class(watched, name) == pytest.approx(truth, abs=error_of(truth, watched.watch.samples))
    assert watched.tree.sessions <= 1 + 1e-9


def test_a_scan_of_more_than_memory_reads_files_and_the_table_is_named(busy, tmp_path):
    def scan(over):
        with connect(busy, "reports") as connection:
            while not over.is_set():
                connection.execute("SELECT count(*) FROM wide WHERE filler <> 'y'")

    with load(scan):
        result = profile(busy, tmp_path).result
    assert result.templates[0].text == "select count(*) from wide where filler <> ?"
    statements = result.templates[0].statements
    assert statements.shared_read > 0.5 * (statements.shared_hit + statements.shared_read)
    assert result.tables[0].name == "wide" and result.tables[0].seq_scans > 0
    assert any("from outside shared buffers" in reason for reason in result.reasons)
    assert any(one.view == "pg_stat_io" and one.counter == "reads" for one in result.counters)
    assert {node.name for node in result.tree.children} <= {CPU, "IO", "IPC", "LWLock", "Client"}


def test_waits_of_a_scan_are_as_long_as_the_server_says_that_reading_took(older, tmp_path):
    """PostgreSQL 15 reads within the session and checks no checksums: its clock stops what a wait is."""
    with connect(older, "setup") as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute(f"CREATE TABLE wide AS {WIDE}")

    def scan(over):
        with connect(older, "reports") as connection:
            while not over.is_set():
                connection.execute("SELECT count(*) FROM wide WHERE filler <> 'y'")

    with load(scan):
        result = profile(older, tmp_path).result
    truth = result.templates[0].statements.read_ns / 1e9 / seconds_of(result)
    assert truth > 0
    assert of_class(result, "IO") == pytest.approx(truth, abs=error_of(truth, result.watch.samples))


def test_a_writer_that_commits_each_row_waits_for_the_log_to_be_written_and_synced(busy, tmp_path):
    def write(over):
        with connect(busy, "writer") as connection:
            while not over.is_set():
                connection.execute("INSERT INTO journal (line) VALUES ('x')")

    with load(write):
        result = profile(busy, tmp_path).result
    assert result.templates[0].text == "insert into journal (line) values (?)"
    others = [
        event.share
        for node in result.tree.children
        for event in (node.children if node.name not in (CPU, IDLE) else (node,))
        if not event.name.lower().startswith("wal")
    ]
    assert syncs_wal(result.tree) > max(others, default=0.0), "to write and sync the log is what takes most"
    told = {row[0].text: row[2].sort for row in clocks_table(result).rows}
    assert told["syncing the log"] > 0


def test_commits_that_wait_for_a_standby_do_so_all_of_the_time(tmp_path):
    server = EmbeddedServer({"synchronous_standby_names": "nobody"})
    server.start()

    def write(over):
        with connect(server, "writer") as connection:
            connection.execute("SET synchronous_commit = local")
            connection.execute("CREATE TABLE IF NOT EXISTS journal (id bigserial PRIMARY KEY, line text)")
            connection.execute("SET synchronous_commit = on")
            canceller = threading.Thread(target=lambda: (over.wait(), connection.cancel()))
            canceller.start()
            connection.execute("INSERT INTO journal (line) VALUES ('x')")
            canceller.join()

    try:
        with load(write):
            wait_until(server, "wait_event = 'SyncRep'", 1)
            result = profile(server, tmp_path, seconds=2.0).result
    finally:
        server.stop()
    assert result.tree.sessions == pytest.approx(1.0)
    assert syncs_wal(result.tree) == pytest.approx(1.0)


def test_a_short_statement_that_ends_while_it_is_sampled_did_not_wait_for_its_client(busy, tmp_path):
    def commit(over):
        with connect(busy, "shop") as connection:
            while not over.is_set():
                connection.execute("BEGIN")
                connection.execute("SELECT FROM accounts WHERE id = 1")
                connection.execute("COMMIT")

    with load(commit, commit):
        result = profile(busy, tmp_path, seconds=2.0, rate=100.0).result
    assert result.tree.sessions > 0 and of_class(result, "Client") == 0


def test_a_copy_that_waits_for_its_client_is_told_as_that(busy, tmp_path):
    ready = threading.Event()

    def copy(over):
        with connect(busy, "loader") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE taken (id int)")
            with cursor.copy("COPY taken FROM STDIN") as copied:
                copied.write_row((1,))
                ready.set()
                over.wait()

    with load(copy):
        ready.wait()
        time.sleep(0.05)
        result = profile(busy, tmp_path, seconds=1.0).result
    assert of_class(result, "Client") == pytest.approx(1.0)


# ---- what the server counted ----


def test_templates_equal_the_differences_of_pg_stat_statements(busy, tmp_path):
    query = (
        "SELECT queryid, sum(calls), sum(total_exec_time), sum(rows) FROM pg_stat_statements "
        "WHERE query LIKE '%%journal%%' GROUP BY 1"
    )

    watching, done = threading.Event(), threading.Event()

    def work(over):
        with connect(busy, "writer") as connection:
            watching.wait()
            for number in range(50):
                connection.execute(f"INSERT INTO journal (line) VALUES ('{number}')")
            connection.execute("SELECT * FROM journal WHERE id IN (1, 2, 3)")
            connection.execute("SELECT * FROM journal WHERE id IN (1, 2)")
        done.set()

    def show(snapshot):
        watching.set()
        done.wait()

    with connect(busy, "setup") as connection:
        before = {row[0]: row[1:] for row in connection.execute(query)}
        with load(work):
            run = profile(busy, tmp_path, seconds=2.0, show=show)
        after = {row[0]: row[1:] for row in connection.execute(query)}
    delta = {
        key: tuple(
            float(now) - float(then) for now, then in zip(row, before.get(key, (0, 0, 0)), strict=True)
        )
        for key, row in after.items()
    }
    told = {
        one.text: one.statements
        for one in run.result.templates
        if one.statements is not None and "journal" in one.text
    }
    assert set(told) == {"insert into journal (line) values (?)", "select * from journal where id in (?)"}
    assert told["insert into journal (line) values (?)"].calls == 50
    assert told["select * from journal where id in (?)"].calls == 2
    assert sum(one.calls for one in told.values()) == sum(one[0] for one in delta.values())
    assert sum(one.execution_ns for one in told.values()) == pytest.approx(
        1e6 * sum(one[1] for one in delta.values()), rel=1e-9
    )
    assert sum(one.rows for one in told.values()) == sum(one[2] for one in delta.values())
    assert run.result.resets == ()
    assert not any("uncork" in one.text for one in run.result.templates)


def test_statements_of_databases_that_are_gone_did_not_run(busy, tmp_path):
    names = ("arm_one", "arm_two", "arm_three")
    with connect(busy, "setup") as connection:
        for runs, name in enumerate(names, 1):
            connection.execute(f"CREATE DATABASE {name}")
            with connect(busy, "setup", dbname=name) as other:
                for _ in range(4 - runs):
                    other.execute("SELECT sum(n) FROM generate_series(1, 100000) AS n")
            connection.execute(f"DROP DATABASE {name}")
    result = profile(busy, tmp_path, seconds=0.5).result
    assert [one.text for one in result.templates if "generate_series" in one.text] == []
    assert all(one.delta > 0 for one in result.counters)


def test_a_reset_by_somebody_else_is_told(busy, tmp_path):
    def reset(over):
        with connect(busy, "other") as connection:
            connection.execute("SELECT count(*) FROM accounts")
            over.wait(0.5)
            connection.execute("SELECT pg_stat_statements_reset()")
            connection.execute("SELECT pg_stat_reset_shared('wal')")
            connection.execute("SELECT count(*) FROM accounts")

    with load(reset):
        result = profile(busy, tmp_path, seconds=2.0).result
    assert result.resets == ("pg_stat_statements_info", "pg_stat_wal")
    assert any("were reset during the watch" in warning for warning in result.warnings)


def test_what_was_stored_is_told_again(busy, tmp_path):
    run = profile(busy, tmp_path, seconds=0.5)
    assert read_database(run.folder) == run.result
    facts = json.loads((run.folder / "facts.json").read_text())
    # Sampling begins before the counters are read.
    assert facts["watch"]["begun_us"] < facts["snapshots"]["before"]["begun_us"]


def test_nothing_on_the_server_is_changed_and_own_work_is_not_shown(busy, tmp_path):
    with connect(busy, "setup") as connection:
        query = "SELECT stats_reset FROM pg_stat_database WHERE datname = 'postgres'"
        connection.execute("SELECT pg_stat_statements_reset()")  # watches of other roles leave entries
        before = connection.execute(query).fetchall()
        result = profile(busy, tmp_path, seconds=1.0).result
        assert connection.execute(query).fetchall() == before
    assert result.tree.sessions == 0 and result.watch.client_cpu_ns > 0
    assert result.watch.server_ns is None  # a superuser's watch is not counted
    with connect(busy, "setup") as connection:
        marked = "SELECT query FROM pg_stat_statements WHERE strpos(query, '/* unc' || 'ork */') > 0"
        left = [query for (query,) in connection.execute(marked)]
        assert all("pg_backend_pid" in query or query.startswith("SET ") for query in left), left
    server = ServerWatch(busy.conninfo())
    try:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            server._session.execute("CREATE TABLE no (id int)")
    finally:
        server.close()


@pytest.mark.parametrize("watcher", ["superuser", "monitor", "app"])
def test_the_second_watch_and_the_third_find_what_the_first_found(older, tmp_path, watcher):
    with connect(older, "setup") as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute("CREATE ROLE app LOGIN; CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor")
        connection.execute("GRANT pg_read_all_data TO monitor")
        connection.execute(
            "CREATE TABLE purchase AS SELECT n AS id, n % 20000 AS buyer FROM generate_series(1, 100000) AS n"
        )
        connection.execute("ALTER TABLE purchase OWNER TO app")
        connection.execute("VACUUM ANALYZE purchase")

    def work(over):
        with connect(older, "shop", user="app") as client:
            while not over.wait(0.005):
                client.execute("SELECT id FROM purchase WHERE buyer = 7").fetchall()

    user = "" if watcher == "superuser" else f" user={watcher}"
    with load(work, work):
        for number in range(4):
            if number == 3:
                with connect(older, "setup") as connection:
                    connection.execute("SELECT pg_stat_statements_reset()")
            result = profile(older, tmp_path, seconds=1.5, conninfo=f"{older.conninfo()}{user}").result
            assert [one.rule for one in result.findings][:1] == ["missing-index"], number
            (counted,) = [one for one in result.templates if "buyer" in one.text]
            assert counted.statements is not None and counted.statements.calls > 10
            assert not any("pg_catalog" in one.text for one in result.templates)


def test_other_watchers_of_uncork_are_not_told_as_load(busy, tmp_path):
    def watch_too(over):
        other = ServerWatch(f"{busy.conninfo()} application_name=shop")
        try:
            other.begin_sampling()
            while not over.is_set():
                other.look((), blockers=True)
        finally:
            other.close()

    with load(watch_too):
        result = profile(busy, tmp_path, seconds=1.0).result
    assert result.tree.sessions == 0 and result.applications == ()
    assert not any("pg_stat_activity" in one.text for one in result.templates)


def test_what_is_locked_against_all_is_not_waited_for(busy, tmp_path):
    with connect(busy, "setup") as connection, connection.transaction():
        connection.execute("LOCK TABLE wide IN ACCESS EXCLUSIVE MODE")
        result = profile(busy, tmp_path, seconds=0.5).result
    sizes = {one.name: one.bytes for one in result.tables}
    assert sizes["wide"] is None and sizes["accounts"] > 0
    assert result.missing == ()


def test_the_schema_tells_islands_doubtful_indexes_and_bare_foreign_keys(busy, tmp_path):
    with connect(busy, "setup") as connection:
        connection.execute('CREATE SCHEMA "Shop"')
        connection.execute('CREATE TABLE "Shop"."Order" (id int PRIMARY KEY)')
        connection.execute(
            'CREATE TABLE "Shop".line (id int PRIMARY KEY, "order" int REFERENCES "Shop"."Order")'
        )
        connection.execute('CREATE INDEX one ON "Shop".line (id, "order")')
        connection.execute('CREATE INDEX two ON "Shop".line (id, "order")')
        connection.execute('CREATE INDEX part ON "Shop".line ("order") WHERE id > 5')
        connection.execute("CREATE INDEX low ON \"Shop\".line (lower('a' || id::text))")
        try:
            result = profile(busy, tmp_path, seconds=0.5).result
        finally:
            connection.execute('DROP SCHEMA "Shop" CASCADE')
    (key,) = result.foreign_keys
    assert (key.table, key.referred, key.columns, key.indexed) == ("Shop.line", "Shop.Order", "order", False)
    assert [set(one.tables) for one in result.islands] == [{"Shop.line", "Shop.Order"}]
    warnings = {
        one.name: (one.warning, one.same_as) for one in result.indexes if one.name.startswith("Shop.")
    }
    assert warnings["Shop.two"] == ("duplicate", "one")
    assert warnings["Shop.part"] == warnings["Shop.low"] == ("unused", "")
    assert warnings["Shop.line_pkey"] == ("", "")


def test_rows_that_are_gone_show_as_bloat(busy, tmp_path):
    with connect(busy, "setup") as connection:
        connection.execute(
            "CREATE TABLE gone AS SELECT n, repeat('x', 100) FROM generate_series(1, 50000) AS n"
        )
        connection.execute("DELETE FROM gone WHERE n % 10 <> 0")
    with connect(busy, "setup") as connection:
        connection.execute("VACUUM ANALYZE gone")
        try:
            result = profile(busy, tmp_path, seconds=0.5).result
            connection.execute("VACUUM FULL gone")
            (size,) = connection.execute("SELECT pg_relation_size('gone')").fetchone()
        finally:
            connection.execute("DROP TABLE gone")
    (table,) = [one for one in result.tables if one.name == "gone"]
    (wide,) = [one for one in result.tables if one.name == "wide"]
    assert table.bytes - table.bloat_bytes == pytest.approx(size, rel=0.15)
    assert wide.bloat_bytes == 0


# ---- what it degrades to ----


def test_a_role_without_rights_says_so_and_tells_what_it_may_see(busy, tmp_path):
    with connect(busy, "setup") as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    try:
        with load(sleeper(busy)):
            wait_until(busy, "wait_event = 'PgSleep'", 1)
            result = profile(busy, tmp_path, seconds=1.0, conninfo=f"{busy.conninfo()} user=guest").result
    finally:
        with connect(busy, "setup") as connection:
            connection.execute("DROP ROLE guest")
    (lack,) = [one for one in result.missing if one.what == "the right to see other roles' sessions"]
    assert lack.remedy == 'GRANT pg_read_all_stats TO "guest"'
    assert result.tree.sessions == 0 and result.watch.hidden > 0
    assert result.hidden.share > 0.99 and result.answer.startswith('Role "guest" may not see the statements')
    assert 'A superuser can change this with GRANT pg_read_all_stats TO "guest"' in result.answer
    assert "No session that this role may see was busy" in result.answer
    assert {one.name for one in result.tables} >= {"accounts", "wide"}


def sleeper(server):
    def sleep(over):
        with connect(server, "sleeper") as connection:
            while not over.is_set():
                connection.execute("SELECT pg_sleep(0.2)")

    return sleep


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"shared_preload_libraries": ""}, "add pg_stat_statements to shared_preload_libraries"),
        ({}, 'CREATE EXTENSION pg_stat_statements in the database "postgres"'),
    ],
)
def test_without_the_extension_templates_come_from_samples(settings, remedy, tmp_path):
    server = EmbeddedServer(settings)
    server.start()
    try:
        with load(sleeper(server)):
            result = profile(server, tmp_path, seconds=1.0).result
    finally:
        server.stop()
    (lack,) = [one for one in result.missing if one.what == "pg_stat_statements"]
    assert lack.remedy.startswith(remedy)
    assert result.templates[0].text == "select pg_sleep(?)"
    assert result.templates[0].statements is None and result.counted_ns is None
    assert result.watch.server_ns is None


@pytest.fixture(params=["pg_stat_statements"])
def older(request):
    """A PostgreSQL 15, as Debian packs it; the parameter is what it preloads."""
    if not INSTALLED.is_dir():
        assert not os.environ.get("CI"), "CI installs PostgreSQL 15"
        pytest.skip("PostgreSQL 15 is not installed")
    settings = {"shared_preload_libraries": request.param, "shared_buffers": "16MB"}
    server = EmbeddedServer({**settings, "max_parallel_workers_per_gather": 0}, binaries=INSTALLED)
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("older", ["", "pg_stat_statements"], indirect=True)
def test_an_older_server_tells_what_it_can(older, tmp_path):
    with connect(older, "setup") as connection:
        (preload,) = connection.execute("SHOW shared_preload_libraries").fetchone()
        if preload:
            connection.execute("CREATE EXTENSION pg_stat_statements")
    with load(sleeper(older)):
        result = profile(older, tmp_path, seconds=1.0).result
    assert result.server_version.startswith("PostgreSQL 15")
    assert result.templates[0].text == "select pg_sleep(?)"
    assert (result.templates[0].statements is not None) is bool(preload)
    missing = {one.what for one in result.missing}
    assert missing == (set() if preload else {"pg_stat_statements"})


def test_a_server_that_goes_away_leaves_what_was_seen(tmp_path):
    server = EmbeddedServer({})
    server.start()
    try:
        watched = ServerWatch(server.conninfo())
        seen = []

        def show(snapshot):
            seen.append(snapshot)
            server.crash()

        found = watch(watched, 60.0, RATE, show)
        watched.close()
        assert seen and found.status == "failed"
        assert found.trouble == "the server went away: server closed the connection unexpectedly"
        assert found.tables["database_samples"].num_rows > 0
        with pytest.raises(ConnectError):
            ServerWatch(server.conninfo())
    finally:
        server.stop()


def test_a_server_that_goes_away_before_anything_was_seen_is_an_error(tmp_path):
    server = EmbeddedServer({})
    server.start()
    try:
        watched = ServerWatch(server.conninfo())
        server.crash()
        with pytest.raises(ServerCrash):
            watch(watched, 1.0, RATE)
        watched.close()
    finally:
        server.stop()


def test_a_role_without_the_extensions_schema_learns_what_to_grant(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE poor LOGIN")
        connection.execute("CREATE DATABASE closed")
    conninfo = f"{embedded.conninfo()} dbname=closed"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA monitoring; CREATE EXTENSION pg_stat_statements SCHEMA monitoring")
    server = ServerWatch(f"{conninfo} user=poor")
    try:
        facts = server.facts()
    finally:
        server.close()
    assert facts["statements"] == "permission denied for schema monitoring"
    watch = {"server": facts, "snapshots": {}, "catalogue": {}, "system": None}
    missing = {one.what: one.remedy for one in find_missing(watch, file_waits=0.0)}
    assert missing["pg_stat_statements"] == 'GRANT USAGE ON SCHEMA "monitoring" TO "poor"'


def test_an_index_that_is_dropped_while_it_is_read_is_left_out(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE rebuilt (a int PRIMARY KEY, b int)")
        connection.execute("CREATE INDEX rebuilt_b ON rebuilt (b)")
        server = ServerWatch(embedded.conninfo())
        try:
            block = server.facts()["block_size"]
            server._session.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            server._session.execute("SELECT count(*) FROM pg_index")
            connection.execute("DROP INDEX rebuilt_b")
            snapshot = server.snapshot(whole=True)
            found = snapshot.with_details(server.details(snapshot, ()), block).tables["database_indexes"]
        finally:
            server.close()
            connection.execute("DROP TABLE rebuilt")
    assert {one["name"] for one in found if one["name"].startswith("rebuilt")} == {"rebuilt_pkey"}


def test_a_lost_connection_is_no_proof_of_health(tmp_path):
    server = EmbeddedServer({})
    server.start()

    def sleep_until_lost():
        with suppress(psycopg.Error), psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while True:
                connection.execute("SELECT pg_sleep(0.2)")

    sleeper = threading.Thread(target=sleep_until_lost)
    sleeper.start()
    try:
        lost = profile_database(
            tmp_path,
            resolve(server.conninfo()),
            seconds=60.0,
            rate_hz=20.0,
            command="uncork profile db",
            show=lambda _: server.crash(),
        )
    finally:
        server.stop()
        sleeper.join()
    assert not any("No change is needed" in one for one in lost.result.reasons)
    advice = answer_advice(advice_of([lost.folder], "uncork advise", "1"))
    assert advice.answer == "The connection to the server was lost, so most faults cannot be found."
    for document in (build_database_document(lost.result), build_advice_document(advice)):
        assert [one.text for one in document.steps] == ["Watch the server again to its end:"]
