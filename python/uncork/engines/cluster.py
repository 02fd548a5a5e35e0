"""A new, empty cluster: initdb's work, done once for each build and copied from then on.

initdb always makes the same cluster, and takes seconds on a slow machine. PostgreSQL's own tests copy one
too, since version 17. What is kept is closed to all but its owner, never runs, and is made anew when the
binaries change.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from uncork.engines.places import Account, cache_folder
from uncork.spawn.child import Done

__all__ = ["InitdbFailed", "new_cluster"]

_OPTIONS = (
    *("-U", "uncork", "-E", "UTF8", "--locale=C", "--no-sync"),
    *("--auth-local=trust", "--auth-host=scram-sha-256"),
)


class InitdbFailed(Exception):
    """initdb could not make a cluster."""


Run = Callable[[list[str]], Done]


def new_cluster(data: Path, binaries: Path, account: Account, run: Run) -> None:
    """Fill an empty folder that belongs to `account` with a cluster of superuser ``uncork``.

    He is let in over the Unix socket, and has no password: over TCP only roles that are made later are. `run`
    runs a command as that account.

    Raises:
        InitdbFailed: with what initdb said.
    """
    kept = cache_folder() / "clusters" / _key(binaries)
    with contextlib.suppress(OSError, shutil.Error):
        _copy(kept, data, account.uid if account.change else None, account.gid)
        return
    _empty(data)
    done = run([str(binaries / "initdb"), "-D", str(data), *_OPTIONS])
    if done.returncode != 0:
        raise InitdbFailed(done.stderr or done.stdout)
    # A cache that cannot be written only takes longer the next time.
    with contextlib.suppress(OSError, shutil.Error):
        _keep(data, kept)


def _key(binaries: Path) -> str:
    """Name what decides how a cluster comes out: the build, and what initdb is told."""
    facts = [str(binaries.resolve()), *_OPTIONS]
    for name in ("initdb", "postgres"):
        status = (binaries / name).stat()
        facts += [str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _keep(data: Path, kept: Path) -> None:
    """Keep a copy under its name, which appears only once it is whole."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=kept.parent))
    try:
        _copy(data, making, None, 0)
        # Of two that make it at once, the first stays.
        making.rename(kept)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _copy(source: Path, target: Path, uid: int | None, gid: int) -> None:
    """Copy a cluster with its modes, for another owner if one is given."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    if uid is None:
        return
    for folder, _, files in os.walk(target):
        os.chown(folder, uid, gid)
        for name in files:
            os.chown(Path(folder, name), uid, gid, follow_symlinks=False)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
