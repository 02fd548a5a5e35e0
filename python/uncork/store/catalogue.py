"""List all runs of a folder fast, even ten thousand runs on a disk that a team shares.

The folder has ``.catalogue.json``, a copy of all manifests. Listing reads this copy, checks when each run's
folder was last modified, and reads only the manifests that changed since. The copy can be deleted at any
time; if it cannot be written, listing is only slower. A tag is an empty file ``tag.<name>`` in the run's
folder. Setting a tag does not rewrite any file, so two people who tag a run at once both succeed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from uncork.errors import StoreError, UncorkError, UsageError
from uncork.store.layout import Manifest, age_of, manifest_of, read_manifest, write_atomically
from uncork.store.remote import mirrors

CATALOGUE: Final = ".catalogue.json"
_VERSION: Final = 1
_SETTLED_NS: Final = 60 * 10**9
"""A folder that changed less than this ago is always read again: a second change may have the same time,
because file systems round times, and the clocks of machines that share a disk differ."""
_WORTH: Final = 100
"""The copy is rewritten when at least this many manifests had to be read."""
_TAG: Final = "tag."


@dataclass(frozen=True, slots=True)
class CataloguedRun:
    """A run: its manifest, its tags, and a stamp that changes whenever these do.

    `id` is the name of the run's folder, whatever the manifest says. `settled` means that the stamp
    is reliable.
    """

    root: Path
    id: str
    manifest: Manifest
    tags: tuple[str, ...]
    stamp: str
    settled: bool

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.root / self.id


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The runs of a folder, oldest first, and an error for each run that cannot be read."""

    runs: tuple[CataloguedRun, ...]
    damaged: tuple[StoreError, ...]


def read_catalogue(root: Path, before: Catalogue | None = None) -> Catalogue:
    """Return all runs of a folder, and an error for each damaged run.

    `before` is an earlier result, for callers who list often. A folder without a manifest is not a
    run: it is being created, or was abandoned before the run began.

    Raises:
        StoreError: if the folder cannot be listed.
        SetupError, ConnectError: if the folder mirrors an address that is wrong or cannot be reached, and
            there is no `before`. With `before`, the error is in `damaged`, and the runs are the known ones.
    """
    away = _refreshed(root, before)
    known = {run.id: run for run in before.runs} if before is not None else _read_copy(root)
    now_ns = time.time_ns()
    runs: list[CataloguedRun] = []
    damaged: list[StoreError] = []
    read = 0
    for id, stamp, changed_ns in _folders(root):
        run = known.get(id)
        if run is None or run.stamp != stamp or not run.settled:
            try:
                run = _read_run(root, id, stamp, now_ns - changed_ns > _SETTLED_NS)
            except StoreError as error:
                damaged.append(error)
                continue
            if run is None:
                continue
            read += run.settled
        runs.append(run)
    if read >= _WORTH:
        _write_copy(root, runs)
    runs.sort(key=lambda run: age_of(run.id))
    return Catalogue(tuple(runs), (*away, *damaged))


def _refreshed(root: Path, before: Catalogue | None) -> tuple[StoreError, ...]:
    """Update a folder that mirrors an address; return an error for each damaged run at the address."""
    mirror = mirrors.mirror_of(root)
    if mirror is None:
        return ()
    try:
        mirror.refresh()
    except UncorkError as error:
        if before is None:
            raise
        return (StoreError(f"{error}; the list shows the runs known before"),)
    return mirror.damaged


def run_in(root: Path, id: str) -> CataloguedRun | None:
    """Return one run as it is now; None if it does not exist or cannot be read."""
    try:
        status = (root / id).stat()
        return _read_run(root, id, _stamp(status), False)
    except (OSError, StoreError):
        return None


def tags_of(run: Path) -> tuple[str, ...]:
    """Return a run's tags, sorted."""
    return tuple(sorted(path.name.removeprefix(_TAG) for path in run.glob(f"{_TAG}*")))


def set_tag(run: Path, tag: str, *, present: bool) -> None:
    """Add a tag to a run, or remove it.

    Raises UsageError if the tag is not valid; StoreError if the folder cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", tag):
        raise UsageError(
            f'"{tag}" is not a valid tag: use up to 63 letters, digits, ".", "_" and "-", as in release-2'
        )
    path = run / f"{_TAG}{tag}"
    mirror = mirrors.mirror_of(run.parent)
    if mirror is not None:
        mirror.set_tag(run.name, tag, present=present)
    try:
        if present:
            path.touch()
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def _folders(root: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each folder that may be a run, with its stamp and the time of its last change."""
    try:
        entries = list(os.scandir(root))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot list {root}: {error.strerror}") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            status = entry.stat()
        except OSError:
            continue  # removed meanwhile
        if stat.S_ISDIR(status.st_mode):
            yield entry.name, _stamp(status), status.st_mtime_ns


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_mtime_ns}"


def _read_run(root: Path, id: str, stamp: str, settled: bool) -> CataloguedRun | None:
    folder = root / id
    try:
        names = [entry.name for entry in os.scandir(folder)]
        manifest = read_manifest(folder) if "manifest.json" in names else None
    except (OSError, StoreError) as error:
        if not folder.exists():  # pruned meanwhile
            return None
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{folder}: damaged: {error.strerror}") from error
    if manifest is None:
        return None
    tags = sorted(name.removeprefix(_TAG) for name in names if name.startswith(_TAG))
    return CataloguedRun(root, id, manifest, tuple(tags), stamp, settled)


def _read_copy(root: Path) -> dict[str, CataloguedRun]:
    """Return the runs in the copy; empty if there is no copy, or it cannot be used."""
    try:
        data = json.loads((root / CATALOGUE).read_bytes())
        if data["version"] != _VERSION:
            return {}
        return {
            id: CataloguedRun(root, id, manifest_of(manifest), tuple(tags), stamp, True)
            for id, (stamp, manifest, tags) in data["runs"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_copy(root: Path, runs: Iterable[CataloguedRun]) -> None:
    copy = {run.id: (run.stamp, asdict(run.manifest), run.tags) for run in runs if run.settled}
    with contextlib.suppress(StoreError):  # a read-only or full disk: the list works without the copy
        write_atomically(root / CATALOGUE, json.dumps({"version": _VERSION, "runs": copy}))
