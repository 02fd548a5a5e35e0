"""How a run is started, and what its manifest says once it has ended."""

import json
import os

import pytest

from uncork.analysis.runs import figures
from uncork.engines import process
from uncork.errors import SetupError, StoreError
from uncork.store.layout import check_writable, read_manifest, write_manifest
from uncork.workbench import run_record
from uncork.workbench.run_record import RunRecord, draft, start_run


@pytest.fixture(autouse=True)
def commit(monkeypatch):
    """Spare each test a question to git."""
    monkeypatch.setenv("UNCORK_COMMIT", "abc")


def started(root, kind="load", **more):
    manifest = draft(kind=kind, name="a-run", question="?", server="s", options={"command": "uncork"})
    return start_run(root, manifest, **more)


def stored(run):
    return json.loads((run.folder / "manifest.json").read_text())


def test_a_run_that_has_started_is_seen_with_its_process_and_its_files(tmp_path):
    run = started(tmp_path, files={"plan.json": "{}\n", "files/a.sql": "SELECT 1"})
    manifest = read_manifest(run.folder)
    assert (manifest.id, manifest.name, manifest.status) == (run.folder.name, "a-run", "running")
    assert manifest.owner == process.identity(os.getpid())
    assert (run.folder / "plan.json").read_text() == "{}\n"
    assert (run.folder / "files" / "a.sql").read_text() == "SELECT 1"


def test_a_run_that_is_not_announced_has_no_manifest_before_it_ends(tmp_path):
    with started(tmp_path, announce=False) as run:
        assert not (run.folder / "manifest.json").exists()
        run.end("interrupted", "interrupted", elapsed_ns=7)
    (attempt,) = read_manifest(run.folder).attempts
    assert (attempt.elapsed_ns, attempt.outcome) == (7, "interrupted")


def test_a_folder_of_runs_is_checked_before_anything_is_measured(tmp_path):
    check_writable(tmp_path / "new" / "runs")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cannot write .*/file/runs: Not a directory; --runs names another"):
        check_writable(tmp_path / "file" / "runs")


def test_an_interruption_while_a_run_is_created_leaves_no_folder(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_record, "write_manifest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path, files={"plan.json": "{}\n"})
    assert list(tmp_path.iterdir()) == []


def test_success_is_recorded_and_has_no_owner(tmp_path):
    with started(tmp_path) as run:
        run.rounds, run.reason = 3, "enough"
    manifest = read_manifest(run.folder)
    assert (manifest.status, manifest.owner) == ("complete", None)
    (attempt,) = manifest.attempts
    assert (attempt.started_at, attempt.rounds, attempt.outcome, attempt.reason) == (
        manifest.started_at,
        3,
        "complete",
        "enough",
    )


@pytest.mark.parametrize(("error", "status", "reason"), [
    (StoreError("the disk is full"), "failed", "the disk is full"),
    (ValueError("odd"), "failed", "ValueError: odd"),
    (KeyboardInterrupt(), "interrupted", "interrupted"),
    (GeneratorExit(), "interrupted", "interrupted"),
])  # fmt: skip
def test_what_broke_a_run_off_is_recorded_if_it_holds_results(tmp_path, error, status, reason):
    with pytest.raises(type(error)), started(tmp_path) as run:
        (run.folder / "load_totals").mkdir()
        raise error
    assert (stored(run)["status"], stored(run)["attempts"][0]["reason"]) == (status, reason)


@pytest.mark.parametrize(
    "kind", ["experiment", "load", "sweep", "guard", "log", "database", "cpu", "import", "cure"]
)
def test_a_run_that_broke_off_and_holds_nothing_leaves_nothing(tmp_path, kind):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, kind) as run:
        raise KeyboardInterrupt
    assert not run.folder.exists()


@pytest.mark.parametrize(("kind", "path"), [
    ("experiment", "trials/000001.parquet"),
    ("load", "load_totals/000001.parquet"),
    ("sweep", "sweep_visits/000001.parquet"),
    ("guard", "legs/0001-baseline/manifest.json"),
    ("cure", "cure.json"),
])  # fmt: skip
def test_results_keep_a_run_that_broke_off(tmp_path, kind, path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, kind) as run:
        (run.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / path).touch()
        raise KeyboardInterrupt
    assert stored(run)["status"] == "interrupted"


def test_the_turn_that_only_warms_up_does_not_keep_a_guard(tmp_path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, "guard") as run:
        (run.folder / "legs" / "0000-baseline").mkdir(parents=True)
        raise KeyboardInterrupt
    assert not run.folder.exists()


def test_an_interruption_after_the_end_is_known_does_not_change_it(tmp_path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, "experiment") as run:
        run.status, run.reason = "complete", "every comparison is settled"
        raise KeyboardInterrupt
    assert stored(run)["status"] == "complete"


def test_a_resumed_run_is_running_again_and_gets_another_attempt(tmp_path):
    with started(tmp_path, "experiment") as run:
        run.keep, run.status, run.reason = True, "interrupted", "interrupted"
    manifest = read_manifest(run.folder)
    with RunRecord(run.folder, manifest, keep=True, resumed=True):
        assert stored(run)["status"] == "running"
        assert stored(run)["owner"] == process.identity(os.getpid())
    assert [one["outcome"] for one in stored(run)["attempts"]] == ["interrupted", "complete"]


def test_a_manifest_that_cannot_be_written_at_the_end_deletes_an_unannounced_run(tmp_path, monkeypatch):
    def full(_folder, _manifest):
        raise StoreError("no space")

    with pytest.raises(StoreError), started(tmp_path, "import", announce=False) as run:
        monkeypatch.setattr(run_record, "write_manifest", full)
        run.end("complete", "imported")
    assert not run.folder.exists()


def test_a_folder_that_cannot_be_made_says_what_was_not_done(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"; nothing was imported \(--runs names another folder\)$"):
        started(tmp_path / "file", undone="nothing was imported")


def test_only_complete_runs_that_are_compared_remember_their_metrics(tmp_path, monkeypatch):
    remembered = []
    monkeypatch.setattr(figures, "remember", remembered.append)
    for kind in ("load", "log", "guard", "sweep", "experiment"):
        with started(tmp_path, kind):
            pass
    with started(tmp_path) as run:
        run.end("failed", "none of 4 operations succeeded")
    assert [folder.name[:5] for folder in remembered] == ["a-run"] * 3


def test_a_manifest_is_written_as_it_always_was(tmp_path):
    run = started(tmp_path)
    write_manifest(run.folder, run.manifest)
    assert " ".join(stored(run)) == (
        "id name question status started_at seed unit server uncork_version case options attempts owner kind "
        "commit branch version"
    )
