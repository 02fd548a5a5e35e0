"""What differs if only logs are known: indexes may exist that no plan shows. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence

if TYPE_CHECKING:
    from uncork.model.database.finding import Candidate, Finding

_UNKNOWN: Final = (
    "A log does not show which indexes exist: there may be one that the statement cannot use. "
    "`uncork advise` with the server's address finds out."
)


def is_log_only(seen: Evidence) -> bool:
    """Return whether no server was watched."""
    return seen.database is None and seen.log is not None


def for_log(finding: Finding) -> Finding:
    """Return a finding whose indexes say that others may exist."""
    return replace(finding, candidates=tuple(_unknown(candidate) for candidate in finding.candidates))


def _unknown(one: Candidate) -> Candidate:
    return replace(one, against=(*one.against, _UNKNOWN)) if one.kind == "index" and one.sql else one
