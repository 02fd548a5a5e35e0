"""Logs of real servers: what is told equals what was done."""

from __future__ import annotations

import bz2
import gzip
import shutil
import socket
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from fakes.answered import log_result
from fakes.ssh_server import ssh_server
from uncork.analysis.log.evidence import evidence_of_log
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import ConnectError, SetupError, UsageError
from uncork.model.results.log import OTHERS, LogRunFacts
from uncork.profile.logs import LogRequest, read_logs
from uncork.profile.objects.reading import ObjectReader
from uncork.workbench.profile.log_files import log_request

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")


def result(*paths: Path, **options):
    reading = read_logs(LogRequest(tuple(paths), **options))
    return log_result(RUN, reading.facts, reading.tables)


def figures(found):
    """All that must be the same, whatever the dialect."""
    server = found.server
    return {
        "templates": {
            (
                one.text,
                one.executions,
                one.sum_ns,
                one.max_ns,
                one.histogram,
                one.failed,
                one.first_us,
                one.last_us,
            )
            for one in found.templates
        },
        "errors": {
            (one.severity, one.message, one.count, one.first_us, one.statement) for one in found.errors
        },
        "waits": server.lock_waits,
        "incidents": [(one.amount, one.pid, one.what, one.detail) for one in server.longest_waits],
        "files": server.temporary_files,
        "checkpoints": (server.checkpoints, server.checkpoint_reasons),
        "vacuums": (server.vacuums, server.analyzes),
        "sessions": (server.connections, server.sessions, server.deadlocks, server.cancellations),
        "applications": found.applications,
        "users": found.users,
        "transactions": found.transactions,
        "steps": (found.executions, found.parse, found.bind, found.untold),
    }


# ---- logs of others ----


DIALECTS = {
    "stderr.log": "stderr",
    "csvlog.csv": "csvlog",
    "jsonlog.json": "jsonlog",
    "syslog.log": "syslog",
    "syslog_bsd.log": "syslog",
}


def test_one_run_in_five_dialects_tells_the_same():
    results = {name: result(FIXTURES / f"same-events.{name}.gz") for name in DIALECTS}
    assert {name: one.files[0].dialect for name, one in results.items()} == DIALECTS
    stderr = results["stderr.log"]
    for name, other in results.items():
        assert figures(other) == figures(stderr), name
        assert other.rejected == 0
    text = gzip.decompress((FIXTURES / "same-events.stderr.log.gz").read_bytes()).decode()
    assert stderr.executions.count == text.count("duration: ")
    assert sum(one.count for one in stderr.errors) == text.count(" ERROR:  ") + text.count(" FATAL:  ")
    assert sum(one.count for one in stderr.server.temporary_files) == text.count("temporary file: ")
    assert sum(one.count for one in stderr.server.vacuums) == text.count("automatic vacuum of")
    assert stderr.server.connections == text.count("connection received: ")
    assert stderr.server.deadlocks == text.count("ERROR:  deadlock detected") == 1
    assert sum(one.count for one in stderr.server.lock_waits) == 2
    assert stderr.rejected == 0


def test_lines_of_logplex_have_their_time_and_process_from_it():
    found = result(FIXTURES / "logplex.gz")
    assert (found.files[0].dialect, found.rejected) == ("syslog", 0)
    text = gzip.decompress((FIXTURES / "logplex.gz").read_bytes()).decode()
    assert found.server.still_waiting == text.count("still waiting for")
    assert any(one.detail.startswith("Process holding the lock: ") for one in found.server.longest_waits)
    assert 85_756_000_000 < found.executions.max_ns < 85_757_000_000
    longest = next(one for one in found.templates if one.max_ns == found.executions.max_ns)
    assert "from missions where missions.checker_id" in longest.text
    assert found.first_us == 1_552_522_976_000_000


def test_plans_stand_beside_their_template():
    found = result(FIXTURES / "autoexplain.stderr.log.gz")
    plans = {
        example.text.splitlines()[0]
        for template in found.templates
        for example in template.examples
        if example.kind == "plan"
    }
    assert any("Query Text: SELECT now()" in plan for plan in plans)
    with_both = [one for one in found.templates if {"slowest", "plan"} <= {two.kind for two in one.examples}]
    assert with_both


def test_records_of_an_operator_are_told_apart(tmp_path):
    (newest_first,) = result(FIXTURES / "cnpg.log.gz").files
    assert newest_first.entries == 0 and "tac FILE | uncork profile logs -" in newest_first.trouble
    path = tmp_path / "cnpg.log"
    lines = gzip.decompress((FIXTURES / "cnpg.log.gz").read_bytes()).splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))
    found = result(path)
    assert (found.rejected, found.files[0].dialect) == (0, "jsonlog")
    assert found.foreign == 47
    assert found.applications[0].name == "cnpg-instance-manager"


def test_a_pooler_tells_who_came_and_who_waited():
    path = FIXTURES / "pgbouncer.log.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    found = result(path)
    assert (found.entries, found.rejected, found.files[0].dialect) == (len(lines), 0, "pgbouncer")
    told = {(one.side, one.ended): one.count for one in found.pool.connections}
    assert told == {
        ("client", ""): sum("login attempt" in line for line in lines),
        ("client", "client close request"): sum("client close request" in line for line in lines),
        ("server", ""): sum("new connection to server" in line for line in lines),
    }
    # What a second was made of, from the three reports of which one has transactions of 17 057 us.
    reports = [[int(word) for word in line.split() if word.isdigit()] for line in lines if "stats:" in line]
    transactions = sum(one[1] for one in reports)
    assert found.pool.reports == len(reports)
    assert found.pool.transaction_ns == pytest.approx(
        sum(one[1] * one[5] for one in reports) * 1000 / transactions
    )
    assert found.pool.waiting == pytest.approx(sum(one[7] for one in reports) / len(reports) / 1e6)
    assert found.answer.startswith("PgBouncer's clients hardly waited")
    assert any(one.message.startswith("process up: pgbouncer") for one in found.notices)


def test_a_pool_that_is_too_small_is_told_by_how_many_wait():
    # Ten clients, two connections, 20 ms a transaction: eight of ten wait, as long as all are there.
    found = result(FIXTURES / "pgbouncer-wait.log")
    assert found.pool.waiting_max == pytest.approx(8, rel=0.02)
    held = (found.pool.working - found.pool.waiting) / found.pool.transactions_s
    assert held == pytest.approx(0.020, rel=0.05)
    assert found.answer.startswith(
        "PgBouncer's clients waited for a server connection. On average 6.41 of the 7.96 clients"
    )
    assert found.reasons[0].startswith("Either the pool is too small")
    assert [one.message for one in found.errors] == [
        "pooler error: no more connections allowed (max_client_conn)"
    ]


# ---- a server of our own ----

PREFIX = "%m [%p] %q%u@%d %a "


@pytest.fixture(scope="module")
def logged():
    """A known workload, logged in three formats at once: the logs, and what was done."""
    settings = {
        "logging_collector": True,
        "log_destination": "stderr,csvlog,jsonlog",
        "log_filename": "server.log",
        "log_line_prefix": PREFIX,
        "log_min_duration_statement": 0,
        "log_temp_files": 0,
        "log_lock_waits": True,
        "deadlock_timeout": "20ms",
        "log_connections": True,
        "log_disconnections": True,
        "shared_buffers": "64MB",
        "work_mem": "64kB",
    }
    server = EmbeddedServer(settings)
    server.start()
    try:
        done = _work(server)
        time.sleep(0.5)  # the collector writes what it has
        yield {path.suffix: path for path in server.logs if path.parent.name == "log"}, done
    finally:
        server.stop()


def _work(server) -> Counter[str]:
    done: Counter[str] = Counter()
    conninfo = server.conninfo() + " application_name=libvuln"
    with psycopg.connect(conninfo, autocommit=True, prepare_threshold=None) as one:
        one.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
        for count in (1, 2, 5):
            values = ", ".join(f"({done['rows'] + n}, 'it''s {n}')" for n in range(count))
            one.execute(f"INSERT INTO items VALUES {values}")
            done["rows"] += count
            done["insert"] += 1
        for number in range(25):
            one.execute(f"SELECT name\n  FROM items WHERE id = {number}")
            done["select"] += 1
        for number in range(7):
            one.execute("SELECT name FROM items WHERE id = %s AND name <> 'ä'", (number,))
            done["bound"] += 1
        for _ in range(3):
            with pytest.raises(psycopg.errors.UndefinedTable):
                one.execute("SELECT * FROM missing")
            done["failed"] += 1
        one.execute(
            "SELECT count(*) FROM (SELECT n FROM generate_series(1, 200000) AS n ORDER BY n DESC) AS s"
        )
        with psycopg.connect(conninfo, autocommit=True) as other, psycopg.connect(conninfo) as holder:
            holder.execute("UPDATE items SET name = 'held' WHERE id = 1")
            other.execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("UPDATE items SET name = 'waited' WHERE id = 1")
            done["timeouts"] += 1
    return done


@pytest.mark.postgres
@pytest.mark.parametrize("suffix", [".log", ".csv", ".json"])
def test_counts_are_the_truth(logged, suffix):
    logs, done = logged
    found = result(logs[suffix])
    assert found.rejected == 0
    by_text = {one.text: one for one in found.templates}
    insert = by_text["insert into items values (?, ?)"]
    assert (insert.executions, insert.lists.executions, insert.lists.max) == (done["insert"], 3, 5)
    select = by_text["select name from items where id = ?"]
    assert (select.executions, select.repetition.longest) == (done["select"], done["select"])
    bound = by_text["select name from items where id = ? and name <> ?"]
    assert (bound.executions, bound.parse.count, bound.bind.count) == (done["bound"],) * 3
    slowest = next(one for one in bound.examples if one.kind == "slowest")
    assert slowest.parameters.startswith("$1 = '") and "'ä'" in slowest.text
    errors = {one.message: one for one in found.errors}
    missing = errors['relation "…" does not exist']
    assert (missing.count, missing.statement) == (done["failed"], "SELECT * FROM missing")
    assert by_text["select * from missing"].failed == done["failed"]
    assert errors["canceling statement due to lock timeout"].count == done["timeouts"]
    assert found.server.still_waiting == done["timeouts"]
    assert found.server.longest_waits[0].detail.startswith("Process holding the lock: ")
    update = "update items set name = ? where id = ?"
    assert [(one.waiting_text, one.holding_text, one.waits) for one in found.blocking] == [
        (update, update, done["timeouts"])
    ]
    assert sum(one.count for one in found.server.temporary_files) >= 1
    assert {one.name for one in found.applications} >= {"libvuln"}
    transactions = {one.application: one for one in found.transactions}
    assert transactions["libvuln"].statements_max == 1


@pytest.mark.postgres
def test_durations_are_those_of_the_log_to_the_microsecond(logged):
    logs, _ = logged
    texts = [line for line in logs[".log"].read_text().splitlines() if "duration: " in line]
    micros = [round(float(line.partition("duration: ")[2].partition(" ms")[0]) * 1000) for line in texts]
    for path in logs.values():
        found = result(path)
        assert found.executions.sum_ns + found.parse.sum_ns + found.bind.sum_ns == sum(micros) * 1000
        assert found.executions.count + found.parse.count + found.bind.count == len(micros)


@pytest.mark.postgres
def test_three_formats_of_one_server_tell_the_same(logged):
    logs, _ = logged
    expected = figures(result(logs[".log"]))
    for suffix in (".csv", ".json"):
        assert figures(result(logs[suffix])) == expected


@pytest.mark.postgres
def test_a_range_of_time_counts_what_lies_in_it(logged):
    logs, _ = logged
    whole = result(logs[".log"])
    middle = (whole.first_us + whole.last_us) // 2
    parts = [result(logs[".log"], end_us=middle), result(logs[".log"], begin_us=middle)]
    assert sum(one.entries for one in parts) == whole.entries
    assert sum(one.executions.sum_ns for one in parts) == whole.executions.sum_ns
    assert parts[0].last_us < middle <= parts[1].first_us


def test_a_template_is_told_over_time_and_by_who_sent_it(tmp_path):
    log = tmp_path / "some.log"
    log.write_text(
        "".join(
            f"2026-01-01 00:{minute:02}:00.000 UTC [7] u{minute % 13}@d app LOG:  "
            f"duration: {minute + 1}.000 ms  statement: SELECT {'a' if minute % 3 else 'b'} FROM t\n"
            for minute in range(50)
            if not 20 <= minute < 30
        )
    )
    found = result(log)
    assert found.timeline_us == found.first_us == 1_767_225_600_000_000
    assert found.template_bucket_s == 60
    for template in found.templates:
        assert len(template.timeline) == 50
        assert sum(template.timeline) == template.executions
        assert template.timeline[20:30] == (0,) * 10
        points = {(one.start_us - found.timeline_us) // 60_000_000: one.count for one in template.series}
        assert points == {place: count for place, count in enumerate(template.timeline) if count}
        assert sum(one.sum_ns for one in template.users) == template.sum_ns
        assert sum(one.executions for one in template.users) == template.executions
        names = [one.name for one in template.users]
        assert (names[-1] == OTHERS) == (len(names) > 10)
        assert [one.name for one in template.databases] == ["d"] and template.hosts == ()
    assert max(len(one.users) for one in found.templates) == 11
    assert len(found.users) == 13


LOOKUPS = 30


@pytest.fixture(scope="module")
def server():
    """A server that logs everything, with PostgreSQL's own log_line_prefix, which names no application."""
    settings = {
        "log_min_duration_statement": 0,
        "log_line_prefix": "%m [%p] ",
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": 0,
        "auto_explain.log_parameter_max_length": -1,
    }
    server = EmbeddedServer(settings)
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE items (id int, name text)")
    yield server
    server.stop()


def sessions_logged(server):
    reading = read_logs(LogRequest(tuple(server.logs)))
    return log_result(RUN, reading.facts, reading.tables)


@pytest.mark.postgres
@pytest.mark.parametrize(("form", "column"), [("text", "id"), ("json", "name")])
def test_parameters_of_a_plan_are_no_part_of_the_statement(server, form, column):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(f"SET auto_explain.log_format = {form}")
        for number in range(3):
            text = f"SELECT {column}, 'x' AS form\n  FROM items WHERE id = %s AND name = %s"
            connection.execute(text, (number, "it's\nQuery Parameters: "))
    # The plan has the template of the statement that was sent.
    (template,) = (one for one in sessions_logged(server).templates if f"{column}, ? as form" in one.text)
    assert template.text == f"select {column}, ? as form from items where id = ? and name = ?"
    assert template.executions == 3
    (plan,) = (one for one in template.examples if one.kind == "plan")
    assert plan.parameters.startswith("$1 = '") and "Query Parameters: '" in plan.parameters
    if form == "text":
        assert plan.text.splitlines()[1].strip() == "FROM items WHERE id = $1 AND name = $2"
        assert "$1 = '" not in plan.text and "Seq Scan on items" in plan.text
    (executed,) = evidence_of_log(sessions_logged(server)).statements[template.number].plans
    scan = executed.root
    assert executed.source == "executed" and scan.relation == "items"
    assert scan.kind == "Seq Scan" and scan.condition("Filter").startswith("((id = '")


@pytest.mark.postgres
def test_watching_is_counted_and_left_out(server):
    before = sessions_logged(server)
    watch = ServerWatch(server.conninfo())
    names = "SELECT application_name FROM pg_stat_activity WHERE pid = %s"
    watch.begin_sampling()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True, application_name="shop") as connection:
            assert connection.execute(names, (watch.pid,)).fetchone() == ("uncork watch",)
        for _ in range(LOOKUPS):
            watch.look((), blockers=True)
    finally:
        watch.close()
    found = sessions_logged(server)
    assert found.own - before.own >= LOOKUPS
    new = {one.text for one in found.templates} - {one.text for one in before.templates}
    assert new == {"select application_name from pg_stat_activity where pid = ?"}
    assert found.findings == ()
    assert any("uncork watched the server are not counted" in warning for warning in found.warnings)


ROWS = 2_000
PIPELINE, LOOP = (f"INSERT INTO {name} (name, score) VALUES (%s, %s)" for name in ("sent", "waited"))


@pytest.mark.postgres
def test_a_pipeline_is_told_from_a_loop_that_waits_for_each_answer():
    server = EmbeddedServer({"log_min_duration_statement": 0, "log_line_prefix": "%m [%p] %q%u@%d %a "})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for name in ("sent", "waited"):
                connection.execute(f"CREATE TABLE {name} (name text, score int)".encode())
            with connection.transaction():  # psycopg's executemany uses a pipeline
                rows = [(f"cve {number}", number) for number in range(ROWS)]
                connection.cursor().executemany(PIPELINE, rows)
            with connection.transaction():
                for number in range(ROWS):
                    connection.execute(LOOP, (f"cve {number}", number))
                    time.sleep(1e-4)  # as a round trip through a network takes
        reading = read_logs(LogRequest(tuple(server.logs)))
    finally:
        server.stop()
    templates = log_result(RUN, reading.facts, reading.tables).templates
    rows = {one.text.split()[2]: one.repetition for one in templates if one.text.startswith("insert")}
    found = {name.partition("(")[0]: row for name, row in rows.items() if row is not None}
    assert {name: (row.executions, row.pipelined) for name, row in found.items()} == {
        "sent": (ROWS, True),
        "waited": (ROWS, False),
    }


LINE = "2026-11-27 04:00:{second:02}.000 UTC [{second}] u@d app LOG:  duration: 1.5 ms  statement: SELECT 1\n"


@pytest.fixture(scope="module")
def running():
    with ssh_server() as server:
        yield server


@pytest.fixture
def reached_server(running, monkeypatch):
    monkeypatch.setenv("PATH", running.path)
    return running


def log(entries):
    return "".join(LINE.format(second=number) for number in range(entries)).encode()


def read(*texts):
    return read_logs(log_request([str(text) for text in texts], None, (None, None), 2))


def test_a_folder_a_glob_and_a_file_are_read_as_on_this_machine(reached_server, tmp_path, monkeypatch):
    monkeypatch.setattr(ObjectReader, "range_bytes", 2000)
    folder = tmp_path / "a folder with 'quotes' $(touch gone)"
    folder.mkdir()
    (folder / "one.log").write_bytes(log(30))
    (folder / "three.log.bz2").write_bytes(bz2.compress(log(20)))
    (folder / "two.log.gz").write_bytes(gzip.compress(log(10)))
    (folder / "notes.bin").write_bytes(b"\0")
    (folder / "in").mkdir()
    (folder / "in" / "four.log").write_bytes(log(5))
    whole, local = read(f"{reached_server.address}{folder}"), read(folder)
    assert whole.facts["entries"] == local.facts["entries"] == 60
    assert whole.facts["skipped"] == [f"{reached_server.address}{folder}/notes.bin"]
    assert [file["trouble"] for file in whole.facts["files"]] == [None] * 3
    assert [file["bytes"] for file in whole.facts["files"]] == [
        file["bytes"] for file in local.facts["files"]
    ]
    assert read(f"{reached_server.address}{tmp_path}/a*/in/f*").facts["entries"] == 5
    assert not (tmp_path / "gone").exists()
    with pytest.raises(SetupError, match="the machine has no such file"):
        read(f"{reached_server.address}{folder}/none.log")


def test_a_log_that_grows_counts_as_far_as_it_was_found_and_a_rotated_one_is_named(reached_server, tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(log(10))
    found = log_request([f"{reached_server.address}{path}"], None, (None, None), 1)
    path.write_bytes(log(20))  # the same inode
    assert read_logs(found).facts["entries"] == 10
    found = log_request([f"{reached_server.address}{path}"], None, (None, None), 1)
    path.unlink()
    (facts,) = read_logs(found).facts["files"]
    assert "the object was deleted while it was read: nothing of it counts" in facts["trouble"]


def test_a_failed_login_gives_the_words_of_ssh(reached_server, tmp_path):
    reached_server.forget("user")
    try:
        with pytest.raises(
            ConnectError, match=r"ssh: .*Permission denied \(publickey.*add a key to ssh-agent"
        ):
            read(f"{reached_server.address}/a.log")
    finally:
        reached_server.remember("user")
    reached_server.forget("known")
    try:
        with pytest.raises(ConnectError, match=r"Host key verification failed; connect once with ssh"):
            read(f"{reached_server.address}/a.log")
    finally:
        reached_server.remember("known")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(
            ConnectError, match=r"ssh://127.0.0.1:\d+/a.log: ssh: connect to host .*Connection refused"
        ):
            read(f"ssh://127.0.0.1:{probe.getsockname()[1]}/a.log")


def test_without_ssh_the_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("ssh") is None
    with pytest.raises(UsageError, match=r"ssh://db/a\.log needs the program ssh: install openssh-client"):
        read("ssh://db/a.log")
