"""Send runs to an address, and fetch them from there, through the folder that mirrors the address."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncork.analysis.runs.listing import status_of
from uncork.engines.places import cache_folder
from uncork.errors import SetupError, StoreError, UncorkError, UsageError
from uncork.store.catalogue import read_catalogue
from uncork.store.layout import closed, find_run, read_manifest, read_names, write_manifest
from uncork.store.remote.address import parse_address
from uncork.store.remote.mirror import AddressMirror, open_mirror
from uncork.store.remote.mirrors import mirror_of, opened, shown

_KILLED = "its process was killed"


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent to an address, or fetched from it: ids of runs, and errors with other runs.

    `root` is the folder that keeps runs that were not sent, and `left` their number.
    """

    shown: str
    root: Path
    runs: tuple[str, ...]
    troubles: tuple[UncorkError, ...] = ()
    left: int = 0


def open_runs(text: str) -> Path:
    """Return the folder of runs: the named folder, or the local mirror of an address.

    Raises:
        UsageError: if the address cannot be a store, or the package for its scheme is not installed.
        SetupError: if the folder cannot be created.
    """
    place = parse_address(text, os.environ)
    if isinstance(place, Path):
        return place
    folder = cache_folder() / "stores"
    known = mirror_of(folder / place.key)
    return open_mirror(place, folder).root if known is None else known.root


def send_written() -> Iterator[Sent]:
    """Send what this process wrote for addresses, with what was left from before; yield a result for each."""
    for mirror in opened():
        if mirror.wrote:
            mirror.wrote = False
            yield send_pending(mirror.root)


def send_pending(root: Path) -> Sent:
    """Send the runs that are stored here but not at the address, except runs that are still running.

    The first error with the address ends sending; an error with a run does not. A run whose process
    was killed is sent as interrupted, because other machines could not see that it no longer runs.
    Raises UsageError if the folder does not mirror an address.
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
            stopped = SetupError("interrupted while sending")
            return Sent(mirror.shown, root, tuple(sent), (*troubles, stopped), len(pending) - place)
    return Sent(mirror.shown, root, tuple(sent), tuple(troubles), len(troubles))


def unsent(root: Path) -> int:
    """Return how many ended runs wait to be sent; 0 if the folder does not mirror an address."""
    mirror = mirror_of(root)
    return sum(1 for _ in _ended(mirror)) if isinstance(mirror, AddressMirror) else 0


def push_runs(folder: Path, address: Path) -> Sent:
    """Send the runs of a folder that are not at an address yet, with their tags, and with unused names.

    Raises UsageError if the folder itself mirrors an address.
    """
    mirror = _mirror(address)
    if mirror_of(folder) is not None:
        raise UsageError(f"{shown(folder)} is an address: name the folder of the runs to send with --runs")
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
    """Fetch runs from an address to a folder: all, or those in `wanted`; keep runs that are there already.

    Raises:
        UsageError: if the folder itself mirrors an address.
        SetupError: if a run in `wanted` is not at the address, or the folder cannot be written.
    """
    mirror = _mirror(address)
    if mirror_of(folder) is not None:
        raise UsageError(f"{shown(folder)} is an address: name the folder to fetch runs to with --runs")
    if wanted:
        runs = [find_run(mirror.root, text, files=False) for text in wanted]
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
            continue  # damaged runs are reported by lists


def _note_killed(run: Path) -> None:
    manifest = read_manifest(run)
    if status_of(manifest) == "killed":
        write_manifest(run, closed(manifest, "interrupted", _KILLED, 0))


def _copy(run: Path, folder: Path) -> None:
    """Copy a run to a folder, completely or not at all."""
    draft = folder / f".{run.name}.{secrets.token_hex(4)}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(run, draft, ignore=shutil.ignore_patterns(".*", "figures.json"))
        draft.rename(folder / run.name)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise SetupError(f"cannot write {folder / run.name}: {error.strerror or error}") from error
