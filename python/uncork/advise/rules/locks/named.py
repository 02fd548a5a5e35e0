"""Locks that stand for no table and no row: advisory locks, and the lock of commits with NOTIFY. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.locks.causes import Cause, blockers_by_cause, holds_ns, notifiers
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts


# ---- advisory locks for which sessions queue: the application lets them take turns ----
#
# A session that waits for its turn to lead, such as the spare one of two schedulers, waits as long as the
# other one works. That is no fault, so the lock must change hands.


_SHARE: Final = 0.4
"""Fraction of the busy time: as for rows that are locked, since advisory locks exist to let sessions take
turns."""
_TURNS: Final = 20
"""Fewest calls that show that the lock changes hands."""
_HOLDERS: Final = 3
"""Sessions that held it while others waited: the same, if nobody counted the calls."""
_ADVISORY: Final = "advisory"


def _find_advisory(evidence: Evidence) -> Iterator[Finding]:
    behind = sorted(blockers_by_cause(evidence).get(Cause.ADVISORY, ()), key=lambda one: -one.sessions)
    bill = evidence.bill(lambda piece: float(_waits_for_advisory_lock(piece)))
    waiting = {
        one.template for one in evidence.pieces if _waits_for_advisory_lock(one) and one.template is not None
    }
    templates = sorted(
        waiting & set(evidence.statements), key=lambda number: -evidence.busy(number, {"Lock"})
    )
    calls = sum(evidence.statements[number].calls or 0 for number in templates)
    if not behind or not templates:
        return
    if calls < _TURNS and max(one.processes for one in behind) < _HOLDERS:
        return
    most = max(one.most for one in behind)
    who = behind[0].application or behind[0].user
    yield Finding(
        ADVISORY.name,
        f"{f'Up to {most} sessions at once queue' if most > 1 else 'Sessions queue'} for an advisory lock of "
        f"{f'application {who}' if who else 'another session'}",
        objects=(who or "advisory lock",),
        bill=bill,
        templates=tuple(templates),
        statement=evidence.statements[templates[0]].text,
        evidence=tuple(_evidence(behind[0], calls, bill.share, evidence)),
        candidates=tuple(
            _shorter_turns(behind[0], " ".join(evidence.statements[template].text for template in templates))
        ),
        proof="Compare both ways with uncork run, with as many clients as queue now.",
    )


def _waits_for_advisory_lock(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _ADVISORY


def _evidence(holder: BlockerFacts, calls: int, share: float, evidence: Evidence) -> Iterator[str]:
    yield f"Sessions spend {share_text(share)} of their time waiting for advisory locks."
    if calls:
        yield f"They take such a lock {format_count(round(calls / evidence.seconds))} times a second."
    held = holds_ns(holder, evidence)
    if held is not None:
        yield f"A session holds it for about {format_duration(float(f'{held:.1g}'))}."
    text = f": {short_template(holder.text)}" if holder.text else "."
    if holder.state == IDLE:
        yield f"Meanwhile it mostly waits for its client, after the statement{text}"
    elif holder.state == CPU:
        yield f"Meanwhile it mostly executes the statement{text}"
    else:
        yield f"Meanwhile it mostly waits itself ({holder.state}) in the statement{text}"


def _shorter_turns(holder: BlockerFacts, text: str) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Give each object a lock of its own: make the key from the object's key, for example "
        "hashtextextended(name, 0), so that only sessions with the same object take turns.",
        against=("Work that must exclude all other work still needs one common key.",),
    )
    slow = "does its slow work" if holder.state == IDLE else "executes its slow statements"
    until = "COMMIT" if "_xact_" in text else "pg_advisory_unlock"
    yield Candidate(
        "client",
        f"Take the lock later and release it sooner: see that the application {slow} before the lock or "
        f"after {until}.",
    )
    if "_xact_" in text:
        tried, sure = "pg_try_advisory_xact_lock", "pg_advisory_xact_lock"
    else:
        tried, sure = "pg_try_advisory_lock", "pg_advisory_lock"
    yield Candidate(
        "client",
        f"Call {tried} instead of {sure} where another session does the same work anyway, and go on with "
        "other work if it returns false.",
        same_answers=False,
        against=("The application must handle the work that it did not get to do.",),
    )
    yield Candidate(
        "client",
        "If the lock only keeps two sessions from inserting the same row, let a unique constraint do it: "
        "INSERT ... ON CONFLICT DO NOTHING.",
    )


ADVISORY: Final = Rule("advisory-lock", _find_advisory, depth=2, least_share=_SHARE)


# ---- commits with NOTIFY, which take turns: the whole server has one lock for them ----
#
# PostgreSQL locks an object that stands for all databases before it commits a transaction with NOTIFY,
# and keeps it until the commit is on disk, so that notifications are in the order of commits
# (``PreCommit_Notify`` in its ``async.c``). Such commits cannot share a flush of the write-ahead log.


_COMMIT: Final = "object"
_OWN_FLUSH: Final = 0.5
"""Flushes that a commit waits for besides its own, if commits share them: on average half of the one that is
in progress when it begins."""


def _find_notify(evidence: Evidence) -> Iterator[Finding]:
    behind = blockers_by_cause(evidence).get(Cause.COMMIT, ())
    sources = notifiers(evidence)
    waiting = sum(piece.sessions for piece in evidence.pieces if _waits_to_commit(piece))
    if not behind or not sources or not waiting:
        return
    templates = sorted(
        {
            piece.template
            for piece in evidence.pieces
            if _waits_to_commit(piece) and piece.template is not None
        },
        key=lambda number: -evidence.busy(number, {"Lock"}),
    )
    flushing = sum(
        piece.sessions for piece in evidence.pieces if piece.template in templates and piece.waits_for_wal
    )
    saved = partial(_saved, part=max(0.0, 1 - _OWN_FLUSH * flushing / waiting))
    source = sources[0]
    named = source.startswith("function ")
    most = max(one.most for one in behind)
    who = source if named else f"application {behind[0].application}" if behind[0].application else "a client"
    count = f"Up to {most} sessions at once" if most > 1 else "Sessions"
    yield Finding(
        NOTIFY.name,
        f"{count} queue to commit, because {who} sends NOTIFY",
        objects=(source.removeprefix("function "),) if named else (behind[0].application or "NOTIFY",),
        bill=evidence.bill(saved),
        templates=tuple(templates),
        statement="" if not templates else evidence.statements[templates[0]].text,
        evidence=(
            f"On average {waiting:.2f} sessions wait for the lock of commits with NOTIFY. The whole server "
            "has one, which each of them holds until its commit is on disk.",
            *(
                f"This sends notifications: {one if one is source else short_template(one)}"
                for one in sources[:3]
            ),
        ),
        candidates=tuple(_fewer_notifications(named=named)),
        proof="Compare the transactions with and without NOTIFY with uncork run, with as many clients.",
    )


def _waits_to_commit(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _COMMIT


def _saved(piece: Piece, *, part: float) -> float:
    return part if _waits_to_commit(piece) else 0.0


def _fewer_notifications(*, named: bool) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Write what happened to a table within the transaction, and let one process read new rows and send "
        "NOTIFY for all of them, a few times a second.",
        against=("Listeners hear of a change a moment later.",),
    )
    yield Candidate(
        "client",
        "Let clients that wait for changes read the table of changes every second instead of LISTEN, or "
        "follow it with logical replication.",
        against=("Logical replication needs wal_level = logical and a slot that is always read.",),
    )
    if named:
        yield Candidate(
            "ddl",
            "Notify only about the changes that a listener needs: give the trigger a WHEN condition.",
            same_answers=False,
            against=("Every transaction that still sends a notification still takes its turn.",),
        )
    yield Candidate(
        "setting",
        "Where the last commits may be lost, let these transactions not wait for the disk: they then hold "
        "the lock for a moment only.",
        sql="SET synchronous_commit = off;",
        undo="RESET synchronous_commit;",
        against=(
            "A crash of the server loses the commits of the last moments: a trade of durability for time.",
        ),
    )


NOTIFY: Final = Rule("notify-commits", _find_notify, depth=2)
