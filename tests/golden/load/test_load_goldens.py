"""The reports on loads, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from fakes.http_results import http_result
from fakes.load_results import closed_result, open_result, refused_result
from uncork.report.load_gobench import render_go_bench
from uncork.report.load_terminal import render_load_terminal
from uncork.report.load_writers import render_load_markdown

HERE = Path(__file__).parent


def terminal(width, *, statements):
    def render(result):
        console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
        render_load_terminal(result, console, statements=statements)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"

    return render


@pytest.mark.parametrize(
    ("name", "make", "render"),
    [
        ("closed-80.txt", closed_result, terminal(80, statements=False)),
        ("open-100.txt", open_result, terminal(100, statements=True)),
        ("refused-80.txt", refused_result, terminal(80, statements=True)),
        ("open.md", open_result, render_load_markdown),
        ("closed.bench", closed_result, render_go_bench),
        ("open.bench", open_result, render_go_bench),
        ("http-100.txt", http_result, terminal(100, statements=False)),
        ("http.md", http_result, render_load_markdown),
        ("http.bench", http_result, render_go_bench),
    ],
)
def test_load_report(name, make, render):
    found, golden = render(make()), HERE / name
    if os.environ.get("UNCORK_BLESS"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{name} changed; UNCORK_BLESS=1 rewrites it"
