"""Mirror a store at an address with a local folder.

A run is sent when it has ended: first its files, then its index entry, so that others see it
completely or not at all. Runs of others are found by listing the index; only index entries that
changed are read. A run's tables are fetched when someone opens the run. There are no locks at the
address: no two writers write the same object, except names and tags, where the last write wins.
Runs that could not be sent stay in the folder and can be sent later.

::

    ADDRESS/.index/runs/<id>.json        a run exists once this does: its manifest, and the list of its files
    ADDRESS/.index/tags/<id>/<tag>       one object for each tag
    ADDRESS/.index/names/<name>          the id of the run with this name
    ADDRESS/.index/catalogue.json.gz     a copy of all of .index/runs, which makes the first list fast
    ADDRESS/<id>/...                     the run's files, as in a folder of runs
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from uncork.errors import SetupError, StoreError, UncorkError
from uncork.store.catalogue import tags_of
from uncork.store.layout import NAMES, Manifest, manifest_of, read_manifest, write_atomically
from uncork.store.remote import mirrors
from uncork.store.remote.address import Address
from uncork.store.remote.mirrors import ABSENT
from uncork.store.remote.objects import Entry, Remote

_FRESH_S: Final = 2.0
_AT_ONCE: Final = 200
"""The number of files fetched together."""
_LARGE_BYTES: Final = 8 << 20
_ABANDONED: Final = timedelta(days=1)
"""Older files at the address without an index entry belong to a sender that was killed."""


Wanted = tuple[Path, str, tuple[int, str]]
"""A file to fetch: its run, its name in the run, and its size and digest."""


def open_mirror(address: Address, folder: Path) -> AddressMirror:
    """Create and register the mirror of an address, with its runs below a local folder.

    Raises UsageError if the backend for the address's scheme is not installed; SetupError if the
    folder cannot be created.
    """
    remote = Remote(address)
    root = folder / address.key
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SetupError(
            f"cannot create {root}: {error.strerror}; set UNCORK_CACHE to another folder"
        ) from error
    mirror = AddressMirror(remote, root)
    mirrors.register(mirror)
    return mirror


class AddressMirror:
    """The local folder `root` that mirrors an address.

    `wrote` means that this process created or changed a run in it. `damaged` holds an error for
    each damaged run at the address. A list younger than `fresh_s` seconds is used again, because
    one command lists several times.

    Raises:
        SetupError, ConnectError: from any method, if the address cannot be reached; see `Remote`.
        StoreError: from any method, if the local folder cannot be written.
    """

    def __init__(self, remote: Remote, root: Path) -> None:
        self.root = root
        self.wrote = False
        self.fresh_s = _FRESH_S
        self.damaged: tuple[StoreError, ...] = ()
        self.address = remote.address
        self._remote = remote
        self._listed_at: float | None = None
        self._known: tuple[tuple[int, int, int], Record] | None = None

    @property
    def shown(self) -> str:
        """The address without its password."""
        return self.address.shown

    def redacted(self, text: str) -> str:
        """Remove the password of the address from a text."""
        return text.replace(self.address.text, self.shown)

    # ---- what is there ----

    def refresh(self) -> None:
        """Update the local runs, names and tags from the address."""
        if self._listed_at is not None and time.monotonic() - self._listed_at < self.fresh_s:
            return
        before = self._record()
        index = read_index(self._remote, before, {entry.name for entry in os.scandir(self.root)})
        with self._locked():
            self._apply(index, before)
        self._listed_at = time.monotonic()

    def fetch(self, runs: Iterable[Path], tables: Sequence[str] | None = None) -> list[StoreError]:
        """Fetch the files of runs, or only of some tables; return an error for each damaged run."""
        absent = [run for run in runs if (run / mirrors.ABSENT).exists()]
        if not absent:
            return []
        known = self._record().runs
        damaged = self._fetch(absent, known, tables)
        again = [run for run in absent if run.name in damaged]
        if again:  # they may have been resumed since they were listed
            self._listed_at = None
            self.refresh()
            damaged = self._fetch(again, self._record().runs, tables)
        return list(damaged.values())

    def pending(self) -> list[Path]:
        """Return the local runs, of any status, that are not at the address or were resumed since."""
        known = self._record().runs
        found = []
        for entry in sorted(os.scandir(self.root), key=lambda entry: entry.name):
            here = None if entry.name.startswith(".") else run_facts(entry.path)
            before = known.get(entry.name)
            if here is not None and (before is None or before.here != here):
                found.append(Path(entry.path))
        return found

    def ids(self) -> frozenset[str]:
        """Return the ids of the runs at the address."""
        return frozenset(self._record().runs)

    def size_of(self, id: str) -> int:
        """Return the size of a run at the address, in bytes."""
        known = self._record().runs.get(id)
        return 0 if known is None else sum(size for size, _ in known.files.values())

    # ---- what is sent ----

    def publish(self, run: Path) -> bool:
        """Send a run of this or another folder, with its tags; return False if the address has it already.

        Raises StoreError if the address has another run with this id, or someone resumed the run there.
        """
        manifest = read_manifest(run)
        path = run_path(run.name)
        there = self._remote.read([path]).get(path)
        known = self._record().runs.get(run.name)
        if there is not None and (known is None or known.digest != digest_of(there)):
            known = self._already(run, manifest, there)
        files = files_of(run)
        document = RunDocument(manifest, files).content()
        if there == document:
            self._note(run, document, files)
            return False
        before: Mapping[str, tuple[int, str]] = {} if known is None else known.files
        changed = {name: run / name for name, facts in files.items() if before.get(name) != facts}
        self._remote.write_files({f"{run.name}/{name}": source for name, source in changed.items()})
        for tag in tags_of(run):
            self._remote.write(_tag_path(run.name, tag), b"\n")
        self._remote.write(path, document)
        self._remote.remove([f"{run.name}/{name}" for name in before if name not in files])
        self._note(run, document, files)
        return True

    def set_tag(self, id: str, tag: str, *, present: bool) -> None:
        """Add or remove a tag at the address; a run that is not there yet will be sent with its tags."""
        if id not in self._record().runs:
            return
        if present:
            self._remote.write(_tag_path(id, tag), b"\n")
        else:
            self._remote.remove([_tag_path(id, tag)])
        with self._locked():
            record = self._record()
            known = record.runs.get(id)
            if known is not None:
                tags = {*known.tags, tag} if present else {*known.tags} - {tag}
                known = replace(known, tags=tuple(sorted(tags)))
                replace(record, runs={**record.runs, id: known}).write(self.root)

    def set_name(self, name: str, id: str) -> None:
        """Set the name of a run at the address.

        Raises SetupError if the run is not at the address yet.
        """
        if id not in self._record().runs:
            raise SetupError(f"{id} is not at {self.shown} yet; send it with: uncork runs push")
        self._remote.write(f"{INDEX}/names/{name}", f"{id}\n".encode())
        with self._locked():
            record = self._record()
            replace(record, names={**record.names, name: ("", id)}).write(self.root)

    def remove(self, id: str) -> bool:
        """Delete a run at the address; return False if it changed, or was tagged or named, meanwhile.

        The index entry is deleted first, so that nobody sees the run any more. Then tags and names
        are checked again: if someone set one meanwhile, the entry is restored and the run is kept.
        """
        known = self._record().runs.get(id)
        if known is None:
            return True
        path = run_path(id)
        there = self._remote.read([path]).get(path)
        if there is not None:
            if digest_of(there) != known.digest or self._is_kept(id):
                return False
            self._remote.remove([path])
            if self._is_kept(id):
                self._remote.write(path, there)
                return False
        self._remote.remove_folder(id)
        with self._locked():
            record = self._record()
            rest = {text: run for text, run in record.runs.items() if text != id}
            replace(record, runs=rest).write(self.root)
        return True

    def remove_leftovers(self) -> int:
        """Delete what killed senders left at the address: files without an index entry, a day old."""
        seen = listing_of(self._remote.files(INDEX)).runs
        here = {run.name for run in self.pending()}
        removed = 0
        for id in self._remote.folders():
            if id.startswith(".") or id in seen or id in here:
                continue
            times = [entry.changed_at for entry in self._remote.files(id)]
            if times and all(at is not None and now() - at > _ABANDONED for at in times):
                self._remote.remove_folder(id)
                removed += 1
        return removed

    # ---- steps of reading ----

    def _record(self) -> Record:
        """Return the record of the address; read it again if another process has written it."""
        try:
            status = (self.root / RECORD).stat()
        except OSError:
            return Record()
        key = status.st_ino, status.st_mtime_ns, status.st_size
        if self._known is None or self._known[0] != key:
            self._known = key, Record.read(self.root)
        return self._known[1]

    def _apply(self, index: Index, before: Record) -> None:
        """Apply the index to the folder, except where another local process made changes meanwhile.

        What was left unchanged keeps its old stamp, so the next refresh reads it again.
        """
        record = self._record()
        names = index.names if record.names == before.names else record.names
        self._bring_names(record, names)
        self.damaged = tuple(index.damaged.values())
        after = Record(self._apply_runs(index, record.runs, before.runs), names)
        if after != record:  # a cheap comparison: unchanged parts are the same objects
            after.write(self.root)

    def _apply_runs(
        self, index: Index, current: Mapping[str, KnownRun], before: Mapping[str, KnownRun]
    ) -> dict[str, KnownRun]:
        """Apply runs and tags to the folder; return the known runs."""
        runs = dict(current)
        for id, (stamp, document) in index.documents.items():
            same = runs.get(id) == before.get(id)
            known = self._bring(id, stamp, document, runs.get(id)) if same else None
            if known is not None:
                runs[id] = known
        for id in (before.keys() - index.ids) & runs.keys():
            if runs[id] == before[id]:
                del runs[id]
                if run_facts(self.root / id) == before[id].here:
                    vanish(self.root / id)
        for id in index.ids & runs.keys():
            known, tags = runs[id], index.tags.get(id, ())
            if known.tags != tags and known.tags == (before.get(id) or known).tags:
                bring_tags(self.root / id, known.tags, tags)
                runs[id] = replace(known, tags=tags)
        return runs

    def _bring_names(self, record: Record, names: Mapping[str, tuple[str, str]]) -> None:
        for name in record.names.keys() | names.keys():
            if name not in names:
                (self.root / NAMES / name).unlink(missing_ok=True)
            elif record.names.get(name) != names[name]:
                write_atomically(self.root / NAMES / name, f"{names[name][1]}\n")

    def _bring(self, id: str, stamp: str, document: RunDocument, known: KnownRun | None) -> KnownRun | None:
        """Write a run's manifest locally; None if this machine has a newer run with this id."""
        run = self.root / id
        here = run_facts(run)
        content = document.content()
        if here is not None and (known is None or known.here != here):
            try:
                same = read_manifest(run) == document.manifest
            except StoreError:
                same = False
            if not same:
                return None
        elif here is None or known is None or known.digest != digest_of(content):
            absent = bool(document.files.keys() - {"manifest.json"})
            put_manifest(run, document.manifest, absent=absent)
            if here is None and known is not None:
                bring_tags(run, (), known.tags)
        facts = run_facts(run)
        if facts is None:
            return None
        return KnownRun(stamp, digest_of(content), facts, document.files, () if known is None else known.tags)

    def _fetch(
        self, runs: Sequence[Path], known: Mapping[str, KnownRun], tables: Sequence[str] | None
    ) -> dict[str, StoreError]:
        """Fetch files; return errors by run. Runs with all files lose the marker of absent files."""
        damaged: dict[str, StoreError] = {}
        wanted: dict[str, Wanted] = {}
        for run in runs:
            if run.name not in known:
                damaged[run.name] = StoreError(f"{self.shown}/{run.name}: no longer exists")
                continue
            for name, facts in known[run.name].files.items():
                if name != "manifest.json" and (tables is None or name.partition("/")[0] in tables):
                    wanted[f"{run.name}/{name}"] = (run, name, facts)
        missing = {path: one for path, one in wanted.items() if not has_file(*one)}
        large = [path for path, (_, _, facts) in missing.items() if facts[0] > _LARGE_BYTES]
        small = [path for path, (_, _, facts) in missing.items() if facts[0] <= _LARGE_BYTES]
        broken = [path for path in large if not self._bring_large(path, missing[path])]
        for start in range(0, len(small), _AT_ONCE):
            broken += self._bring_small(small[start : start + _AT_ONCE], missing)
        for path in broken:
            text = f"{self.shown}/{path}: damaged: the file is missing or has changed"
            damaged[missing[path][0].name] = StoreError(text)
        if tables is None:
            for run in runs:
                if run.name not in damaged:
                    (run / mirrors.ABSENT).unlink(missing_ok=True)
        return damaged

    def _bring_small(self, paths: Sequence[str], wanted: Mapping[str, Wanted]) -> list[str]:
        """Fetch small files, many at once; return the paths of missing or changed files."""
        contents, broken = self._remote.read(paths), []
        for path in paths:
            run, name, facts = wanted[path]
            content = contents.get(path)
            if content is None or (len(content), digest_of(content)) != facts:
                broken.append(path)
            else:
                put_copy(run / name, content)
        return broken

    def _bring_large(self, path: str, wanted: Wanted) -> bool:
        """Fetch a large file through the disk; return False if it is missing or has changed."""
        run, name, facts = wanted
        target = run / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
        try:
            if not self._remote.read_to(path, draft) or file_facts(draft) != facts:
                return False
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return True

    # ---- steps of sending ----

    def _already(self, run: Path, manifest: Manifest, there: bytes) -> KnownRun:
        """Return the run at the address, which this mirror does not know like this, if it is the same run."""
        try:
            document = RunDocument.read(there)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{self.shown}/{run_path(run.name)}: damaged: {error}") from error
        theirs = document.manifest
        begun = (manifest.started_at, manifest.seed, manifest.server, manifest.kind)
        if (theirs.started_at, theirs.seed, theirs.server, theirs.kind) != begun:
            raise StoreError(
                f"{run.name}: {self.shown} has another run with this id; this one stays in {run}"
            )
        ours = manifest.attempts[: len(theirs.attempts)]
        if ours != theirs.attempts:
            raise StoreError(
                f"{run.name}: somebody else resumed it at {self.shown}; what was measured here stays in {run}"
            )
        return KnownRun("", digest_of(there), (0, 0), document.files)

    def _note(self, run: Path, document: bytes, files: Mapping[str, tuple[int, str]]) -> None:
        """Record what was sent."""
        facts = run_facts(run)
        if run.parent != self.root or facts is None:
            self._listed_at = None
            return
        with self._locked():
            record = self._record()
            known = KnownRun("", digest_of(document), facts, files, tags_of(run))
            replace(record, runs={**record.runs, run.name: known}).write(self.root)

    def _is_kept(self, id: str) -> bool:
        """Return whether a run has a tag or a name at the address now."""
        if self._remote.files(f"{INDEX}/tags/{id}"):
            return True
        names = self._remote.read([entry.path for entry in self._remote.files(f"{INDEX}/names")])
        return any(content.decode(errors="replace").strip() == id for content in names.values())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one local process at a time change the folder; the lock ends with its process."""
        try:
            file = (self.root / ".lock").open("w")
        except OSError as error:
            raise StoreError(f"cannot write {self.root}: {error.strerror}") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _tag_path(id: str, tag: str) -> str:
    return f"{INDEX}/tags/{id}/{tag}"


# ---- what a mirror knows about its address, and the format of the index ----

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


# ---- the index at the address ----

_WORTH: Final = 200
"""The copy of the index is rewritten when at least this many entries were read one by one."""
_NONE: Final = KnownRun("", "", (0, 0), {})

Documents = dict[str, tuple[str, RunDocument]]
"""Index entries of runs, each with its stamp; the stamp is empty if the entry must be read again."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index at an address. `ids` are the runs that have an entry, and `tags` their tags.

    `documents` are the entries that changed, and `damaged` the errors for entries that cannot be
    read. `names` holds a stamp and a run's id for each name.
    """

    ids: Set[str]
    documents: Documents
    damaged: Mapping[str, StoreError]
    tags: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, str]]


def read_index(remote: Remote, before: Record, here: Set[str]) -> Index:
    """List the index, and read entries that changed, or whose run is not in the local folders `here`.

    Raises:
        SetupError, ConnectError: see `Remote`.
    """
    listing, at = listing_of(remote.files(INDEX)), now()
    stamps = {id: stamp_of(entry, at) for id, entry in listing.runs.items()}
    changed = [
        id
        for id, stamp in stamps.items()
        if not stamp or id not in here or (before.runs.get(id) or _NONE).stamp != stamp
    ]
    copied: Documents = {}
    if len(changed) >= _WORTH and listing.catalogue:
        copied = read_catalogue_copy(remote.read([CATALOGUE]).get(CATALOGUE, b""))
        copied = {id: one for id, one in copied.items() if one[0] and one[0] == stamps.get(id)}
    documents = {id: copied[id] for id in changed if id in copied}
    wanted = {id: stamps[id] for id in changed if id not in copied}
    read, damaged = _read_indexes(remote, wanted)
    documents |= read
    if len(wanted) >= _WORTH:
        whole = {id: one for id, one in (copied | documents).items() if one[0]}
        with contextlib.suppress(UncorkError):  # without permission to write, it is only slower
            remote.write(CATALOGUE, catalogue_of(whole))
    names = _names(remote, listing.names, before)
    return Index(stamps.keys(), documents, damaged, listing.tags, names)


def _read_indexes(remote: Remote, stamps: Mapping[str, str]) -> tuple[Documents, dict[str, StoreError]]:
    """Read index entries of runs; return them with their stamps, and an error for each damaged entry."""
    contents = remote.read([run_path(id) for id in stamps])
    documents, damaged = {}, {}
    for id, stamp in stamps.items():
        content = contents.get(run_path(id))
        if content is None:  # pruned meanwhile, or not written yet
            continue
        try:
            documents[id] = stamp, RunDocument.read(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            damaged[id] = StoreError(f"{remote.address.shown}/{run_path(id)}: damaged: {error}")
    return documents, damaged


def _names(remote: Remote, listed: Mapping[str, Entry], before: Record) -> dict[str, tuple[str, str]]:
    """Return the names of runs; read only the names that changed."""
    at = now()
    stamps = {name: stamp_of(entry, at) for name, entry in listed.items()}
    names = {
        name: before.names[name]
        for name, stamp in stamps.items()
        if stamp and before.names.get(name, ("", ""))[0] == stamp
    }
    contents = remote.read([listed[name].path for name in stamps if name not in names])
    for path, content in contents.items():
        name = path.rpartition("/")[2]
        names[name] = stamps[name], content.decode(errors="replace").strip()
    return names
