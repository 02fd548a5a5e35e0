"""Statements that wait for a lock of another statement, as logs show them (log_lock_waits). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.locks.causes import GIVE_UP
from uncork.advise.rules.locks.table_lock import TableLock, lock_candidates, locking_command
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.results.log import Blocking
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_duration


def _find(evidence: Evidence) -> Iterator[Finding]:
    """A watched server has the waits that are too short for deadlock_timeout too, so it is asked instead."""
    log = evidence.log
    if log is None or evidence.database is not None or log.first_us is None or log.last_us is None:
        return
    for blocking in log.blocking:
        bill = evidence.bill_of_seconds(blocking.sum_ns / 1e9)
        number = evidence.log_numbers.get(-1 if blocking.waiting_number is None else blocking.waiting_number)
        lock = locking_command(blocking.holding_text)
        on = f" on server {blocking.server}" if log.servers else ""
        yield (
            _of_rows(blocking, number, bill, on)
            if lock is None
            else _of_table(blocking, lock, number, bill, on)
        )


def _of_rows(blocking: Blocking, number: int | None, bill: Bill, on: str) -> Finding:
    who = f"application {blocking.holding_application}" if blocking.holding_application else "another session"
    return Finding(
        RULE.name,
        f"{count_words(blocking.waits, 'statement')}{on} waited for locks that {who} held",
        objects=(blocking.holding_application,) if blocking.holding_application else (),
        bill=bill,
        templates=() if number is None else (number,),
        statement=blocking.waiting_text,
        evidence=tuple(_evidence(blocking)),
        candidates=(
            Candidate("client", "Shorten the transaction that holds the locks, or lock later in it."),
            GIVE_UP,
        ),
        proof="Compare both orders or lengths of the transaction with uncork run, under as many clients.",
    )


def _of_table(
    blocking: Blocking, command: tuple[str, str], number: int | None, bill: Bill, on: str
) -> Finding:
    words, table = command
    lock = TableLock(words, table, -1, blocking.holding_text, queues=False, blockers=(), bill=bill)
    return Finding(
        "explicit-table-lock",
        f"{words} on {table or 'a table'} blocks other sessions{on}",
        objects=(table,),
        bill=bill,
        templates=() if number is None else (number,),
        statement=blocking.holding_text,
        evidence=tuple(_evidence(blocking)),
        candidates=tuple(lock_candidates(lock)),
        proof="Compare both ways with uncork run, with as many clients as wait now.",
    )


def _evidence(blocking: Blocking) -> Iterator[str]:
    yield (
        f"{count_words(blocking.waits, 'wait')} longer than deadlock_timeout took "
        f"{format_duration(float(blocking.sum_ns))} in total, at most "
        f"{format_duration(float(blocking.max_ns))}."
    )
    if blocking.waiting_text:
        yield f"Those who waited executed: {short_template(blocking.waiting_text, 90)}"
    if blocking.holding_text:
        yield f"The holder's last statement was {short_template(blocking.holding_text, 90)}"


RULE: Final = Rule("lock-wait", _find)
