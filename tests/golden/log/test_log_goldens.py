"""The reports on logs, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from fakes.case_logs import case_logs
from uncork.report.case_logs import render_case_logs_markdown, render_case_logs_terminal
from uncork.report.log_comparison import render_comparison_markdown, render_comparison_terminal

HERE = Path(__file__).parent


def terminal(width, write):
    def render(result):
        console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
        write(result, console)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"

    return render


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("case-80.txt", terminal(80, render_case_logs_terminal)),
        ("case-120.txt", terminal(120, render_case_logs_terminal)),
        ("case.md", render_case_logs_markdown),
    ],
)
def test_the_log_half_of_a_case(name, render, tmp_path):
    _compare(name, render(case_logs(tmp_path)))


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("comparison-80.txt", terminal(80, render_comparison_terminal)),
        ("comparison.md", render_comparison_markdown),
    ],
)
def test_two_logs(name, render, tmp_path):
    _compare(name, render(case_logs(tmp_path).comparison))


def _compare(name, found):
    golden = HERE / name
    if os.environ.get("UNCORK_BLESS"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{name} changed; UNCORK_BLESS=1 rewrites it"
