"""The report on a watched server, word for word. UNCORK_BLESS=1 rewrites it; read the difference first."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from fakes.database_results import database_result
from uncork.report.database_graph import foreign_key_dot
from uncork.report.database_terminal import render_database_terminal
from uncork.report.database_writers import render_database_markdown

HERE = Path(__file__).parent


def terminal(width, **options):
    def render(result):
        console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
        render_database_terminal(result, console, **options)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"

    return render


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("watched-80.txt", terminal(80)),
        ("watched-full-120.txt", terminal(120, full=True)),
        ("watched.md", render_database_markdown),
        ("tables.dot", foreign_key_dot),
    ],
)
def test_the_report(name, render):
    golden, found = HERE / name, render(database_result())
    if os.environ.get("UNCORK_BLESS"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{name} changed; UNCORK_BLESS=1 rewrites it"
