"""Keep what was seen on a system as a run: its folder, its manifest, its tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncork import __version__
from uncork.errors import SetupError, StoreError
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.model.results.experiment import RunStatus
    from uncork.store.layout import Manifest, RunKind

R = TypeVar("R")

__all__ = ["Seen", "announce", "now_text", "store_evidence"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, and how: `command` repeats it and holds no secret; `name` is what the run is called."""

    kind: RunKind
    name: str
    question: str
    server: str
    status: RunStatus
    started_at: str
    elapsed_ns: int
    command: str
    facts: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


def announce(root: Path, seen: Seen) -> Path:
    """Lay out the folder of a run that is being measured, so that it can be followed; return it.

    Raises:
        SetupError: if it cannot be laid out.
    """
    from uncork.engines import process  # noqa: PLC0415
    from uncork.store.layout import new_run_folder, write_manifest  # noqa: PLC0415

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    try:
        folder = new_run_folder(root, seen.name, stamp)
        owner = process.identity(os.getpid())
        write_manifest(folder, replace(_manifest(seen, folder), owner=owner, sittings=()))
    except StoreError as error:
        raise SetupError(f"{error}; --runs names another folder") from error
    return folder


def store_evidence(
    root: Path, seen: Seen, result: Callable[[Manifest], R], folder: Path | None = None
) -> tuple[Path, R]:
    """Store what was seen as a run under `root`, whole or not at all; return its folder and `result` of it.

    `folder` is the run's, if it was announced. `result` says what was seen, given the manifest of the run,
    while the run's tables are written: that waits for the disk, and mostly needs no interpreter.

    Raises:
        SetupError: if the run cannot be laid out.
        StoreError: if it cannot be written.
    """
    from uncork.store.layout import new_run_folder  # noqa: PLC0415 -- logs are read while it loads

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    with uninterrupted(), ThreadPoolExecutor(1) as writer:
        try:
            place = folder or new_run_folder(root, seen.name, stamp)
        except StoreError as error:
            raise SetupError(f"{error}; --runs names another folder") from error
        manifest = _manifest(seen, place)
        written = writer.submit(_write, place, manifest, seen)
        told = result(manifest)
        written.result()
    return place, told


def _write(folder: Path, manifest: Manifest, seen: Seen) -> None:
    """Write a run. Its manifest goes last: the run is there only with all of it."""
    from uncork.store.evidence import write_evidence  # noqa: PLC0415
    from uncork.store.glances import forget_glances  # noqa: PLC0415
    from uncork.store.layout import write_manifest  # noqa: PLC0415

    try:
        write_evidence(folder, seen.facts, seen.tables)
        write_manifest(folder, manifest)
        forget_glances(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _manifest(seen: Seen, folder: Path) -> Manifest:
    from uncork.engines.checkout import current_commit  # noqa: PLC0415
    from uncork.store.layout import Manifest, Sitting  # noqa: PLC0415

    return Manifest(
        id=folder.name,
        name=seen.name,
        question=seen.question,
        status=seen.status,
        started_at=seen.started_at,
        seed=0,
        unit="",
        server=seen.server,
        uncork_version=__version__,
        commit=current_commit(),
        options={"command": seen.command},
        kind=seen.kind,
        sittings=(Sitting(seen.started_at, seen.elapsed_ns, 0, seen.status, seen.status),),
    )


def now_text() -> str:
    """Return the time, in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
