"""What differs if the watched server is a standby: changes are made on its primary. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence

if TYPE_CHECKING:
    from uncork.model.database.finding import Candidate, Finding

_REFUSED: Final = re.compile(
    r"^\s*(?:create|drop|alter\s+(?!system)|analyze|vacuum|reindex|cluster|refresh)\b", re.I | re.MULTILINE
)
"""Commands that a standby refuses. ALTER SYSTEM changes a file of the server that executes it."""
_ON_PRIMARY: Final = (
    "Execute it on the primary: this server is a standby, and gets the change by replication."
)


def is_standby(seen: Evidence) -> bool:
    """Return whether the watched server replays the changes of another one."""
    return seen.database is not None and seen.database.standby


def for_standby(finding: Finding) -> Finding:
    """Return a finding whose changes name the server that accepts them."""
    return replace(finding, candidates=tuple(_on_primary(candidate) for candidate in finding.candidates))


def _on_primary(one: Candidate) -> Candidate:
    if one.kind == "statement" or not _REFUSED.search(one.sql):
        return one
    return replace(one, text=f"{one.text} {_ON_PRIMARY}")
