"""Locks that stand for no table and no row: advisory locks, and the lock of commits with NOTIFY. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from uncork.diagnosis.changes import client_change, ddl_change, session_setting
from uncork.diagnosis.evidence import Evidence, Piece, Statement
from uncork.diagnosis.rule import finding, rule
from uncork.diagnosis.rules.locks.causes import Cause, blockers_by_cause, doing, holds_ns, notifiers
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import BlockerFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, share_text

_SHARE: Final = 0.4
"""Fraction of the busy time: as for rows that are locked, since advisory locks exist to let
sessions take turns."""
_TURNS: Final = 20
"""Fewest calls that show that the lock changes hands."""
_HOLDERS: Final = 3
"""Sessions that held it while others waited: the same, if nobody counted the calls."""
_ADVISORY: Final = "advisory"


@rule("advisory-lock", depth=2, least_share=_SHARE)
def find_advisory(evidence: Evidence) -> Iterator[Finding]:
    """Find advisory locks for which sessions queue: the application lets them take turns.

    A session that waits for its turn to lead, such as the spare one of two schedulers, waits as
    long as the other one works. That is no fault, so the lock must change hands.
    """
    behind = sorted(
        blockers_by_cause(evidence).get(Cause.ADVISORY, ()), key=lambda blocker: -blocker.sessions
    )
    bill, statements = evidence.bill(_waits_for_advisory_lock), _waiting(_waits_for_advisory_lock, evidence)
    calls = sum(statement.calls or 0 for statement in statements)
    if not behind or not statements:
        return
    if calls < _TURNS and max(blocker.processes for blocker in behind) < _HOLDERS:
        return
    most = max(blocker.most for blocker in behind)
    who = behind[0].application or behind[0].user
    yield finding(
        f"{f'Up to {most} sessions at once queue' if most > 1 else 'Sessions queue'} for an "
        f"advisory lock of {f'application {who}' if who else 'another session'}",
        *_shorter_turns(behind[0], " ".join(statement.text for statement in statements)),
        objects=(who or "advisory lock",),
        bill=bill,
        statements=statements,
        evidence=_evidence(behind[0], calls, bill.share, evidence),
        proof="Compare both ways with uncork run, with as many clients as queue now.",
    )


def _waiting(matches: Callable[[Piece], bool], evidence: Evidence) -> list[Statement]:
    """Return the statements of matching pieces, the one that waits most for locks first."""
    found = evidence.chosen({piece.template for piece in filter(matches, evidence.pieces)})
    return sorted(found, key=lambda statement: -evidence.busy(statement.number, {"Lock"}))


def _waits_for_advisory_lock(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _ADVISORY


def _evidence(holder: BlockerFacts, calls: int, share: float, evidence: Evidence) -> Iterator[str]:
    yield f"Sessions spend {share_text(share)} of their time waiting for advisory locks."
    if calls:
        yield f"They take such a lock {format_count(round(calls / evidence.seconds))} times a second."
    held = holds_ns(holder, evidence)
    if held is not None:
        yield f"A session holds it for about {format_duration(float(f'{held:.1g}'))}."
    now = doing(holder, "waits for its client, after", "executes", "waits itself")
    yield f"Meanwhile it mostly {now}"


def _shorter_turns(holder: BlockerFacts, text: str) -> Iterator[Candidate]:
    yield client_change(
        "Give each object a lock of its own: make the key from the object's key, for example "
        "hashtextextended(name, 0), so that only sessions with the same object take turns.",
        "Work that must exclude all other work still needs one common key.",
    )
    slow = "does its slow work" if holder.state == IDLE else "executes its slow statements"
    until = "COMMIT" if "_xact_" in text else "pg_advisory_unlock"
    yield client_change(
        f"Take the lock later and release it sooner: see that the application {slow} before the "
        f"lock or after {until}."
    )
    lock = "advisory_xact_lock" if "_xact_" in text else "advisory_lock"
    yield client_change(
        f"Call pg_try_{lock} instead of pg_{lock} where another session does the same work anyway, "
        "and go on with other work if it returns false.",
        "The application must handle the work that it did not get to do.",
        same_answers=False,
    )
    yield client_change(
        "If the lock only keeps two sessions from inserting the same row, let a unique constraint "
        "do it: INSERT ... ON CONFLICT DO NOTHING."
    )


_COMMIT: Final = "object"
_OWN_FLUSH: Final = 0.5
"""Flushes that a commit waits for besides its own, if commits share them: on average half of the
one that is in progress when it begins."""


@rule("notify-commits", depth=2)
def find_notify(evidence: Evidence) -> Iterator[Finding]:
    """Find commits with NOTIFY, which take turns: the whole server has one lock for them.

    PostgreSQL locks an object that stands for all databases before it commits a transaction with NOTIFY,
    and keeps it until the commit is on disk, so that notifications are in the order of commits
    (``PreCommit_Notify`` in its ``async.c``). Such commits cannot share a flush of the write-ahead log.
    """
    behind = blockers_by_cause(evidence).get(Cause.COMMIT, ())
    sources = notifiers(evidence)
    waiting = evidence.sessions_in(_waits_to_commit)
    if not behind or not sources or not waiting:
        return
    statements = _waiting(_waits_to_commit, evidence)
    templates = {statement.number for statement in statements}
    flushing = evidence.sessions_in(lambda piece: piece.template in templates and piece.waits_for_wal)
    part = max(0.0, 1 - _OWN_FLUSH * flushing / waiting)
    source = sources[0]
    named = source.startswith("function ")
    most = max(blocker.most for blocker in behind)
    who = source if named else f"application {behind[0].application}" if behind[0].application else "a client"
    count = f"Up to {most} sessions at once" if most > 1 else "Sessions"
    yield finding(
        f"{count} queue to commit, because {who} sends NOTIFY",
        *_fewer_notifications(named=named),
        objects=(source.removeprefix("function "),) if named else (behind[0].application or "NOTIFY",),
        bill=evidence.bill(lambda piece: part if _waits_to_commit(piece) else 0.0),
        statements=statements,
        evidence=(
            f"On average {waiting:.2f} sessions wait for the lock of commits with NOTIFY. The "
            "whole server has one, which each of them holds until its commit is on disk.",
            *(
                f"This sends notifications: {other if other is source else short_template(other)}"
                for other in sources[:3]
            ),
        ),
        proof="Compare the transactions with and without NOTIFY with uncork run, with as many clients.",
    )


def _waits_to_commit(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _COMMIT


def _fewer_notifications(*, named: bool) -> Iterator[Candidate]:
    yield client_change(
        "Write what happened to a table within the transaction, and let one process read new rows "
        "and send NOTIFY for all of them, a few times a second.",
        "Listeners hear of a change a moment later.",
    )
    yield client_change(
        "Let clients that wait for changes read the table of changes every second instead of "
        "LISTEN, or follow it with logical replication.",
        "Logical replication needs wal_level = logical and a slot that is always read.",
    )
    if named:
        yield ddl_change(
            "Notify only about the changes that a listener needs: give the trigger a WHEN condition.",
            "Every transaction that still sends a notification still takes its turn.",
            same_answers=False,
        )
    yield session_setting("synchronous_commit", "off").candidate(
        "Where the last commits may be lost, let these transactions not wait for the disk: they "
        "then hold the lock for a moment only.",
        "A crash of the server loses the commits of the last moments: a trade of durability for time.",
    )
