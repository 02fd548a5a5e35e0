"""Temporary checkouts of a repository at a commit, as detached git worktrees.

Each checkout has one folder under `servers_folder()`::

    git-<random>/owner.json     the owning process
    git-<random>/tree/          the worktree

Folders are removed, and builds ended, with the process that started them, even if it is killed (ADR-0020).
The next checkout removes any folder that was left behind by a dead owner. Hooks of the repository do not run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final

from uncork.engines import process
from uncork.errors import SetupError, UsageError
from uncork.spawn.child import run, start

_SHORT: Final = 9
_SHOWN_LINES: Final = 20
"""How many of the last lines of a failed build's output to show."""


_ELSEWHERE: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Variables that git sets in hooks, and that would point git to another repository."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit by its full hash, and the first line of its message."""

    commit: str
    subject: str

    @property
    def short(self) -> str:
        """The abbreviated hash."""
        return self.commit[:_SHORT]


def find_repository(folder: Path) -> Path:
    """Return the top folder of the repository that contains a folder.

    Raises UsageError if the folder is not in a repository, or git is not installed.
    """
    return Path(_git(folder, "rev-parse", "--show-toplevel", why=f"{folder} is not in a git repository"))


def resolve_revision(repository: Path, name: str) -> Revision:
    """Return the commit that a name (a branch, a tag, ``HEAD~1``) refers to.

    Raises UsageError if there is no such commit.
    """
    why = (
        f'there is no commit "{name}" in {repository}; if this is a shallow clone, fetch older commits: '
        "git fetch --unshallow"
    )
    options = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    commit = _git(repository, "rev-parse", *options, why=why)
    return Revision(commit, _git(repository, "log", "-1", "--format=%s", commit, why=why))


def working_state(repository: Path) -> tuple[Revision | None, bool]:
    """Return the checked-out commit (None before the first commit), and whether files differ from it."""
    changed = bool(_git(repository, "status", "--porcelain", why=f"git status fails in {repository}"))
    try:
        return resolve_revision(repository, "HEAD"), changed
    except UsageError:
        return None, changed


@contextmanager
def checkout(repository: Path, commit: str) -> Iterator[Path]:
    """Check out a commit into a temporary folder, and remove the folder when the context ends.

    Raises SetupError if git fails.
    """
    for folder, _ in process.leftover_folders("git-"):
        shutil.rmtree(folder, ignore_errors=True)
    base = process.owned_folder("git-")
    tree = base / "tree"
    try:
        try:
            _git(repository, "worktree", "add", "--quiet", "--detach", "--force", str(tree), commit, why="")
        except UsageError as error:
            raise SetupError(f"cannot check out {commit[:_SHORT]} of {repository}: {error}") from error
        yield tree
    finally:
        with contextlib.suppress(UsageError):
            _git(repository, "worktree", "remove", "--force", "--force", str(tree), why="")
        shutil.rmtree(base, ignore_errors=True)
        with contextlib.suppress(UsageError):
            _git(repository, "worktree", "prune", why="")


def run_build(command: Sequence[str], folder: Path, whose: str) -> None:
    """Run a build command in a checkout, without a shell. Its processes end with this one.

    Raises SetupError if the command cannot be started, or fails; with the last lines of its output.
    """
    words = " ".join(command)
    try:
        building = start(
            list(command), cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        raise SetupError(f"guard.build of {whose}: cannot start {command[0]}: {error.strerror}") from error
    try:
        output, _ = building.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(building.pid, signal.SIGKILL)
        building.wait()
        raise
    if building.returncode:
        lines = output.rstrip().splitlines()
        shown = "\n".join(f"  {line}" for line in lines[-_SHOWN_LINES:])
        left = f"\n  ({len(lines) - _SHOWN_LINES} lines before)" if len(lines) > _SHOWN_LINES else ""
        raise SetupError(
            f"guard.build of {whose} failed (exit status {building.returncode}): {words}{left}\n{shown}"
        )


def _git(folder: Path, *words: str, why: str) -> str:
    """Run git and return its output. Raises UsageError with `why`, with git's own message, or with both."""
    environment = {name: text for name, text in os.environ.items() if name not in _ELSEWHERE}
    command = ["git", "-c", "core.hooksPath=/dev/null", *words]
    try:
        done = run(
            command,
            cwd=folder,
            env={**environment, "LC_ALL": "C"},
            stdin=DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise UsageError("commit=REV needs git, which is not on the PATH; install git") from error
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if done.returncode:
        message = " ".join(done.stderr.split())
        known = "not a git repository" in message or not message
        raise UsageError(why if why and known else f"{why + ': ' if why else ''}{message}")
    return str(done.stdout).strip()


# ---- what is checked out here ----


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
