"""A slow step of a client inside its transactions: a remote call, or work that needs no transaction. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.template_words import short_template
from uncork.model.units import format_duration

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import InTransaction

_PAUSE_NS: Final = 50_000_000
"""Shortest pause of a slow step. An application builds its next statement within a few milliseconds, and a
round trip between continents takes less than a quarter of a second; a pause of this length in a data centre
is a remote call, a computation, or a person."""
_MOST_NS: Final = 30_000_000_000
"""Longest pause of a step. A longer one is a forgotten transaction."""
_SAMPLES: Final = 10
SHARE: Final = 0.5
"""Fewest samples of a step, and its fraction of the busy time: sessions of a pool are then mostly held by
transactions that wait for their own client."""
SESSIONS: Final = 0.5
SHORTER_PROOF: Final = (
    "Record the sessions of a log (`uncork capture --sessions`), and send them to a copy with and without "
    "`--short-transactions`; after the change, less time must be idle in transaction."
)
"""How to prove shorter transactions before the application is changed."""


def _find(seen: Evidence) -> Iterator[Finding]:
    transactions = () if seen.database is None else seen.database.transactions
    by_client: dict[tuple[str, str], list[InTransaction]] = {}
    for transaction in transactions:
        if _PAUSE_NS <= transaction.gap_ns <= _MOST_NS and transaction.samples >= _SAMPLES:
            by_client.setdefault((transaction.application, transaction.user), []).append(transaction)
    for (application, user), found in by_client.items():
        found.sort(key=lambda one: -one.sessions)
        top, who = found[0], application or user
        bill = seen.bill(
            partial(
                _paused, templates=[transaction.template for transaction in found], application=application
            )
        )
        if bill.seconds_per_hour < SESSIONS * 3600:
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
            candidates=(step_candidate(who),),
            proof=SHORTER_PROOF,
        )


def step_candidate(who: str) -> Candidate:
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


RULE: Final = Rule("slow-step-in-transaction", _find, least_share=SHARE)
