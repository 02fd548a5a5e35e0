"""Delete runs. Each run disappears from lists at once; its files are deleted afterwards."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from pathlib import Path
from typing import Final

from uncork.errors import StoreError, UncorkError
from uncork.store.catalogue import run_in
from uncork.store.layout import read_names
from uncork.store.remote import mirrors

_PRUNED: Final = ".pruned-"
_BEFORE_MANIFEST: Final = frozenset({"experiment.toml", "files", "plan.json"})
"""The files of a run that never began."""
_ABANDONED_S: Final = 86_400.0
"""An older temporary file belongs to a writer that was killed."""


def remove_run(root: Path, id: str, stamp: str) -> bool:
    """Delete a run as it was when listed; return False if it has changed since, or no longer exists.

    If someone tags, names or resumes the run meanwhile, the run is kept: after moving it aside, it
    is checked again and moved back.

    Raises:
        StoreError: if the run cannot be moved, or not all its files can be deleted.
        SetupError, ConnectError: if the root mirrors an address that cannot be reached; the run is kept.
    """
    folder, aside = root / id, root / f"{_PRUNED}{secrets.token_hex(4)}-{id}"
    before = run_in(root, id)
    if before is None or before.stamp != stamp or id in read_names(root).values():
        return False
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot remove {folder}: {error.strerror}") from error
    after = run_in(root, aside.name)
    if after is None or after.stamp != stamp or id in read_names(root).values():
        aside.rename(folder)
        return False
    mirror = mirrors.mirror_of(root)
    try:
        gone = mirror is None or mirror.remove(id)
    except UncorkError:
        aside.rename(folder)
        raise
    if not gone:
        aside.rename(folder)
        return False
    _remove(aside)
    return True


def remove_leftovers(root: Path) -> int:
    """Delete what killed processes left: half-deleted runs, temporary files, folders without a manifest."""
    if not root.is_dir():
        return 0
    found = [path for path in root.glob(f"{_PRUNED}*") if path.is_dir()]
    found += [path for path in (*root.glob(".*.new"), *root.glob("*/.*.new")) if _is_old(path)]
    found += [
        path
        for path in root.iterdir()
        if not path.name.startswith(".") and path.is_dir() and _is_old(path)
        if {inner.name for inner in path.iterdir()} <= _BEFORE_MANIFEST
    ]
    for path in found:
        _remove(path)
    mirror = mirrors.mirror_of(root)
    return len(found) + (0 if mirror is None else mirror.remove_leftovers())


def size_of(folder: Path) -> int:
    """Return the size of a run in bytes, at its address if it has one."""
    mirror = mirrors.mirror_of(folder.parent)
    if mirror is not None:
        return mirror.size_of(folder.name)
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _is_old(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime > _ABANDONED_S
    return False


def _remove(path: Path) -> None:
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot remove {path}: {error.strerror}; try again with: uncork runs prune"
        ) from error
