"""Store snapshots of a run while it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from uncork.store.snapshots import add_snapshot

if TYPE_CHECKING:
    from uncork.model.load import LoadProgress
    from uncork.workbench.profile.database_watch import ProgressSnapshot

__all__ = ["logged"]

Seen = TypeVar("Seen", "LoadProgress", "ProgressSnapshot")


def logged(folder: Path, progress: Callable[[Seen], None] | None) -> Callable[[Seen], None]:
    """Return a callback that stores each snapshot of a load or a server in its run, then calls `progress`."""

    def log(snapshot: Seen) -> None:
        add_snapshot(folder, asdict(snapshot))
        if progress is not None:
            progress(snapshot)

    return log
