"""What the guides on runs show is what uncork prints, of loads that are made up but stored as real ones."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from hashlib import sha1
from pathlib import Path

import pytest

from fakes.load_results import ENVIRONMENT
from fakes.stored_loads import store_load

ROOT = Path(__file__).parents[2]
USUAL = (1.01, 0.98, 1.03, 0.97, 1.0, 1.02, 0.99, 1.01)


def shown(page: str) -> list[tuple[str, str]]:
    """Return the commands of a guide with the output that it shows under them, if it shows some."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "guides" / page).read_text(), re.DOTALL)
    return [
        (command, output)
        for block in blocks
        for command, output in re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def run(folder: Path, command: str) -> str:
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "UNCORK_RUNS": ".uncork/runs", "COLUMNS": "96"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guide_of_comparing_shows_what_is_printed(tmp_path):
    runs = tmp_path / ".uncork" / "runs"
    for number, slower in enumerate(USUAL):
        store_load(runs, number, slower, commit=f"{number:040x}")
    store_load(runs, 8, 1.35, commit="c" * 40)
    pairs = [pair for pair in shown("compare.md") if pair[1]]
    assert len(pairs) == 2
    for command, output in pairs:
        printed = run(tmp_path, command)
        wanted = output.removesuffix("...\n")
        assert "\n".join(text.rstrip() for text in printed.splitlines()).startswith(wanted.rstrip("\n"))


def test_the_guide_of_histories_shows_what_is_printed(tmp_path):
    runs = tmp_path / ".uncork" / "runs"
    draw = random.Random(4)
    newer = {**ENVIRONMENT, "server": {**ENVIRONMENT["server"], "version": "PostgreSQL 18.5"}}
    for number in range(16):
        level = (1.0 if number < 10 else 1.25) * draw.gauss(1, 0.02)
        commit = sha1(bytes([number // 5])).hexdigest()
        environment = ENVIRONMENT if number < 10 else newer
        store_load(runs, number, level, hours=24 * number, commit=commit, environment=environment)
    pairs = [pair for page in ("history.md", "import.md") for pair in shown(page) if pair[1]]
    (tmp_path / "wrk.txt").write_text((ROOT / "tests" / "fixtures" / "results" / "wrk.txt").read_text())
    assert [command.split()[1] for command, _ in pairs] == ["history", "import"]
    for command, output in pairs:
        printed = "\n".join(text.rstrip() for text in run(tmp_path, command).splitlines())
        assert printed.startswith(output.removesuffix("...\n").rstrip("\n"))


@pytest.mark.parametrize("page", ["compare.md", "history.md", "import.md"])
def test_the_guides_are_short(page):
    assert len((ROOT / "docs" / "guides" / page).read_text().splitlines()) < 140
