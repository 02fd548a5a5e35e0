"""The reports, word for word. UNCORK_BLESS=1 rewrites them; read the difference before you keep it."""

from pathlib import Path

import pytest

from fakes.goldens import compare, terminal
from fakes.results import bare_result, comparison, large_result, small_result
from uncork.model.verdict import Verdict
from uncork.report.json_document import render_json
from uncork.report.markdown import render_markdown
from uncork.report.terminal import render_terminal

HERE = Path(__file__).parent


def refused_result():
    return bare_result(
        comparison("bytea", Verdict.REFUSED, reason="returned 3 rows, char 4"),
        comparison("uuid", Verdict.SLOWER, 6.17, 6.02, 6.3),
        comparison("varchar", Verdict.SKIPPED, reason="no space left on the device"),
    )


@pytest.mark.parametrize(
    ("name", "make", "render"),
    [
        ("small.md", small_result, render_markdown),
        ("small.json", small_result, render_json),
        ("small-80.txt", small_result, terminal(render_terminal, 80)),
        ("large.md", large_result, render_markdown),
        ("large-80.txt", large_result, terminal(render_terminal, 80)),
        ("large-120.txt", large_result, terminal(render_terminal, 120)),
        ("refused.md", refused_result, render_markdown),
        ("refused-80.txt", refused_result, terminal(render_terminal, 80)),
    ],
)
def test_report(name, make, render):
    compare(HERE / name, render(make()))
