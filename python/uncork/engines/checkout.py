"""Find the commit and branch that are measured: from the CI's environment, or from git here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Final

from uncork.spawn.child import run

_VARIABLES: Final = ("UNCORK_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT")
_BRANCH_VARIABLES: Final = (
    "UNCORK_BRANCH",
    # The branch of a pull or merge request comes first: other variables then hold its number.
    *("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CHANGE_BRANCH"),
    *("CI_COMMIT_BRANCH", "BRANCH_NAME", "BUILDKITE_BRANCH"),
)
_BRANCH_REFERENCES: Final = (("GITHUB_REF", "refs/heads/"), ("GIT_BRANCH", "origin/"))
"""Variables that hold a branch only with this beginning, else a tag or a commit."""
_PATIENCE_S: Final = 2.0
_WALK_S: Final = 20.0
"""Listing the commits of a branch takes about a second for a million commits."""
_DESCRIBE: Final = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def current_commit() -> str | None:
    """Return the current commit, with ``-dirty`` appended if files have changed since; None if there is none.

    An environment variable (UNCORK_COMMIT, or the variable of a CI system) overrides git.
    """
    for name in _VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    return _line_of(_DESCRIBE)


def current_branch() -> str | None:
    """Return the current branch; None outside a repository, or if a commit is checked out by itself.

    An environment variable (UNCORK_BRANCH, or the variable of a CI system) overrides git.
    """
    for name in _BRANCH_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    for name, beginning in _BRANCH_REFERENCES:
        found = os.environ.get(name, "")
        if found.startswith(beginning):
            return found.removeprefix(beginning)
    return _line_of(("git", "symbolic-ref", "--quiet", "--short", "HEAD"))


def commits_of_branch(branch: str) -> frozenset[str]:
    """Return the full ids of all commits that a branch contains, by git in the current folder.

    The set is empty if git does not know the branch, here or as one of `origin`.
    """
    for name in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
        tip = _line_of(("git", "show-ref", "--verify", "--hash", name))
        if tip is not None:
            return frozenset((_output_of(("git", "rev-list", tip, "--"), _WALK_S) or "").split())
    return frozenset()


def _line_of(command: Sequence[str]) -> str | None:
    return (_output_of(command, _PATIENCE_S) or "").strip() or None


def _output_of(command: Sequence[str], patience_s: float) -> str | None:
    """Return what git prints; None if it fails, is missing, or takes too long."""
    try:
        done = run(command, capture_output=True, text=True, timeout=patience_s)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None
