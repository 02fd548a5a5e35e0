"""Advisory locks for which sessions queue: the application lets them take turns. Pure.

A session that waits for its turn to lead, such as the spare one of two schedulers, waits as long as the other
one works. That is no fault, so the lock must change hands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.locks.causes import Cause, blockers_by_cause, holds_ns
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_SHARE: Final = 0.4
"""Fraction of the busy time: as for rows that are locked, since advisory locks exist to let sessions take
turns."""
_TURNS: Final = 20
"""Fewest calls that show that the lock changes hands."""
_HOLDERS: Final = 3
"""Sessions that held it while others waited: the same, if nobody counted the calls."""
_EVENT: Final = "advisory"


def _find(evidence: Evidence) -> Iterator[Finding]:
    behind = sorted(blockers_by_cause(evidence).get(Cause.ADVISORY, ()), key=lambda one: -one.sessions)
    bill = evidence.bill(lambda piece: float(_queues(piece)))
    waiting = {one.template for one in evidence.pieces if _queues(one) and one.template is not None}
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
        RULE.name,
        f"{f'Up to {most} sessions at once queue' if most > 1 else 'Sessions queue'} for an advisory lock of "
        f"{f'application {who}' if who else 'another session'}",
        objects=(who or "advisory lock",),
        bill=bill,
        templates=tuple(templates),
        statement=evidence.statements[templates[0]].text,
        evidence=tuple(_evidence(behind[0], calls, bill.share, evidence)),
        candidates=tuple(
            _candidates(behind[0], " ".join(evidence.statements[template].text for template in templates))
        ),
        proof="Compare both ways with uncork run, with as many clients as queue now.",
    )


def _queues(piece: Piece) -> bool:
    return piece.wait_class == "Lock" and piece.wait_event == _EVENT


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


def _candidates(holder: BlockerFacts, text: str) -> Iterator[Candidate]:
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


RULE: Final = Rule("advisory-lock", _find, depth=2, least_share=_SHARE)
