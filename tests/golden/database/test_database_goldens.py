"""The report on a watched server, word for word. UNCORK_BLESS=1 rewrites it; read the difference first."""

from pathlib import Path

import pytest

from fakes.database_results import database_result
from fakes.goldens import compare, terminal
from fakes.terminals import markdown_of
from uncork.report.database.document import build_database_document, render_database_terminal
from uncork.report.database.graph import foreign_key_dot

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("watched-80.txt", terminal(render_database_terminal, 80)),
        ("watched-full-120.txt", terminal(render_database_terminal, 120, full=True)),
        ("watched.md", markdown_of(build_database_document)),
        ("tables.dot", foreign_key_dot),
    ],
)
def test_the_report(name, render):
    compare(HERE / name, render(database_result()))
