import io
from dataclasses import replace

import pytest
from rich.console import Console

from fakes.results import small_result as small
from fakes.terminals import markdown_of
from uncork.model.results.experiment import GrowthFacts, GrowthLine
from uncork.report.experiment.document import build_document, render_terminal
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text

MS, SECOND = 10**6, 10**9
LINES = (
    GrowthLine(
        (), "select", "char", (1e5, 3e5, 1e6), (25 * MS, 65 * MS, 205 * MS), 4, 0.91, 0.89, 0.93,
        ("linear",), 36 * SECOND, 23 * SECOND, 40 * SECOND,
    ),
    GrowthLine(
        (), "select", "uuid", (1e5, 3e5, 1e6), (5 * MS, 5 * MS, 5 * MS), 4, 0.01, -0.05, 0.07,
        ("logarithmic", "power", "linear"), 5 * MS, 5 * MS, 41.23 * MS,
    ),
    GrowthLine(
        (), "delete", "uuid", (1e5, 3e5, 1e6), (5 * MS, 5 * MS, 500 * MS), 4, 2.0, 1.9, 2.1,
        (), None, None, None,
    ),
)  # fmt: skip


def result(lines=LINES):
    return replace(small(), growth=GrowthFacts("rows", 180e6, 0.95, lines))


def in_terminal(found):
    console = Console(file=io.StringIO(), width=120)
    render_terminal(found, console)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "render", [in_terminal, markdown_of(build_document), lambda result: html_page(build_document(result))]
)
def test_every_report_tells_the_figures_as_an_extrapolation(render):
    text = render(result()).replace("\N{NO-BREAK SPACE}", " ")
    flat = " ".join(text.split())
    assert "How time grows with rows" in flat
    assert "The values at 180 000 000 are extrapolated to 180 times the largest measured size" in flat
    assert "outgrows memory" in flat
    assert "23 s to 40 s" in flat
    assert "no shape fits" in flat


def test_the_table_tells_the_power_and_no_more_digits_than_are_known():
    text = markdown_text(build_document(result()))
    assert "| select | uuid | 5.00 ms | 5.00 ms | 0.01 \\[−0.05, 0.07\\] | 5 ms to 41 ms |" in text
    assert "| select | char | 25.0 ms | 205 ms | 0.91 \\[0.89, 0.93\\] | 23 s to 40 s |" in text


def test_too_few_sizes_are_told_and_no_figures():
    text = markdown_text(build_document(result(())))
    assert "needs at least three sizes and three rounds" in text
    assert "extrapolated" not in text


def test_an_experiment_that_does_not_ask_has_no_such_section():
    assert "How time grows" not in markdown_text(build_document(small()))
