"""`uncork history`, as a person runs it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from fakes.stored_loads import store_load
from uncork.report.write.schemas import result_schema

RESULTS = Path(__file__).parents[1] / "fixtures" / "results"


@pytest.fixture
def loads(uncork):
    """Twelve nightly loads, slower from the eighth on."""
    draw = random.Random(5)
    levels = [1.0] * 7 + [1.4] * 5
    return [
        store_load(uncork.folder / "runs", n, level * draw.gauss(1, 0.02), hours=24 * n, commit=f"{n:x}" * 12)
        for n, level in enumerate(levels)
    ]


def test_the_change_is_told_in_every_form(uncork, loads):
    done = uncork("history", "throughput", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    assert f"since {loads[7].name}" in " ".join(done.stdout.split())
    assert "git log --oneline 666666666666..777777777777" in done.stdout
    page = (uncork.folder / "page.html").read_text()
    assert "<svg" in page
    assert loads[7].name in page
    data = json.loads(uncork("history", "throughput", "--json").stdout)
    jsonschema.validate(data, result_schema("history"))
    assert [one["since"] for one in data["changes"]] == [loads[7].name]
    assert uncork("history", "p90", "--markdown").stdout.startswith("# history of p90")


def test_imported_results_have_a_history(uncork):
    text = (RESULTS / "wrk.txt").read_text()
    rates = (44078, 43000, 45100, 44500, 43700, 44900, 33900, 33100, 34200, 33600)
    for number, rate in enumerate(rates, start=1):
        (uncork.folder / "wrk.txt").write_text(text.replace("  44078.17", f"  {rate}"))
        words = ("--as", "shop", "--at", f"2026-05-{number:02d}", "--commit", f"v1.{number}")
        assert uncork("import", "wrk.txt", *words).returncode == 0
    data = json.loads(uncork("history", "throughput", "--json").stdout)
    (change,) = data["changes"]
    assert (change["since"], change["commit"]) == ("import-shop-20260507-000000", "v1.7")
    assert change["verdict"] == "slower"


def test_the_newest_run_is_judged_by_the_exit_status_and_in_junit(uncork, loads):
    done = uncork("history", "p90", "--window", "5", "--since", "2026-03-01", "--junit", "history.xml")
    assert done.returncode in (0, 4)  # it is as slow as the four before it
    worse = store_load(uncork.folder / "runs", 12, 2.5, hours=24 * 12, commit="c" * 12, branch="main")
    done = uncork("history", "p90", "--window", "5", "--junit", "history.xml")
    assert done.returncode == 3, done.stderr
    assert f"{worse.name} is worse than the 5 runs before it" in " ".join(done.stdout.split())
    suite = ElementTree.parse(uncork.folder / "history.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "0", "1")
    assert "is worse than" in suite.find("testcase/failure").get("message")
    data = json.loads(uncork("history", "p90", "--window", "5", "--json").stdout)
    jsonschema.validate(data, result_schema("history"))
    assert (data["newest"]["outcome"], data["newest"]["verdict"]) == ("broken", "slower")
    alone = uncork("history", "p90", "--window", "5", "--branch", "main")
    assert alone.returncode == 4
    assert "It is not decided" in alone.stdout
