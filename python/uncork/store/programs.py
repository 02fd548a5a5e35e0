"""Store and read how the service of a load was started: ``service.json``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from uncork.model.services.program import RunningProgram
from uncork.store.documents import decoded, read_document
from uncork.store.layout import write_atomically

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
