"""Checkouts of a repository at a commit: detached worktrees in folders of their own, removed afterwards.

One folder a checkout, under `servers_folder()`::

    git-<random>/owner.json     who made it
    git-<random>/tree/          the worktree

Folders and builds end with the process that made them, even if that is killed (ADR-0020). A folder that is
left all the same, whose owner no longer lives, is removed when the next one is made.
Hooks of the repository are not run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final

from uncork.engines import process
from uncork.engines.places import servers_folder
from uncork.errors import SetupError, UsageError
from uncork.spawn.child import remove_at_death, run, start

__all__ = ["Revision", "checkout", "find_repository", "resolve_revision", "run_build", "working_state"]

_SHORT: Final = 9
_WORDS: Final = 20
"""Lines of a failed build's output that are shown."""


_ELSEWHERE: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Variables that, within a hook, name another repository than the folder's."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit by its full name, and the first line of its message."""

    commit: str
    subject: str

    @property
    def short(self) -> str:
        """Its name as it is shown."""
        return self.commit[:_SHORT]


def find_repository(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in.

    Raises:
        UsageError: if it is in none, or there is no git.
    """
    return Path(_git(folder, "rev-parse", "--show-toplevel", why=f"{folder} is in no git repository"))


def resolve_revision(repository: Path, name: str) -> Revision:
    """Return the commit that a name (a branch, a tag, ``HEAD~1``) stands for.

    Raises:
        UsageError: if there is none.
    """
    why = (
        f'there is no commit "{name}" in {repository}; a shallow clone lacks older ones '
        "(git fetch --unshallow)"
    )
    wanted = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    commit = _git(repository, "rev-parse", *wanted, why=why)
    return Revision(commit, _git(repository, "log", "-1", "--format=%s", commit, why=why))


def working_state(repository: Path) -> tuple[Revision | None, bool]:
    """Return the commit that is checked out, None before the first, and whether files differ from it."""
    changed = bool(_git(repository, "status", "--porcelain", why=f"git status fails in {repository}"))
    try:
        return resolve_revision(repository, "HEAD"), changed
    except UsageError:
        return None, changed


@contextmanager
def checkout(repository: Path, commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, for as long as the context lasts.

    Raises:
        SetupError: if git cannot.
    """
    _remove_leftovers()
    base = Path(tempfile.mkdtemp(prefix="git-", dir=servers_folder()))
    tree = base / "tree"
    try:
        remove_at_death(base)
        base.chmod(0o711)
        process.write_owner(base / "owner.json")
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
    """Run a build once in a checkout, without a shell. What it started ends with us.

    Raises:
        SetupError: if it cannot be started, or fails; with the last lines of its output.
    """
    words = " ".join(command)
    try:
        building = start(
            list(command),
            cwd=folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            text=True,
            errors="replace",
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
        shown = "\n".join(f"  {line}" for line in lines[-_WORDS:])
        left = f"\n  ({len(lines) - _WORDS} lines before)" if len(lines) > _WORDS else ""
        raise SetupError(
            f"guard.build of {whose} failed (exit status {building.returncode}): {words}{left}\n{shown}"
        )


def _remove_leftovers() -> None:
    for folder in servers_folder().glob("git-*"):
        if (folder / "owner.json").is_file() and not process.has_owner(folder / "owner.json"):
            shutil.rmtree(folder, ignore_errors=True)


def _git(folder: Path, *words: str, why: str) -> str:
    """Run git and return what it says. Raises UsageError with `why`, or with git's own words."""
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
        raise UsageError("there is no git on the PATH, which commit=REV needs; install it") from error
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if done.returncode:
        said = " ".join(done.stderr.split())
        known = "not a git repository" in said or not said
        raise UsageError(why if why and known else f"{why + ': ' if why else ''}{said}")
    return str(done.stdout).strip()
