"""Why sessions wait behind a transaction. Each blocked session counts for one cause only. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from typing import Final

from uncork.diagnosis.changes import session_setting
from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.rules.clients.loops import loops
from uncork.diagnosis.rules.clients.sessions import forgotten
from uncork.diagnosis.rules.writes.written import functions_of
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import BlockerFacts
from uncork.model.template_words import short_template

ROW_EVENTS: Final = frozenset({"transactionid", "tuple", "spectoken"})
"""Wait events of a session that waits for a row: for its last writer's end, for its turn, or for
the end of an insertion of the same key."""
LONG_NS: Final = 500_000_000
"""Length of a long transaction that others wait behind. Users notice half a second; a commit to a
slow disk takes a tenth of a second."""
_MOST: Final = 0.5
PREPARED: Final = "prepared transaction"


class Cause(Enum):
    """Why sessions wait behind a transaction."""

    FORGOTTEN = "its client left it idle"
    LOOP = "its client sends many statements one by one"
    DEADLOCK = "they wait for one another"
    TABLE = "it locks a whole table"
    ADVISORY = "it holds an advisory lock"
    COMMIT = "it commits notifications"
    LONG = "it takes long"
    SHORT = "many want the same rows"


_CAUSES: Final = {"relation": Cause.TABLE, "advisory": Cause.ADVISORY, "object": Cause.COMMIT}
"""Wait events of locks other than rows. A commit with NOTIFY locks an object that stands for all
databases of the server; some commands on schemas and databases wait for objects too."""
_NOTIFY: Final = re.compile(r"notify\s|.*\bpg_notify\s*\(", re.DOTALL)
_NOTIFY_IN_BODY: Final = re.compile(
    r"\bpg_notify\s*\(|(?:^|;|\bbegin|\bthen|\belse|\bloop)\s*notify\s+\w", re.IGNORECASE
)
GIVE_UP: Final = session_setting("lock_timeout", "'2s'").candidate(
    "Let sessions that wait give up after a short time, and retry.",
    "Statements that wait longer fail, so the application must retry them.",
)


def blockers_by_cause(evidence: Evidence) -> Mapping[Cause, list[BlockerFacts]]:
    """Return the root blockers by cause, in each the one that blocks most first."""
    found: dict[Cause, list[BlockerFacts]] = defaultdict(list)
    in_loops = {(loop.application, loop.user) for loop in loops(evidence)} if evidence.blockers else set()
    for blocker in evidence.blockers:
        found[_cause(blocker, evidence, in_loop=(blocker.application, blocker.user) in in_loops)].append(
            blocker
        )
    return found


def _cause(blocker: BlockerFacts, evidence: Evidence, *, in_loop: bool) -> Cause:
    if forgotten(blocker):
        return Cause.FORGOTTEN
    if in_loop:
        return Cause.LOOP
    if blocker.state == "Lock":
        return Cause.DEADLOCK
    if (locked := _locked(blocker, evidence)) is not None:
        return locked
    held = holds_ns(blocker, evidence)
    return Cause.LONG if blocker.state == PREPARED or (held or 0.0) >= LONG_NS else Cause.SHORT


def _locked(blocker: BlockerFacts, evidence: Evidence) -> Cause | None:
    """Return the cause if most of those who wait do so for something else than a row; None otherwise."""
    whole = sum(waiter.sessions for waiter in blocker.waiters)
    for event, cause in _CAUSES.items():
        mine = sum(waiter.sessions for waiter in blocker.waiters if waiter.event == event)
        if whole and mine >= _MOST * whole and (cause is not Cause.COMMIT or notifiers(evidence)):
            return cause
    return None


def holds_ns(blocker: BlockerFacts, evidence: Evidence) -> float | None:
    """Estimate how long a transaction holds the locks that others wait for; None if it is unknown.

    Samples fall on average in the middle of a transaction, so it is twice its mean age. If those who wait
    are of the same application, the age includes the time that it waited for its own turn. But only one
    session at a time holds a row, so it holds the row no longer than the time between two calls.
    """
    if blocker.transaction_mean_ns is None:
        return None
    length = 2 * blocker.transaction_mean_ns
    own = sum(waiter.sessions for waiter in blocker.waiters if waiter.application == blocker.application)
    if own < _MOST * sum(waiter.sessions for waiter in blocker.waiters):
        return length
    top = max(blocker.waiters, key=lambda waiter: waiter.sessions, default=None)
    statement = None if top is None or top.template is None else evidence.statements.get(top.template)
    if statement is None or not statement.calls:
        return length
    return min(length, evidence.seconds * 1e9 / statement.calls)


def doing(holder: BlockerFacts, idle: str, working: str, waiting: str) -> str:
    """Return what a transaction mostly does while others wait: one of three phrases, and its statement."""
    phrase = {IDLE: idle, CPU: working}.get(holder.state, f"{waiting} ({holder.state}) in")
    return f"{phrase} the statement" + (f": {short_template(holder.text)}" if holder.text else ".")


def notifiers(evidence: Evidence) -> tuple[str, ...]:
    """Return what sends notifications: functions, then the texts of statements, the most called first."""
    ranked = sorted(evidence.statements.values(), key=lambda statement: -(statement.calls or 0))
    functions = [
        f"function {function.name}"
        for statement in ranked
        for function in functions_of(statement, evidence)
        if _NOTIFY_IN_BODY.search(function.source)
    ]
    texts = [statement.text for statement in ranked if _NOTIFY.match(statement.text) and not statement.nested]
    return tuple(dict.fromkeys((*functions, *texts)))
