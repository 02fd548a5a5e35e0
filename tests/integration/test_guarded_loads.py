"""Stored loads guarded on real servers: against their history, and on two targets side by side."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from uncork.engines.tpcb import initialise
from uncork.errors import ConnectError, UsageError
from uncork.experiment.guard import turns
from uncork.experiment.guard.sides import parse_side
from uncork.load.builtin import find
from uncork.model.load import LoadOutcome, LoadScript, LoadSpec
from uncork.model.results.guard import GateOutcome
from uncork.requests.guard import GuardRequest
from uncork.requests.jobs import LoadJob, ServerOptions
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options
from uncork.store.catalogue import tags_of
from uncork.store.layout import read_manifest, write_manifest
from uncork.workbench.documents.loads import read_load
from uncork.workbench.documents.run_document import run_document
from uncork.workbench.guard.guards import guard_load
from uncork.workbench.guard.store import read_guard
from uncork.workbench.load.repeating import carried_out, repeated_job
from uncork.workbench.load.sessions import new_load

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]

GATES = ("server CPU < +200%", "p50 < +200%", "success >= baseline")
"""Processor time an operation is what a busy machine changes least."""
KEY = "ALTER TABLE pgbench_accounts {} CONSTRAINT pgbench_accounts_pkey {}"


@pytest.fixture(scope="module")
def server(embedded):
    """Two databases with pgbench's tables; accounts of the second have no key, so that look-ups scan."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        for name in ("quick", "slow"):
            connection.execute(f"CREATE DATABASE {name}")
    found = {name: f"{embedded.conninfo()} dbname={name}" for name in ("quick", "slow")}
    for name, steps in (("quick", "dtgvp"), ("slow", "dtgv")):
        initialise(found[name], scale=1, steps=steps)
    yield found
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        for name in found:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def load(root, dsn):
    """Store a short load of look-ups."""
    builtin = find("select-only")
    spec = LoadSpec((LoadScript(builtin.name, 1, builtin.text, True),), clients=2, duration_ns=400_000_000)
    job = LoadJob(spec, ServerOptions(dsn=dsn), None, True, None, "none", "uncork load sql -S -c 2 -T 0.4")
    session = new_load(root, job)
    assert session.run(None, lambda _: None) is LoadOutcome.COMPLETE
    return session.folder


def guard(root, target, *gates, baseline=(), candidate=(), **options):
    sides = parse_side("baseline", baseline), parse_side("candidate", candidate)
    told = []
    asked = GuardRequest(target, *sides, gates, words=("uncork", "guard", target), **options)
    return guard_load(root, asked, told.append), told


def test_a_load_carried_out_again_is_held_against_its_history(server, tmp_path):
    load(tmp_path / "warm-up", server["quick"])
    folders = [load(tmp_path, server["quick"]) for _ in range(9)]
    now = datetime.now(UTC)
    for hours, folder in enumerate(reversed(folders), start=1):  # as if made an hour apart
        at = (now - timedelta(hours=hours)).isoformat(timespec="seconds")
        write_manifest(folder, replace(read_manifest(folder), started_at=at))
    usual, _ = guard(tmp_path, folders[2].name, *GATES)
    assert usual.status in (0, 4)
    assert usual.checks[2].outcome is GateOutcome.KEPT
    assert read_manifest(tmp_path / usual.runs[0]).kind == "load"
    with psycopg.connect(server["quick"], autocommit=True) as connection:
        connection.execute(KEY.format("DROP", ""))
        try:
            slow, told = guard(tmp_path, folders[2].name, "server CPU < +200%")
        finally:
            connection.execute(KEY.format("ADD", "PRIMARY KEY (aid)"))
    assert slow.status == 3, slow.checks
    assert slow.checks[0].confirmed is True
    assert slow.answer.startswith("Broken: server CPU")
    assert len(slow.runs) == 2
    assert any("measuring again" in line for line in told)
    assert {tags_of(tmp_path / id) for id in slow.runs} == {("guard-broken",)}
    past, _ = guard(tmp_path, folders[2].name, "server CPU < +200%")
    # Nine loads and the first guard's; fewer if the machine changed its speed meanwhile. Broken ones do not
    # count.
    assert 5 <= past.checks[0].rounds <= 10
    broken = {candidate for _, _, candidate in slow.checks[0].by_round if candidate is not None}
    assert broken
    assert not broken & {value for _, *values in past.checks[0].by_round for value in values}


def test_two_targets_side_by_side(server, tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "TURN_NS", 50_000_000)
    monkeypatch.setattr(turns, "LONGEST_TURN_NS", 50_000_000)
    run = load(tmp_path, server["quick"])
    result, told = guard(tmp_path, "last", "throughput > -20%", candidate=[f"dsn={server['slow']}"])
    assert result.status == 3, result.checks
    (check,) = result.checks
    assert check.confirmed is True
    assert check.ratio is not None
    assert check.ratio < 0.5
    assert check.rounds >= 5
    assert len(check.by_round) == check.rounds
    assert result.candidate.title.endswith("/slow")
    assert "on one server" in result.warnings[0]
    folder = tmp_path / result.id
    assert read_guard(folder) == result
    assert read_manifest(folder).options["of"] == run.name
    kept = sorted(path.name for path in (folder / "legs").iterdir())
    assert kept[:2] == ["0000-baseline", "0000-candidate"]
    assert len(kept) == 2 + 6 * 5
    turn = read_load(folder / "legs" / kept[2])
    assert turn.counts.succeeded > 0
    assert turn.settings.duration_ns == 50_000_000
    assert run_document(folder).document.answer == result.answer
    assert any(line.startswith("looks broken: ") for line in told)


def test_the_same_target_twice_is_refused_but_for_a_test_of_the_guard(server, tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "TURN_NS", 50_000_000)
    monkeypatch.setattr(turns, "LONGEST_TURN_NS", 50_000_000)
    load(tmp_path, server["quick"])
    with pytest.raises(UsageError, match="both sides are the same"):
        guard(tmp_path, "last", candidate=[f"dsn={server['quick']}"])
    result, told = guard(tmp_path, "last", *GATES, same=True, options=Options(budget_ns=1))
    assert result.status == 4
    assert all(check.reason.startswith("only 1 round; a decision needs 5") for check in result.checks)
    assert any("round 1 done" in line for line in told)


def test_a_target_that_is_gone_is_told_and_leaves_nothing_behind(server, tmp_path):
    load(tmp_path, server["quick"])
    before = sorted(tmp_path.iterdir())
    gone = "host=127.0.0.1 port=1 dbname=x user=y"
    for options in ({"candidate": [f"dsn={gone}"]}, {"choice": ServerChoice(dsn=gone)}):
        with pytest.raises(ConnectError, match="refused"):
            guard(tmp_path, "last", **options)
    assert sorted(tmp_path.iterdir()) == before


def test_a_load_is_carried_out_again_as_it_was(server, tmp_path):
    first = load(tmp_path, server["quick"])
    again, outcome = carried_out(tmp_path, repeated_job(first), lambda _: None)
    assert outcome is LoadOutcome.COMPLETE
    assert read_load(again).settings == read_load(first).settings
    options = [read_manifest(folder).options for folder in (again, first)]
    assert [{**one, "measured_us": 0} for one in options] == [{**options[1], "measured_us": 0}] * 2
