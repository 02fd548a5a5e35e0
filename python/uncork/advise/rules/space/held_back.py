"""Dead rows that VACUUM cannot remove for a long transaction, a prepared one, a slot or a standby. Pure.

VACUUM removes only rows that are dead for everyone, so the oldest snapshot or unfinished transaction decides,
whatever it reads. The proof is a VACUUM that ran meanwhile: a table still has many rows that died before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.clients.forgotten_transaction import leaves_dead_rows
from uncork.advise.rules.space.dead_reads import dead_reads, oldest_holder, threshold
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts
    from uncork.model.results.database_transactions import HorizonHolder

_DEAD: Final = 1_000
"""Fewest dead rows of a table: fewer are a few pages."""
_ROWS: Final = 10_000
_PART: Final = 0.2
"""Dead rows, and their fraction of all rows, from which on a table is a finding although nothing reads them:
the limits of the rule about dead rows."""
_OLD: Final = 0.5
"""Part of the dead rows that must be older than the last VACUUM. The others wait for the next one."""
_SHOWN: Final = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    holder = oldest_holder(evidence)
    transactions = () if evidence.database is None else evidence.database.transactions
    if holder is None or any(
        leaves_dead_rows(transaction)
        and (transaction.application, transaction.user) == (holder.name, holder.user)
        for transaction in transactions
    ):
        return
    tables = [table for table in evidence.tables.values() if _kept(table, holder, evidence)]
    if not tables:
        return
    parts: dict[int, float] = defaultdict(float)
    for table in tables:
        for number, part in dead_reads(table, evidence).items():
            parts[number] = min(1.0, parts[number] + part)
    bill = evidence.bill_of(parts)
    many = any((table.dead or 0) >= max(_ROWS, _PART * _all(table)) for table in tables)
    if worth(bill) or many:
        tables.sort(key=lambda table: -(table.dead or 0))
        yield _finding(holder, tables, parts if worth(bill) else {}, bill, evidence)


def _all(table: TableFacts) -> int:
    return (table.live or 0) + (table.dead or 0)


def _kept(table: TableFacts, holder: HorizonHolder, evidence: Evidence) -> bool:
    """Return whether a VACUUM since the holder's beginning left dead rows that were dead before it."""
    if evidence.database is None or table.vacuumed_us is None:
        return False
    ended_us, dead = evidence.database.watch.ended_us, table.dead or 0
    if holder.open_ns is not None and table.vacuumed_us < ended_us - holder.open_ns // 1000:
        return False
    since_s = max(0.0, (ended_us - table.vacuumed_us) / 1e6)
    old = dead - (table.updated + table.deleted) / evidence.seconds * since_s
    return old >= max(_DEAD, threshold(table, evidence), _OLD * dead)


# ---- the finding ----


def _finding(
    holder: HorizonHolder, tables: list[TableFacts], parts: dict[int, float], bill: Bill, evidence: Evidence
) -> Finding:
    numbers = evidence.by_cost(parts)
    dead = sum(table.dead or 0 for table in tables)
    return Finding(
        RULE.name,
        f"VACUUM keeps dead rows of {tables[0].name} for {_who(holder)}",
        objects=(*(table.name for table in tables), holder.name or holder.user),
        bill=bill if parts else None,
        templates=tuple(numbers),
        statement=evidence.statements[numbers[0]].text if numbers else "",
        cost="" if parts else f"{format_count(dead)} dead rows that stay",
        evidence=tuple(_evidence(holder, tables, evidence)),
        candidates=tuple(_candidates(holder)),
        proof="After the change, VACUUM (VERBOSE) must report that no dead row version is kept "
        '("not yet removable").',
    )


def _who(holder: HorizonHolder) -> str:
    since = "" if holder.open_ns is None else f", open for {format_duration(float(holder.open_ns))}"
    if holder.kind == "session":
        return f"a transaction of {holder.name or holder.user}{since}"
    if holder.kind == "standby":
        return f"the oldest query on standby {holder.name}"
    if holder.kind == "prepared transaction":
        return f"prepared transaction {holder.name}{since}"
    return f"replication slot {holder.name}"


def _evidence(holder: HorizonHolder, tables: list[TableFacts], evidence: Evidence) -> Iterator[str]:
    later = count_words(holder.held_age, "transaction")
    if holder.kind == "session":
        who = f"Application {holder.name or '(unnamed)'} (role {holder.user}, process {holder.pid})"
        doing = "waited for its client" if holder.idle_ns is not None else "was working"
        after = "after" if holder.idle_ns is not None else "on"
        yield f"{who} {doing} {after}: {short_template(holder.text)}" if holder.text else f"{who} {doing}."
    elif holder.kind == "prepared transaction":
        yield f"Role {holder.user} prepared it (PREPARE TRANSACTION), and nobody has ended it."
    elif holder.kind == "replication slot":
        yield "A standby reads from the slot." if holder.active else "Nobody reads from the slot."
    yield f"{later} began since the oldest one whose dead rows VACUUM must keep for it."
    for table in tables[:_SHOWN]:
        share = share_text((table.dead or 0) / max(1, _all(table)))
        ago = _ago(table, evidence)
        yield (
            f"Table {table.name} has {format_count(table.dead or 0)} dead rows ({share} of all), "
            f"although VACUUM ran {ago} ago."
        )


def _ago(table: TableFacts, evidence: Evidence) -> str:
    ended_us = 0 if evidence.database is None else evidence.database.watch.ended_us
    return format_duration(1000.0 * max(0, ended_us - (table.vacuumed_us or 0)))


def _candidates(holder: HorizonHolder) -> Iterator[Candidate]:
    if holder.kind == "session":
        who = holder.name or holder.user
        yield Candidate(
            "client",
            f"Let application {who} work in shorter transactions, or run such reports on a standby with "
            "hot_standby_feedback = off.",
            against=("Several transactions do not see the same state of the tables.",),
        )
        yield Candidate(
            "client",
            f"If nobody needs its result, end it: SELECT pg_terminate_backend({holder.pid}).",
            against=("The transaction is rolled back, and the client gets an error.",),
        )
    elif holder.kind == "prepared transaction":
        name = literal(holder.name)
        yield Candidate(
            "client",
            f"Ask its transaction manager how it ended. Then its owner must COMMIT PREPARED {name} or "
            f"ROLLBACK PREPARED {name}.",
            against=("The wrong choice makes the databases of the transaction differ.",),
        )
    elif holder.kind == "replication slot" and not holder.active:
        yield Candidate(
            "client",
            "If its standby does not return, drop the slot: "
            f"SELECT pg_drop_replication_slot({literal(holder.name)}).",
            against=("A standby that used it can then lack WAL, and must be made again.",),
        )
    else:
        yield Candidate(
            "client",
            "End long queries on the standby, or set hot_standby_feedback = off there.",
            against=("Without feedback, the standby cancels queries that need removed rows.",),
        )


RULE: Final = Rule("vacuum-held-back", _find, depth=2)
