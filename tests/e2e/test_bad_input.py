"""Each mistake: one clear message, the right exit status, no traceback, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.disk import small_disk
from fakes.experiments import QUICK

WITHOUT_SERVER = [
    ("missing file", ["run", "nope.toml"], None, "cannot read nope.toml: No such file or directory"),
    ("no file", ["run"], None, "name an experiment file"),
    ("unknown option", ["run", "--bugdet", "5s"], None, 'no such option: --bugdet; did you mean "--budget"? Try `uncork run --help`'),
    ("unknown command", ["frobnicate"], None, 'no such command "frobnicate"; try `uncork --help`'),
    ("misspelt command", ["runs", "tga"], None, 'no such command "tga"; did you mean "tag"? Try `uncork runs --help`'),
    ("no argument", ["runs", "name"], None, 'missing argument "RUN"; try `uncork runs name --help`'),
    ("nothing to guard", ["guard"], None, "name an experiment file or a stored run, or resume an interrupted guard with --resume"),
    ("no number", ["guard", "last", "--times", "a"], None, 'invalid value "a" for option --times; expecting a whole number'),
    ("unknown key", ["run", "FILE"], ("operations = 40", "operatons = 40"), 'unknown key "operatons"; did you mean "operations"?'),
    ("a variant named twice", ["run", "FILE"], ("[variants.key]", "[variants.scan]"), "[variants.scan]: this name is already used above"),
    ("no baseline", ["run", "FILE"], ("baseline = true", ""), "exactly one variant must have baseline = true; found none"),
    ("no room for a block", ["run", "FILE", "--budget", "50ms"], ("operations = 40", 'duration = "100ms"'), "is too short for one block"),
    ("the option of another verb", ["load", "http", "-T", "5", "http://127.0.0.1:9/"], None, 'no such option: -T; did you mean "-D"? Try `uncork load http --help`'),
    ("the option of another verb, and -D is taken", ["load", "sql", "--for", "5"], None, 'no such option: --for; did you mean "-T"?'),
    ("the option of another verb, spelt out", ["profile", "db", "--duration", "5"], None, 'no such option: --duration; did you mean "--for"?'),
    ("no time", ["run", "FILE", "--budget", "soon"], None, 'expected a time with a unit'),
    ("unknown factor", ["run", "FILE", "--set", "rows=1"], None, "--set rows=...: there is no such factor"),
    ("unknown workload", ["run", "FILE", "--workload", "gett"], None, 'there is no workload "gett"; did you mean "get"?'),
    ("unknown variant expected", ["run", "FILE", "--expect", "kee=faster"], None, 'there is no variant "kee"; did you mean "key"?'),
    ("unreachable server", ["run", "FILE", "--dsn", "host=127.0.0.1 port=1 dbname=x"], ("[server.settings]\nshared_buffers", "[stop]\nblocks = 2\n#"), ""),
    ("settings on an existing server", ["run", "FILE", "--dsn", "host=127.0.0.1 port=1"], None, "[server.settings] cannot be set on an existing server"),
    ("no such folder of binaries", ["run", "FILE", "--pg-bin", "/nope"], None, "no such folder"),
    ("no such run", ["report", "nope"], None, "there are no runs in"),
    ("two forms at once", ["report", "--json", "--markdown"], None, "--json and --markdown both print the result: choose one"),
    ("two forms of a run", ["run", "FILE", "--json", "--markdown"], None, "--json and --markdown both print the result: choose one"),
    ("a run's page in no folder", ["case", "run", "cluster-names", "--html", "nowhere/page.html"], None, "cannot write nowhere/page.html: there is no folder"),
    ("a page in no folder", ["report", "--html", "nowhere/page.html"], None, "cannot write nowhere/page.html: there is no folder"),
    ("no such case", ["case", "run", "cluster-name"], None, 'did you mean "cluster-names"?'),
    ("a broken file", ["plan", "FILE"], ("[setup]", "[setup"), "not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [case[1:] for case in WITHOUT_SERVER],
    ids=[case[0] for case in WITHOUT_SERVER],
)
def test_a_mistake_is_told_before_anything_runs(uncork, arguments, change, message):
    text = QUICK if change is None else QUICK.replace(*change, 1)
    assert change is None or text != QUICK
    path = uncork.write(text)
    done = uncork(*[path if word == "FILE" else word for word in arguments])
    assert done.returncode == 1, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not uncork.runs


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
