"""The file of known changes on disk: found, read, appended to."""

import datetime
import subprocess

import pytest
from typer.testing import CliRunner

from uncork.cli.app import app
from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateCheck, GateOutcome, GuardResult, GuardSide
from uncork.store.layout import Manifest, write_manifest
from uncork.workbench.guard.acknowledged import (
    acknowledge_from,
    append_acknowledged,
    broken_checks,
    file_of,
    known_file,
    new_entries,
)
from uncork.workbench.guard.store import write_guard

THEIRS = '# Ada: mind the stock\n[[change]]\ngate = "p50 < +5%"  # half\nreason = "x"\ndate = "2026-01-01"'


def check(gate, workload="orders", ratio=1.08, outcome=GateOutcome.BROKEN, cell=()):
    return GateCheck(
        parse_gate(gate), cell, workload, outcome, "shown worse", ratio=ratio, low=1.061, high=ratio + 0.02
    )


CHECKS = (
    check("p99 < +5%"),
    check("p99 < +5%", "items", 1.2, cell=(("rows", "10"),)),
    check("p99 < +5%", "items", 1.3, cell=(("rows", "90"),)),
    check("throughput > -3%", outcome=GateOutcome.KEPT),
)


def guard(reproduce="uncork guard experiment.toml --candidate commit=HEAD"):
    return GuardResult(
        id="orders-1", question="?", against="side by side", baseline=GuardSide("baseline", "old"),
        candidate=GuardSide("candidate", "new"), status=3, answer="", reasons=(), checks=CHECKS,
        plans=(), runs=("orders-1",), confidence=0.95, elapsed_ns=1, reproduce=reproduce,
        uncork_version="0", started_at="2026-05-31T00:00:00Z",
    )  # fmt: skip


def entries(folder, *checks):
    return new_entries(checks, folder=folder, reason="known", until="", limit="")


def test_broken_checks_are_found_by_their_gate():
    assert broken_checks(guard(), "latency_p99 below 1.05x", None) == CHECKS[:3]
    assert broken_checks(guard(), "p99 < +5%", "orders") == CHECKS[:1]
    assert broken_checks(guard(), "p99 < +5% on orders", None) == CHECKS[:1]


@pytest.mark.parametrize(("gate", "workload", "message"), [
    ("p50 < +5%", None,
     'has no gate "p50 < +5%"; broken gates: "p99 < +5% on orders", "p99 < +5% on items"'),
    ("p99 < +5%", "nowhere", 'has no gate "p99 < +5%" on nowhere; broken gates:'),
    ("throughput > -3%", None,
     '"throughput > -3%" is kept in the guard orders-1, so there is nothing to'),
])  # fmt: skip
def test_what_is_not_broken_cannot_be_acknowledged(gate, workload, message):
    with pytest.raises(UsageError) as caught:
        broken_checks(guard(), gate, workload)
    assert message in str(caught.value)


def test_each_workload_has_its_entry_with_the_worst_of_its_cells(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "user.name", "Ada L."], check=True)
    one, other = entries(tmp_path, *CHECKS[:3])
    assert (one.workload, one.limit) == ("orders", pytest.approx(1.1))
    assert (other.workload, other.limit) == ("items", pytest.approx(1.32))
    assert (one.by, one.date) == ("Ada L.", datetime.date.today().isoformat())


def test_entries_are_appended_and_what_people_wrote_stays(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(THEIRS)
    for place in (0, 1):
        append_acknowledged(path, entries(tmp_path, CHECKS[place]))
    assert path.read_text().startswith(THEIRS + "\n\n[[change]]\n")
    known = acknowledge_from(path, CHECKS)
    outcomes = [one.outcome for one in known.checks]
    assert outcomes == ["acknowledged", "acknowledged", "broken", "kept"]
    assert [entry.gate for entry in known.unused] == ["p50 < +5%"]


def test_a_file_is_made_where_there_is_none(tmp_path):
    path = tmp_path / "uncork-acknowledged.toml"
    assert acknowledge_from(path, CHECKS).checks == CHECKS
    append_acknowledged(path, entries(tmp_path, CHECKS[0]))
    assert path.read_text().startswith("# Accepted changes")
    assert acknowledge_from(path, CHECKS).checks[0].outcome is GateOutcome.ACKNOWLEDGED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("change = []\n", "cannot append to this file; write each change under [[change]]"),
        ("[[change]]\n", "known.toml:1: change 1: gate: is required but missing; add it"),
    ],
)
def test_nothing_is_written_to_a_file_that_is_wrong(tmp_path, text, message):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        append_acknowledged(path, entries(tmp_path, CHECKS[0]))
    assert message in str(caught.value)
    assert path.read_text() == text


def test_a_folder_or_bytes_are_no_such_file(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        acknowledge_from(tmp_path, CHECKS)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        acknowledge_from(tmp_path / "x.toml", CHECKS)


def test_the_file_is_beside_the_experiment_or_where_it_says(tmp_path, monkeypatch):
    experiment = tmp_path / "deep" / "experiment.toml"
    assert known_file(experiment, None) == tmp_path / "deep" / "uncork-acknowledged.toml"
    assert known_file(experiment, "known.toml") == tmp_path / "deep" / "known.toml"
    assert known_file(experiment, "known.toml", tmp_path / "x") == tmp_path / "x"
    monkeypatch.chdir(tmp_path)
    assert str(file_of(guard())) == "uncork-acknowledged.toml"
    assert str(file_of(guard("uncork guard e.toml --acknowledged k.toml"))) == "k.toml"
    assert str(file_of(guard("uncork guard e.toml --acknowledged=k.toml"))) == "k.toml"
    experiment.parent.mkdir()
    experiment.write_text('[guard]\nacknowledged = "known.toml"\n')
    assert str(file_of(guard("uncork guard deep/experiment.toml"))) == "deep/known.toml"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run `uncork acknowledge` in a folder with a stored guard; return what it prints."""
    folder = tmp_path / "runs" / "orders-1"
    folder.mkdir(parents=True)
    write_manifest(folder, Manifest("orders-1", "orders", "?", "complete", "2026-05-31", 1, "round", "", "0"))
    monkeypatch.chdir(tmp_path)

    def run(*words, stored=True):
        if stored:
            write_guard(folder, guard())
        done = CliRunner().invoke(app, ["acknowledge", *words, "--runs", "runs"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    return run


def test_the_command_appends_and_says_what_it_wrote(command, tmp_path):
    said = command("last", "p99 < +5%", "--reason", "stock", "--workload", "orders", "--until", "2099-12-31")
    assert said == (
        'uncork-acknowledged.toml: "p99 < +5%" on orders is acknowledged up to +10%, until 2099-12-31\n'
    )
    known = acknowledge_from(tmp_path / "uncork-acknowledged.toml", CHECKS).checks
    assert known[0].outcome is GateOutcome.ACKNOWLEDGED
    assert known[1].outcome is GateOutcome.BROKEN


def test_the_command_refuses_a_run_that_is_no_guard(command):
    with pytest.raises(UsageError, match="run orders-1 is not a completed guard; `uncork guard` makes one"):
        command("orders-1", "p99 < +5%", "--reason", "stock", stored=False)


def test_the_command_wants_a_reason(command):
    assert "Missing option '--reason'" in command("orders-1", "p99 < +5%")
