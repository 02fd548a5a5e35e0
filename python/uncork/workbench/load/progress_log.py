"""Store snapshots of a run while it is measured."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncork.store.snapshots import add_snapshot

if TYPE_CHECKING:
    from uncork.model.load import LoadProgress
    from uncork.workbench.profile.database_watch import ProgressSnapshot

Seen = TypeVar("Seen", "LoadProgress", "ProgressSnapshot")


def logged(folder: Path, progress: Callable[[Seen], None] | None) -> Callable[[Seen], None]:
    """Return a callback that stores each snapshot of a load or a server in its run, then calls `progress`."""

    def log(snapshot: Seen) -> None:
        add_snapshot(folder, storable(asdict(snapshot)))
        if progress is not None:
            progress(snapshot)

    return log


def storable(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot that JSON can hold; only parts of a load have a series."""
    series = snapshot.pop("series", ())
    rows = [
        {**row, "histogram": row["histogram"] and base64.b64encode(row["histogram"]).decode()}
        for row in series
    ]
    return {**snapshot, "series": rows} if rows else snapshot
