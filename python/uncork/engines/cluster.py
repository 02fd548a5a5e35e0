"""Create a new, empty cluster: run initdb once for each build of PostgreSQL, and copy its result afterwards.

initdb always makes the same cluster, and takes seconds on a slow machine. PostgreSQL's own tests also copy
one, since version 17. Only its owner can read the cached cluster. It never runs, and is made again when the
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

_OPTIONS = (
    *("-U", "uncork", "-E", "UTF8", "--locale=C", "--no-sync"),
    *("--auth-local=trust", "--auth-host=scram-sha-256"),
)


class InitdbFailed(Exception):
    """initdb could not create a cluster."""


Run = Callable[[list[str]], Done]


def new_cluster(data: Path, binaries: Path, account: Account, run: Run) -> None:
    """Create a cluster with the superuser ``uncork`` in an empty folder that belongs to `account`.

    The superuser can connect over the Unix socket, and has no password. Over TCP, only roles that are created
    later can connect. `run` runs a command as that account.

    Raises:
        InitdbFailed: with the output of initdb.
    """
    kept = cache_folder() / "clusters" / _key(binaries)
    with contextlib.suppress(OSError, shutil.Error):
        _copy(kept, data, account.uid if account.change else None, account.gid)
        return
    _empty(data)
    done = run([str(binaries / "initdb"), "-D", str(data), *_OPTIONS])
    if done.returncode != 0:
        raise InitdbFailed(done.stderr or done.stdout)
    # If the cache cannot be written, the next run only takes longer.
    with contextlib.suppress(OSError, shutil.Error):
        _keep(data, kept)


def _key(binaries: Path) -> str:
    """Return a key for everything that determines a new cluster: the build, and the options of initdb."""
    facts = [str(binaries.resolve()), *_OPTIONS]
    for name in ("initdb", "postgres"):
        status = (binaries / name).stat()
        facts += [str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _keep(data: Path, kept: Path) -> None:
    """Add a copy to the cache; its name appears only when the copy is complete."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=kept.parent))
    try:
        _copy(data, making, None, 0)
        # If two processes do this at the same time, the first one wins.
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
