"""`uncork load sql` and `load together` by subprocess, on real servers."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import jsonschema
import psycopg
import pytest

from fakes.disk import small_disk
from fakes.http_servers import nginx
from uncork.analysis.runs.figures import run_figures
from uncork.engines.embedded import EmbeddedServer
from uncork.report.headline import split_answer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("load")]

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "load-result.schema.json").read_text())


@pytest.fixture(scope="module")
def server():
    server = EmbeddedServer({"max_connections": 30, "autovacuum": False, "shared_buffers": "32MB"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def load(uncork, server):
    """Run `uncork load sql` on the module's server."""

    def run(*words: object, **options: object):
        address = ("-h", server.host, "-p", server.port, "-U", "uncork", "postgres")
        return uncork("load", "sql", *words, *address, **options)

    return run


@pytest.fixture(scope="module")
def tables(server):
    from uncork.engines.tpcb import initialise

    initialise(server.conninfo(), scale=1)


def result_of(folder: Path) -> dict:
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    counts = result["counts"]
    assert counts["started"] == counts["succeeded"] + counts["failed"]
    if counts["arrivals"] is not None:
        assert counts["arrivals"] == counts["started"] + counts["skipped"] + counts["unsent"]
    return result


def test_a_load_in_which_nothing_succeeds_has_failed_and_is_no_baseline(uncork, load):
    (uncork.folder / "zero.sql").write_text("SELECT 1 / 0;")
    (uncork.folder / "one.sql").write_text("SELECT 1;")
    assert load("-n", "-t", 5, "-f", "one.sql").returncode == 0
    done = load("-n", "-t", 5, "-f", "zero.sql")
    assert done.returncode == 2
    good, bad = uncork.runs
    manifest = json.loads((bad / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert manifest["attempts"][0]["reason"].startswith("none of 5 operations succeeded: ")
    named = uncork("runs", "name", bad.name, "baseline")
    assert named.returncode == 1
    assert "none of 5 operations succeeded" in named.stderr and "cannot be the baseline" in named.stderr
    compared = uncork("compare", good.name, bad.name)
    assert compared.returncode == 1
    assert f"nothing succeeded in {bad.name}" in compared.stderr
    assert uncork("history", "failed").stdout.count(bad.name) == 0


# ---- loads that go well ----


def test_a_closed_loop_is_counted_told_and_kept(uncork, load, tables):
    done = load("-c", 3, "-j", 2, "-t", 40, "-M", "prepared", "-r", "-P", 1)
    assert done.returncode == 0, done.stderr
    assert re.match(r"The server handled [\d ,.]+ transactions a second from 3 clients with p99", done.stdout)
    assert re.search(r"Over .* by 3 clients: half took under", done.stdout)
    assert "no errors" in done.stdout
    assert "UPDATE pgbench_accounts" in done.stdout
    (folder,) = uncork.runs
    assert f"uncork: run {folder.name}" in done.stderr
    result = result_of(folder)
    assert result["counts"]["succeeded"] == 120
    assert result["counts"]["statements"] == 120 * 7
    assert result["connections"]["opened"] == 3
    assert result["generator"]["limit"] in ("no", "perhaps", "yes")
    assert result["settings"]["variables"]["scale"] == "1"
    (one,) = result["scripts"]
    assert (one["name"], one["executions"]) == ("tpcb-like", 120)
    assert len(result["statements"]) >= 7
    assert result["environment"]["server"]["version"].startswith("PostgreSQL")


def test_the_report_comes_again_from_the_store_alone(uncork, load, tables):
    assert load("-S", "-c", 2, "-t", 50).returncode == 0
    (folder,) = uncork.runs
    first = (folder / "result.json").read_text()
    for name in ("result.json", "report.html", "report.md"):
        (folder / name).unlink()
    again = uncork("report", "last", "--json")
    assert again.returncode == 0, again.stderr
    assert again.stdout == first
    assert uncork("report", "last", "--markdown").stdout.startswith("# load-select-only")
    assert "BenchmarkLoadSQL/script=select-only" in uncork("report", "last", "--go-bench").stdout
    page = uncork.folder / "page.html"
    assert uncork("report", "last", "--html", page).returncode == 0
    headline, rest = split_answer(json.loads(first)["answer"])
    assert f"{headline}</h1>" in (shown := page.read_text().replace("\N{NO-BREAK SPACE}", " "))
    assert rest in shown
    listed = uncork("runs").stdout
    assert re.search(rf"{folder.name} +load +complete", listed)


def test_the_tables_answer_sql(uncork, load, tables):
    assert load("-b", "select-only@3", "-b", "simple-update", "-c", 2, "-t", 200).returncode == 0
    (folder,) = uncork.runs
    (totals,) = duckdb.sql(f"SELECT started, succeeded FROM '{folder}/load_totals/*.parquet'").fetchall()
    (series,) = duckdb.sql(f"SELECT sum(succeeded) FROM '{folder}/load_series/*.parquet'").fetchall()
    kinds = duckdb.sql(
        f"SELECT kind, sum(executions) FROM '{folder}/load_statements/*.parquet' GROUP BY kind"
    ).fetchall()
    assert totals == (400, 400)
    assert series == (400,)
    assert dict(kinds)["script"] == dict(kinds)["operation"] == dict(kinds)["service"] == 400


def test_an_open_loop_counts_from_the_intended_start(uncork, load):
    script = uncork.write("SELECT pg_sleep(0.002);\n", "nap.sql")
    done = load("-f", script, "-R", 200, "--max-clients", 8, "-T", 2, "-P", 1, "--random-seed", 5)
    assert done.returncode == 0, done.stderr
    lines = re.findall(
        r"^progress: [\d.]+ s, [\d.]+ tps, lat [\d.]+ ms stddev [\d.]+, 0 failed, p50 .* backlog \d+, "
        r"clients \d+, late p99 [\d.]+ ms$",
        done.stderr,
        re.MULTILINE,
    )
    assert lines, done.stderr
    result = result_of(uncork.runs[0])
    assert 250 < result["counts"]["arrivals"] < 560
    assert result["operation"]["p50_ns"] >= result["service"]["p50_ns"] > 2_000_000
    assert result["lateness"]["count"] > 0
    assert "from the intended start" in done.stdout


def test_programs_read_it_from_standard_output(uncork, load, tables):
    done = load("-S", "-t", 20, "--json", "--hdr-log", "out.hlog", "--html", "out.html")
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), SCHEMA)
    log = (uncork.folder / "out.hlog").read_text()
    assert "Tag=select-only," in log
    assert (uncork.folder / "out.html").read_text().startswith("<!DOCTYPE html>")
    bench = load("-S", "-t", 20, "--go-bench")
    assert re.search(r"^BenchmarkLoadSQL/\S+ 20 [\d.]+ ns/op", bench.stdout, re.MULTILINE)


# ---- a server of our own ----


def test_a_server_of_our_own_is_filled_loaded_and_removed(uncork):
    done = uncork("load", "sql", "--embedded", "-s", 2, "-c", 2, "-t", 50)
    assert done.returncode == 0, done.stderr
    assert "created pgbench's tables at scale 2" in done.stderr
    result = result_of(uncork.runs[0])
    assert result["run"]["server"] == "embedded"
    assert result["settings"]["variables"]["scale"] == "2"
    assert result["generator"]["server_user_ns"] is not None


def test_tables_are_made_as_pgbench_makes_them(uncork, server):
    import psycopg

    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS made")
        connection.execute("CREATE DATABASE made")
    address = ("-h", server.host, "-p", server.port, "-U", "uncork")
    done = uncork("load", "sql", "-i", "-s", 2, "--foreign-keys", *address, "made")
    assert done.returncode == 0, done.stderr
    assert re.search(r"done in [\d.]+ s \(drop tables .* foreign keys", done.stderr)
    assert "200000 of 200000 tuples (100%) done" in done.stderr
    assert done.stdout == ""
    assert uncork.runs == []
    with psycopg.connect(server.conninfo("made")) as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (200_000,)


# ---- loads that do not ----


def test_missing_tables_are_said_and_nothing_is_kept(uncork, server):
    address = ("-h", server.host, "-p", server.port, "-U", "uncork", "-d", "template1")
    done = uncork("load", "sql", "-t", 1, *address)
    assert done.returncode == 1
    assert 'database "template1" has no pgbench tables; create them first: uncork load sql -i' in done.stderr
    assert uncork.runs == []


def test_errors_are_counted_by_statement_and_each_is_printed_if_asked_for(uncork, load):
    script = uncork.write("SELECT 1;\n\\set x 0\nSELECT 2 / :x;\n", "zero.sql")
    one = uncork.write("SELECT 1;\n", "one.sql")
    done = load("-f", one, "-f", script, "-c", 2, "-t", 8, "--random-seed", 3, "--verbose-errors")
    assert done.returncode == 2
    counts = result_of(uncork.runs[0])["counts"]
    divided = next(one for one in counts["failures"] if one["code"] == "22012")
    assert (divided["line"], divided["statement"]) == (3, "SELECT 2 / :x;")
    assert divided["message"].endswith("zero.sql:3: division by zero")
    assert {one["code"]: one["number"] for one in counts["failures"]} == counts["errors"]
    assert "Errors by SQLSTATE and statement" in done.stdout and "SELECT 2 / :x;" in done.stdout
    lines = re.findall(r"client [01] got an error in command 2 \(SQL\) of script 1; (.*)", done.stderr)
    assert len(lines) == divided["number"] > 0
    assert all("division by zero (SQLSTATE 22012)" in line for line in lines)


def test_a_load_ends_at_the_first_client_that_aborts(uncork, load):
    script = uncork.write("\\set x random(0, 999)\nSELECT 1 / :x;\n", "seldom.sql")
    done = load("-f", script, "-c", 2, "-j", 2, "-T", 600, "--random-seed", 3, "--exit-on-abort")
    assert done.returncode == 2
    assert done.stdout.startswith("Ended by an aborted client after ")
    result = result_of(uncork.runs[0])
    assert result["run"]["outcome"] == "client aborted"
    assert re.fullmatch(
        r"client [01] aborted: .*seldom.sql:2: division by zero \(SQLSTATE 22012\)", result["run"]["message"]
    )
    assert 1 <= result["counts"]["failed"] <= 2 and result["counts"]["succeeded"] > 0
    good = uncork.write("SELECT 1;\n", "one.sql")
    assert load("-f", good, "-t", 5, "--exit-on-abort").returncode == 0


def test_debugging_output_has_each_command_and_is_bounded(uncork, load):
    script = uncork.write("\\set x 7\nSELECT :x + 1;\n", "seven.sql")
    done = load("-f", script, "-t", 1, "--debug")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("client ")] == [
        f'client 0 executing script "{script}"',
        "client 0 executing \\set x",
        "client 0 sending SELECT 7 + 1;",
        "client 0 receiving 1 rows",
    ]
    done = load("-f", script, "-t", 20000, "--debug")
    assert done.returncode == 0
    left_out = sum(int(number) for number in re.findall(r"\((\d+) lines left out", done.stderr))
    assert done.stderr.count("client 0 ") + left_out == 4 * 20000


def test_a_server_out_of_reach_is_a_result(uncork):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    done = uncork("load", "sql", "-h", "127.0.0.1", "-p", port, "-U", "x", "-c", 4, "-t", 5, "x")
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("Nothing was measured")
    assert "uncork: Nothing was measured" in done.stderr
    result = result_of(uncork.runs[0])
    assert result["run"]["outcome"] == "refused"
    assert sum(result["counts"]["connect_errors"].values()) >= 1
    assert set(result["counts"]["connect_errors"]) == {"08001"}
    assert uncork("report", uncork.runs[0].name).returncode == 0


def test_a_wrong_password_is_a_result_that_holds_no_password(uncork, server):
    dsn = f"postgresql://uncork:not-the-password@127.0.0.1:{server.port}/postgres"
    done = uncork("load", "sql", "--dsn", dsn, "-c", 2, "-t", 5)
    assert done.returncode == 2, done.stderr
    assert "28P01" in done.stdout
    (folder,) = uncork.runs
    kept = "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    assert "not-the-password" not in kept + done.stdout + done.stderr


@pytest.mark.thorough
def test_a_full_disk_on_the_server_is_counted_and_named(uncork, load, server):
    owner = Path(f"/proc/{server.pid}").stat().st_uid
    with (
        small_disk("1m", owner) as disk,
        psycopg.connect(server.conninfo(), autocommit=True) as connection,
    ):
        connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        connection.execute("CREATE TABLE filled (t text) TABLESPACE small")
        script = uncork.write(
            "INSERT INTO filled SELECT repeat('x', 1900) FROM generate_series(1, 20);\n", "fill.sql"
        )
        done = load("-f", script, "-t", 60)
        connection.execute("DROP TABLE filled")
        connection.execute("DROP TABLESPACE small")
    assert done.returncode == 2, done.stderr
    counts = result_of(uncork.runs[0])["counts"]
    assert counts["succeeded"] > 0
    assert counts["errors"] == {"53100": counts["failed"]}
    assert "No space left on device" in counts["first_error"]
    assert "53100 disk full" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_keeps_its_result(uncork, server, number):
    script = uncork.write("SELECT pg_sleep(0.01);\n", "nap.sql")
    process = uncork.start(
        *("load", "sql", "-f", script, "-c", 2, "-T", 600, "-P", 1),
        *("-h", server.host, "-p", server.port, "-U", "uncork", "postgres"),
    )
    uncork.wait_for(process, "progress:")
    process.send_signal(number)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert out.startswith("Interrupted: ")
    result = result_of(uncork.runs[0])
    assert result["run"]["outcome"] == "interrupted"
    assert result["counts"]["succeeded"] > 0
    assert json.loads((uncork.runs[0] / "manifest.json").read_text())["status"] == "interrupted"


@pytest.mark.thorough
@pytest.mark.parametrize("loop", [("-t", 5), ("-R", 50, "-T", 0.4)], ids=["closed", "open"])
def test_a_warm_up_is_sent_and_reported_but_not_counted(uncork, load, server, loop):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS warmed")
        connection.execute("CREATE TABLE warmed (number bigint)")
        uncork.write(
            "\\set number random(1, 1000000000000000)\nINSERT INTO warmed VALUES (:number);\n", "one.sql"
        )
        done = load("-n", "-f", "one.sql", "-c", 2, *loop, "--warmup", "0.5", "-l")
        assert done.returncode == 0, done.stderr
        (rows,) = connection.execute("SELECT count(*) FROM warmed").fetchone()
        (different,) = connection.execute("SELECT count(DISTINCT number) FROM warmed").fetchone()
    assert "warming up for 500 ms, which is not counted" in done.stderr
    (folder,) = uncork.runs
    result = result_of(folder)
    counted = result["counts"]["succeeded"]
    (log,) = uncork.folder.glob("pgbench_log.*")
    assert len(log.read_text().splitlines()) == counted
    assert sum(one["succeeded"] for one in result["series"]) == counted
    assert different == rows, "the warm-up sends other values"
    if loop[0] == "-t":
        assert counted == 10 < rows
    else:
        assert 8 <= rows - counted <= 50, "the warm-up has the same rate: 25 on average"
        assert result["connections"]["opened"] == result["connections"]["most"], "of warm-up and load"
    assert result["settings"]["warmup_ns"] == 500_000_000
    assert "(a warm-up of 500 ms before is not counted)" in (folder / "report.md").read_text()


@pytest.mark.thorough
def test_the_warm_up_of_an_open_loop_does_not_change_what_the_load_sends(uncork, load, server):
    uncork.write("\\set number random(1, 1000000000)\nINSERT INTO sent VALUES (:number);\n", "sent.sql")
    numbers = []
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for words in ((), ("--warmup", "0.3")):
            connection.execute("DROP TABLE IF EXISTS sent")
            connection.execute("CREATE TABLE sent (number int)")
            # One connection, so that all random numbers come from one client.
            open_loop = ("-R", 400, "-c", 1, "--max-clients", 1, "-t", 60, "--random-seed", 5)
            assert load("-n", "-f", "sent.sql", *open_loop, *words).returncode == 0
            rows = connection.execute("SELECT number FROM sent ORDER BY ctid").fetchall()
            numbers.append(rows[-60:])
    assert len(rows) > 60 and numbers[0] == numbers[1]


@pytest.mark.thorough
def test_a_connection_for_each_transaction_names_the_generator_as_the_limit(uncork, load):
    script = uncork.write("SELECT 1;\n", "one.sql")
    done = load("-f", script, "-C", "-c", 12, "-T", 1.5, "--warmup", "0.3")
    assert done.returncode == 0, done.stderr
    generator = result_of(uncork.runs[0])["generator"]
    assert generator["limit"] in ("yes", "perhaps")
    assert "it opens 2 connections at once (2 for each thread), and clients waited" in generator["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize("loop", [(), ("-R", 20)], ids=["closed", "open"])
def test_a_load_interrupted_in_its_warm_up_counts_nothing(uncork, server, loop):
    script = uncork.write("INSERT INTO napped SELECT pg_sleep(0.01)::text;\n", "nap.sql")
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS napped")
        connection.execute("CREATE TABLE napped (text text)")
        process = uncork.start(
            *("load", "sql", "-f", script, *loop, "-T", 600, "--warmup", 600),
            *("-h", server.host, "-p", server.port, "-U", "uncork", "postgres"),
        )
        while connection.execute("SELECT count(*) FROM napped").fetchone() == (0,):
            assert process.poll() is None
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    result = result_of(uncork.runs[0])
    assert (result["run"]["outcome"], result["counts"]["started"]) == ("interrupted", 0), out


def test_a_load_is_not_resumed_or_run_again_as_an_experiment(uncork, load, tables):
    assert load("-S", "-t", 2).returncode == 0
    for words in (("rerun", "last"), ("run", "--resume", "last")):
        done = uncork(*words)
        assert done.returncode == 1
        assert "is a load, not an experiment" in done.stderr
        assert "uncork load sql -S -t 2" in done.stderr


def test_help_is_asked_for_with_two_dashes_or_a_question_mark(uncork):
    for word in ("--help", "-?"):
        done = uncork("load", "sql", word)
        assert done.returncode == 0
        assert "--initialize" in done.stdout


_READY_S = 8.0
"""Time for the processes of the parts to start, also beside other tests."""


@pytest.fixture(scope="module")
def watch():
    """Yield a connection to a server whose sequence `sent` counts what is sent."""
    server = EmbeddedServer({"max_connections": 30, "autovacuum": False, "shared_buffers": "32MB"})
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE sent")
        yield connection
    server.stop()


@pytest.fixture
def words(uncork, watch):
    """Yield the words of a load that counts on the server, from one."""
    (uncork.folder / "count.sql").write_text("SELECT nextval('sent');\n")
    watch.execute("ALTER SEQUENCE sent RESTART")
    at = watch.info
    return ("load", "sql", "-n", "-f", "count.sql", "-h", at.host, "-p", at.port, "-U", at.user, at.dbname)


def sent(watch):
    last, called = watch.execute("SELECT last_value, is_called FROM sent").fetchone()
    return last if called else 0


@pytest.mark.thorough
def test_parts_start_together_and_are_merged_though_one_is_killed(uncork, watch, words):
    start = time.time() + _READY_S
    same = (*words, "-c", 6, "-R", 150, "-T", 3, "--random-seed", 7, "--start-at")
    same = (*same, datetime.fromtimestamp(start, UTC).isoformat())
    parts = [uncork.start(*same, "--shard", f"{number}/3") for number in (1, 2, 3)]
    time.sleep(start + 1.6 - time.time())
    parts[2].send_signal(signal.SIGKILL)
    texts = [part.communicate(timeout=120) for part in parts]
    # On a busy machine, a part may still wait for an answer at its end: status 2, and "deadline".
    assert parts[2].returncode == -signal.SIGKILL, texts
    assert {part.returncode for part in parts[:2]} <= {0, 2}, texts

    merged = uncork("merge", *(run.name for run in uncork.runs), "--json")
    assert merged.returncode == 2, merged.stderr
    result = json.loads(merged.stdout)
    found = result["parts"]["parts"]
    assert {part["ended"] for part in found[:2]} <= {"complete", "deadline"}
    assert found[2]["ended"] == "killed"
    for part in found:
        assert part["planned"] == part["started"] + part["not_started"] + part["unknown"] > 100
    unknown = found[2]["unknown"]
    assert 0 < unknown < 600
    assert result["counts"]["started"] <= sent(watch) <= result["counts"]["started"] + unknown

    shown = uncork("report", "last")
    assert shown.returncode == 0
    assert "was killed after second 1" in shown.stdout and "3/3" in shown.stdout


@pytest.mark.thorough
def test_a_load_ends_when_nobody_renews_its_lease(uncork, watch, words):
    began = time.monotonic()
    done = uncork(*words, "-c", 2, "-R", 100, "-T", 30, "--lease", "lease")
    seconds, number = time.monotonic() - began, sent(watch)
    assert done.returncode == 2
    assert done.stdout.startswith("Lease ended after "), done.stdout
    assert 5 < seconds < 20
    assert 100 < number < 700
    time.sleep(0.3)
    assert sent(watch) == number


SCRIPT = Path(__file__).parents[2] / "bench" / "saturations.py"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "quota",
        "pool",
        "locks",
        "connection limit",
        "file descriptors",
        "ephemeral ports",
        "generator",
        "sleeping service",
    ],
)
def test_what_was_made_scarce_is_named_first(name):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", name, "--json"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout, done.stderr
    (outcome,) = json.loads(done.stdout)
    if outcome["skipped"]:
        pytest.skip(outcome["skipped"])
    assert done.returncode == 0, outcome
    # Where other programs fill the machine, it is what is scarce; the script tries again, and then says so.
    assert outcome["named"] in (outcome["expected"], "machine cpu"), outcome
    assert outcome["expected"] == "none" or outcome["sentence"]


TOGETHER_SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schemas" / "together-result.schema.json").read_text()
)


@pytest.fixture(scope="module")
def database():
    server = EmbeddedServer({"max_connections": 30, "autovacuum": False, "shared_buffers": "32MB"})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield f"http://127.0.0.1:{running.ports['plain']}"


@pytest.fixture
def together_words(uncork, database, service):
    """Return the words of two loads: of SQL with these options, and of HTTP with those."""
    script = uncork.write("SELECT 1;\n", "one.sql")

    def of(sql: str, http: str, path: str = "/small.txt") -> tuple[str, ...]:
        address = f"-h {database.host} -p {database.port} -U uncork postgres"
        return (
            *("load", "together", "--sql", f"-n -f {script} {sql} {address}"),
            *("--http", f"{http} {service}{path}"),
        )

    return of


def together_result_of(folder: Path) -> dict:
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, TOGETHER_SCHEMA)
    for one in result["loads"]:
        counts = one["load"]["counts"]
        assert counts["started"] == counts["succeeded"] + counts["failed"]
        if counts["arrivals"] is not None:
            assert counts["arrivals"] == counts["started"] + counts["skipped"] + counts["unsent"]
        assert sum(second["succeeded"] for second in one["load"]["series"]) == counts["succeeded"]
    return result


def test_two_loads_start_at_one_instant_and_are_one_run_with_one_report(uncork, together_words):
    done = uncork(*together_words("-c 2 -T 2.4 --warmup 0.3", "-c 2 -R 200 -D 2.4"), "-P", 1)
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = together_result_of(folder)
    assert result["kind"] == "together" and result["run"]["status"] == "complete"
    sql, http = (one["load"] for one in result["loads"])
    assert [one["name"] for one in result["loads"]] == ["sql", "http"]
    assert (sql["http"], http["settings"]["arrivals"]) == (None, "constant")
    assert http["counts"]["arrivals"] == 480 and set(http["http"]["statuses"]) == {"200"}
    plans = [json.loads((folder / "parts" / name / "plan.json").read_text()) for name in ("sql", "http")]
    (start,) = {plan["part"]["start_at_ns"] for plan in plans}
    assert 0 < start < time.monotonic_ns(), "one instant of the monotonic clock"
    assert result["apart_ns"] < 500_000_000
    said = " ".join(done.stdout.split())
    # Beside other programs, a generator may be late: then the answer begins with what was not sent.
    assert re.match(
        r"(Together, the loads handled|2 loads ran together, without failures, and arrivals not)", said
    )
    assert re.search(r" transactions a second \(sql\).* \(http\)", said)
    assert "sql: The server handled" in said and "http: The service handled" in said
    assert re.search(r"^sql: progress: ", done.stderr, re.MULTILINE)
    assert re.search(r"^http: progress: ", done.stderr, re.MULTILINE)
    page = (folder / "report.html").read_text()
    assert "Throughput of all loads over time" in page and "sql: latency" in page and "http: latency" in page
    again = uncork("report", "last")
    assert again.returncode == 0 and again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert "together: sql, http" in uncork("runs").stdout
    metrics = {one.key for one in run_figures(folder).figures}
    assert {("sql", "throughput"), ("http", "throughput"), ("http", "never sent")} <= metrics


def test_an_error_in_one_load_does_not_end_the_other_and_the_status_says_so(uncork, together_words):
    done = uncork(*together_words("-c 1 -T 1", "-c 1 -n 20", "/missing"))
    assert done.returncode == 2
    sql, http = (one["load"]["counts"] for one in together_result_of(uncork.runs[0])["loads"])
    assert (sql["failed"], http["succeeded"], http["errors"]) == (0, 0, {"status 404": 20})
    assert json.loads((uncork.runs[0] / "manifest.json").read_text())["status"] == "failed"


def test_ctrl_c_ends_both_and_keeps_what_was_measured(uncork, together_words, database):
    process = uncork.start(*together_words("-c 2 -T 600", "-c 2 -D 600"))
    with psycopg.connect(database.conninfo(), autocommit=True) as connection:
        clients = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT 1;'"
        until = time.monotonic() + 60
        while not all(list(one.glob("parts/*/glances.jsonl"))[1:] for one in uncork.runs or [uncork.folder]):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 130, error
        assert "Traceback" not in error and "what was measured until then is kept" in error
        assert connection.execute(clients).fetchone() == (0,), "no client is left"
    loads = together_result_of(uncork.runs[0])["loads"]
    assert [one["load"]["run"]["outcome"] for one in loads] == ["interrupted", "interrupted"]
    assert all(one["load"]["counts"]["succeeded"] > 0 for one in loads)


def test_a_load_that_cannot_start_ends_the_others_and_nothing_is_kept(
    uncork, together_words, database, service
):
    address = f"-h {database.host} -p {database.port} -U uncork postgres"
    done = uncork("load", "together", "--sql", f"-T 60 {address}", "--http", f"-D 60 {service}/")
    assert done.returncode == 1 and done.stderr.count("\n") <= 4
    assert "uncork: sql: " in done.stderr and "has no pgbench tables" in done.stderr
    assert uncork.runs == []
