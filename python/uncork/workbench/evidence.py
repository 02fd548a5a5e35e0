"""Keep what was seen on a system as a run: its folder, its manifest, its tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncork import __version__
from uncork.errors import SetupError, StoreError
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.model.result import RunStatus
    from uncork.store.layout import Manifest, RunKind

R = TypeVar("R")

__all__ = ["Seen", "now_text", "store_evidence"]


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


def store_evidence(root: Path, seen: Seen, result: Callable[[Manifest], R]) -> tuple[Path, R]:
    """Store what was seen as a run under `root`, whole or not at all; return its folder and `result` of it.

    `result` says what was seen, given the manifest of the run, while the run's tables are written: that
    waits for the disk, and mostly needs no interpreter.

    Raises:
        SetupError: if the run cannot be laid out.
        StoreError: if it cannot be written.
    """
    from uncork.store.layout import new_run_folder  # noqa: PLC0415 -- logs are read while it loads

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    with uninterrupted(), ThreadPoolExecutor(1) as writer:
        try:
            folder = new_run_folder(root, seen.name, stamp)
        except StoreError as error:
            raise SetupError(f"{error}; --runs names another folder") from error
        manifest = _manifest(seen, folder, stamp)
        written = writer.submit(_write, folder, manifest, seen)
        told = result(manifest)
        written.result()
    return folder, told


def _write(folder: Path, manifest: Manifest, seen: Seen) -> None:
    """Write a run. Its manifest goes last: the run is there only with all of it."""
    from uncork.store.evidence import write_evidence  # noqa: PLC0415
    from uncork.store.layout import write_manifest  # noqa: PLC0415

    try:
        write_evidence(folder, seen.facts, seen.tables)
        write_manifest(folder, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _manifest(seen: Seen, folder: Path, stamp: str) -> Manifest:
    from uncork.engines.checkout import current_commit  # noqa: PLC0415
    from uncork.store.layout import Manifest, Sitting  # noqa: PLC0415

    return Manifest(
        id=folder.name,
        name=folder.name.removesuffix(f"-{stamp}"),
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
