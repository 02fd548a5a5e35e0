"""Sessions of clients: opened for each request, or kept waiting inside a transaction. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import Setting, client_change
from uncork.diagnosis.evidence import Evidence, grouped
from uncork.diagnosis.rule import finding, rule, worth
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database_transactions import InTransaction
from uncork.model.results.log import LogResult
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_CPU_S: Final = 0.003
"""Processor time of the server for a connection: the process is forked and its caches are filled.
Measured: 2.8 ms for PostgreSQL 18 and 3.7 ms for PostgreSQL 15 with ``SELECT 1``, 3.6 and 4.8 ms
with a join of two catalogue tables, over 200 connections on one machine, without TLS."""
_PER_S: Final = 5.0
_COMMITS: Final = 20.0
"""Connections per second, and transactions for each of them up to which they are opened for single
requests. A pool opens a connection every few minutes."""
_HOUR_S: Final = 3600.0


@rule("connection-per-request")
def find_connections(seen: Evidence) -> Iterator[Finding]:
    """Find clients that open a connection for each request, and close it again."""
    opened = _per_second(seen, "sessions", None if seen.rates is None else seen.rates.opened)
    commits = _per_second(seen, "xact_commit", None if seen.rates is None else seen.rates.commits)
    if opened is None or opened < _PER_S or (commits or 0.0) > _COMMITS * opened:
        return
    # Sessions that are starting are not in the samples, so their time is added to the busy time.
    busy = opened * _CPU_S
    share = busy / (busy + seen.sessions)
    applications = sorted({piece.application for piece in seen.pieces if piece.application})
    who = f" by application {applications[0]}" if len(applications) == 1 else ""
    number = format_count(round(opened))
    evidence = [
        "The server starts a process for each connection, which takes about "
        f"{format_duration(_CPU_S * 1e9)} of its processor time, and the client waits for it."
    ]
    if commits:
        evidence.append(f"A connection executes {commits / opened:.1f} transactions on average.")
    yield finding(
        f"{number} connections a second are opened{who}, for few statements each",
        client_change(
            "Keep connections open in a pool of the application or its driver.",
            "Requests share sessions: what a request sets (SET, temporary tables, advisory "
            "locks) stays for the next one unless the pool resets it.",
            habit="connects",
            per_hour=opened * _HOUR_S,
        ),
        client_change(
            "Put PgBouncer (pool_mode = transaction) between the application and the server.",
            "Session state (SET, LISTEN, temporary tables, advisory locks) does not survive a transaction.",
        ),
        objects=applications,
        bill=Bill(busy * _HOUR_S, 0.5 * busy * _HOUR_S, 2 * busy * _HOUR_S, share),
        evidence=evidence,
        proof="uncork cure compares the captured statements over new and over kept connections.",
    )


def _per_second(evidence: Evidence, counter: str, known: float | None) -> float | None:
    """Return a rate of the watched database; None if the server does not count it."""
    if known is not None or evidence.database is None:
        return known
    found = [
        row.delta
        for row in evidence.database.counters
        if (row.view, row.object, row.counter) == ("pg_stat_database", evidence.database.database, counter)
    ]
    return sum(found) / evidence.seconds if found else None


FORGOTTEN_IDLE_NS: Final = 1_000_000_000
"""Pause of a forgotten transaction that others wait behind. A working client sends its next
statement within milliseconds; a second of silence is a person, a remote call or a bug."""
OLD_IDLE_NS: Final = 60_000_000_000
"""Pause of a forgotten transaction that blocks nobody. Autovacuum runs once a minute
(autovacuum_naptime): a shorter pause delays it by at most one round."""
OLD_HELD: Final = 10_000
"""Transactions begun since then. With fewer, VACUUM leaves too few dead rows behind to slow a scan."""


def forgotten(blocker: BlockerFacts) -> bool:
    """Return whether a transaction that others wait behind was left idle, instead of working."""
    idle_ns = blocker.transaction_ns if blocker.idle_ns is None else blocker.idle_ns
    return blocker.state == IDLE and (idle_ns or 0) >= FORGOTTEN_IDLE_NS


def leaves_dead_rows(transaction: InTransaction) -> bool:
    """Return whether a transaction that blocks nobody was left idle, and keeps dead rows from VACUUM."""
    return transaction.idle_ns >= OLD_IDLE_NS and (transaction.held_age or 0) >= OLD_HELD


@rule("forgotten-transaction")
def find_forgotten(evidence: Evidence) -> Iterator[Finding]:
    """Find a transaction that a client left idle: it blocks others, or keeps dead rows from VACUUM."""
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
        yield finding(
            f"Application {who} left a transaction idle for {idle}, and other sessions wait for its locks",
            *idle_candidates(who),
            objects=(who,),
            bill=bill,
            templates=[blocker.template],
            text=blocker.text,
            evidence=(
                f"On average {blocker.sessions:.2f} sessions waited behind it, at most "
                f"{blocker.most} at once."
            ),
            proof="Watch the server again after the change: no session may wait behind this application.",
        )
    for held in evidence.database.transactions:
        key = (held.application, held.user)
        if key in blocking or not leaves_dead_rows(held):
            continue
        blocking.add(key)
        later = format_count(held.held_age or 0)
        who = held.application or held.user
        yield finding(
            f"Application {who} left a transaction idle for {format_duration(float(held.idle_ns))}, so "
            f"VACUUM cannot remove the rows that {later} later transactions left dead",
            *idle_candidates(who),
            objects=(who,),
            templates=[held.template],
            text=held.text,
            cost="dead rows that stay",
            proof="After the change, pg_stat_activity.backend_xmin of its sessions must stay young.",
        )


def idle_candidates(who: str) -> tuple[Candidate, ...]:
    """Return what to do about an application that leaves transactions idle."""
    return (
        client_change(f"Make application {who} commit or roll back before it waits for anything else."),
        Setting("idle_in_transaction_session_timeout", "'30s'").candidate(
            "End forgotten transactions with idle_in_transaction_session_timeout.",
            "The server closes the connection of a client that pauses longer, with an error.",
        ),
    )


_PAUSE_NS: Final = 50_000_000
"""Shortest pause of a slow step. An application builds its next statement within a few
milliseconds, and a round trip between continents takes less than a quarter of a second; a pause of
this length in a data centre is a remote call, a computation, or a person."""
_MOST_NS: Final = 30_000_000_000
"""Longest pause of a step. A longer one is a forgotten transaction."""
_SAMPLES: Final = 10
_SHARE: Final = 0.5
"""Fewest samples of a step, and its fraction of the busy time: sessions of a pool are then mostly
held by transactions that wait for their own client."""
_SESSIONS: Final = 0.5
_SHORTER_PROOF: Final = (
    "Record the sessions of a log (`uncork capture --sessions`), and send them to a copy with and "
    "without `--short-transactions`; after the change, less time must be idle in transaction."
)
"""How to prove shorter transactions before the application is changed."""


@rule("slow-step-in-transaction", least_share=_SHARE)
def find_slow_steps(evidence: Evidence) -> Iterator[Finding]:
    """Find a slow step of a client inside its transactions, such as a remote call."""
    steps = (
        transaction
        for transaction in evidence.transactions
        if _PAUSE_NS <= transaction.gap_ns <= _MOST_NS and transaction.samples >= _SAMPLES
    )
    for (application, user), found in grouped(steps, lambda step: (step.application, step.user)).items():
        found.sort(key=lambda step: -step.sessions)
        top, who, templates = found[0], application or user, [step.template for step in found]
        bill = evidence.bill_of(templates, {IDLE}, application=application)
        if bill.seconds_per_hour < _SESSIONS * 3600:
            continue
        pause = format_duration(float(f"{top.gap_ns:.2g}"))
        statement = f": {short_template(top.text)}" if top.text else "."
        yield finding(
            f"Application {who} pauses for {pause} inside its transactions",
            _candidate(who),
            objects=(who,),
            bill=bill,
            templates=templates,
            text=top.text,
            evidence=(
                f"The client typically sends its next statement {pause} after this one{statement}",
                f"Such a transaction takes {format_duration(float(f'{top.length_ns:.2g}'))} on average.",
                "Meanwhile it keeps its locks, a connection of the pool, and dead rows from VACUUM.",
            ),
            proof=_SHORTER_PROOF,
        )


def _candidate(who: str) -> Candidate:
    return client_change(
        f"Move what application {who} does between these statements (a remote call, a computation) "
        "before BEGIN or after COMMIT.",
        "What is read before BEGIN can change until the transaction begins.",
        habit="pauses",
    )


@rule("slow-step-in-transaction", least_share=_SHARE)
def find_slow_steps_in_log(evidence: Evidence) -> Iterator[Finding]:
    """Find the same in a log, which shows forgotten transactions too.

    A watched server shows shorter pauses, and after which statement they are, so it is asked instead.

    A log has the mean of pauses below a second, but slow clients and networks pause before each
    statement.
    """
    if evidence.log is None or evidence.database is not None:
        return
    for transaction in evidence.log.transactions:
        who = transaction.application or transaction.user
        on = f" on server {transaction.server}" if evidence.log.servers else ""
        commits = (evidence.rates.commits if evidence.rates else 0.0) * _share(
            transaction.server, evidence.log
        )
        held = commits * transaction.pause_max_ns / 1e9
        if transaction.pause_max_ns >= OLD_IDLE_NS and held >= OLD_HELD:
            longest = format_duration(float(transaction.pause_max_ns))
            yield finding(
                f"Application {who}{on} left a transaction idle for {longest}",
                *idle_candidates(who),
                objects=(who,),
                cost="dead rows that stay",
                evidence=(
                    f"VACUUM cannot remove the rows that about {format_count(round(held))} later "
                    "transactions left dead."
                ),
                proof="Profile a new log after the change: no transaction may pause for so long.",
                rule="forgotten-transaction",
            )
        bill = evidence.bill_of_seconds(transaction.pause_ns / 1e9)
        if bill.seconds_per_hour >= _SESSIONS * 3600:
            longest = format_duration(float(transaction.pause_max_ns))
            yield finding(
                f"Application {who}{on} pauses for up to {longest} inside its transactions",
                _candidate(who),
                objects=(who,),
                bill=bill,
                evidence=(
                    f"{count_words(transaction.count, 'transaction')} waited for it in "
                    f"{count_words(transaction.pauses, 'pause')} of over a second, "
                    f"{format_duration(transaction.pause_ns)} in all.",
                    "Meanwhile they keep their locks, a connection of the pool, and dead rows from VACUUM.",
                ),
                proof=_SHORTER_PROOF,
            )


def _share(server: str, log: LogResult) -> float:
    """Return the fraction of all executions that a server ran; 1 unless there are several."""
    whole = log.executions.count
    return next((part.executions for part in log.servers if part.name == server), whole) / max(1, whole)
