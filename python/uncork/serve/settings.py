"""The settings of a dashboard."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a dashboard serves, and to whom.

    `names` are allowed host names, besides IP addresses and this machine's own name. If `token` is set, every
    page requires it. `secret` signs forms; a restart invalidates open forms. `ending` is set when serving
    ends, and stops event streams.
    """

    root: Path
    names: frozenset[str] = frozenset()
    token: str | None = None
    port: int = 0
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    ending: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cookie(self) -> str:
        """Return the cookie's name. It has the port, because cookies of two dashboards share a host."""
        return f"uncork-{self.port}"
