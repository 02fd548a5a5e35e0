"""A slow step of a client inside its transactions: a remote call, or work that needs no transaction. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.clients.forgotten_transaction import OLD_HELD, OLD_IDLE_NS, idle_candidates
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.log import LogResult, TransactionFacts
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import InTransaction

_PAUSE_NS: Final = 50_000_000
"""Shortest pause of a slow step. An application builds its next statement within a few milliseconds, and a
round trip between continents takes less than a quarter of a second; a pause of this length in a data centre
is a remote call, a computation, or a person."""
_MOST_NS: Final = 30_000_000_000
"""Longest pause of a step. A longer one is a forgotten transaction."""
_SAMPLES: Final = 10
_SHARE: Final = 0.5
"""Fewest samples of a step, and its fraction of the busy time: sessions of a pool are then mostly held by
transactions that wait for their own client."""
_SESSIONS: Final = 0.5
_SHORTER_PROOF: Final = (
    "Record the sessions of a log (`uncork capture --sessions`), and send them to a copy with and without "
    "`--short-transactions`; after the change, less time must be idle in transaction."
)
"""How to prove shorter transactions before the application is changed."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    transactions = () if evidence.database is None else evidence.database.transactions
    by_client: dict[tuple[str, str], list[InTransaction]] = {}
    for transaction in transactions:
        if _PAUSE_NS <= transaction.gap_ns <= _MOST_NS and transaction.samples >= _SAMPLES:
            by_client.setdefault((transaction.application, transaction.user), []).append(transaction)
    for (application, user), found in by_client.items():
        found.sort(key=lambda one: -one.sessions)
        top, who = found[0], application or user
        bill = evidence.bill(
            partial(
                _paused, templates=[transaction.template for transaction in found], application=application
            )
        )
        if bill.seconds_per_hour < _SESSIONS * 3600:
            continue
        pause = format_duration(float(f"{top.gap_ns:.2g}"))
        statement = f": {short_template(top.text)}" if top.text else "."
        yield Finding(
            RULE.name,
            f"Application {who} pauses for {pause} inside its transactions",
            objects=(who,),
            bill=bill,
            templates=tuple(
                transaction.template for transaction in found if transaction.template is not None
            ),
            statement=top.text,
            evidence=(
                f"The client typically sends its next statement {pause} after this one{statement}",
                f"Such a transaction takes {format_duration(float(f'{top.length_ns:.2g}'))} on average.",
                "Meanwhile it keeps its locks, a connection of the pool, and dead rows from VACUUM.",
            ),
            candidates=(_candidate(who),),
            proof=_SHORTER_PROOF,
        )


def _candidate(who: str) -> Candidate:
    """Return what to do about a slow step of an application."""
    return Candidate(
        "client",
        f"Move what application {who} does between these statements (a remote call, a computation) before "
        "BEGIN or after COMMIT.",
        habit="pauses",
        against=("What is read before BEGIN can change until the transaction begins.",),
    )


def _paused(piece: Piece, *, templates: list[int | None], application: str) -> float:
    return float(
        piece.wait_class == IDLE and piece.application == application and piece.template in templates
    )


RULE: Final = Rule("slow-step-in-transaction", _find, least_share=_SHARE)


# ---- the same in a log, which shows forgotten transactions too ----


_FORGOTTEN: Final = "forgotten-transaction"


def _find_in_log(evidence: Evidence) -> Iterator[Finding]:
    """A watched server shows shorter pauses, and after which statement they are, so it is asked instead.

    A log has the mean of pauses below a second, but slow clients and networks pause before each statement.
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
            yield _forgotten(transaction, who, on, held)
        bill = evidence.bill_of_seconds(transaction.pause_ns / 1e9)
        if bill.seconds_per_hour >= _SESSIONS * 3600:
            longest = format_duration(float(transaction.pause_max_ns))
            yield Finding(
                RULE.name,
                f"Application {who}{on} pauses for up to {longest} inside its transactions",
                objects=(who,),
                bill=bill,
                evidence=(
                    f"{count_words(transaction.count, 'transaction')} waited for it in "
                    f"{count_words(transaction.pauses, 'pause')} of over a second, "
                    f"{format_duration(transaction.pause_ns)} in all.",
                    "Meanwhile they keep their locks, a connection of the pool, and dead rows from VACUUM.",
                ),
                candidates=(_candidate(who),),
                proof=_SHORTER_PROOF,
            )


def _share(server: str, log: LogResult) -> float:
    """Return the fraction of all executions that a server ran; 1 unless there are several."""
    count = next(
        (log_server.executions for log_server in log.servers if log_server.name == server),
        log.executions.count,
    )
    return count / max(1, log.executions.count)


def _forgotten(transaction: TransactionFacts, who: str, on: str, held: float) -> Finding:
    longest = format_duration(float(transaction.pause_max_ns))
    return Finding(
        _FORGOTTEN,
        f"Application {who}{on} left a transaction idle for {longest}",
        objects=(who,),
        bill=None,
        cost="dead rows that stay",
        evidence=(
            f"VACUUM cannot remove the rows that about {format_count(round(held))} later transactions left "
            "dead.",
        ),
        candidates=idle_candidates(who),
        proof="Profile a new log after the change: no transaction may pause for so long.",
    )


IN_LOG: Final = Rule("slow-step-in-transaction", _find_in_log, least_share=_SHARE)
