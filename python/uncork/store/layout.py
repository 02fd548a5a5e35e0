"""The files of a run, and its manifest.

::

    .uncork/runs/.names/<name>    the id of the run with this name, such as baseline
    .uncork/runs/<id>/
        manifest.json          what was run, when, and how it ended; replaced at each change
        experiment.toml        the experiment file, and under files/ the SQL files it names
        plan.json              the plan
        environment.json       facts about server and machine
        trials/000001.parquet  tables, append-only: each file is written under a temporary name, then renamed
        statements/ plans/ relations/ refusals/
        host.json              where it was measured
        hosts.json, parts/     of a run that was merged: the hosts of its rounds, and their runs
        result.json            the report, when there is one
        tag.<tag>              an empty file for each tag
        glances.jsonl          during a load or a watch: one line per second; replaced by tables at the end
    .uncork/runs/.unfinished/    parts of logs that were read before an interruption
    .uncork/runs/.catalogue.json, .packed/    copies that make lists and queries fast

Runs of other kinds have these files:

- ``load``: plan.json, which is the load plan with scripts but without the password; and the tables
  load_totals/ load_statements/ load_series/, and for HTTP load_statuses/.
- ``sweep``: also sweep.json, the options of the sweep, and the table sweep_visits/.
- ``log``: facts.json and the tables log_*/.
- ``database``: facts.json and the tables database_*/.
- ``cpu``: facts.json and the tables stacks/ and stack_*/.
- ``service``: facts.json, the tables service_*/, and parts/, which holds a load, a watch of the database and
  stacks as runs of their own.
- ``import`` (a result of another tool): the table figures/. Other facts from the tool are in the manifest's
  options.
- ``guard`` (of a stored run): guard.json, its result. With two targets also legs/, which holds each turn as
  the run of a load, and confirmation/, which holds the turns of the second measurement.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.stored_run import BASELINE, RunStatus
from uncork.store.remote import mirrors

MANIFEST_VERSION = 1
PARTS: Final = "parts"
"""The folder of a run's parts, which are runs of their own."""
NAMES: Final = ".names"
"""The folder of names, with a file for each: if two people set different names at once, both are kept."""

RunKind = Literal[
    "experiment", "load", "sweep", "log", "database", "cpu", "service", "import", "guard", "cure", "together"
]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at measuring; a resumed run has several."""

    started_at: str
    elapsed_ns: int
    rounds: int
    outcome: RunStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What identifies a run, and how it ended.

    `kind` is the kind of run. `unit` is what the statistics treat as independent: round or block;
    empty for loads. `options` holds what the command line changed in the experiment file; for other
    runs, the command that repeats it. `owner` is the process that measures, while the status is
    running. `attempts` are the attempts. `commit` is the commit of the folder in which uncork was
    started, with ``-dirty`` appended if files had changed; None outside a repository. `branch` is
    the branch, None where git or the CI system names none. A manifest never holds secrets: a
    connection string is stored without its password.
    """

    id: str
    name: str
    question: str
    status: RunStatus
    started_at: str
    seed: int
    unit: str
    server: str
    uncork_version: str
    case: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    owner: Mapping[str, int] | None = None
    kind: RunKind = "experiment"
    commit: str | None = None
    branch: str | None = None
    version: int = MANIFEST_VERSION


_TEXTS: Final = ("id", "name", "question", "status", "started_at", "unit", "server", "uncork_version")
LAST: Final = "last"
"""The word for the newest run that has not failed."""
_SHOWN: Final = 5
"""The number of runs that a message lists."""
KEPT: Final = ": what was measured so far is kept"
"""The end of the message for a full disk. Callers that delete the run remove it."""
_BEGINNING: Final = 1 << 16
"""Bytes of the stored result that are read: the answer stands near its beginning."""
_ANSWER: Final = re.compile(r'^ "answer": ("(?:[^"\\\n]|\\.)*")', re.MULTILINE)
_STAMP: Final = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?$")


def check_writable(root: Path) -> None:
    """Check that runs can be created under `root`, before something is measured or read for one.

    Raises SetupError if they cannot; the message names the option to change.
    """
    try:
        existing = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
        Path(tempfile.mkdtemp(prefix=".uncork-", dir=existing)).rmdir()
    except OSError as error:
        raise SetupError(f"{_store_error(root, error)}; --runs names another folder") from error


def new_run_folder(root: Path, name: str, stamp: str) -> Path:
    """Create the folder of a new run, named after the run and the time; never reuse an existing folder.

    If the root mirrors an address, the name ends with a random number, because runs that others are
    about to send cannot be seen yet. Raises StoreError if the folder cannot be created; SetupError,
    ConnectError if the root mirrors an address that is wrong or cannot be reached.
    """
    mirror = mirrors.mirror_of(root)
    if mirror is not None:
        mirror.refresh()
        mirror.wrote = True
        stamp = f"{stamp}-{100_000 + secrets.randbelow(900_000)}"
    for number in range(1, 1000):
        folder = root / (f"{name}-{stamp}" if number == 1 else f"{name}-{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise _store_error(folder, error) from error
        return folder
    raise StoreError(f"{root}: too many runs called {name}-{stamp}")


def part_of(folder: Path, name: str) -> Path | None:
    """Return the folder of a part of a run, such as ``load`` of a profile of a service; None without it."""
    place = folder / PARTS / name
    return place if (place / "manifest.json").is_file() else None


def watch_of(folder: Path) -> Path | None:
    """Return the folder of a run's watch of a database: the run or its part ``database``, or None."""
    return folder if read_manifest(folder).kind == "database" else part_of(folder, "database")


def find_run(root: Path, wanted: str, *, files: bool = True, failed: bool = False) -> Path:
    """Return a run's folder from its id, the beginning of its id, its name, a path, or ``last``.

    ``last`` is the newest run that has not failed; with `failed`, it is the newest run, for callers
    that continue runs. With `files`, all files of the run are fetched if the run is at an address.
    Raises SetupError if there is no such run, several ids begin like that, or ``last`` finds only
    failed runs; StoreError if the run is damaged, here or at its address.
    """
    mirrors.refresh(root)
    folder = _found(root, wanted, failed=failed)
    if files:
        for error in mirrors.fetch([folder]):
            raise error
    return folder


def failed_since(root: Path) -> list[Manifest]:
    """Return the failed runs that ``last`` skips because they are newer, the newest first.

    Raises StoreError if a manifest is damaged; SetupError, ConnectError if the root mirrors an
    address that is wrong or cannot be reached.
    """
    mirrors.refresh(root)
    return list(takewhile(_has_failed, map(read_manifest, reversed(_folders(root)))))


def failure_reason(manifest: Manifest) -> str:
    """Return why the last attempt of a run ended, in parentheses after a space; empty if unknown. Pure."""
    return f" ({manifest.attempts[-1].reason})" if manifest.attempts else ""


def _has_failed(manifest: Manifest) -> bool:
    return manifest.status == "failed"


def _folders(root: Path) -> list[Path]:
    """Return the folders of runs, the oldest first."""
    return sorted((path.parent for path in root.glob("*/manifest.json")), key=lambda one: age_of(one.name))


def _found(root: Path, wanted: str, *, failed: bool) -> Path:
    if (Path(wanted) / "manifest.json").is_file():
        return Path(wanted)
    place = mirrors.shown(root)
    folders = _folders(root)
    if not folders:
        _refuse_folder(wanted)
        raise SetupError(f"there are no runs in {place}; `uncork run FILE` and `uncork load sql` create some")
    if wanted == LAST:
        return folders[-1] if failed else _last(root, folders)
    named = read_names(root).get(wanted)
    if named is not None:
        return _named(root, wanted, named)
    exact = [folder for folder in folders if folder.name == wanted]
    begins = exact or [folder for folder in folders if folder.name.startswith(wanted)]
    if len(begins) == 1:
        return begins[0]
    if not begins:
        _refuse_folder(wanted)
        raise SetupError(f'there is no run "{wanted}" in {place}; `uncork runs` lists them')
    names = ", ".join(folder.name for folder in begins[-_SHOWN:])
    which = "" if len(begins) <= _SHOWN else f", the newest of {len(begins)}"
    raise SetupError(f'several runs begin with "{wanted}": {names}{which}; write more of the id')


def _refuse_folder(wanted: str) -> None:
    """Raise SetupError if the path names a folder of runs."""
    held = _folders(Path(wanted))
    if held:
        raise SetupError(f"{wanted} is a folder of runs: name a run in it, such as {held[-1]}")


def _last(root: Path, folders: Sequence[Path]) -> Path:
    """Return the newest run that has not failed."""
    for folder in reversed(folders):
        if not _has_failed(read_manifest(folder)):
            return folder
    newest = folders[-1].name
    raise SetupError(
        f'every run in {mirrors.shown(root)} failed, and "{LAST}" skips failed runs; name one by its id: '
        f"`uncork report {newest}` shows the newest"
    )


def _named(root: Path, name: str, id: str) -> Path:
    if not (root / id / "manifest.json").is_file():
        raise SetupError(
            f'the run named "{name}", {id}, is no longer in {mirrors.shown(root)}; give the name to another '
            f"run: uncork runs name RUN {name}"
        )
    return root / id


def read_names(root: Path) -> dict[str, str]:
    """Return the names of runs, each with the id of its run.

    Raises StoreError if the names cannot be read.
    """
    names = {}
    try:
        for entry in os.scandir(root / NAMES) if (root / NAMES).is_dir() else ():
            if not entry.name.startswith("."):
                names[entry.name] = Path(entry.path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(root / NAMES, error) from error
    empty = [name for name, id in names.items() if not id]
    if empty:
        raise StoreError(f"{root / NAMES / empty[0]}: damaged: the file is empty")
    return names


def names_of_runs(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of each run by its id, in alphabetical order.

    Raises:
        StoreError: see `read_names`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, id in sorted(read_names(root).items()):
        found[id] = (*found.get(id, ()), name)
    return found


def name_run(root: Path, wanted: str, name: str) -> tuple[str, str | None]:
    """Name a run; return its id, and the id of the run that had the name before, if any.

    Raises:
        UsageError: if the name is not valid or already means something else, or if a failed run would become
            the baseline.
        SetupError: if there is no such run.
        StoreError: if the run is damaged, or the name cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise UsageError(
            f'"{name}" is not a valid name for a run: use letters, digits, ".", "_" and "-", as in baseline'
        )
    if name in (LAST, "all") or (root / name).exists():
        raise UsageError(f'"{name}" already identifies a run; choose another name')
    folder = find_run(root, wanted, files=False)
    if folder.parent.resolve() != root.resolve():
        raise UsageError(f"{folder} is not in {mirrors.shown(root)}; name its folder with --runs")
    manifest = read_manifest(folder)
    if name == BASELINE and manifest.status == "failed":
        raise UsageError(
            f"{folder.name} failed{failure_reason(manifest)}, so it cannot be the baseline; name a run that "
            "is complete (`uncork runs --status complete` lists them)"
        )
    before = read_names(root).get(name)
    mirror = mirrors.mirror_of(root)
    if mirror is not None:
        mirror.set_name(name, folder.name)
    write_atomically(root / NAMES / name, f"{folder.name}\n")
    return folder.name, before


def list_runs(root: Path) -> Iterator[Manifest | StoreError]:
    """Yield the manifest of every run, oldest first, then an error for each run that cannot be read.

    Raises StoreError if the folder cannot be listed.
    """
    from uncork.store.catalogue import read_catalogue  # noqa: PLC0415 -- it builds on this module

    found = read_catalogue(root)
    yield from (run.manifest for run in found.runs)
    yield from found.damaged


def read_answer(folder: Path) -> str:
    """Return the answer of a run's stored result; empty if it has none, or if it cannot be read."""
    try:
        with (folder / "result.json").open("rb") as file:
            text = file.read(_BEGINNING).decode("utf-8", "ignore")
    except OSError:
        return ""
    found = _ANSWER.search(text)
    return str(json.loads(found[1])) if found else ""


def read_manifest(folder: Path) -> Manifest:
    """Read a run's manifest.

    Raises StoreError if the manifest cannot be read, or has another format version.
    """
    path = folder / "manifest.json"
    try:
        data = json.loads(path.read_text())
        check_version(path, data, MANIFEST_VERSION)
        return manifest_of(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def manifest_of(data: Mapping[str, Any]) -> Manifest:
    """Build a manifest from its JSON. Raises TypeError or KeyError if it is not valid."""
    for name in _TEXTS:
        if not isinstance(data[name], str):
            raise TypeError(f"{name} is not text: {data[name]!r}")
    return Manifest(**{**data, "attempts": tuple(Attempt(**attempt) for attempt in data["attempts"])})


def check_version(path: Path, data: Mapping[str, Any], version: int) -> None:
    """Refuse a stored document of another format version.

    Raises StoreError if the document has another version; KeyError if it has none.
    """
    if data["version"] != version:
        raise StoreError(
            f"{path}: format version {data['version']}, but this uncork reads version {version}; use the "
            f"uncork that wrote it ({data.get('uncork_version')}), or measure again"
        )


def stored_file(folder: Path, name: str) -> Path:
    """Return where a run stores a file that its experiment file names, whatever the file's path."""
    return folder / "files" / re.sub(r"[^A-Za-z0-9._-]", "_", name.replace("_", "__"))


def closed(
    manifest: Manifest,
    status: RunStatus,
    reason: str,
    elapsed_ns: int,
    *,
    rounds: int = 0,
    started_at: str = "",
) -> Manifest:
    """Return the manifest of a run that has ended, with this attempt added to those before it. Pure."""
    attempt = Attempt(started_at or manifest.started_at, elapsed_ns, rounds, status, reason)
    return replace(manifest, status=status, owner=None, attempts=(*manifest.attempts, attempt))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a run's manifest, atomically."""
    mirror = mirrors.mirror_of(folder.parent)
    if mirror is not None:
        mirror.wrote = True
    write_atomically(folder / "manifest.json", json.dumps(asdict(manifest), indent=2) + "\n")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically: no reader ever sees half of it, even after a power cut.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(
        f".{path.name}.{secrets.token_hex(4)}.new"
    )  # not the pid: machines that share a disk may use the same pids
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise _store_error(path, error) from error


def age_of(id: str) -> tuple[str, int, str]:
    """Return the sort key of a run, oldest first: the time in the folder's name."""
    match = _STAMP.search(id)
    return (match[1], int(match[2] or 1), id) if match else ("", 0, id)


def unreadable(path: Path, error: Exception) -> StoreError:
    """Return the error for a file that cannot be read: permission denied, or else damaged."""
    if isinstance(error, PermissionError):
        return StoreError(f"cannot read {path}: {error.strerror}")
    return StoreError(f"{path}: damaged: {error}")


def _store_error(path: Path, error: OSError) -> StoreError:
    tables = any(any(path.parent.glob(files)) for files in ("*.parquet", "*/*.parquet"))
    kept = KEPT if tables else ""
    hint = f"; free some space{kept}" if error.errno == errno.ENOSPC else ""
    return StoreError(f"cannot write {path}: {error.strerror}{hint}")
