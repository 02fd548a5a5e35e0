"""Keep what was seen on a system as a run: its folder, its manifest, its tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncork import __version__
from uncork.engines import process
from uncork.errors import SetupError, StoreError
from uncork.model.result import RunStatus
from uncork.store.layout import Manifest, RunKind, Sitting, new_run_folder, write_manifest
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    import pyarrow as pa

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


def store_evidence(root: Path, seen: Seen) -> tuple[Path, Manifest]:
    """Store what was seen as a run under `root`, whole or not at all; return its folder and manifest.

    Raises:
        SetupError: if the run cannot be laid out.
        StoreError: if it cannot be written.
    """
    from uncork.store.evidence import write_evidence  # noqa: PLC0415 -- logs are read while it loads

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    with uninterrupted():
        try:
            folder = new_run_folder(root, seen.name, stamp)
        except StoreError as error:
            raise SetupError(f"{error}; --runs names another folder") from error
        try:
            manifest = Manifest(
                id=folder.name,
                name=folder.name.removesuffix(f"-{stamp}"),
                question=seen.question,
                status="running",
                started_at=seen.started_at,
                seed=0,
                unit="",
                server=seen.server,
                uncork_version=__version__,
                options={"command": seen.command},
                owner=process.identity(os.getpid()),
                kind=seen.kind,
            )
            write_evidence(folder, seen.facts, seen.tables)
            sitting = Sitting(seen.started_at, seen.elapsed_ns, 0, seen.status, seen.status)
            manifest = replace(manifest, status=seen.status, owner=None, sittings=(sitting,))
            write_manifest(folder, manifest)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder, manifest


def now_text() -> str:
    """Return the time, in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
