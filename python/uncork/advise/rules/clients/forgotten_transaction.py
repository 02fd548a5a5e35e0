"""A transaction that a client left idle: it blocks others, or keeps dead rows from VACUUM. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts
    from uncork.model.results.database_transactions import InTransaction

FORGOTTEN_IDLE_NS: Final = 1_000_000_000
"""Pause of a forgotten transaction that others wait behind. A working client sends its next statement within
milliseconds; a second of silence is a person, a remote call or a bug."""
OLD_IDLE_NS: Final = 60_000_000_000
"""Pause of a forgotten transaction that blocks nobody. Autovacuum runs once a minute (autovacuum_naptime): a
shorter pause delays it by at most one round."""
OLD_HELD: Final = 10_000
"""Transactions begun since then. With fewer, VACUUM leaves too few dead rows behind to slow a scan."""


def forgotten(blocker: BlockerFacts) -> bool:
    """Return whether a transaction that others wait behind was left idle, instead of working."""
    idle_ns = blocker.transaction_ns if blocker.idle_ns is None else blocker.idle_ns
    return blocker.state == IDLE and (idle_ns or 0) >= FORGOTTEN_IDLE_NS


def leaves_dead_rows(transaction: InTransaction) -> bool:
    """Return whether a transaction that blocks nobody was left idle, and keeps dead rows from VACUUM."""
    return transaction.idle_ns >= OLD_IDLE_NS and (transaction.held_age or 0) >= OLD_HELD


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.database is None:
        return
    blocking = set()
    for blocker in evidence.database.blockers:
        bill = evidence.bill_of_waiting("Lock", blocker.sessions)
        if not forgotten(blocker) or not worth(bill):
            continue
        blocking.add((blocker.application, blocker.user))
        idle = format_duration(float(blocker.idle_ns or blocker.transaction_ns or 0))
        who = blocker.application or blocker.user
        yield Finding(
            RULE.name,
            f"Application {who} left a transaction idle for {idle}, and other sessions wait for its locks",
            objects=(who,),
            bill=bill,
            templates=() if blocker.template is None else (blocker.template,),
            statement=blocker.text,
            evidence=(
                f"On average {blocker.sessions:.2f} sessions waited behind it, at most "
                f"{blocker.most} at once.",
            ),
            candidates=idle_candidates(who),
            proof="Watch the server again after the change: no session may wait behind this application.",
        )
    for held in evidence.database.transactions:
        key = (held.application, held.user)
        if key in blocking or not leaves_dead_rows(held):
            continue
        blocking.add(key)
        later = format_count(held.held_age or 0)
        who = held.application or held.user
        yield Finding(
            RULE.name,
            f"Application {who} left a transaction idle for {format_duration(float(held.idle_ns))}, so "
            f"VACUUM cannot remove the rows that {later} later transactions left dead",
            objects=(who,),
            bill=None,
            templates=() if held.template is None else (held.template,),
            statement=held.text,
            cost="dead rows that stay",
            candidates=idle_candidates(who),
            proof="After the change, pg_stat_activity.backend_xmin of its sessions must stay young.",
        )


def idle_candidates(who: str) -> tuple[Candidate, ...]:
    """Return what to do about an application that leaves transactions idle."""
    return (
        Candidate(
            "client",
            f"Make application {who} commit or roll back before it waits for anything else.",
        ),
        Candidate(
            "setting",
            "End forgotten transactions with idle_in_transaction_session_timeout.",
            sql="ALTER SYSTEM SET idle_in_transaction_session_timeout = '30s'; SELECT pg_reload_conf();",
            undo="ALTER SYSTEM RESET idle_in_transaction_session_timeout; SELECT pg_reload_conf();",
            against=("The server closes the connection of a client that pauses longer, with an error.",),
        ),
    )


RULE: Final = Rule("forgotten-transaction", _find)
