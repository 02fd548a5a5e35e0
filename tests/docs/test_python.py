"""The guides on Python and pytest, the notebook and the example of a test: all of it runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "notebook" / "orders.ipynb"

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guides" / page).read_text(), re.DOTALL)


def run(
    folder: Path, *arguments: str, server: EmbeddedServer | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder; the variables of PostgreSQL's clients name the server."""
    environment = {**os.environ, "UNCORK_RUNS": str(folder / "runs"), "IPYTHONDIR": str(folder / "ipython")}
    environment |= {"HOME": str(folder), "UNCORK_CACHE": str(_cache())}
    if server is not None:
        environment |= {"PGHOST": server.host, "PGPORT": str(server.port), "PGUSER": "uncork"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


def _cache() -> Path:
    from uncork.engines.places import cache_folder

    return cache_folder()


CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(history_length=0)
shown = []
shell.display_pub.publish = lambda data, *_, **__: shown.append(data)
for cell in json.loads(sys.stdin.read()):
    done = shell.run_cell(cell)
    done.raise_error()
    data, _ = shell.display_formatter.format(done.result)
    shown.append(data if done.result is not None else {})
json.dump(shown, open("shown.json", "w"))
"""


def show(folder: Path, cells: list[str], server: EmbeddedServer | None = None) -> list[dict[str, str]]:
    """Run cells as a notebook does; return what it shows of each one's last line, by media type."""
    code = CELLS.replace("sys.stdin.read()", repr(json.dumps(cells)))
    done = run(folder, "-c", code, server=server)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "shown.json").read_text())


@pytest.mark.postgres
def test_the_notebook_runs_and_shows_the_report_in_a_frame(tmp_path):
    shutil.copy(EXAMPLES / "notebook" / "orders.toml", tmp_path)
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    shown = show(tmp_path, ["".join(cell["source"]) for cell in cells])
    assert len(shown) == len(cells)
    run = shown[1]
    assert set(run) == {"text/plain", "text/markdown", "text/html"}
    assert re.search(r"index is .{1,12} (faster than|as fast as) without", run["text/plain"])
    assert run["text/html"].startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in run["text/html"]
    assert "<td" in shown[2]["text/html"]
    assert "p50_us" in shown[3]["text/html"]
    assert "orders-" in shown[-1]["text/html"]


@pytest.mark.postgres
def test_the_blocks_of_the_guide_on_python_run_one_after_the_other(tmp_path):
    shutil.copy(EXAMPLES / "pytest" / "orders.toml", tmp_path / "experiment.toml")
    cells = blocks("python.md")
    assert len(cells) >= 4
    server = EmbeddedServer({"shared_buffers": "16MB"})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
        shown = show(tmp_path, cells, server)
    finally:
        server.stop()
    assert shown[0]["text/plain"] == "True"
    assert "index" in shown[1]["text/html"]
    assert "'sql-2'" in shown[3]["text/plain"]
    assert shown[4]["text/plain"].startswith("[")
    assert "rows" in shown[5]["text/plain"]


@pytest.mark.postgres
def test_the_example_of_a_test_is_that_of_the_guide_and_passes(tmp_path):
    example = EXAMPLES / "pytest" / "test_orders.py"
    block, *_ = blocks("pytest.md")
    assert example.read_text().split('"""', 2)[2].strip() == block.strip()
    shutil.copytree(EXAMPLES / "pytest", tmp_path / "tests")
    plugin = ["-p", "no:uncork", "-p", "uncork.api.pytest_plugin"]  # also where it is installed
    ours = ["-p", "no:cacheprovider", "-p", "no:randomly", f"--rootdir={tmp_path}"]
    done = run(tmp_path, "-m", "pytest", *plugin, *ours, "tests")
    assert "2 passed" in done.stdout, done.stdout
    assert len(list((tmp_path / "runs").glob("*/manifest.json"))) == 2


def test_the_guides_are_short():
    for page in ("python.md", "pytest.md"):
        assert len((ROOT / "docs" / "guides" / page).read_text().splitlines()) < 90
