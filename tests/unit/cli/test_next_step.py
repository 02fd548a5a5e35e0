"""Commands that are printed as the next step work in the shell that reads them."""

import sys
from pathlib import Path

import pytest

from uncork.cli.next_step import next_command, say_next, serve_command


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with uncork in its .venv, as the working directory; `uncork` is not on the PATH."""
    program = tmp_path / ".venv" / "bin" / "uncork"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("UNCORK_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return program


def test_a_program_that_is_not_on_the_path_is_named_by_its_place(checkout, monkeypatch, tmp_path_factory):
    assert next_command("serve") == ".venv/bin/uncork serve"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert next_command("serve") == f"{checkout} serve"


def test_a_program_on_the_path_is_named_as_people_type_it(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout.parent))
    assert next_command("serve") == "uncork serve"


def test_another_uncork_on_the_path_is_not_taken_for_this_one(checkout, monkeypatch, tmp_path):
    other = tmp_path / "other" / "uncork"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert next_command("serve") == ".venv/bin/uncork serve"


@pytest.mark.usefixtures("checkout")
def test_runs_at_another_place_are_served_from_there(monkeypatch):
    assert serve_command(Path(".uncork/runs")) == ".venv/bin/uncork serve"
    assert serve_command(Path("my runs")) == ".venv/bin/uncork serve --runs 'my runs'"
    monkeypatch.setenv("UNCORK_RUNS", "my runs")
    assert serve_command(Path("my runs")) == ".venv/bin/uncork serve"
    assert serve_command(Path(".uncork/runs")) == ".venv/bin/uncork serve --runs .uncork/runs"


def test_what_makes_printed_commands_work_is_said_once_it_is_needed(checkout, capsys, monkeypatch):
    say_next(Path(".uncork/runs"))
    assert capsys.readouterr().err == (
        "uncork: to browse all runs: .venv/bin/uncork serve\n"
        f'uncork: `uncork` is not on your PATH; add it: export PATH={checkout.parent}:"$PATH"\n'
    )
    monkeypatch.setenv("PATH", str(checkout.parent))
    say_next(Path(".uncork/runs"))
    assert capsys.readouterr().err == "uncork: to browse all runs: uncork serve\n"
