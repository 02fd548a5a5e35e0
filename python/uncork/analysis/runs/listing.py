"""List the stored runs of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from uncork.engines import process
from uncork.errors import StoreError, UsageError
from uncork.experiment.spec.problems import hint
from uncork.model.records import build_from
from uncork.model.stored_run import RunStatus, StoredRun
from uncork.store.catalogue import Catalogue, CataloguedRun, read_catalogue
from uncork.store.layout import Manifest, RunKind, names_of_runs

_WORDS: Final = {"kind": get_args(RunKind), "status": (*get_args(RunStatus), "killed")}


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs of a folder, oldest first, and the errors of those that cannot be read.

    `unnamed`, also among the damaged, says why the names of runs are unknown, if they are.
    """

    runs: tuple[StoredRun, ...]
    damaged: tuple[StoreError, ...]
    unnamed: StoreError | None
    catalogue: Catalogue


def check_filter(option: str, word: str) -> None:
    """Reject a kind or status that no run can have, as an empty list would not reveal the mistake.

    `option` is ``kind`` or ``status``. The empty word selects all.

    Raises:
        UsageError: if there is no such kind or status.
    """
    name = option.lstrip("-")
    if word and word not in _WORDS[name]:
        raise UsageError(f'{option} "{word}": there is no such {name}{hint(word, _WORDS[name])}')


def read_runs(root: Path, before: RunList | None = None) -> RunList:
    """Return all runs of a folder. `before` is the previous list, for callers that ask often.

    Raises:
        StoreError: if the folder cannot be listed.
    """
    catalogue = read_catalogue(root, None if before is None else before.catalogue)
    known = {} if before is None else {run.id: run for run in before.runs}
    names, unnamed = _names(root)
    runs = tuple(_stored_run(run, known.get(run.id), names.get(run.id, ())) for run in catalogue.runs)
    damaged = catalogue.damaged if unnamed is None else (unnamed, *catalogue.damaged)
    return RunList(runs, damaged, unnamed, catalogue)


def _names(root: Path) -> tuple[dict[str, tuple[str, ...]], StoreError | None]:
    """Return the names of each run that has some, and the error if they cannot be read."""
    try:
        return names_of_runs(root), None
    except StoreError as error:
        return {}, error


def _stored_run(run: CataloguedRun, known: StoredRun | None, names: tuple[str, ...]) -> StoredRun:
    manifest = run.manifest
    status = status_of(manifest)
    if known is not None and (known.stamp, known.status, known.names) == (run.stamp, status, names):
        return known
    last = manifest.attempts[-1] if manifest.attempts else None
    return build_from(
        StoredRun,
        manifest,
        folder=run.folder,
        id=run.id,
        status=status,
        elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
        rounds=sum(attempt.rounds for attempt in manifest.attempts),
        reason="" if last is None else last.reason,
        command=str(manifest.options.get("command") or f"uncork rerun {run.id}"),
        tags=run.tags,
        names=names,
        stamp=run.stamp,
    )


# ---- the status of a run, as far as it can be seen from this machine ----


def status_of(manifest: Manifest) -> str:
    """Return a run's status; ``killed`` if it is marked as running but its process is gone.

    A process on another machine that shares the disk cannot be seen: its run stays ``running``.
    """
    owner = manifest.owner
    if manifest.status == "running" and not process.is_same(owner) and not process.is_elsewhere(owner):
        return "killed"
    return manifest.status
