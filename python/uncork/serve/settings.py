"""How a dashboard is served."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is served, and to whom.

    `names` are host names by which it may be asked for, besides addresses and this machine's own name. With a
    `token` nobody sees anything without it. `secret` signs forms; a restart makes open forms void. `ending`
    is set when serving ends: answers that would go on do not.
    """

    root: Path
    names: frozenset[str] = frozenset()
    token: str | None = None
    port: int = 0
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    ending: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies know no ports, and two dashboards must not sign each other out."""
        return f"uncork-{self.port}"
