"""What is told of a run while it is measured, and of one that was killed."""

import json
import os
import time
from dataclasses import asdict, replace

import pytest

from fakes.stored_loads import store_load
from uncork.analysis.runs.listing import read_runs
from uncork.errors import StoreError
from uncork.model.load import LoadProgress
from uncork.serve.progress import has_progress, run_progress
from uncork.store.layout import read_manifest, write_manifest
from uncork.store.snapshots import add_snapshot, delete_snapshots
from uncork.workbench.cure.curing import CureSteps
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


def test_loads_together_say_how_each_goes(run):
    together = replace(run, kind="together")
    manifest = read_manifest(run.folder)
    write_manifest(run.folder, replace(manifest, options={**manifest.options, "loads": ["sql", "http"]}))
    assert run_progress(together).sentence == "The loads start together, when all are ready."
    assert not has_progress(together)
    for name, rate in (("sql", 200), ("http", 3000)):
        part = run.folder / "parts" / name
        part.mkdir(parents=True)
        (part / "plan.json").write_text(json.dumps({"stop": {"duration_ns": 60 * 10**9}}))
        add_snapshot(part, asdict(replace(GLANCE, succeeded=rate)))
        add_snapshot(part, asdict(replace(GLANCE, succeeded=rate + 1, elapsed_ns=2 * 10**9)))
    told = run_progress(together)
    assert told.sentence == (
        "2.00 s of 60.0 s: sql 201 operations a second now, 99 % under 5.00 ms; http 3 001 operations a "
        "second now, 99 % under 5.00 ms; none failed since they began."
    )
    assert has_progress(together)
    assert [row[:3] for row in told.rows] == [("sql", "2.00 s", "201"), ("http", "2.00 s", "3 001")]
    assert len(told.columns) == len(told.rows[0]) and told.numbers == 1
    assert [one.title.split(":")[0] for one in told.sparks] == ["sql", "sql", "http", "http"]
    for name in ("sql", "http"):
        delete_snapshots(run.folder / "parts" / name)
        (run.folder / "parts" / name / "load_totals").mkdir()
    assert run_progress(together).sentence == "The loads have ended."


def test_a_database_says_what_its_sessions_do(run):
    watched = replace(run, kind="database")
    add_snapshot(run.folder, {"elapsed_ns": 10**9, "sessions": 2.5, "classes": [["CPU", 1.5], ["Lock", 1.0]]})
    add_snapshot(run.folder, {"elapsed_ns": 2 * 10**9, "sessions": 3.0, "classes": [["IO", 3.0]]})
    told = run_progress(watched)
    assert told.sentence == "2.00 s: 3.0 sessions busy on average in the last second (IO 3.0)."
    assert told.columns == ("at", "busy", "CPU", "Lock", "IO")
    assert told.rows[0] == ("2.00 s", "3.0", "0.0", "0.0", "3.0")


def test_a_cure_says_its_step_and_what_it_found_so_far(run):
    cure = replace(run, kind="cure")
    assert run_progress(cure).sentence == "Nothing is stored yet: the cure has just begun."
    told = []
    steps = CureSteps(run.folder, 600.0, time.monotonic() - 61.0, told.append)
    steps("tries the changes of 2 findings")
    steps.begin("copying the database")
    steps("copying rows of orders, 61 MB")
    steps.begin("measuring finding 1 of 2: a is scanned", "finding 1 of 2: a is scanned")
    steps("measuring 3 changes on 5 statements")
    steps.note("cured: the workload takes less time")
    found = run_progress(cure)
    assert found.sentence == "61.0 s of at most 10 min 00 s: measuring finding 1 of 2: a is scanned."
    assert [row[1:] for row in found.rows] == [
        ("measuring finding 1 of 2", "cured: the workload takes less time"),
        ("measuring finding 1 of 2", "measuring 3 changes on 5 statements"),
        ("copying the database", "copying rows of orders, 61 MB"),
        ("choosing what to try", "tries the changes of 2 findings"),
    ]
    assert "finding 1 of 2: a is scanned" in told and "cured: the workload takes less time" not in told
    killed = run_progress(replace(cure, status="killed"))
    assert killed.sentence.startswith(
        "It ended after 61.0 s of at most 10 min 00 s: measuring finding 1 of 2"
    )


def test_a_cure_that_stores_trials_is_not_idle(run):
    CureSteps(run.folder, 600.0, time.monotonic(), lambda _: None)("begun")
    trials = run.folder / "parts" / "change-1" / "trials"
    trials.mkdir(parents=True)
    for place in (run.folder, *run.folder.iterdir(), trials.parent):
        os.utime(place, (time.time() - 500, time.time() - 500))
    assert run_progress(replace(run, kind="cure")).idle_s < 100
    os.utime(trials, (time.time() - 500, time.time() - 500))
    assert run_progress(replace(run, kind="cure")).idle_s > 400
