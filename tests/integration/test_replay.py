"""A real server logs sessions with transactions and pauses; they are recorded, and replayed on copies."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time

import psycopg
import pytest
from typer.testing import CliRunner

import uncork
from uncork.cli.app import app
from uncork.engines.embedded import EmbeddedServer
from uncork.model.database.recording import TRANSACTIONS

pytestmark = pytest.mark.postgres

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


def connect(server, database="postgres"):
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
def server():
    found = EmbeddedServer({"log_min_duration_statement": 0, "log_line_prefix": "%m [%p] %q%u@%d "})
    found.start()
    with connect(found) as connection:
        connection.execute(TABLES)
        for copy in ("copy", "again", "mixed", "bound"):
            connection.execute(f"CREATE DATABASE {copy} TEMPLATE postgres STRATEGY FILE_COPY")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def recorded(server, tmp_path_factory):
    """The recording of two sessions, the second of which waits for a lock of the first."""
    folder = tmp_path_factory.mktemp("recorded")
    held = threading.Event()

    def second():
        with connect(server) as connection:
            cursor = psycopg.ClientCursor(connection)
            held.wait()
            pay(connection, cursor, 2, 0)
            cursor.execute("SELECT balance::text FROM account WHERE id IN (1, 2) AND balance > 1.5")
            pay(connection, cursor, 3, 0)

    thread = threading.Thread(target=second)
    thread.start()
    with connect(server) as connection:
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
        ["capture", "--sessions", *map(str, server.logs), "-o", str(folder / "rec"), "-d", "postgres", "-q"],
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


def test_a_replay_leaves_the_same_rows_and_waits_for_the_same_locks(server, recorded, tmp_path):
    run = uncork.load_sql(server.conninfo("copy"), replay=str(recorded[0]), jobs=2, runs=tmp_path)
    counts, settings = run.result.counts, run.result.settings
    assert (counts.arrivals, counts.succeeded, counts.failed) == (5, 5, 0)
    assert (settings.recorded, settings.clients, settings.arrivals) == ("replay", 2, "trace")
    assert "diverged" not in " ".join(run.result.warnings)
    with connect(server) as source, connect(server, "copy") as copy:
        assert copy.execute(SUMS).fetchone() == source.execute(SUMS).fetchone()
    # The first pause holds the row for which the second session waits.
    assert run.result.run.elapsed_ns > PAUSE * 1e9
    assert run.result.operation.max_ns > 0.8 * PAUSE * 1e9


def test_a_slower_replay_takes_longer_and_a_second_one_diverges(server, recorded, tmp_path):
    run = uncork.load_sql(server.conninfo("again"), replay=str(recorded[0]), speed=0.5, runs=tmp_path)
    assert run.result.counts.succeeded == 5
    assert run.result.run.elapsed_ns > 2 * PAUSE * 1e9
    # The notes of the second replay exist already.
    second = uncork.load_sql(server.conninfo("again"), replay=str(recorded[0]), speed=20, runs=tmp_path)
    failed = second.result.counts.failed
    assert failed == second.result.counts.errors["23505"] > 0
    assert f"The replay diverged: {failed} of 5 transactions failed" in " ".join(second.result.warnings)


def test_a_recording_is_a_mix_at_any_rate(server, recorded, tmp_path):
    with connect(server, "mixed") as connection:
        connection.execute("ALTER TABLE entry DROP CONSTRAINT entry_note_key")
    run = uncork.load_sql(
        server.conninfo("mixed"), script=str(recorded[0]), rate=100, time="1s", runs=tmp_path
    )
    assert run.result.counts.failed == 0 and run.result.counts.succeeded > 50
    assert run.result.settings.recorded == "mix"
    with connect(server, "mixed") as connection:
        (notes,) = connection.execute("SELECT array_agg(DISTINCT note) FROM entry").fetchone()
    assert set(notes) <= set(NOTES) and len(notes) > 2


def test_shorter_transactions_let_more_clients_work(server, recorded, tmp_path):
    shutil.copytree(recorded[0], tmp_path / "rec")
    file = tmp_path / "rec" / TRANSACTIONS
    paused = [one for one in file.read_text().splitlines() if json.loads(one)["took_us"] > PAUSE * 1e6]
    held = next(one for one in paused if int(json.loads(one)["values"]["w3"]) > PAUSE * 1e6 / 2)
    file.write_text(held)
    done = {
        short: uncork.load_sql(
            server.conninfo("mixed"),
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


def test_parameters_can_be_bound_as_the_application_did(server, recorded, tmp_path):
    with pytest.raises(uncork.errors.UsageError, match="leave out -M"):
        uncork.load_sql(server.conninfo("bound"), replay=str(recorded[0]), protocol="prepared", runs=tmp_path)
    shutil.copytree(recorded[0], tmp_path / "rec")
    file = tmp_path / "rec" / TRANSACTIONS
    lines = [one for one in file.read_text().splitlines() if not re.search(r'"t\d+_?\d*":', one)]
    file.write_text("\n".join(lines))
    for protocol in ("prepared", "extended"):
        with connect(server, "bound") as connection:
            connection.execute("TRUNCATE entry")
        run = uncork.load_sql(
            server.conninfo("bound"), replay=str(tmp_path / "rec"), protocol=protocol, runs=tmp_path
        )
        assert run.result.counts.failed == 0 and run.result.counts.succeeded == len(lines) == 2
        with connect(server, "bound") as connection:
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
