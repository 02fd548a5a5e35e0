"""What a mirror knows about its address, stored beside the runs; and the format of the index at the address.

::

    ADDRESS/.index/runs/<id>.json        a run exists once this does: its manifest, and the list of its files
    ADDRESS/.index/tags/<id>/<tag>       one object for each tag
    ADDRESS/.index/names/<name>          the id of the run with this name
    ADDRESS/.index/catalogue.json.gz     a copy of all of .index/runs, which makes the first list fast
    ADDRESS/<id>/...                     the run's files, as in a folder of runs
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.store.layout import Manifest, manifest_of
from uncork.store.remote.mirrors import ABSENT
from uncork.store.remote.objects import Entry

INDEX: Final = ".index"
CATALOGUE: Final = f"{INDEX}/catalogue.json.gz"
RECORD: Final = ".mirror.json"
_VERSION: Final = 1
_SETTLED: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class RunDocument:
    """The index entry of a run: its manifest, and the size and digest of each file."""

    manifest: Manifest
    files: Mapping[str, tuple[int, str]]

    def content(self) -> bytes:
        """Return the entry as bytes to write."""
        data = {"version": _VERSION, "manifest": asdict(self.manifest), "files": self.files}
        return (json.dumps(data, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def read(content: bytes | Mapping[str, Any]) -> RunDocument:
        """Parse an entry. Raises ValueError, KeyError, TypeError or AttributeError if it is not valid."""
        data = content if isinstance(content, Mapping) else json.loads(content)
        if data["version"] != _VERSION:
            raise ValueError(f"format version {data['version']}, but this uncork reads version {_VERSION}")
        files = {str(path): (int(size), str(digest)) for path, (size, digest) in data["files"].items()}
        unsafe = [path for path in files if path.startswith("/") or ".." in path.split("/")]
        if unsafe:
            raise ValueError(f"it names a file outside the run: {unsafe[0]}")
        return RunDocument(manifest_of(data["manifest"]), files)


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run as it was when last read or sent.

    `stamp` is the stamp of its index entry, empty if the entry must be read again. `here` is the
    size and time of its local manifest, which show whether the run was resumed since.
    """

    stamp: str
    digest: str
    here: tuple[int, int]
    files: Mapping[str, tuple[int, str]]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """Everything a mirror knows about its address. `names` holds a stamp and a run's id for each name."""

    runs: Mapping[str, KnownRun] = field(default_factory=dict)
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @staticmethod
    def read(root: Path) -> Record:
        """Read the record; empty if the file is missing or cannot be used."""
        try:
            data = json.loads((root / RECORD).read_bytes())
            if data["version"] != _VERSION:
                return Record()
            runs = {
                id: KnownRun(
                    stamp,
                    digest,
                    (here[0], here[1]),
                    {path: (size, mark) for path, (size, mark) in files.items()},
                    tuple(tags),
                )
                for id, (stamp, digest, here, files, tags) in data["runs"].items()
            }
            names = {name: (stamp, id) for name, (stamp, id) in data["names"].items()}
            return Record(runs, names)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Record()

    def write(self, root: Path) -> None:
        """Write the record atomically. If a power cut destroys it, everything is read again."""
        runs = {
            id: [run.stamp, run.digest, run.here, run.files, run.tags]
            for id, run in sorted(self.runs.items())
        }
        data = {"version": _VERSION, "runs": runs, "names": self.names}
        put_copy(root / RECORD, json.dumps(data, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True)
class Listing:
    """The contents of an address's index, by run and by name; `catalogue` if a copy of it exists."""

    runs: Mapping[str, Entry]
    tags: Mapping[str, tuple[str, ...]]
    names: Mapping[str, Entry]
    catalogue: bool


def listing_of(entries: list[Entry]) -> Listing:
    """Sort the listed files of the index; ignore names that begin with a dot, as ids become folders. Pure."""
    runs: dict[str, Entry] = {}
    tags: dict[str, list[str]] = {}
    names: dict[str, Entry] = {}
    for entry in entries:
        words = entry.path.split("/")[1:]
        if any(word.startswith(".") for word in words):
            continue
        match words:
            case ["runs", name] if name.endswith(".json"):
                runs[name.removesuffix(".json")] = entry
            case ["tags", id, tag]:
                tags.setdefault(id, []).append(tag)
            case ["names", name]:
                names[name] = entry
            case _:
                pass
    catalogue = any(entry.path == CATALOGUE for entry in entries)
    return Listing(runs, {id: tuple(sorted(some)) for id, some in tags.items()}, names, catalogue)


def stamp_of(entry: Entry, now: datetime) -> str:
    """Return a reliable stamp; empty if the entry may change while its stamp does not. Pure."""
    if entry.exact:
        return entry.stamp
    settled = entry.changed_at is not None and now - entry.changed_at > _SETTLED
    return entry.stamp if settled else ""


def run_path(id: str) -> str:
    """Return the path of a run's index entry."""
    return f"{INDEX}/runs/{id}.json"


def digest_of(content: bytes) -> str:
    """Return a digest of a file's content."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def catalogue_of(documents: Mapping[str, tuple[str, RunDocument]]) -> bytes:
    """Return the copy of an index: the stamp and the index entry of each run."""
    runs = {
        id: [stamp, {"version": _VERSION, "manifest": asdict(document.manifest), "files": document.files}]
        for id, (stamp, document) in documents.items()
    }
    return gzip.compress(json.dumps({"version": _VERSION, "runs": runs}).encode(), 6)


def read_catalogue_copy(content: bytes) -> dict[str, tuple[str, RunDocument]]:
    """Parse the copy of an index; empty if it cannot be used."""
    try:
        data = json.loads(gzip.decompress(content))
        if data["version"] != _VERSION:
            return {}
        return {id: (stamp, RunDocument.read(one)) for id, (stamp, one) in data["runs"].items()}
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


# ---- files of a run, here ----


_OF_THIS_MACHINE: Final = frozenset({"figures.json"})
"""Cached files in a run's folder that are not sent, because each machine creates its own."""
_AN_HOUR_S: Final = 3600.0


def run_facts(run: Path | str) -> tuple[int, int] | None:
    """Return the size and time of a run's manifest; None if there is none."""
    try:
        status = os.stat(f"{run}/manifest.json")  # noqa: PTH116 -- Path is slow for ten thousand runs
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def files_of(run: Path) -> dict[str, tuple[int, str]]:
    """Return the files of a run to send, each with its size and digest."""
    files = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        own = name in _OF_THIS_MACHINE or name.startswith("tag.")
        if path.is_file() and not hidden and not own:
            files[name] = file_facts(path)
    return files


def file_facts(path: Path) -> tuple[int, str]:
    """Return the size of a file, and its digest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    return path.stat().st_size, digest


def has_file(run: Path, name: str, facts: tuple[int, str]) -> bool:
    """Return whether a run has a file with these facts. Tables are never rewritten, so compare sizes."""
    path = run / name
    try:
        return path.stat().st_size == facts[0] and (path.suffix == ".parquet" or file_facts(path) == facts)
    except OSError:
        return False


def put_copy(path: Path, content: bytes) -> None:
    """Write a copy of a file at the address, atomically but without waiting for the disk.

    Raises StoreError if the copy cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def put_manifest(run: Path, manifest: Manifest, *, absent: bool) -> None:
    """Write a run's manifest; `absent` means that some of its files have not been fetched yet.

    A new folder is dated an hour back: nothing else changes it now, so the list of runs need not
    treat it as one that may still change. Raises StoreError if the manifest cannot be written.
    """
    new = not run.exists()
    if absent:
        put_copy(run / ABSENT, b"")
    put_copy(run / "manifest.json", (json.dumps(asdict(manifest), indent=2) + "\n").encode())
    if new:
        earlier = time.time() - _AN_HOUR_S
        with contextlib.suppress(OSError):
            os.utime(run, (earlier, earlier))


def bring_tags(run: Path, before: Iterable[str], tags: Iterable[str]) -> None:
    """Update a run's local tags from the earlier tags at the address to the current ones."""
    with contextlib.suppress(OSError):
        for tag in set(before) - set(tags):
            (run / f"tag.{tag}").unlink(missing_ok=True)
        for tag in set(tags) - set(before):
            (run / f"tag.{tag}").touch()


def vanish(run: Path) -> None:
    """Delete the copy of a run that is no longer at the address; it disappears from lists at once."""
    aside = run.with_name(f".pruned-{secrets.token_hex(4)}-{run.name}")
    with contextlib.suppress(OSError):
        run.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
