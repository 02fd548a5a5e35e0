"""The host of an experiment's run, and the hosts of a run that was merged from several."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from uncork.model.stored_run import HostRounds, RunHost
from uncork.store.documents import decoded, read_document
from uncork.store.layout import unreadable, write_atomically

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
