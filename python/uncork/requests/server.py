"""Which server an experiment runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uncork.engines.postgres import PostgresServer, embedded_server, existing_server
from uncork.errors import UsageError
from uncork.model.redaction import redact

__all__ = ["ServerChoice"]


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Where to measure: an existing server (`dsn`), or one of our own from `binaries`, on `port`.

    `apart` are existing servers of single variants, by name, `own` the settings of servers that are started
    for single variants.
    """

    dsn: str | None = field(default=None, repr=False)
    binaries: Path | None = None
    port: int | None = None
    apart: Mapping[str, str] = field(default_factory=dict, repr=False)
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def description(self) -> str:
        """Describe the choice without secrets."""
        if self.apart:
            return f"existing: {'; '.join(f'{name}: {redact(dsn)}' for name, dsn in self.apart.items())}"
        if self.dsn is not None:
            return f"existing: {redact(self.dsn)}"
        return "embedded" if self.binaries is None else f"embedded from {self.binaries}"

    def server(self, settings: Mapping[str, object]) -> PostgresServer:
        """Make the server, not yet started."""
        if self.dsn is not None or self.apart:
            if settings:
                raise UsageError(
                    "[server.settings] cannot be set on an existing server (--dsn); take them out of the "
                    "experiment, or set them there yourself"
                )
            return existing_server(self.dsn or "")
        return embedded_server(settings, binaries=self.binaries, port=self.port)
