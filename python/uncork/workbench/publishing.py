"""Runs and an address: the folder that mirrors it, and what is sent there or brought from there."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uncork.analysis.runs.status import status_of
from uncork.engines.places import cache_folder
from uncork.errors import SetupError, StoreError, UncorkError, UsageError
from uncork.store.catalogue import read_catalogue
from uncork.store.layout import Manifest, Sitting, find_run, read_manifest, read_names, write_manifest
from uncork.store.remote.address import parse_address
from uncork.store.remote.mirror import AddressMirror, open_mirror
from uncork.store.remote.mirrors import mirror_of, opened, shown

__all__ = ["Sent", "open_runs", "pull_runs", "push_runs", "send_pending", "send_written", "unsent"]

_KILLED = "its process was killed"


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent to an address, or brought from it: ids of runs, and what is wrong with others.

    `root` is where those stay that were not sent. `left` counts them.
    """

    shown: str
    root: Path
    runs: tuple[str, ...]
    troubles: tuple[UncorkError, ...] = ()
    left: int = 0


def open_runs(text: str) -> Path:
    """Return the folder that holds runs: the one that is named, or that of this machine for an address.

    Raises:
        UsageError: if it is an address that can be no store, or what speaks its scheme is not installed.
        SetupError: if the folder cannot be made.
    """
    place = parse_address(text, os.environ)
    if isinstance(place, Path):
        return place
    folder = cache_folder() / "stores"
    known = mirror_of(folder / place.key)
    return open_mirror(place, folder).root if known is None else known.root


def send_written() -> Iterator[Sent]:
    """Send what this process wrote for an address, with what was left there before; tell of each address."""
    for mirror in opened():
        if mirror.wrote:
            mirror.wrote = False
            yield send_pending(mirror.root)


def send_pending(root: Path) -> Sent:
    """Send the runs that are here and not at the address; none that is still going on.

    The first trouble with the address itself ends it; one with a run does not. One whose process was killed
    is sent as interrupted: elsewhere nobody could see that it no longer runs.

    Raises:
        UsageError: if the folder mirrors no address.
    """
    mirror = _mirror(root)
    sent, troubles = [], []
    pending = list(_ended(mirror))
    for place, run in enumerate(pending):
        try:
            _note_killed(run)
            if mirror.publish(run):
                sent.append(run.name)
        except StoreError as error:
            troubles.append(error)
        except UncorkError as error:
            return Sent(mirror.shown, root, tuple(sent), (*troubles, error), len(pending) - place)
        except KeyboardInterrupt:
            stopped = SetupError("interrupted while it was sent")
            return Sent(mirror.shown, root, tuple(sent), (*troubles, stopped), len(pending) - place)
    return Sent(mirror.shown, root, tuple(sent), tuple(troubles), len(troubles))


def unsent(root: Path) -> int:
    """Return how many runs that have ended wait here to be sent; none if the folder mirrors no address."""
    mirror = mirror_of(root)
    return sum(1 for _ in _ended(mirror)) if isinstance(mirror, AddressMirror) else 0


def push_runs(folder: Path, address: Path) -> Sent:
    """Send the runs of a folder that are not at an address yet, with their tags, and names that are free.

    Raises:
        UsageError: if the folder mirrors an address itself.
    """
    mirror = _mirror(address)
    if mirror_of(folder) is not None:
        raise UsageError(f"{shown(folder)} is an address: name a folder with --runs, whose runs are sent")
    mirror.refresh()
    sent, troubles = [], []
    for run in read_catalogue(folder).runs:
        if status_of(run.manifest) == "running":
            continue
        try:
            _note_killed(run.folder)
            if mirror.publish(run.folder):
                sent.append(run.id)
        except StoreError as error:
            troubles.append(error)
    mirror.refresh()
    taken, there = read_names(mirror.root), mirror.ids()
    for name, id in read_names(folder).items():
        if name not in taken and id in there:
            mirror.set_name(name, id)
    return Sent(mirror.shown, folder, tuple(sent), tuple(troubles), len(troubles))


def pull_runs(address: Path, folder: Path, wanted: Sequence[str]) -> Sent:
    """Bring runs of an address to a folder, all or those that are wanted; those that are there already stay.

    Raises:
        UsageError: if the folder mirrors an address itself.
        SetupError: if a wanted run is not at the address, or the folder cannot be written.
    """
    mirror = _mirror(address)
    if mirror_of(folder) is not None:
        raise UsageError(
            f"{shown(folder)} is an address: name a folder with --runs, to which runs are brought"
        )
    if wanted:
        runs = [find_run(mirror.root, one, files=False) for one in wanted]
    else:
        runs = [run.folder for run in read_catalogue(mirror.root).runs]
    missing = [run for run in runs if not (folder / run.name / "manifest.json").exists()]
    damaged = mirror.fetch(missing)
    broken = {run for run in missing if (run / ".absent").exists()}
    brought = []
    for run in missing:
        if run not in broken:
            _copy(run, folder)
            brought.append(run.name)
    return Sent(mirror.shown, folder, tuple(brought), tuple(damaged), len(broken))


# ---- steps ----


def _mirror(root: Path) -> AddressMirror:
    mirror = mirror_of(root)
    if not isinstance(mirror, AddressMirror):
        raise UsageError(f"{root} is a folder; name an address, such as s3://BUCKET/PREFIX")
    return mirror


def _ended(mirror: AddressMirror) -> Iterator[Path]:
    for run in mirror.pending():
        try:
            if status_of(read_manifest(run)) != "running":
                yield run
        except StoreError:
            continue  # it is damaged; lists tell so


def _note_killed(run: Path) -> None:
    manifest = read_manifest(run)
    if status_of(manifest) != "killed":
        return
    sitting = Sitting(manifest.started_at, 0, 0, "interrupted", _KILLED)
    ended: Manifest = replace(
        manifest, status="interrupted", owner=None, sittings=(*manifest.sittings, sitting)
    )
    write_manifest(run, ended)


def _copy(run: Path, folder: Path) -> None:
    """Copy a run to a folder, so that it is there whole or not at all."""
    draft = folder / f".{run.name}.{secrets.token_hex(4)}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(run, draft, ignore=shutil.ignore_patterns(".*", "figures.json"))
        draft.rename(folder / run.name)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise SetupError(f"cannot write {folder / run.name}: {error.strerror or error}") from error
