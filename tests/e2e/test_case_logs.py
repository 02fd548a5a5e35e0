"""The log half of clair in miniature: real logs of a real server, before and after."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import jsonschema
import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "case-logs.schema.json").read_text())
SMALL = ("--set", "stored=10000")


def test_the_spike_is_libvulns_and_one_statement_takes_its_place(uncork):
    done = uncork("case", "logs", "clair", *SMALL, "--logs", "kept", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    for words in (
        " of the queries in the spike, which took ",
        "These were 10 000 of ",
        "250 ms → 2.5 ms",
        "Executions by dur",
    ):
        assert words in " ".join(done.stdout.split())
    assert "uncork case run clair" in done.stdout.partition("What to do next")[2]
    page = (uncork.folder / "page.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "libvuln" in page and "250 ms → 2.5 ms" in page and "<script src" not in page
    after, before = uncork.runs
    assert before.name.startswith("log-clair-before") and after.name.startswith("log-clair-after")

    result = json.loads((after / "case-logs.json").read_text())
    jsonschema.validate(result, SCHEMA)
    comparison = result["comparison"]
    applications = {one["name"]: one for one in comparison["applications"]}
    assert set(applications) == {"libvuln", "quay"}, "nobody else comes in the spike"
    libvuln, quay = applications["libvuln"], applications["quay"]
    assert libvuln["before"]["executions"] == 10_000
    assert libvuln["after"]["executions"] == 1
    assert libvuln["before"]["of_executions"] > 0.9
    assert libvuln["before"]["of_time"] > 0.5
    assert quay["before"]["executions"] >= 1, "the service goes on in the spike"
    assert result["idle_mean_ns"] > 0
    for period in (comparison["before"], comparison["after"]):
        assert sum(period["histogram"]) == period["executions"]
        assert period["seconds"] >= max(one["end_us"] - one["begin_us"] for one in _batches(result)) / 1e6
    figures = {one["name"]: one["measured"] for one in result["figures"]}
    assert figures["queries of libvuln"] == [10_000, 1]
    assert figures["mean query time"] == [comparison[place]["mean_ns"] for place in ("before", "after")]

    for place, application in (("before", "libvuln"), ("after", "quay")):
        text = (uncork.folder / "kept" / f"clair-{place}.log").read_text()
        assert f" {application} LOG:  duration: " in text
        assert "CREATE TABLE" not in text and "DELETE FROM" not in text, "only batch and background"
    again = json.loads((before / "result.json").read_text())["run"]["reproduce"].split()
    assert again[:3] == ["uncork", "profile", "logs"]
    repeated = json.loads(uncork(*again[1:], "--json", "-q").stdout)
    assert repeated["executions"]["count"] == comparison["before"]["executions"]
    shown = uncork("report", before.name)
    assert "libvuln" in shown.stdout


def _batches(result):
    return (result["before"], result["after"])


@pytest.mark.parametrize("words", ["creating the tables", "before, what a driver's batch call does"])
def test_ctrl_c_leaves_nothing(uncork, words):
    uncork.environment["TMPDIR"] = str(uncork.folder)
    process = uncork.start("case", "logs", "clair", *SMALL)
    uncork.wait_for(process, words)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert uncork.runs == []
    assert list(uncork.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["cluster-names"],
            'the case "cluster-names" has no log half; clair has one: uncork case logs clair',
        ),
        (["clear"], 'there is no case "clear"; did you mean "clair"?'),
        (["clair", "--set", "rows=100,1000"], "--set rows=100,1000: give one level"),
        (["clair", "--set", "rows=7"], 'no level "7"; expected one of 100, 1000, 10000, 100000'),
        (["clair", "--logs", "file/folder"], "cannot make file/folder: Not a directory"),
        (["clair", "--html", "no/such/page.html"], "there is no folder"),
    ],
)
def test_bad_input_is_one_message_and_starts_nothing(uncork, arguments, words):
    uncork.write("", "file")
    done = uncork("case", "logs", *arguments)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert uncork.runs == []
