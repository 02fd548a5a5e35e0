"""The reports, word for word. UNCORK_BLESS=1 rewrites them; read the difference before you keep it."""

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.goldens import compare, terminal
from fakes.results import bare_result, comparison, large_result, small_result
from fakes.terminals import markdown_of
from uncork.model.verdict import Verdict
from uncork.report.experiment.document import build_document, render_terminal
from uncork.report.write.json_document import json_text

HERE = Path(__file__).parent


def refused_result():
    return bare_result(
        comparison("bytea", Verdict.REFUSED, reason="returned 3 rows, char 4"),
        comparison("uuid", Verdict.SLOWER, 6.17, 6.02, 6.3),
        comparison("varchar", Verdict.SKIPPED, reason="no space left on the device"),
    )


def early_result():
    """Return a result in which one direction is known before there are rounds enough, and one is not."""
    return bare_result(
        _after_four_rounds(
            "uuid",
            Verdict.NOT_ENOUGH_EVIDENCE,
            0.59,
            0.52,
            0.66,
            reason="faster so far (0.52 to 0.66); the size is not settled after 4 of 5 rounds",
            direction="faster",
        ),
        _after_four_rounds(
            "bytea", Verdict.NOT_ENOUGH_EVIDENCE, 0.97, 0.7, 1.3, reason="only 4 rounds; a verdict needs 5"
        ),
        comparison("varchar", Verdict.NO_PRACTICAL_DIFFERENCE, 1.0, 0.98, 1.02),
    )


def _after_four_rounds(*facts, **more):
    return replace(comparison(*facts, **more), rounds=4)


@pytest.mark.parametrize(
    ("name", "make", "render"),
    [
        ("small.md", small_result, markdown_of(build_document)),
        ("small.json", small_result, json_text),
        ("small-80.txt", small_result, terminal(render_terminal, 80)),
        ("large.md", large_result, markdown_of(build_document)),
        ("large-80.txt", large_result, terminal(render_terminal, 80)),
        ("large-120.txt", large_result, terminal(render_terminal, 120)),
        ("refused.md", refused_result, markdown_of(build_document)),
        ("early.md", early_result, markdown_of(build_document)),
        ("early-80.txt", early_result, terminal(render_terminal, 80)),
        ("refused-80.txt", refused_result, terminal(render_terminal, 80)),
    ],
)
def test_report(name, make, render):
    compare(HERE / name, render(make()))
