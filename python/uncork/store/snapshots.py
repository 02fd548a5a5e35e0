"""Snapshots of a run while it is measured, one per line, to follow the run, or to see what a killed run did.

Loads and watches keep their results in memory until they end. Each snapshot is appended to a file
without waiting for the disk, so that the load is not disturbed. A power cut may lose the last
lines. At the end, complete tables replace the file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SNAPSHOTS: Final = "glances.jsonl"
_MOST_BYTES: Final = 4 << 20
"""The most that is read from the end of the file: four hours of one snapshot a second."""


def add_snapshot(folder: Path, snapshot: Mapping[str, Any]) -> None:
    """Append a snapshot. A full disk or a deleted folder does not end the measurement."""
    line = json.dumps(snapshot, separators=(",", ":")) + "\n"
    with contextlib.suppress(OSError):
        place = os.open(folder / SNAPSHOTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(place, line.encode())
        finally:
            os.close(place)


def read_snapshots(folder: Path) -> list[dict[str, Any]]:
    """Return the snapshots in order; empty if there are none. Incomplete lines are ignored."""
    try:
        with (folder / SNAPSHOTS).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found


def delete_snapshots(folder: Path) -> None:
    """Delete the file: the run's tables hold more."""
    with contextlib.suppress(OSError):
        (folder / SNAPSHOTS).unlink()
