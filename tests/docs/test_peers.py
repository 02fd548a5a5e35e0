"""The page about peers has a row for each of 87 abilities, counts them, and shows commands that exist."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import typer
from tools.generate import _commands

from uncork.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "peers.md").read_text()
ROWS = [
    tuple(cell.strip() for cell in found)
    for found in re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
]
ABILITIES = 87


def commands():
    """Yield each command of the page with the number of its row."""
    for number, *_, cell in ROWS:
        for command in re.findall(r"`(uncork (?:[a-z]|--)[^`]+)`", cell):
            yield number, command


def known_verbs():
    return {tuple(path[1:]): found for path, found in _commands(typer.main.get_command(app), ["uncork"])}


def test_each_ability_has_one_row_in_order():
    assert [int(row[0]) for row in ROWS] == list(range(1, ABILITIES + 1))


def test_the_summary_counts_the_rows():
    counts = Counter(row[3] for row in ROWS)
    assert set(counts) <= {"yes", "in part", "no"}
    assert (
        f"Of {ABILITIES} abilities that its peers have or that people ask for, uncork has {counts['yes']}, "
        f"has {counts['in part']} in part, and lacks {counts['no']}."
    ) in PAGE


def test_a_row_with_less_than_all_says_what_is_missing():
    for number, _, _, answer, cell in ROWS:
        if answer == "yes":
            assert re.match(r"`uncork [^`]+`( \(after row \d+\))?<br>`[^`]+`", cell), number
        else:
            assert "ot yet" in cell or "../decisions/ADR-" in cell, number


def test_every_command_is_a_verb_with_its_options():
    known, seen = known_verbs(), 0
    for number, command in commands():
        words = shlex.split(command)[1:]
        if words == ["--version"]:
            continue
        verb = tuple(words[:2]) if tuple(words[:2]) in known else tuple(words[:1])
        assert verb in known, f"row {number}: {command}"
        options = {option for parameter in known[verb].params for option in parameter.opts} | {"--help"}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z][^ ]*$", word)}
        assert used <= options, f"row {number}: {command}: {used - options}"
        seen += 1
    assert seen > ABILITIES - 5


def test_every_file_of_a_command_and_every_row_it_follows_exists():
    for number, command in commands():
        for word in shlex.split(command):
            if word.startswith(("examples/", "tests/")):
                assert (ROOT / word).exists(), f"row {number}: {word}"
    for number, *_, cell in ROWS:
        for before in re.findall(r"\(after row (\d+)\)", cell):
            assert int(before) != int(number)
            assert int(before) <= ABILITIES
