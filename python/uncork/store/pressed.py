"""Store and read what was observed of all components during a load or a sweep: ``seen.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.store.layout import unreadable, write_atomically


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

    Raises:
        StoreError: if the file cannot be written.
    """
    data = [
        {"level": pressure.level, "seen": _plain(pressure.seen), "lacks": pressure.missing}
        for pressure in pressed
    ]
    write_atomically(folder / "seen.json", json.dumps(data, indent=1) + "\n")


def read_pressed(folder: Path) -> tuple[Pressed, ...]:
    """Return what was observed; empty if nothing was watched.

    Raises:
        StoreError: if the file is damaged.
    """
    path = folder / "seen.json"
    if not path.is_file():
        return ()
    try:
        data = json.loads(path.read_text())
        return tuple(Pressed(one["level"], _seen(one["seen"]), tuple(one["lacks"])) for one in data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def _plain(seen: Seen) -> dict[str, Any]:
    data = asdict(seen)
    if seen.sessions is not None:
        data["sessions"]["waits"] = [[*key, many] for key, many in seen.sessions.waits.items()]
    return data


def _seen(data: Mapping[str, Any]) -> Seen:
    sessions = data["sessions"]
    components = {
        name: None
        if data[name] is None
        else Component(**{**data[name], "threads": tuple(data[name]["threads"])})
        for name in ("database", "service", "generator")
    }
    if sessions is not None:
        waits = {(name, event): many for name, event, many in sessions["waits"]}
        sessions = DatabaseUse(**{**sessions, "waits": waits})
    return Seen(
        load=LoadUse(**data["load"]),
        machine=MachineUse(**data["machine"]),
        sessions=sessions,
        indirect=data["indirect"],
        **components,
    )
