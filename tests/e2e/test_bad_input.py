"""Each mistake: one clear message, the right exit status, no traceback, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.disk import small_disk
from fakes.experiments import QUICK

SETUP = [
    ("SQL error in the set-up", ("CREATE TABLE t (", "CREATE TABEL t ("), [], "set-up of variant scan: line 1: syntax error"),
    ("SQL error in a workload", ("SELECT f FROM t", "SELECT g FROM t"), [], 'workload get, variant scan: column "g" does not exist'),
    ("an unknown server setting", ('shared_buffers = "32MB"', "no_such = 1"), [], 'unrecognized configuration parameter "no_such"'),
    ("a query without rows", ('{ generator = { kind = "uniform", min = 1, max = 3000 } }', '{ query = "SELECT id FROM t WHERE false" }'), [], "its query returned no rows to draw from"),
]  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("change", "options", "message"), [case[1:] for case in SETUP], ids=[case[0] for case in SETUP]
)
def test_a_set_up_that_fails_leaves_neither_server_nor_run(uncork, change, options, message):
    text = QUICK.replace(*change, 1)
    assert text != QUICK
    done = uncork("run", uncork.write(text), *options)
    assert done.returncode == 1, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not uncork.runs


@pytest.mark.postgres
def test_a_full_disk_under_the_store_keeps_what_was_measured(uncork):
    with small_disk("160k") as small:
        many = QUICK.replace('"50%"', '"0.01%"')
        done = uncork("run", uncork.write(many), "--runs", small / "runs")
        assert done.returncode == 2, done.stderr
        assert "No space left on device; free some space: what was measured so far is kept" in done.stderr
        assert "Traceback" not in done.stderr
        assert list((small / "runs").glob("*/trials/000001.parquet"))
        assert not list((small / "runs").rglob("*.new"))


def test_a_full_disk_under_what_is_imported_says_that_nothing_was(uncork):
    result = Path(__file__).parents[1] / "fixtures" / "results" / "wrk.txt"
    with small_disk("48k") as small:
        (small / "fill").write_bytes(bytes(40_000))
        done = uncork("import", result, "--runs", small / "runs")
        assert done.returncode == 1, done.stderr
        assert done.stderr.endswith("No space left on device; free some space; nothing was imported\n")
        assert not list((small / "runs").rglob("*.*"))


def test_a_full_disk_under_events_is_one_clear_message_and_leaves_nothing(uncork):
    log = Path(__file__).parents[1] / "fixtures" / "logs" / "same-events.stderr.log.gz"
    with small_disk("48k") as small:
        (small / "fill").write_bytes(bytes(40_000))
        done = uncork("profile", "logs", log, "--events", small / "events")
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[-1] == (
            f"uncork: cannot write events into {small / 'events'}: No space left on device; "
            "name another folder with --events"
        )
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
        assert not (small / "events").exists()
    assert not uncork.runs


@pytest.mark.postgres
def test_no_space_for_the_server_is_one_clear_message(uncork):
    with small_disk("60m") as small:
        done = uncork("run", uncork.write(QUICK), env={"UNCORK_SERVERS": str(small)})
        assert done.returncode == 1, done.stderr
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(small.glob("pg-*"))


def test_a_folder_for_runs_that_cannot_be_made_is_said_before_anything_runs(uncork, tmp_path):
    (tmp_path / "file").write_text("")
    done = uncork("run", uncork.write(QUICK), "--runs", tmp_path / "file" / "runs")
    assert done.returncode == 1, done.stderr
    assert "Not a directory; nothing was measured" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_password_is_told_and_never_shown(uncork):
    text = QUICK.replace('[server.settings]\nshared_buffers = "32MB"\n', "")
    done = uncork("run", uncork.write(text), "--dsn", "postgresql://someone:hunter2@127.0.0.1:1/db")
    assert done.returncode == 1
    assert "hunter2" not in done.stderr + done.stdout
    assert "Connection refused" in done.stderr


@pytest.mark.parametrize("words", [[], ["load"], ["profile"]])
def test_without_words_there_is_the_help_and_nothing_else(uncork, words):
    done = uncork(*words)
    assert done.returncode == 1
    assert done.stdout.strip().startswith("Usage: ")
    assert done.stderr == ""
