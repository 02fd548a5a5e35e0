"""The reports on logs, word for word. UNCORK_BLESS=1 rewrites them; read the difference first."""

from pathlib import Path

import pytest

from fakes.answered import compare_log_results
from fakes.goldens import compare, terminal
from fakes.logs import line, result
from fakes.terminals import markdown_of
from uncork.report.log.comparison import build_log_comparison_document, render_comparison_terminal

HERE = Path(__file__).parent
UPDATE = "INSERT INTO vuln (id, name) SELECT id, name FROM (VALUES ({number}, 'CVE')) AS batch (id, name)"
BULK = "INSERT INTO vuln (id, name) SELECT id, name FROM unnest('{1,2}'::int[], '{a,b}'::text[]) AS batch"


@pytest.fixture
def comparison(tmp_path):
    """A thousand updates before, one after, twenty look-ups beside them."""
    lookups = "".join(
        line(f"SELECT name FROM repository WHERE id = {n}", at_ms=n * 100, ms=0.4, application="quay", pid=8)
        for n in range(20)
    )
    updates = "".join(
        line(UPDATE.format(number=n), at_ms=n * 2, ms=2.0, application="libvuln") for n in range(1000)
    )
    bulk = line(BULK, at_ms=550, ms=500.0, application="libvuln")
    later = lookups.replace("duration: 0.400", "duration: 0.300")
    return compare_log_results(
        result(tmp_path / "before.log", lookups + updates), result(tmp_path / "after.log", later + bulk)
    )


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("comparison-80.txt", terminal(render_comparison_terminal, 80)),
        ("comparison.md", markdown_of(build_log_comparison_document)),
    ],
)
def test_two_logs(name, render, comparison):
    compare(HERE / name, render(comparison))
