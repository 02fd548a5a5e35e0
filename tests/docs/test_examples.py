"""Every example of the docs runs, and every command in the guides exists (README: see test_readme.py)."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*/experiment.toml"))
GUARD = ROOT / "examples" / "guard" / "experiment.toml"
"""A guard runs it below, as its README does."""
PAGES = sorted([*ROOT.glob("docs/tutorial/*.md"), *ROOT.glob("docs/guides/*.md")])


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def run(commands):
    """Run `uncork` with arguments in a folder."""
    return lambda folder, *arguments: commands.run(arguments, folder, os.environ, 400)


def test_there_are_examples_and_pages():
    assert GUARD in EXAMPLES
    assert len(PAGES) >= 4


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one != GUARD], ids=lambda path: path.parent.name
)
def test_an_example_runs_and_reaches_a_verdict_of_some_kind(run, example, tmp_path):
    done = run(tmp_path, "run", str(example), "--budget", "30s", "--precision", "99%")
    assert done.returncode == 0, done.stderr
    result = json.loads(run(tmp_path, "report", "last", "--json").stdout)
    assert all(comparison["rounds"] > 0 for comparison in result["comparisons"])


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.thorough
def test_the_example_of_a_guard_finds_the_index_that_fits_no_more_and_writes_every_output(run, tmp_path):
    files = {name: tmp_path / f"guard.{name}" for name in ("xml", "txt", "md", "html")}
    options = {"--junit": "xml", "--gobench": "txt", "--summary": "md", "--html": "html"}
    written = [word for option, name in options.items() for word in (option, str(files[name]))]
    words = ("--candidate", "variant=branch", "--budget", "90s", "--no-confirm")
    done = run(tmp_path, "guard", str(GUARD), *words, *written)
    assert done.returncode == 3, done.stderr
    broken = {
        case.get("name")
        for case in ElementTree.parse(files["xml"]).iter("testcase")
        if case.find("failure") is not None
    }
    assert {"plan unchanged (list)", "buffers an operation <= baseline (list)"} <= broken
    assert "-    Index Cond: (customer = ?)" in done.stdout
    assert files["md"].read_text().startswith("✗ **Broken: ")
    assert "<!-- uncork-guard: orders -->" in files["md"].read_text()
    assert files["txt"].read_text().count("BenchmarkGuardOrders/workload=list 1 ") >= 20
    assert "plan unchanged" in files["html"].read_text()
    (kept,) = (tmp_path / "runs").glob("*/guard.json")
    assert json.loads(kept.read_text())["status"] == 3


def verbs() -> dict[tuple[str, ...], object]:
    from tools.generate import _commands, app, typer

    return {tuple(path[1:]): command for path, command in _commands(typer.main.get_command(app), ["uncork"])}


def check(line: str, known: dict[tuple[str, ...], object]) -> tuple[str, ...]:
    """See that a command exists with its options; return the words that name it."""
    words = shlex.split(line)
    assert words[0] == "uncork", line
    verb = tuple(words[1:3]) if tuple(words[1:3]) in known else tuple(words[1:2])
    assert verb in known, line
    options = {option for parameter in known[verb].params for option in parameter.opts}
    ends = [words.index(word) for word in ("--", "--command") if word in words]
    ours = words[: min(ends)] if ends else words
    used = {word.split("=")[0] for word in ours if word.startswith("--")}
    assert used <= options, f"{line}: {used - options}"
    return verb


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_command_of_a_page_exists_with_its_options(page):
    known = verbs()
    for line in commands(page):
        check(line, known)


def test_the_help_of_every_verb_ends_with_examples_that_exist():
    from uncork.cli.examples import EXAMPLES

    known = verbs()
    assert {tuple(verb.split()) for verb in EXAMPLES} == set(known)
    for verb, command in known.items():
        examples = EXAMPLES[" ".join(verb)]
        assert all(check(example, known) == verb for example in examples), examples
        assert all(f"`{example}`" in (command.epilog or "") for example in examples), verb


def test_the_help_lists_every_verb_once():
    from tools.generate import app, typer

    group = typer.main.get_command(app)
    listed = group.list_commands(typer.Context(group))
    assert sorted(listed) == sorted(group.commands)
    assert all(group.commands[verb].rich_help_panel for verb in listed)


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.thorough
def test_the_tutorial_works_when_followed(run, tmp_path):
    assert run(tmp_path, "new", "orders.toml").returncode == 0
    assert run(tmp_path, "plan", "orders.toml").returncode == 0
    done = run(tmp_path, "run", "orders.toml", "--set", "rows=10000", "--budget", "30s", "--precision", "99%")
    assert done.returncode == 0, done.stderr
    assert "btree" in done.stdout or "B-tree" in done.stdout


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()))))
def test_every_link_of_the_readme_leads_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()
