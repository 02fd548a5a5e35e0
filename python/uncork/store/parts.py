"""The parts of a load from several machines: what a killed part left, and what a merged run keeps."""

from __future__ import annotations

import base64
import json
import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.model.load import LoadProgress
from uncork.model.tables.load import LoadInterval
from uncork.store.documents import read_document
from uncork.store.layout import PARTS, write_atomically
from uncork.store.snapshots import read_snapshots

RESERVATIONS: Final = "reservations"
"""The file in which the core keeps, for each thread, an upper bound of the operations that it has begun."""
MERGED: Final = "merged.json"
"""The file of a merged load that says which parts it has, and how their seconds fit together."""


def reserved_operations(folder: Path) -> int:
    """Return how many operations a part has begun at most; 0 if it began none."""
    try:
        data = (folder / RESERVATIONS).read_bytes()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StoreError(f"{folder / RESERVATIONS}: {error.strerror}") from error
    return sum(number for (number,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]))


def seen_intervals(folder: Path) -> tuple[LoadInterval, ...]:
    """Return the intervals that a part stored while it ran."""
    return _intervals(row for snapshot in read_snapshots(folder) for row in snapshot.get("series", ()))


def stored_progress(snapshot: Mapping[str, Any]) -> LoadProgress:
    """Return a snapshot that a part stored while it ran."""
    return LoadProgress(**{**snapshot, "series": _intervals(snapshot.get("series", ()))})


def _intervals(rows: Iterable[Mapping[str, Any]]) -> tuple[LoadInterval, ...]:
    return tuple(
        LoadInterval(**{**row, "histogram": row["histogram"] and base64.b64decode(row["histogram"])})
        for row in rows
    )


def part_folder(folder: Path, number: int) -> Path:
    """Return where a merged run keeps a part."""
    return folder / PARTS / f"part-{number}"


def keep_part(source: Path, folder: Path, number: int) -> Path:
    """Copy a run into the merged run at `folder`, as a part of it; return where it is kept.

    Raises StoreError if it cannot be copied.
    """
    place = part_folder(folder, number)
    try:
        shutil.copytree(source, place)
    except OSError as error:
        raise StoreError(f"cannot copy {source}: {error}") from error
    return place


def write_merged(folder: Path, merged: Mapping[str, Any]) -> None:
    """Write how a load was merged."""
    write_atomically(folder / MERGED, json.dumps(merged, indent=1) + "\n")


def read_merged(folder: Path) -> dict[str, Any] | None:
    """Return how a load was merged; None if it is not a merged load."""
    return read_document(folder / MERGED, dict[str, Any])


def merged_parts(folder: Path) -> list[tuple[int, Path]]:
    """Return the parts that a merged load has, with their numbers."""
    merged = read_merged(folder)
    numbers = [] if merged is None else [part["number"] for part in merged["parts"] if part["stored"]]
    return [(number, part_folder(folder, number)) for number in numbers]
