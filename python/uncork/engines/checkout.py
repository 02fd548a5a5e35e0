"""Find the commit that is measured: from the CI's environment, or from git in the current folder."""

from __future__ import annotations

import os
import subprocess
from typing import Final

from uncork.spawn.child import run

__all__ = ["current_commit"]

_VARIABLES: Final = ("UNCORK_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT")
_PATIENCE_S: Final = 2.0
_DESCRIBE: Final = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def current_commit() -> str | None:
    """Return the current commit, with ``-dirty`` appended if files have changed since; None if there is none.

    An environment variable (UNCORK_COMMIT, or the variable of a CI system) overrides git.
    """
    for name in _VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    try:
        done = run(_DESCRIBE, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
