"""Verbs report the failed runs that the word `last` skips."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fakes.stored_loads import store_load
from uncork.cli.app import app
from uncork.store.layout import closed, name_run, read_manifest, write_manifest


def fail(folder):
    manifest = replace(read_manifest(folder), attempts=())
    write_manifest(folder, closed(manifest, "failed", "none of 7 operations succeeded", 1))


@pytest.fixture
def loads(tmp_path):
    """Store four loads, of which the last two failed."""
    folders = [store_load(tmp_path, number) for number in range(4)]
    for folder in folders[2:]:
        fail(folder)
    return folders


@pytest.mark.parametrize("words", [
    ("report", "last"),
    ("report",),
    ("compare", "last"),
    ("runs", "tag", "last", "a"),
    ("runs", "name", "last", "a"),
], ids=" ".join)  # fmt: skip
def test_a_verb_skips_failed_runs_and_says_so(words, loads, tmp_path):
    name_run(tmp_path, loads[0].name, "baseline")
    done = CliRunner().invoke(app, [*words, "--runs", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (
        f'"last" skips 2 newer runs, such as {loads[3].name}, which failed (none of 7 operations succeeded); '
        f"`uncork report {loads[3].name}` shows what failed"
    ) in done.stderr
    assert loads[1].name in done.output
    assert loads[3].name not in done.stdout


def test_a_failed_run_that_is_named_is_shown(loads, tmp_path):
    done = CliRunner().invoke(app, ["report", loads[3].name, "--runs", str(tmp_path)])
    assert done.exit_code == 0
    assert "skips" not in done.stderr
