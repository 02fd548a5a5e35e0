"""What a profile could not observe, and what the role that watches may not see."""

from __future__ import annotations

from typing import Final, Literal

from uncork.model.records import Record

WhyUnplanned = Literal[
    "not readable",
    "not writable",
    "not callable",
    "no values",
    "not found",
    "row security",
    "no plan",
    "other database",
    "not asked",
    "refused",
]
"""Why a statement has no plan: the role lacks the right to read its tables, to change them, or to call a
function; the server stores it without its values in a form that cannot be planned; a table is not in the
search_path; row security differs between roles; it is no statement with a plan; it belongs to another
database; it was not among the costliest; or the server refuses it for another reason."""
_MOST: Final = 0.5


class Missing(Record):
    """Something that could not be observed: what is lost without it, and how to get it."""

    what: str
    lost: str
    remedy: str


class Unplanned(Record):
    """Statements that have no plan for one reason.

    `templates` are their numbers, and `share` is their part of the time of all statements of the report.
    `role` is the role that watches, and `remedy` how to get their plans; empty if there is nothing to get.
    `reason` is the server's, for statements that it refuses.
    """

    why: WhyUnplanned
    templates: tuple[int, ...]
    share: float
    role: str
    remedy: str = ""
    reason: str = ""


class HiddenWork(Record):
    """The work of other roles in the watched database that the watching role may not see.

    `share` is its part of the time of statements that ended, from pg_stat_statements, which shows counters
    without their statements. If nothing counts statements, it is the part of the active sessions by the
    server's own count. None if both are unknown. `sessions` is the average number of hidden sessions, idle
    ones included. `busy` says whether any session that the role may see was busy.
    """

    role: str
    sessions: float
    share: float | None
    base: Literal["statements", "sessions", ""]
    busy: bool

    @property
    def most(self) -> bool:
        """Return whether most of the work is hidden, so that a report without findings means nothing."""
        return not self.busy if self.share is None else self.share > _MOST


def grant(right: str, role: str) -> str:
    """Return the statement that gives a role a right."""
    name = role.replace('"', '""')
    return f'GRANT {right} TO "{name}"'
