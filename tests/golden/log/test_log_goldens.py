"""The reports on logs, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

from pathlib import Path

import pytest

from fakes.case_logs import case_logs
from fakes.goldens import compare, terminal
from fakes.terminals import markdown_of
from uncork.report.log.case_logs import render_case_logs_markdown, render_case_logs_terminal
from uncork.report.log.comparison import build_log_comparison_document, render_comparison_terminal

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("case-80.txt", terminal(render_case_logs_terminal, 80)),
        ("case-120.txt", terminal(render_case_logs_terminal, 120)),
        ("case.md", render_case_logs_markdown),
    ],
)
def test_the_log_half_of_a_case(name, render, tmp_path):
    compare(HERE / name, render(case_logs(tmp_path)))


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("comparison-80.txt", terminal(render_comparison_terminal, 80)),
        ("comparison.md", markdown_of(build_log_comparison_document)),
    ],
)
def test_two_logs(name, render, tmp_path):
    compare(HERE / name, render(case_logs(tmp_path).comparison))
