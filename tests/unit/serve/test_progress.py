"""What is told of a run while it is measured, and of one that was killed."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from fakes.stored_loads import store_load
from uncork.analysis.runs.listing import read_runs
from uncork.errors import StoreError
from uncork.model.load import LoadProgress
from uncork.serve.progress import run_progress
from uncork.store.snapshots import add_snapshot
from uncork.workbench.documents.loads import read_load

GLANCE = LoadProgress(10**9, 1.0, 1000, 0, 0, 0, 0, 4, 2e6, 1e5, 2_000_000, 5_000_000, 9_000_000, 0)


@pytest.fixture
def run(tmp_path):
    folder = store_load(tmp_path, 1)
    for part in ("load_totals", "load_series", "load_statements"):
        for file in (folder / part).glob("*"):
            file.unlink()
    return replace(read_runs(tmp_path).runs[0], status="running")


def test_a_load_says_how_it_goes(run):
    assert run_progress(run).sentence.startswith("Nothing is stored yet")
    for number in range(1, 21):
        add_snapshot(run.folder, asdict(replace(GLANCE, elapsed_ns=number * 10**9, succeeded=1000 + number)))
    told = run_progress(run)
    assert told.sentence.startswith("20.0 s")
    assert "1 020 operations a second now, 99 % under 5.00 ms; none failed since it began" in told.sentence
    assert len(told.rows) == 12 and told.rows[0][:2] == ("20.0 s", "1 020")
    assert [len(one.values) for one in told.sparks] == [20, 20]
    assert told.sparks[0].title == "Operations a second now: 1 020, from 1 001 to 1 020"
    assert told.sparks[0].ends == ("1.00 s", "20.0 s")


def test_failures_are_told_and_drawn(run):
    add_snapshot(run.folder, asdict(GLANCE))
    add_snapshot(run.folder, asdict(replace(GLANCE, elapsed_ns=2 * 10**9, failed=7)))
    told = run_progress(run)
    assert "7 failed since it began" in told.sentence and len(told.sparks) == 3


def test_a_load_that_was_killed_keeps_what_it_told(run):
    add_snapshot(run.folder, asdict(GLANCE))
    told = run_progress(replace(run, status="killed"))
    assert "1 000 operations a second at the end" in told.sentence
    with pytest.raises(StoreError, match="shows its 1 snapshot"):
        read_load(run.folder)


def test_a_database_says_what_its_sessions_do(run):
    watched = replace(run, kind="database")
    add_snapshot(run.folder, {"elapsed_ns": 10**9, "sessions": 2.5, "classes": [["CPU", 1.5], ["Lock", 1.0]]})
    add_snapshot(run.folder, {"elapsed_ns": 2 * 10**9, "sessions": 3.0, "classes": [["IO", 3.0]]})
    told = run_progress(watched)
    assert told.sentence == "2.00 s: 3.0 sessions busy on average in the last second (IO 3.0)."
    assert told.columns == ("at", "busy", "CPU", "Lock", "IO")
    assert told.rows[0] == ("2.00 s", "3.0", "0.0", "0.0", "3.0")
