"""Store and read what was observed of all components during a load or a sweep: ``seen.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from uncork.model.bottleneck import DatabaseUse, Seen
from uncork.store.documents import decoded, read_document
from uncork.store.layout import write_atomically


@dataclass(frozen=True, slots=True)
class Pressed:
    """What was observed at a level of a sweep, or in a load without levels (None).

    `missing` holds a sentence for each component that could not be watched.
    """

    level: float | None
    seen: Seen
    missing: tuple[str, ...] = ()


def write_pressed(folder: Path, pressed: Sequence[Pressed]) -> None:
    """Write what was observed, replacing an earlier file.

    Raises StoreError if the file cannot be written.
    """
    data = [
        {"level": pressure.level, "seen": _plain(pressure.seen), "lacks": pressure.missing}
        for pressure in pressed
    ]
    write_atomically(folder / "seen.json", json.dumps(data, indent=1) + "\n")


def read_pressed(folder: Path) -> tuple[Pressed, ...]:
    """Return what was observed; empty if nothing was watched.

    Raises StoreError if the file is damaged.
    """
    return read_document(folder / "seen.json", lambda data: tuple(map(_pressed, data))) or ()


def _pressed(data: Mapping[str, Any]) -> Pressed:
    return Pressed(data["level"], decoded(Seen, data["seen"], {DatabaseUse: _use}), tuple(data["lacks"]))


def _plain(seen: Seen) -> dict[str, Any]:
    data = asdict(seen)
    if seen.sessions is not None:
        data["sessions"]["waits"] = [[*key, many] for key, many in seen.sessions.waits.items()]
    return data


def _use(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "waits": {(name, event): many for name, event, many in data["waits"]}}
