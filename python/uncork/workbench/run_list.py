"""The stored runs of a folder, as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncork.errors import StoreError
from uncork.model.stored_run import StoredRun
from uncork.store.catalogue import Catalogue, CataloguedRun, read_catalogue
from uncork.workbench.runs import status_of

__all__ = ["RunList", "read_runs"]


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs of a folder, oldest first, and what is wrong with those that cannot be read."""

    runs: tuple[StoredRun, ...]
    damaged: tuple[StoreError, ...]
    catalogue: Catalogue


def read_runs(root: Path, before: RunList | None = None) -> RunList:
    """Return all runs of a folder. `before` is what was read earlier, for one who asks often.

    Raises:
        StoreError: if the folder cannot be listed.
    """
    catalogue = read_catalogue(root, None if before is None else before.catalogue)
    known = {} if before is None else {run.id: run for run in before.runs}
    runs = tuple(_stored_run(run, known.get(run.id), ()) for run in catalogue.runs)
    return RunList(runs, catalogue.damaged, catalogue)


def _stored_run(run: CataloguedRun, known: StoredRun | None, names: Sequence[str]) -> StoredRun:
    manifest = run.manifest
    status = status_of(manifest)
    if known is not None and (known.stamp, known.status, known.names) == (run.stamp, status, tuple(names)):
        return known
    last = manifest.sittings[-1] if manifest.sittings else None
    return StoredRun(
        folder=run.folder,
        id=run.id,
        name=manifest.name,
        question=manifest.question,
        kind=manifest.kind,
        status=status,
        started_at=manifest.started_at,
        elapsed_ns=sum(sitting.elapsed_ns for sitting in manifest.sittings),
        rounds=sum(sitting.rounds for sitting in manifest.sittings),
        reason="" if last is None else last.reason,
        case=manifest.case,
        server=manifest.server,
        seed=manifest.seed,
        uncork_version=manifest.uncork_version,
        command=str(manifest.options.get("command") or f"uncork rerun {run.id}"),
        tags=run.tags,
        names=tuple(names),
        stamp=run.stamp,
    )
