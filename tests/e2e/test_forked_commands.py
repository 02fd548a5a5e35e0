"""The other tests' commands are forks of a process that has imported uncork: no test may notice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ("load", "sql", "--help"),
        ("frobnicate",),
        ("case", "list"),
        ("profile", "cpu", "--command", "sh", "-c", "pwd > seen; echo $COLUMNS >> seen; exit 3"),
    ],
    ids=" ".join,
)
def test_a_fork_says_and_does_what_a_process_of_its_own_does(uncork, words):
    own = subprocess.run(
        [sys.executable, "-m", "uncork", *words],
        cwd=uncork.folder,
        env=uncork.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    (uncork.folder / "seen").unlink(missing_ok=True)
    forked = uncork(*words)
    if words[0] == "profile":  # what was measured differs, and so does the run's name
        assert (uncork.folder / "seen").read_text() == f"{uncork.folder}\n120\n"
        assert forked.returncode == own.returncode == 2
        assert len(uncork.runs) == 2
    else:
        assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)


def test_one_that_takes_too_long_is_killed_and_the_next_one_runs(commands, tmp_path):
    sleeping = ("profile", "cpu", "--command", "sleep", "600")
    with pytest.raises(subprocess.TimeoutExpired):
        commands.run(sleeping, tmp_path, os.environ, 1.0)
    assert commands.run(("--version",), tmp_path, os.environ, 60).stdout.startswith("uncork ")
