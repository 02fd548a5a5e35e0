"""Runs by time and branch: what was recorded counts, and git only where nothing was."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import pytest

from fakes.answered import read_history
from fakes.stored_loads import store_load
from uncork.analysis.runs.history import RunSelection, branches_of
from uncork.engines.checkouts import commits_of_branch, current_branch
from uncork.errors import UsageError
from uncork.model.results.guard import GateOutcome
from uncork.model.results.history import history_status
from uncork.report.runs.history import build_history_document, history_junit
from uncork.report.write.markdown import markdown_text
from uncork.store.layout import list_runs

VARIABLES = ("UNCORK_BRANCH", "GITHUB_HEAD_REF", "GITHUB_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
VARIABLES += ("CI_COMMIT_BRANCH", "CHANGE_BRANCH", "BRANCH_NAME", "BUILDKITE_BRANCH", "GIT_BRANCH")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a commit on main and one more on feature; return both commits."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "repository"
    place.mkdir()
    monkeypatch.chdir(place)

    def git(*words):
        person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *person, *words], check=True, capture_output=True, text=True, timeout=30
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "feature")
    git("commit", "-q", "--allow-empty", "-m", "two")
    return first, git("rev-parse", "HEAD")


def ids(found):
    return [run.id for run in found.runs]


def test_the_branch_is_that_of_git_or_of_the_ci_system(repository, monkeypatch):
    assert current_branch() == "feature"
    subprocess.run(["git", "checkout", "-q", "--detach"], check=True, timeout=30)
    assert current_branch() is None
    monkeypatch.setenv("GITHUB_REF", "refs/tags/v1.0")
    assert current_branch() is None
    monkeypatch.setenv("GITHUB_REF", "refs/heads/release/2")
    assert current_branch() == "release/2"
    monkeypatch.setenv("GITHUB_HEAD_REF", "topic")
    assert current_branch() == "topic"
    monkeypatch.setenv("UNCORK_BRANCH", "mine")
    assert current_branch() == "mine"


def test_the_commits_of_a_branch(repository):
    first, second = repository
    assert commits_of_branch("main") == {first}
    assert commits_of_branch("feature") == {first, second}
    for unknown in ("nowhere", "--all", "", "main..feature", "a\0b"):
        assert commits_of_branch(unknown) == frozenset(), unknown


def test_outside_a_repository_there_is_no_branch(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_branch() is None
    assert commits_of_branch("main") == frozenset()


def test_a_recorded_branch_counts_and_git_decides_about_the_others(root, repository):
    first, second = repository
    on_main = store_load(root, 1, branch="main", commit="f" * 40)
    store_load(root, 2, branch="feature", commit=first)
    by_git = store_load(root, 3, commit=f"{first}-dirty")
    by_prefix = store_load(root, 4, commit=first[:9])
    store_load(root, 5, commit=second)
    store_load(root, 6, commit=None)
    store_load(root, 7, commit=first[:4])
    found = read_history(root, "p90", selection=RunSelection(branch="main"))
    assert ids(found) == [one.name for one in (on_main, by_git, by_prefix)]
    assert (found.branch, found.without_branch) == ("main", 3)
    assert any('git does not find the commit on "main" here' in one for one in found.warnings)


def test_only_runs_since_a_time(root):
    folders = [store_load(root, number, hours=24 * number) for number in range(8)]
    since = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
    found = read_history(root, "p90", selection=RunSelection(since))
    assert ids(found) == [folder.name for folder in folders[3:]]
    assert found.since == "2026-03-04T10:00:00+00:00"


def test_the_newest_run_that_is_selected_decides_which_runs_are_comparable(root):
    folders = [store_load(root, number, branch="main") for number in range(3)]
    other = store_load(root, 9, branch="topic")
    assert ids(read_history(root, "p90", selection=RunSelection(branch="main"))) == [
        folder.name for folder in folders
    ]
    like = read_history(root, "p90", like=other.name, selection=RunSelection(branch="main"))
    assert len(like.runs) == 3


def test_a_selection_without_runs_says_what_there_is(root):
    store_load(root, 1, branch="main")
    store_load(root, 2, branch="topic")
    with pytest.raises(UsageError, match=r'on branch "mian"; branches of runs: topic, main$'):
        read_history(root, "p90", selection=RunSelection(branch="mian"))
    late = RunSelection(datetime(2027, 1, 1, tzinfo=UTC))
    with pytest.raises(UsageError, match=r"there is no run in .* since 2027-01-01 00:00$"):
        read_history(root, "p90", selection=late)
    assert branches_of(list_runs(root)) == ["topic", "main"]


def test_no_recorded_branch_at_all_is_said(root):
    store_load(root, 1)
    with pytest.raises(UsageError, match="no run has a recorded branch"):
        read_history(root, "p90", selection=RunSelection(branch="main"))


# ---- the newest run ----


def test_the_newest_run_is_judged_against_the_window(root):
    levels = (1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 1.4)
    folders = [store_load(root, number, level) for number, level in enumerate(levels)]
    found = read_history(root, "throughput", window=6)
    assert (found.newest.id, found.newest.runs, found.newest.outcome) == (
        folders[-1].name,
        6,
        GateOutcome.BROKEN,
    )
    assert history_status(found) == 3
    assert found.answer.startswith(
        f"{folders[-1].name} is worse than the 6 runs before it: throughput is 28 % slower, "
    )
    assert history_status(read_history(root, "throughput")) == 0
    assert "<failure" in history_junit(found, found.newest)
    page = markdown_text(build_history_document(found))
    assert "| judgement | worse |" in page
    assert f"`uncork compare {folders[-2].name} {folders[-1].name}`" in page


def test_a_change_within_the_window_is_said(root):
    levels = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.4, 1.39, 1.41, 1.4, 1.42, 1.4]
    folders = [store_load(root, number, level) for number, level in enumerate(levels)]
    found = read_history(root, "throughput", window=10)
    assert found.newest.changed_at == folders[6].name
    assert any("level changed at" in one for one in found.warnings)
    assert read_history(root, "throughput", window=5).newest.changed_at is None


def test_few_runs_are_undecided_and_skipped(root):
    for number in range(3):
        store_load(root, number)
    found = read_history(root, "throughput", window=10)
    assert history_status(found) == 4
    text = history_junit(found, found.newest)
    assert '<skipped type="not decided"' in text
    assert "There are only 2 runs before the newest, not 10." in found.warnings
