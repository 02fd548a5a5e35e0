"""Sessions that queue for the locks of another one's transaction. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.locks.causes import GIVE_UP, PREPARED, Cause, blockers_by_cause, holds_ns
from uncork.advise.rules.locks.hot_row import hot_rows
from uncork.advise.rules.locks.table_lock import table_locks
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_SHORT_SHARE: Final = 0.5
"""Fraction of the busy time spent waiting behind short transactions. Row locks exist so that sessions take
turns; from half on, the queue costs more than the work, and removing it could double the throughput."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    """Transactions of another finding (forgotten ones, loops, locks of tables, hot rows) are left to it."""
    causes = blockers_by_cause(evidence)
    long = list(causes.get(Cause.LONG, ()))
    short = [] if hot_rows(evidence) else list(causes.get(Cause.SHORT, ()))
    tables = [] if table_locks(evidence) else list(causes.get(Cause.TABLE, ()))
    others = [*long, *short, *tables]
    if not others:
        return
    blockers = [one for found in causes.values() for one in found]
    reported = sum(blocker.sessions for blocker in blockers) - sum(one.sessions for one in others)
    bill = evidence.bill_of_waiting("Lock", max(0.0, evidence.of_class("Lock") - reported))
    most = max(others, key=lambda one: one.sessions)
    slow = most in long
    if not slow and bill.share < _SHORT_SHARE:
        return
    name = f"application {most.application}" if most.application else "an unknown session"
    waited = f"Up to {count_words(most.most, 'session')} at once waited for"
    held = holds_ns(most, evidence)
    if most.state == PREPARED:
        headline = f"{waited} locks of a prepared transaction"
    elif slow and held is not None:
        headline = f"{waited} locks that {name} holds for {format_duration(float(f'{held:.1g}'))}"
    else:
        headline = f"{waited} locks of {name}"
    yield Finding(
        RULE.name,
        headline,
        objects=(most.application or most.user,),
        bill=bill,
        templates=() if most.template is None else (most.template,),
        statement=most.text,
        evidence=tuple(_evidence(most)),
        candidates=tuple(_candidates(most, slow=slow)),
        proof="Compare both orders or lengths of the transaction with uncork run, under as many clients.",
    )


def _evidence(most: BlockerFacts) -> Iterator[str]:
    if most.transaction_ns is not None:
        opened = format_duration(float(most.transaction_ns))
        yield f"The transaction that holds the locks was open for up to {opened}."
    statement = f": {short_template(most.text)}" if most.text else "."
    if most.state == IDLE:
        yield f"While others waited, it mostly waited for its client, after the statement{statement}"
    elif most.state == CPU:
        yield f"While others waited, it mostly executed the statement{statement}"
    elif most.state != PREPARED:
        yield f"While others waited, it mostly waited itself ({most.state}) in the statement{statement}"
    for waiter in most.waiters[:3]:
        what = f": {short_template(waiter.text)}" if waiter.text else "."
        yield f"{waiter.sessions:.2f} sessions wait on average for a lock of kind {waiter.event}{what}"


def _candidates(most: BlockerFacts, *, slow: bool) -> Iterator[Candidate]:
    if most.state == PREPARED:
        yield Candidate(
            "maintenance",
            "Commit or roll back the prepared transaction: pg_prepared_xacts lists its name (gid).",
            sql="SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared;",
        )
        return
    if slow and most.state == IDLE:
        yield Candidate(
            "client",
            f"Make application {most.application} do its slow work before BEGIN or after COMMIT: it "
            "pauses within the transaction while it holds the locks.",
            habit="pauses",
        )
    elif slow:
        yield Candidate(
            "client",
            "Shorten the transaction that holds the locks: move the slow statement out of it, or before the "
            "statements that lock rows.",
        )
    else:
        yield Candidate(
            "client",
            "Spread the updates over more rows, or update the contended row last in the transaction.",
        )
    yield GIVE_UP


RULE: Final = Rule("lock-wait", _find)
