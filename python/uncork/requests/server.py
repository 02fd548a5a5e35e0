"""The server that an experiment runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uncork.engines.postgres import PostgresServer, embedded_server, existing_server
from uncork.errors import UsageError
from uncork.model.redaction import redact


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The server to measure on: an existing one (`dsn`), or one started from `binaries` on `port`.

    `apart` maps variants to existing servers of their own.
    """

    dsn: str | None = field(default=None, repr=False)
    binaries: Path | None = None
    port: int | None = None
    apart: Mapping[str, str] = field(default_factory=dict, repr=False)

    def description(self) -> str:
        """Describe the choice without secrets."""
        if self.apart:
            return f"existing: {'; '.join(f'{name}: {redact(dsn)}' for name, dsn in self.apart.items())}"
        if self.dsn is not None:
            return f"existing: {redact(self.dsn)}"
        return "embedded" if self.binaries is None else f"embedded from {self.binaries}"

    def server(self, settings: Mapping[str, object]) -> PostgresServer:
        """Return the server, not yet started."""
        if self.dsn is not None or self.apart:
            if settings:
                raise UsageError(
                    "[server.settings] cannot be set on an existing server (--dsn); remove them from the "
                    "experiment, or set them on the server yourself"
                )
            return existing_server(self.dsn or "")
        return embedded_server(settings, binaries=self.binaries, port=self.port)
