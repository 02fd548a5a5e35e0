"""What a mirror knows of its address: a file beside the runs, and how runs are described at the address.

::

    ADDRESS/.index/runs/<id>.json        a run is there once this is: its manifest, and what files it has
    ADDRESS/.index/tags/<id>/<tag>       an object a tag
    ADDRESS/.index/names/<name>          the id of the run that has this name
    ADDRESS/.index/changes/<change>      what changed of late; see `mirror_changes`
    ADDRESS/.index/catalogue.json.gz     a copy of all of .index/runs, which makes a first list fast
    ADDRESS/<id>/...                     the run's files, as in a folder of runs
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from uncork.store.layout import Manifest, manifest_of
from uncork.store.remote.files import put_copy
from uncork.store.remote.objects import Entry

__all__ = [
    "CATALOGUE",
    "INDEX",
    "NAMES_OF_RUNS",
    "RECORD",
    "KnownRun",
    "Listing",
    "Record",
    "RunDocument",
    "catalogue_of",
    "digest_of",
    "listing_of",
    "read_catalogue_copy",
    "run_path",
]

INDEX: Final = ".index"
CATALOGUE: Final = f"{INDEX}/catalogue.json.gz"
RECORD: Final = ".mirror.json"
NAMES_OF_RUNS: Final = ""
"""What stands for names among runs that are to be looked at again."""
_VERSION: Final = 1
_SETTLED: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What stands in the index of a run: its manifest, and of each file its bytes and digest."""

    manifest: Manifest
    files: Mapping[str, tuple[int, str]]

    def content(self) -> bytes:
        """Return it as it is written."""
        told = {"version": _VERSION, "manifest": asdict(self.manifest), "files": self.files}
        return (json.dumps(told, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def read(content: bytes | Mapping[str, Any]) -> RunDocument:
        """Read it. Raises ValueError, KeyError, TypeError or AttributeError if it is none."""
        told = content if isinstance(content, Mapping) else json.loads(content)
        if told["version"] > _VERSION:
            raise ValueError("a newer uncork wrote it; update uncork")
        files = {str(path): (int(size), str(digest)) for path, (size, digest) in told["files"].items()}
        unsafe = [path for path in files if path.startswith("/") or ".." in path.split("/")]
        if unsafe:
            raise ValueError(f"it names a file outside the run: {unsafe[0]}")
        return RunDocument(manifest_of(told["manifest"]), files)


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run as it was when it was last looked at or sent.

    `stamp` is that of its index there, empty if that must be read again; `here` is the size and time of its
    manifest here, by which one that went on since is told.
    """

    stamp: str
    digest: str
    here: tuple[int, int]
    files: Mapping[str, tuple[int, str]]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """All that a mirror knows of its address. `names` are those of runs there: a stamp and an id each.

    All that was there at `whole_at`, in seconds since 1970, is in it, and every change that is `seen`, by
    token. The runs `again` are looked at again each time: their indexes are damaged, or could not be taken;
    `NAMES_OF_RUNS` among them stands for names.
    """

    runs: Mapping[str, KnownRun] = field(default_factory=dict)
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    whole_at: float = 0.0
    seen: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()

    @staticmethod
    def read(root: Path) -> Record:
        """Return what is known; nothing if the file is missing or of no use."""
        try:
            told = json.loads((root / RECORD).read_bytes())
            if told["version"] != _VERSION:
                return Record()
            runs = {
                id: KnownRun(
                    stamp,
                    digest,
                    (here[0], here[1]),
                    {path: (size, mark) for path, (size, mark) in files.items()},
                    tuple(tags),
                )
                for id, (stamp, digest, here, files, tags) in told["runs"].items()
            }
            names = {name: (stamp, id) for name, (stamp, id) in told["names"].items()}
            seen, again = (frozenset(map(str, told.get(key, ()))) for key in ("seen", "again"))
            return Record(runs, names, float(told.get("whole_at", 0.0)), seen, again)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Record()

    def write(self, root: Path) -> None:
        """Write it, whole or not at all. If a power cut takes it, all is read anew."""
        runs = {
            id: [run.stamp, run.digest, run.here, run.files, run.tags]
            for id, run in sorted(self.runs.items())
        }
        told = {
            "version": _VERSION,
            "runs": runs,
            "names": self.names,
            "whole_at": self.whole_at,
            "seen": sorted(self.seen),
            "again": sorted(self.again),
        }
        put_copy(root / RECORD, json.dumps(told, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True)
class Listing:
    """What the index of an address holds, by run and by name; `catalogue` if there is a copy of it."""

    runs: Mapping[str, Entry]
    tags: Mapping[str, tuple[str, ...]]
    names: Mapping[str, Entry]
    catalogue: bool


def listing_of(entries: list[Entry]) -> Listing:
    """Sort what was listed below the index, but for what begins with a dot: ids become folders. Pure."""
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
    """Return a stamp that can be relied on; empty where the entry may change without a change of it. Pure."""
    if entry.exact:
        return entry.stamp
    settled = entry.changed_at is not None and now - entry.changed_at > _SETTLED
    return entry.stamp if settled else ""


def run_path(id: str) -> str:
    """Return where the index of a run is."""
    return f"{INDEX}/runs/{id}.json"


def digest_of(content: bytes) -> str:
    """Return what tells contents apart."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def catalogue_of(documents: Mapping[str, tuple[str, RunDocument]]) -> bytes:
    """Return the copy of an index: of each run its stamp, and what stands there."""
    runs = {
        id: [stamp, {"version": _VERSION, "manifest": asdict(one.manifest), "files": one.files}]
        for id, (stamp, one) in documents.items()
    }
    return gzip.compress(json.dumps({"version": _VERSION, "runs": runs}).encode(), 6)


def read_catalogue_copy(content: bytes) -> dict[str, tuple[str, RunDocument]]:
    """Return what a copy of an index holds; nothing if it is of no use."""
    try:
        told = json.loads(gzip.decompress(content))
        if told["version"] != _VERSION:
            return {}
        return {id: (stamp, RunDocument.read(one)) for id, (stamp, one) in told["runs"].items()}
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)
