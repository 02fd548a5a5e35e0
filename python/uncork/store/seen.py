"""What was seen of all components while a load ran, on disk: ``seen.json`` beside the load, or the sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.store.layout import unreadable, write_atomically

__all__ = ["Pressed", "read_pressed", "write_pressed"]


@dataclass(frozen=True, slots=True)
class Pressed:
    """What was seen at a level of a sweep, or in a load that has no levels (None).

    `lacks` says, a sentence each, which party could not be looked at.
    """

    level: float | None
    seen: Seen
    lacks: tuple[str, ...] = ()


def write_pressed(folder: Path, pressed: Sequence[Pressed]) -> None:
    """Write what was seen, in place of what was written before.

    Raises:
        StoreError: if it cannot be written.
    """
    told = [{"level": one.level, "seen": _told(one.seen), "lacks": one.lacks} for one in pressed]
    write_atomically(folder / "seen.json", json.dumps(told, indent=1) + "\n")


def read_pressed(folder: Path) -> tuple[Pressed, ...]:
    """Return what was seen; nothing where nobody looked.

    Raises:
        StoreError: if it is damaged.
    """
    path = folder / "seen.json"
    if not path.is_file():
        return ()
    try:
        told = json.loads(path.read_text())
        return tuple(Pressed(one["level"], _seen(one["seen"]), tuple(one["lacks"])) for one in told)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def _told(seen: Seen) -> dict[str, Any]:
    told = asdict(seen)
    if seen.sessions is not None:
        told["sessions"]["waits"] = [[*key, many] for key, many in seen.sessions.waits.items()]
    return told


def _seen(told: Mapping[str, Any]) -> Seen:
    sessions = told["sessions"]
    components = {
        name: None
        if told[name] is None
        else Component(**{**told[name], "threads": tuple(told[name]["threads"])})
        for name in ("database", "service", "generator")
    }
    if sessions is not None:
        waits = {(name, event): many for name, event, many in sessions["waits"]}
        sessions = DatabaseUse(**{**sessions, "waits": waits})
    return Seen(
        load=LoadUse(**told["load"]),
        machine=MachineUse(**told["machine"]),
        sessions=sessions,
        indirect=told["indirect"],
        **components,
    )
