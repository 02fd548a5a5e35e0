"""Which commit is measured: that of the folder uncork is started in, or the one a CI names."""

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
    """Return the commit, with ``-dirty`` behind it if files have changed since; None where there is none.

    A variable of the environment (UNCORK_COMMIT, or that of a CI) goes before what git says.
    """
    for name in _VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    try:
        done = run(_DESCRIBE, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
