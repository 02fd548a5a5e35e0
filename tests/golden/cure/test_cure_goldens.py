"""Reports of cures, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

from pathlib import Path

import pytest

from fakes.cures import healthy_cure, interrupted_cure, nothing_proven, proven_cure
from fakes.goldens import compare, terminal
from uncork.report.cure.document import build_cure_document, pull_request_markdown, render_cure_terminal
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text

HERE = Path(__file__).parent
CURES = {
    "proven": proven_cure,
    "nothing": nothing_proven,
    "healthy": healthy_cure,
    "interrupted": interrupted_cure,
}


def body(result):
    """Return the page without its style sheet and scripts."""
    page = html_page(build_cure_document(result))
    return page[page.index("<main") : page.index("</main>")] + "</main>\n"


@pytest.mark.parametrize("cure", CURES)
def test_the_terminal(cure):
    compare(HERE / f"{cure}-100.txt", terminal(render_cure_terminal, 100)(CURES[cure]()))


def test_a_narrow_terminal():
    compare(HERE / "proven-60.txt", terminal(render_cure_terminal, 60)(proven_cure()))


@pytest.mark.parametrize("cure", CURES)
def test_the_text_for_a_pull_request(cure):
    compare(HERE / f"{cure}.md", pull_request_markdown(CURES[cure]()))


@pytest.mark.parametrize(("name", "write"), [("proven.html", body), ("proven.json", json_text)])
def test_other_forms(name, write):
    compare(HERE / name, write(proven_cure()))
