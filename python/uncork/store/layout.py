"""Where a run's files are, and its manifest.

::

    .uncork/runs/.names/<name>    the id of the run that has this name: baseline, and such
    .uncork/runs/<id>/
        manifest.json          what was run, when, how it went; rewritten whole at each change
        experiment.toml        the experiment file as it was, and under files/ the SQL beside it
        plan.json              the plan
        environment.json       server and machine
        trials/000001.parquet  tables, append-only: each file is written under another name, then renamed
        statements/ plans/ relations/ refusals/
        result.json            the report, when there is one
        tag.<tag>              an empty file a tag
        glances.jsonl          while a load or a watch goes: a line a second; its tables take its place
    .uncork/runs/.catalogue.json, .packed/    copies that make lists and queries fast

The run of a load (kind ``load``) has no experiment.toml; its plan.json is the load plan without the
password, scripts included, and its tables are load_totals/ load_statements/ load_series/ load_statuses/, the
last of loads by HTTP. A sweep of loads (kind ``sweep``) also has sweep.json, what was to be swept, and the
table sweep_visits/. That of a log (kind ``log``) has facts.json and tables log_*/, that of a watched server
(kind ``database``) has facts.json and database_*/, that of a profile of stacks (kind ``cpu``) has
facts.json, stacks/ and stack_*/. A result of another tool (kind ``import``) is the table figures/; what the
tool says besides is in the manifest's options. A guard of a stored load (kind ``guard``) has guard.json,
what it said; of two targets also legs/, a whole run of a load for each leg, and confirmation/ with those of
the second measurement.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.results.experiment import RunStatus
from uncork.model.stored_run import BASELINE
from uncork.store.remote import mirrors

__all__ = [
    "Manifest",
    "RunKind",
    "Sitting",
    "find_run",
    "list_runs",
    "name_run",
    "names_of_runs",
    "new_run_folder",
    "read_manifest",
    "read_names",
    "unreadable",
    "write_atomically",
]

MANIFEST_VERSION = 1
NAMES: Final = ".names"
"""The folder beside the runs that holds names given to them, a file each: of two given at once, both stay."""

RunKind = Literal["experiment", "load", "sweep", "log", "database", "cpu", "import", "guard"]


@dataclass(frozen=True, slots=True)
class Sitting:
    """One stretch of measuring; a resumed run has several."""

    started_at: str
    elapsed_ns: int
    rounds: int
    outcome: RunStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What identifies a run and says how it went.

    `kind` says what was run. `unit` is what the statistics take as independent: round or block; a load has
    none. `options` are what the command line changed of the experiment file, or of a load the command that
    repeats it. `owner` is the process that measures, while the status is running. `commit` is that of the
    folder uncork was started in, with ``-dirty`` behind it if files had changed since; None where there is
    none, and in runs of older versions. Secrets are never in it: a connection string is kept without
    password.
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
    sittings: tuple[Sitting, ...] = ()
    owner: Mapping[str, int] | None = None
    kind: RunKind = "experiment"
    commit: str | None = None
    version: int = MANIFEST_VERSION


_FIELDS: Final = frozenset(item.name for item in fields(Manifest))
_TEXTS: Final = ("id", "name", "question", "status", "started_at", "unit", "server", "uncork_version")
_SHOWN: Final = 5
"""Runs that are named where several are meant."""
KEPT: Final = ": what was measured so far is kept"
"""How a message ends that a run's disk is full; who takes the run away says otherwise."""
_STAMP: Final = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?$")


def new_run_folder(root: Path, name: str, stamp: str) -> Path:
    """Make the folder of a new run, named after the experiment and the time; never an existing one.

    At an address, where nobody sees what others are about to send, the name ends with a random number.

    Raises:
        StoreError: if it cannot be made.
        SetupError, ConnectError: if the root mirrors an address that is wrong, or cannot be reached.
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


def find_run(root: Path, wanted: str, *, files: bool = True) -> Path:
    """Return a run's folder from its id, the beginning of one, a name given to it, a path, or ``last``.

    With `files`, all that is in it is here afterwards, also of a run that is at an address.

    Raises:
        SetupError: if there is none, or several begin so.
        StoreError: if the run is damaged at its address.
    """
    mirrors.refresh(root)
    folder = _found(root, wanted)
    if files:
        for error in mirrors.fetch([folder]):
            raise error
    return folder


def _found(root: Path, wanted: str) -> Path:
    if (Path(wanted) / "manifest.json").is_file():
        return Path(wanted)
    place = mirrors.shown(root)
    folders = sorted(
        (path.parent for path in root.glob("*/manifest.json")), key=lambda folder: age_of(folder.name)
    )
    if not folders:
        raise SetupError(f"there are no runs in {place}; `uncork run FILE` and `uncork load sql` make some")
    if wanted == "last":
        return folders[-1]
    named = read_names(root).get(wanted)
    if named is not None:
        return _named(root, wanted, named)
    exact = [folder for folder in folders if folder.name == wanted]
    begins = exact or [folder for folder in folders if folder.name.startswith(wanted)]
    if len(begins) == 1:
        return begins[0]
    if not begins:
        raise SetupError(f'there is no run "{wanted}" in {place}; `uncork runs` lists them')
    names = ", ".join(folder.name for folder in begins[-_SHOWN:])
    which = "" if len(begins) <= _SHOWN else f", the newest of {len(begins)}"
    raise SetupError(f'several runs begin with "{wanted}": {names}{which}; write more of the id')


def _named(root: Path, name: str, id: str) -> Path:
    if not (root / id / "manifest.json").is_file():
        raise SetupError(
            f'the run that is called "{name}", {id}, is no longer in {mirrors.shown(root)}; '
            f"`uncork runs name RUN {name}` gives the name to another"
        )
    return root / id


def read_names(root: Path) -> dict[str, str]:
    """Return the names given to runs, each with the id of its run.

    Raises:
        StoreError: if they cannot be read.
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
        raise StoreError(f"{root / NAMES / empty[0]}: damaged: it names no run")
    return names


def names_of_runs(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the names that each run has, by its id, in the order of the alphabet.

    Raises:
        StoreError: as `read_names`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, id in sorted(read_names(root).items()):
        found[id] = (*found.get(id, ()), name)
    return found


def name_run(root: Path, wanted: str, name: str) -> tuple[str, str | None]:
    """Give a run a name, which another run may have had; return its id and that of the other, if any.

    Raises:
        UsageError: if the name is none, or means something else already; if the run failed and would be the
            baseline.
        SetupError: if there is no such run.
        StoreError: if the run is damaged, or the name cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise UsageError(
            f'"{name}" is no name for a run: use letters, digits, ".", "_" and "-", as in baseline'
        )
    if name in ("last", "all") or (root / name).exists():
        raise UsageError(f'"{name}" already means a run of its own; choose another name')
    folder = find_run(root, wanted, files=False)
    if folder.parent.resolve() != root.resolve():
        raise UsageError(f"{folder} is not in {mirrors.shown(root)}; --runs names the folder that it is in")
    manifest = read_manifest(folder)
    if name == BASELINE and manifest.status == "failed":
        reason = f" ({manifest.sittings[-1].reason})" if manifest.sittings else ""
        raise UsageError(
            f"{folder.name} failed{reason}, so that it cannot be the baseline; name a run that is complete "
            "(`uncork runs --status complete` lists them)"
        )
    before = read_names(root).get(name)
    mirror = mirrors.mirror_of(root)
    if mirror is not None:
        mirror.set_name(name, folder.name)
    write_atomically(root / NAMES / name, f"{folder.name}\n")
    return folder.name, before


def list_runs(root: Path) -> Iterator[Manifest | StoreError]:
    """Yield every run's manifest, oldest first, then what is wrong with those that cannot be read.

    Raises:
        StoreError: if the folder cannot be listed.
    """
    from uncork.store.catalogue import read_catalogue  # noqa: PLC0415 -- it builds on this module

    found = read_catalogue(root)
    yield from (run.manifest for run in found.runs)
    yield from found.damaged


def read_manifest(folder: Path) -> Manifest:
    """Read a run's manifest.

    Raises:
        StoreError: if it cannot be read, or a newer uncork wrote it.
    """
    path = folder / "manifest.json"
    try:
        data = json.loads(path.read_text())
        if data["version"] > MANIFEST_VERSION:
            raise StoreError(
                f"{path}: written by a newer uncork ({data.get('uncork_version')}); update uncork"
            )
        return manifest_of(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def manifest_of(data: Mapping[str, Any]) -> Manifest:
    """Make a manifest of its JSON, without what is not known. Raises TypeError or KeyError if it is none."""
    known = {key: value for key, value in data.items() if key in _FIELDS}
    for name in _TEXTS:
        if not isinstance(known[name], str):
            raise TypeError(f"{name} is no text: {known[name]!r}")
    sittings = tuple(Sitting(**sitting) for sitting in data.get("sittings", ()))
    return Manifest(**known | {"sittings": sittings})


def stored_file(folder: Path, name: str) -> Path:
    """Return where a run keeps a file that stood beside its experiment file, whatever path it had there."""
    return folder / "files" / re.sub(r"[^A-Za-z0-9._-]", "_", name.replace("_", "__"))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a run's manifest, whole or not at all."""
    mirror = mirrors.mirror_of(folder.parent)
    if mirror is not None:
        mirror.wrote = True
    write_atomically(folder / "manifest.json", json.dumps(asdict(manifest), indent=2) + "\n")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader, and no power cut, ever sees half of it.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(
        f".{path.name}.{secrets.token_hex(4)}.new"
    )  # machines that share a disk share pids
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
    """Return by what runs are ordered, the oldest first: the time in the folder's name."""
    match = _STAMP.search(id)
    return (match[1], int(match[2] or 1), id) if match else ("", 0, id)


def unreadable(path: Path, error: Exception) -> StoreError:
    """Return what is said of a file that cannot be read: that it may not be, or else that it is damaged."""
    if isinstance(error, PermissionError):
        return StoreError(f"cannot read {path}: {error.strerror}")
    return StoreError(f"{path}: damaged: {error}")


def _store_error(path: Path, error: OSError) -> StoreError:
    tables = any(any(path.parent.glob(files)) for files in ("*.parquet", "*/*.parquet"))
    kept = KEPT if tables else ""
    hint = f"; free some space{kept}" if error.errno == errno.ENOSPC else ""
    return StoreError(f"cannot write {path}: {error.strerror}{hint}")
