"""The reports on loads, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

from pathlib import Path

import pytest

from fakes.goldens import compare, terminal
from fakes.http_results import http_result
from fakes.load_results import closed_result, open_result, refused_result
from fakes.terminals import markdown_of
from uncork.report.load.document import build_load_document, render_load_terminal
from uncork.report.load.gobench import render_go_bench

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "make", "render"),
    [
        ("closed-80.txt", closed_result, terminal(render_load_terminal, 80, statements=False)),
        ("open-100.txt", open_result, terminal(render_load_terminal, 100, statements=True)),
        ("refused-80.txt", refused_result, terminal(render_load_terminal, 80, statements=True)),
        ("open.md", open_result, markdown_of(build_load_document)),
        ("closed.bench", closed_result, render_go_bench),
        ("open.bench", open_result, render_go_bench),
        ("http-100.txt", http_result, terminal(render_load_terminal, 100, statements=False)),
        ("http.md", http_result, markdown_of(build_load_document)),
        ("http.bench", http_result, render_go_bench),
    ],
)
def test_load_report(name, make, render):
    compare(HERE / name, render(make()))
