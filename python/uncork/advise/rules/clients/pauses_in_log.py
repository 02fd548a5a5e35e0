"""Transactions that wait for their client, as logs show them: a slow step, or a forgotten one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.clients.forgotten_transaction import OLD_HELD, OLD_IDLE_NS, idle_candidates
from uncork.advise.rules.clients.slow_step import SESSIONS, SHARE, SHORTER_PROOF, step_candidate
from uncork.model.database.finding import Finding
from uncork.model.results.log import LogResult, TransactionFacts
from uncork.model.units import count_words, format_count, format_duration

_STEP: Final = "slow-step-in-transaction"
_FORGOTTEN: Final = "forgotten-transaction"


def _find(seen: Evidence) -> Iterator[Finding]:
    """A watched server shows shorter pauses, and after which statement they are, so it is asked instead.

    A log has the mean of pauses below a second, but slow clients and networks pause before each statement.
    """
    if seen.log is None or seen.database is not None:
        return
    for transaction in seen.log.transactions:
        who = transaction.application or transaction.user
        on = f" on server {transaction.server}" if seen.log.servers else ""
        commits = (seen.rates.commits if seen.rates else 0.0) * _share(transaction.server, seen.log)
        held = commits * transaction.pause_max_ns / 1e9
        if transaction.pause_max_ns >= OLD_IDLE_NS and held >= OLD_HELD:
            yield _forgotten(transaction, who, on, held)
        bill = seen.bill_of_seconds(transaction.pause_ns / 1e9)
        if bill.seconds_per_hour >= SESSIONS * 3600:
            longest = format_duration(float(transaction.pause_max_ns))
            yield Finding(
                _STEP,
                f"Application {who}{on} pauses for up to {longest} inside its transactions",
                objects=(who,),
                bill=bill,
                evidence=(
                    f"{count_words(transaction.count, 'transaction')} waited for it in "
                    f"{count_words(transaction.pauses, 'pause')} of over a second, "
                    f"{format_duration(transaction.pause_ns)} in all.",
                    "Meanwhile they keep their locks, a connection of the pool, and dead rows from VACUUM.",
                ),
                candidates=(step_candidate(who),),
                proof=SHORTER_PROOF,
            )


def _share(server: str, log: LogResult) -> float:
    """Return the fraction of all executions that a server ran; 1 unless there are several."""
    count = next(
        (log_server.executions for log_server in log.servers if log_server.name == server),
        log.executions.count,
    )
    return count / max(1, log.executions.count)


def _forgotten(one: TransactionFacts, who: str, on: str, held: float) -> Finding:
    longest = format_duration(float(one.pause_max_ns))
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


RULE: Final = Rule(_STEP, _find, least_share=SHARE)
