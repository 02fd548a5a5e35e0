"""How a guard was asked, kept beside what it measures, so that it can go on as the guard.

The run holds the derived experiment already: its text names the gates, its files are both sides' own. What
it does not hold is what the sides are, how they are told, and what becomes of what is broken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.model.results.guard import GuardSide
from uncork.store.layout import unreadable, write_atomically
from uncork.workbench.guard.store import read_guard, read_side

__all__ = ["GuardAsked", "read_asked", "refuse_guard", "write_asked"]

_FILE: Final = "guard-asked.json"


@dataclass(frozen=True, slots=True)
class GuardAsked:
    """What a guard of an experiment was asked, besides the experiment.

    `told` are sentences about what the files ask otherwise, `command` repeats the guard, `acknowledged` is
    the file of known changes. `own` are the settings of servers that are started for single sides.
    `checkouts` says that services run in a checkout, which is gone with the guard, or in a working tree. A
    second measurement, of what was found broken, `confirms` the run that is its first.
    """

    baseline: GuardSide
    candidate: GuardSide
    told: tuple[str, ...]
    command: str
    confirm: bool
    acknowledged: str
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checkouts: bool = False
    confirms: str = ""


def write_asked(folder: Path, asked: GuardAsked) -> None:
    """Keep how a guard was asked, whole or not at all.

    Raises:
        StoreError: if it cannot be written.
    """
    write_atomically(folder / _FILE, json.dumps(asdict(asked), ensure_ascii=False, indent=1) + "\n")


def read_asked(folder: Path) -> GuardAsked | None:
    """Return how a guard was asked; None if the run is none of a guard of an experiment.

    Raises:
        StoreError: if it is damaged.
    """
    path = folder / _FILE
    try:
        data = json.loads(path.read_text())
        sides = {role: read_side(data[role]) for role in ("baseline", "candidate")}
        return GuardAsked(**{**data, **sides, "told": tuple(data["told"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def refuse_guard(folder: Path) -> None:
    """Raise where a run is a guard's: it goes on as the guard, or not at all.

    Raises:
        UsageError: that it is, and the command that goes on with it.
        StoreError: if the run is damaged.
    """
    if read_asked(folder) is not None or read_guard(folder) is not None:
        raise UsageError(
            f"{folder.name} is the run of a guard; go on with it as that: uncork guard --resume {folder.name}"
        )
