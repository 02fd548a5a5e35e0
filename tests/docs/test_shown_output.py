"""What the guides on runs show is what uncork prints, of loads that are made up but stored as real ones."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("page", ["compare.md"])
def test_the_guides_are_short(page):
    assert len((ROOT / "docs" / "guides" / page).read_text().splitlines()) < 140
