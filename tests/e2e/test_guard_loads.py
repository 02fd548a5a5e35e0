"""`uncork guard RUN`, as a person runs it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import jsonschema
import pytest

from fakes.stored_loads import store_load
from uncork.report.write.schemas import result_schema

USUAL = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)


@pytest.fixture
def loads(uncork):
    """Eight like loads and a slow one."""
    root = uncork.folder / "runs"
    return [store_load(root, n, slower) for n, slower in enumerate((*USUAL, 1.6))]


def test_a_stored_load_is_judged_in_every_form_and_reported_again(uncork, loads):
    files = ("--junit", "gates.xml", "--gobench", "gates.txt", "--summary", "summary.md")
    gates = ("--gate", "throughput > -5%", "--gate", "success >= baseline")
    done = uncork("guard", loads[-1].name, "--stored", *gates, *files, "--json")
    assert done.returncode == 3, done.stderr
    data = json.loads(done.stdout)
    jsonschema.validate(data, result_schema("guard"))
    assert [one["outcome"] for one in data["checks"]] == ["broken", "kept"]
    assert ElementTree.parse(uncork.folder / "gates.xml").getroot().find(".//failure") is not None
    assert "Benchmark" in (uncork.folder / "gates.txt").read_text()
    assert "Broken: throughput" in (uncork.folder / "summary.md").read_text()
    again = uncork("report", data["id"])
    assert again.returncode == 0, again.stderr
    assert "Broken: throughput" in again.stdout
    assert (uncork.folder / "runs" / data["id"] / "report.html").is_file()
    assert "guard-broken" in uncork("runs").stdout
    done = uncork("acknowledge", data["id"], "throughput > -5%", "--reason", "a new disk")
    assert done.returncode == 0, done.stderr
    done = uncork("guard", data["id"], "--stored", *gates)
    assert done.returncode == 0, done.stdout
    assert "a new disk" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], 'there is no run "nobody"'),
        (["last", "--gate", "p98 < +5%"], 'there is no metric "p98"'),
        (["last", "--candidate", "dsn=host=a password=hush"], "does not store its whole request"),
        (["last", "--variant", "x"], "--variant is for experiment files"),
    ],
)
def test_wrong_words_are_told_in_one_line(uncork, words, said):
    store_load(uncork.folder / "runs", 1)
    done = uncork("guard", *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert "hush" not in done.stderr
