"""Tell the statements of an application's traffic from reports and jobs. Pure."""

from __future__ import annotations

from typing import Final

from uncork.advise.evidence import Evidence, Statement

_CALLS: Final = 20
_PER_S: Final = 0.5
"""Total calls, and calls per second, from which on a statement is part of the application's traffic. A
statement that runs less often is a report or a job: nobody waits for it, so it may scan a whole table, sort
on disk and be compiled."""
_FEW_CALLS: Final = 5
_TOGETHER: Final = 2.0
"""Calls, and sessions that are busy with a statement on average, from which on it is traffic even if each
call takes so long that there are few: a report or a job runs in one session."""


def repeated(one: Statement, seen: Evidence) -> bool:
    """Return whether a statement is called often, or executed by several sessions at once."""
    calls = one.calls or 0
    often = calls >= _CALLS and calls / seen.seconds >= _PER_S
    return often or (calls >= _FEW_CALLS and seen.all_of(one.number) >= _TOGETHER)
