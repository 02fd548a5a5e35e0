"""Store the request of a guard in its run, so that the guard can be resumed.

The run already holds the derived experiment: its text names the gates, and its files hold the SQL of both
sides. This module adds how the sides are described, and what happens to broken gates.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.model.results.guard import GuardSide
from uncork.store.layout import unreadable, write_atomically
from uncork.workbench.guard.store import read_guard, read_side

_FILE: Final = "guard-request.json"


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """The request of a guard of an experiment, without the experiment itself.

    `overridden` holds sentences about settings in the files that the guard overrides. `command` repeats the
    guard. `acknowledged` is the file of acknowledged changes. `checkouts` says that services run in a
    checkout, which is deleted with the guard, or in a working tree. `confirms` is the id of the first run, if
    this run is the second measurement.
    """

    baseline: GuardSide
    candidate: GuardSide
    overridden: tuple[str, ...]
    command: str
    confirm: bool
    acknowledged: str
    checkouts: bool = False
    confirms: str = ""


def write_request(folder: Path, request: StoredRequest) -> None:
    """Store the request of a guard, atomically.

    Raises:
        StoreError: if the file cannot be written.
    """
    write_atomically(folder / _FILE, json.dumps(asdict(request), ensure_ascii=False, indent=1) + "\n")


def read_request(folder: Path) -> StoredRequest | None:
    """Return the request of a guard; None if the run does not belong to a guard of an experiment.

    Raises:
        StoreError: if the file is damaged.
    """
    path = folder / _FILE
    try:
        data = json.loads(path.read_text())
        sides = {role: read_side(data[role]) for role in ("baseline", "candidate")}
        return StoredRequest(**{**data, **sides, "overridden": tuple(data["overridden"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def refuse_guard(folder: Path) -> None:
    """Refuse to resume the run of a guard as an experiment.

    Raises:
        UsageError: if it is the run of a guard; the message has the command that resumes the guard.
        StoreError: if the run is damaged.
    """
    if read_request(folder) is not None or read_guard(folder) is not None:
        raise UsageError(
            f"{folder.name} is the run of a guard; resume that: uncork guard --resume {folder.name}"
        )
