"""Store the result of a guard as guard.json in its run, and read it back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError, UsageError
from uncork.model.results.guard import (
    GUARD_VERSION,
    Acknowledgement,
    Gate,
    GateCheck,
    GateOutcome,
    GuardResult,
    GuardSide,
    PlanDifference,
    SideDifference,
)
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.store.layout import check_version, unreadable, write_atomically

GUARD_FILE: Final = "guard.json"


def write_guard(folder: Path, result: GuardResult) -> None:
    """Write the result of a guard, atomically. Raises StoreError if the file cannot be written."""
    text = json.dumps(_finite(asdict(result)), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(folder / GUARD_FILE, text + "\n")


def read_guard(folder: Path) -> GuardResult | None:
    """Return the result of a guard; None if the run is not a guard, or has not ended.

    Raises StoreError if the file is damaged, or has another format version.
    """
    path = folder / GUARD_FILE
    try:
        data = json.loads(path.read_text())
        check_version(path, data, GUARD_VERSION)
        return _result(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(path, error) from error


def stored_guard(folder: Path) -> GuardResult:
    """Return the result of a run of kind ``guard``.

    Raises StoreError if the file is damaged, or the guard did not end.
    """
    found = read_guard(folder)
    if found is None:
        raise StoreError(
            f"{folder.name} is a guard that did not end, so it decided nothing; its trials are in {folder}"
        )
    return found


def _result(data: Mapping[str, Any]) -> GuardResult:
    return GuardResult(
        **{
            **data,
            "baseline": read_side(data["baseline"]),
            "candidate": read_side(data["candidate"]),
            "reasons": tuple(data["reasons"]),
            "checks": tuple(map(_check, data["checks"])),
            "plans": tuple(PlanDifference(**_placed(plan)) for plan in data["plans"]),
            "runs": tuple(data["runs"]),
            "warnings": tuple(data["warnings"]),
            "unused": tuple(Acknowledgement(**entry) for entry in data["unused"]),
            "differences": tuple(SideDifference(**_placed(difference)) for difference in data["differences"]),
            "settings": tuple(EnvironmentDifference(**setting) for setting in data["settings"]),
        }
    )


def read_side(data: Mapping[str, Any]) -> GuardSide:
    """Build a side from its JSON. Raises KeyError or TypeError if the JSON is wrong."""
    return GuardSide(**{**data, "what": tuple(data["what"])})


def _check(data: Mapping[str, Any]) -> GateCheck:
    known = data["acknowledgement"]
    return GateCheck(
        **{
            **_placed(data),
            "gate": Gate(**data["gate"]),
            "outcome": GateOutcome(data["outcome"]),
            "acknowledgement": None if known is None else Acknowledgement(**known),
            "warnings": tuple(data["warnings"]),
            "by_round": tuple(tuple(pair) for pair in data["by_round"]),
        }
    )


def _placed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, with the cell as tuples as in the model."""
    return {**data, "cell": tuple(tuple(level) for level in data["cell"])}


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot represent, such as the end of an unbounded interval, with None."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


_FILE: Final = "guard-request.json"


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """The request of a guard of an experiment, without the experiment itself.

    `overridden` holds sentences about settings in the files that the guard overrides. `command`
    repeats the guard. `acknowledged` is the file of acknowledged changes. `checkouts` says that
    services run in a checkout, which is deleted with the guard, or in a working tree. `confirms` is
    the id of the first run, if this run is the second measurement.
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
    """Store the request of a guard, atomically. Raises StoreError if the file cannot be written."""
    write_atomically(folder / _FILE, json.dumps(asdict(request), ensure_ascii=False, indent=1) + "\n")


def read_request(folder: Path) -> StoredRequest | None:
    """Return the request of a guard; None if the run does not belong to a guard of an experiment.

    Raises StoreError if the file is damaged.
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
