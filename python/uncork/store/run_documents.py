"""Write and read the JSON documents of runs: cures, hosts, and what was observed of loads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.model.bottleneck import DatabaseUse, Seen
from uncork.model.database.finding import Bill
from uncork.model.results.cure import CURE_VERSION, CureResult, Net
from uncork.model.services.program import RunningProgram
from uncork.model.stored_run import HostRounds, RunHost
from uncork.store.documents import decoded, read_document
from uncork.store.layout import check_version, unreadable, write_atomically

CURE_FILE: Final = "cure.json"


def read_cure(folder: Path) -> CureResult:
    """Return the result of a cure. Its `id` and `folder` are those of `folder` unless it has its own.

    Raises StoreError if the file is missing or damaged, or has another format version.
    """
    path = folder / CURE_FILE

    def result(data: Mapping[str, Any]) -> CureResult:
        check_version(path, data, CURE_VERSION)
        own = {"id": data["id"] or folder.name, "folder": data["folder"] or str(folder)}
        lowest = {Net: _bounded, Bill: lambda bill: {**bill, "low": bill["low"] or 0.0}}
        return decoded(CureResult, {**data, **own}, lowest)

    found = read_document(path, result)
    if found is None:
        raise StoreError(
            f"{folder.name} is a cure that ended before its first result, so it has no report; run it again"
        )
    return found


def _bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, with the infinite ends of an interval, which JSON writes as null."""
    low, high = data["low"], data["high"]
    return {**data, "low": -math.inf if low is None else low, "high": math.inf if high is None else high}


# ---- the hosts of an experiment ----

HOST: Final = "host.json"
"""The file of each run of an experiment that says where it was measured."""
HOSTS: Final = "hosts.json"
"""The file of a merged run that says which rounds were measured where."""


def host_text(host: RunHost) -> str:
    """Return the content of a run's `HOST`."""
    return json.dumps(asdict(host)) + "\n"


def read_host(folder: Path) -> RunHost:
    """Return where a run was measured. Raises StoreError if the file is missing or damaged."""
    path = folder / HOST
    try:
        return RunHost(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise unreadable(path, error) from error


def write_hosts(folder: Path, hosts: tuple[HostRounds, ...]) -> None:
    """Write the hosts of a merged run. Raises StoreError if that fails."""
    write_atomically(folder / HOSTS, json.dumps([asdict(host) for host in hosts], indent=2) + "\n")


def read_hosts(folder: Path) -> tuple[HostRounds, ...]:
    """Return the hosts of a run that was merged from several; none for other runs.

    Raises StoreError if the file is damaged.
    """
    hosts = read_document(folder / HOSTS, lambda found: tuple(decoded(HostRounds, host) for host in found))
    return hosts or ()


def hosts_and_waves(folder: Path) -> tuple[dict[int, int], dict[int, int]]:
    """Return the host and the wave of each round of a run that several hosts measured.

    Both are empty for other runs. Waves are empty too if the hosts did not measure together. Raises
    StoreError if the list of hosts is damaged.
    """
    measured = read_hosts(folder)
    hosts = {number: host.number for host in measured for number in host.rounds}
    together = [host for host in measured if host.waves] if len(measured) > 1 else []
    return hosts, {
        number: wave for host in together for number, wave in zip(host.rounds, host.waves, strict=True)
    }


# ---- what was observed of all components during a load or a sweep ----


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


# ---- how the service of a load was started ----

_FILE = "service.json"


@dataclass(frozen=True, slots=True)
class LoadedService:
    """The service that a load was sent to: its program if it ran on this machine, and its database.

    `postgres` is the connection string of the database, without a password; None if none was named.
    """

    program: RunningProgram | None
    postgres: str | None


def write_service(folder: Path, service: LoadedService) -> None:
    """Write how a service was started. Raises StoreError if the file cannot be written."""
    write_atomically(folder / _FILE, json.dumps(asdict(service), indent=1) + "\n")


def read_service(folder: Path) -> LoadedService | None:
    """Return how a service was started; None for a load that was merged from parts.

    Raises StoreError if the file is damaged.
    """
    return read_document(folder / _FILE, lambda data: decoded(LoadedService, data))
