"""Messages on standard error: lines of a terminal break between words, and commands stay whole."""

from io import StringIO

import pytest
from rich.console import Console

from uncork.cli import console

TEXT = (
    "set-up has taken 25.0 s of the budget of 30.0 s so far: raise the budget, or see `uncork plan --help`; "
    "the Python module granian is not installed: .venv/bin/python -m pip install 'granian>=2.8,<3'"
)


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_of_a_terminal_break_between_words(monkeypatch, width):
    shown = StringIO()
    talk = Console(file=shown, force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(console, "talk", talk)
    console.note(TEXT)
    lines = shown.getvalue().splitlines()
    assert " ".join(lines) == f"uncork: {TEXT}"
    pip = [line for line in lines if "-m pip" in line]
    assert "`uncork plan --help`" in shown.getvalue() and pip[0].endswith("install 'granian>=2.8,<3'")
    assert all(len(line) <= width for line in lines if line not in pip)


def test_a_message_in_a_file_is_one_line(capsys):
    console.note(TEXT)
    assert capsys.readouterr().err == f"uncork: {TEXT}\n"
