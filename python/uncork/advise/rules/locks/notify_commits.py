"""Commits with NOTIFY, which take turns: the whole server has one lock for them. Pure.

PostgreSQL locks an object that stands for all databases before it commits a transaction with NOTIFY, and
keeps it until the commit is on disk, so that notifications are in the order of commits (``PreCommit_Notify``
in its ``async.c``). Such commits cannot share a flush of the write-ahead log.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.locks.causes import Cause, blockers_by_cause, notifiers
from uncork.model.database.finding import Candidate, Finding
from uncork.model.template_words import short_template

_EVENT: Final = "object"
_OWN_FLUSH: Final = 0.5
"""Flushes that a commit waits for besides its own, if commits share them: on average half of the one that is
in progress when it begins."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    behind = blockers_by_cause(evidence).get(Cause.COMMIT, ())
    sources = notifiers(evidence)
    waiting = sum(piece.sessions for piece in evidence.pieces if _queues(piece))
    if not behind or not sources or not waiting:
        return
    templates = sorted(
        {piece.template for piece in evidence.pieces if _queues(piece) and piece.template is not None},
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
        RULE.name,
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
        candidates=tuple(_candidates(named=named)),
        proof="Compare the transactions with and without NOTIFY with uncork run, with as many clients.",
    )


def _queues(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _EVENT


def _saved(piece: Piece, *, part: float) -> float:
    return part if _queues(piece) else 0.0


def _candidates(*, named: bool) -> Iterator[Candidate]:
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


RULE: Final = Rule("notify-commits", _find, depth=2)
