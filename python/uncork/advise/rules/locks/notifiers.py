"""Which statements and functions send notifications (NOTIFY). Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rules.writes.within_functions import functions_of

_STATEMENT: Final = re.compile(r"notify\s|.*\bpg_notify\s*\(", re.DOTALL)
_BODY: Final = re.compile(
    r"\bpg_notify\s*\(|(?:^|;|\bbegin|\bthen|\belse|\bloop)\s*notify\s+\w", re.IGNORECASE
)


def notifiers(seen: Evidence) -> tuple[str, ...]:
    """Return what sends notifications: functions, then the texts of statements, the most called first."""
    ranked = sorted(seen.statements.values(), key=lambda one: -(one.calls or 0))
    functions = [
        f"function {function.name}"
        for statement in ranked
        for function in functions_of(statement, seen)
        if _BODY.search(function.source)
    ]
    texts = [
        statement.text for statement in ranked if _STATEMENT.match(statement.text) and not statement.nested
    ]
    return tuple(dict.fromkeys((*functions, *texts)))
