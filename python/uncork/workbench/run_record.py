"""Start a run, and record how it ended.

Every kind of run goes through this module: `start_run` makes the folder and writes the manifest, and
`RunRecord` keeps the manifest true until the run has ended: with success, an interruption, or an error.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from uncork import __version__
from uncork.engines import process
from uncork.engines.checkouts import current_branch, current_commit
from uncork.errors import SetupError, StoreError, UncorkError
from uncork.model.stored_run import RunStatus
from uncork.store.layout import Manifest, RunKind, closed, new_run_folder, write_atomically, write_manifest
from uncork.workbench.clock import now_text
from uncork.workbench.signals import uninterrupted

_RESULTS: Final[Mapping[RunKind, str]] = {
    "experiment": "trials/*.parquet",
    "load": "load_totals",
    "sweep": "sweep_visits",
    "guard": "legs/0001-*",
    "cure": "cure.json",
}
"""The files that make an unfinished run worth keeping. Other kinds of run are stored whole or not at all."""
_COMPARED: Final[frozenset[RunKind]] = frozenset({"experiment", "load", "sweep"})
"""Kinds of run whose metrics are cached at their end, because later runs are compared with them."""


@dataclass(slots=True)
class RunRecord:
    """A run that is being measured. As a context manager, it records how the run ended.

    Set `status` and `reason` for an end other than success; an error overrides them, an
    interruption does so only while `status` is None. A run that did not complete and holds no
    results is deleted, unless `keep` is set.
    """

    folder: Path
    manifest: Manifest
    keep: bool = False
    resumed: bool = False
    rounds: int = 0
    status: RunStatus | None = None
    reason: str = ""
    ended: bool = field(default=False, init=False)
    _started_at: str = field(default="", init=False)
    _begun_ns: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        self._begun_ns = time.monotonic_ns()
        if self.resumed:
            self._started_at = now_text()
            self.manifest = replace(self.manifest, status="running", owner=_this_process())
            write_manifest(self.folder, self.manifest)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.ended:
            self.close(*self._outcome(error))

    def change(self, **changes: Any) -> None:
        """Change fields of the manifest, also on the disk: that is what a killed run leaves.

        Raises StoreError if the manifest cannot be written.
        """
        self.manifest = replace(self.manifest, **changes)
        write_manifest(self.folder, self.manifest)

    def has_results(self) -> bool:
        """Say whether any result is stored yet."""
        pattern = _RESULTS.get(self.manifest.kind)
        return pattern is not None and any(self.folder.glob(pattern))

    def close(self, status: RunStatus, reason: str) -> None:
        """End the run, or delete it if it did not complete and holds nothing.

        Raises StoreError if the manifest cannot be written.
        """
        with uninterrupted():
            if status == "complete" or self.keep or self.has_results():
                self.end(status, reason)
            else:
                self.discard()

    def discard(self) -> None:
        """End the run by deleting its folder."""
        with uninterrupted():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.ended = True

    def end(self, status: RunStatus, reason: str, elapsed_ns: int | None = None) -> None:
        """Record in the manifest how the run ended; `elapsed_ns` defaults to the time since it was entered.

        Raises StoreError if the manifest cannot be written.
        """
        elapsed = time.monotonic_ns() - self._begun_ns if elapsed_ns is None else elapsed_ns
        manifest = closed(
            self.manifest, status, reason, elapsed, rounds=self.rounds, started_at=self._started_at
        )
        with uninterrupted():
            write_manifest(self.folder, manifest)
            self.manifest, self.ended = manifest, True
            if status == "complete" and manifest.kind in _COMPARED:
                from uncork.analysis.runs.figures import remember  # noqa: PLC0415 -- other kinds do without

                remember(self.folder)

    def _outcome(self, error: BaseException | None) -> tuple[RunStatus, str]:
        if isinstance(error, UncorkError):
            return "failed", str(error)
        if isinstance(error, Exception):
            return "failed", f"{type(error).__name__}: {error}"
        if self.status is not None:
            return self.status, self.reason
        return ("complete", self.reason) if error is None else ("interrupted", "interrupted")


def draft(
    *,
    kind: RunKind,
    name: str,
    question: str,
    server: str,
    options: Mapping[str, Any],
    seed: int = 0,
    unit: str = "",
    case: str | None = None,
    started_at: str = "",
    commit: Callable[[], str | None] = current_commit,
    branch: Callable[[], str | None] = current_branch,
) -> Manifest:
    """Build the manifest of a run that starts now, or at `started_at`; `start_run` gives it an id."""
    return Manifest(
        id=name,
        name=name,
        question=question,
        status="running",
        started_at=started_at or now_text(),
        seed=seed,
        unit=unit,
        server=server,
        uncork_version=__version__,
        commit=commit(),
        branch=branch(),
        case=case,
        options=options,
        kind=kind,
    )


def start_run(
    root: Path,
    manifest: Manifest,
    *,
    files: Mapping[str, str] | None = None,
    at: datetime | None = None,
    announce: bool = True,
    undone: str = "nothing was measured",
) -> RunRecord:
    """Create the folder of a new run and write its manifest, so that others can see the run.

    Args:
        root: The folder of runs.
        manifest: What `draft` returned.
        files: Texts to store before the manifest, by their path in the run's folder.
        at: The time in the folder's name; now by default.
        announce: Without it, the manifest is not written before the run has ended.
        undone: What an error says was not done.

    Raises SetupError if the folder cannot be written.
    """
    stamp = (at or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
    folder = None
    try:
        folder = new_run_folder(root, manifest.name, stamp)
        for path, text in (files or {}).items():
            write_atomically(folder / path, text)
        manifest = replace(manifest, id=folder.name, owner=_this_process())
        if announce:
            write_manifest(folder, manifest)
    except StoreError as error:
        raise SetupError(f"{error}; {undone} (--runs names another folder)") from error
    except KeyboardInterrupt:  # while files are written: without a manifest, nobody would remove the folder
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return RunRecord(folder, manifest)


def _this_process() -> dict[str, int] | None:
    return process.identity(os.getpid())
