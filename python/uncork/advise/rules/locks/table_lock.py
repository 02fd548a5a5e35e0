"""Locks of whole tables: LOCK TABLE, DDL and maintenance that let other sessions wait. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.changes import session_setting
from uncork.advise.evidence import Evidence, grouped
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.locks.causes import LONG_NS, Cause, blockers_by_cause, holds_ns
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal, sql_name
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_NAME: Final = r"((?:\"[^\"]+\"|[\w$]+)(?:\.(?:\"[^\"]+\"|[\w$]+))?)"
_LOCKS: Final = (
    ("LOCK TABLE", re.compile(rf"lock\s+(?:table\s+)?(?:only\s+)?{_NAME}", re.I)),
    (
        "CREATE INDEX",
        re.compile(
            r"create\s+(?:unique\s+)?index\s+(?!concurrently)(?:if\s+not\s+exists\s+)?"
            rf"(?:(?!on\s)\S+\s+)?on\s+(?:only\s+)?{_NAME}",
            re.I,
        ),
    ),
    (
        "VACUUM FULL",
        re.compile(rf"vacuum\s+(?:\([^)]*\bfull\b[^)]*\)|full(?:\s+verbose|\s+analyze)*)\s*{_NAME}?", re.I),
    ),
    ("CLUSTER", re.compile(rf"cluster\s+(?:verbose\s+|\([^)]*\)\s*)?{_NAME}?", re.I)),
    (
        "REINDEX",
        re.compile(
            rf"reindex\s+(?:\([^)]*\)\s*)?(?:table|index|schema|database)\s+(?!concurrently){_NAME}", re.I
        ),
    ),
    (
        "REFRESH MATERIALIZED VIEW",
        re.compile(rf"refresh\s+materialized\s+view\s+(?!concurrently){_NAME}", re.I),
    ),
    ("ALTER TABLE", re.compile(rf"alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?{_NAME}", re.I)),
    ("TRUNCATE", re.compile(rf"truncate\s+(?:table\s+)?(?:only\s+)?{_NAME}", re.I)),
    ("DROP", re.compile(rf"drop\s+(?:table|index|trigger\s+\S+\s+on)\s+(?:if\s+exists\s+)?{_NAME}", re.I)),
    ("CREATE TRIGGER", re.compile(rf"create\s+.*?trigger\s.*?\son\s+{_NAME}", re.I | re.DOTALL)),
)
"""Commands that lock a table against writers, or against readers too (PostgreSQL's manual, "Table-Level
Locks")."""
_MODE: Final = re.compile(r"\s+in\s+([\w ]+?)\s+mode\b.*$", re.I | re.DOTALL)


@dataclass(frozen=True)
class TableLock:
    """A command that locks a table, and the transactions that block others. `text` is its template.

    `queues` is true if the command itself waits for a long transaction, and others wait behind it.
    """

    command: str
    table: str
    template: int
    text: str
    queues: bool
    blockers: tuple[BlockerFacts, ...]
    bill: Bill


def table_locks(evidence: Evidence) -> list[TableLock]:
    """Return the commands whose locks of tables other sessions wait for, the costliest first."""
    blockers = blockers_by_cause(evidence).get(Cause.TABLE, ())
    found = [(lock, blocker) for blocker in blockers if (lock := _lock_of(blocker, evidence)) is not None]
    locks = []
    for template, same in grouped(found, lambda pair: pair[0][2]).items():
        command, table, _, queues = same[0][0]
        behind = tuple(blocker for _, blocker in same)
        bill = evidence.bill_of_waiting("Lock", sum(blocker.sessions for blocker in behind))
        if worth(bill):
            text = evidence.statements[template].sql or evidence.statements[template].text
            locks.append(TableLock(command, table, template, text, queues, behind, bill))
    return sorted(locks, key=lambda lock: -lock.bill.share)


def _lock_of(blocker: BlockerFacts, evidence: Evidence) -> tuple[str, str, int, bool] | None:
    """Return the command, the table and the template of the lock that sessions wait for.

    It is what the blocker executes; else what waits at the head of the queue behind it; else an explicit
    LOCK that was counted, because the blocker goes on with its transaction after it.
    """
    if blocker.template is not None and (lock := locking_command(blocker.text)) is not None:
        return (*lock, blocker.template, False)
    for waiter in blocker.waiters:
        lock = locking_command(waiter.text) if waiter.event == "relation" else None
        if waiter.template is not None and lock is not None:
            return (*lock, waiter.template, (holds_ns(blocker, evidence) or 0.0) >= LONG_NS)
    ranked = sorted(evidence.statements.values(), key=lambda each: -(each.calls or 0))
    explicit = ((each, locking_command(each.text)) for each in ranked)
    for each, lock in explicit:
        if lock is not None and lock[0] == "LOCK TABLE" and _touches(blocker, lock[1]):
            return (*lock, each.number, False)
    return None


def _touches(blocker: BlockerFacts, table: str) -> bool:
    """Return whether those who wait, or the blocker, use a table, as far as their statements are known."""
    name = re.compile(rf"(?<![\w$]){re.escape(table.rpartition('.')[2])}(?![\w$])")
    return any(
        name.search(text.replace('"', ""))
        for text in (blocker.text, *(waiter.text for waiter in blocker.waiters))
    )


def locking_command(text: str) -> tuple[str, str] | None:
    """Return the command by which a statement locks a table, and the table; None if it locks none."""
    for command, pattern in _LOCKS:
        match = pattern.match(text.lstrip())
        if match is not None:
            return command, (match[1] or "").replace('"', "").removeprefix("public.")
    return None


def _find(evidence: Evidence) -> Iterator[Finding]:
    for lock in table_locks(evidence):
        most = max(lock.blockers, key=lambda blocker: blocker.sessions)
        table = lock.table or "a table"
        sessions = "1 session" if most.most == 1 else f"up to {format_count(most.most)} sessions"
        waits = " waits for a long transaction and" if lock.queues else ""
        headline = f"{lock.command} on {table}{waits} blocks {sessions}"
        yield RULE.finding(
            headline,
            objects=(table,),
            bill=lock.bill,
            statements=evidence.chosen([lock.template]),
            evidence=_evidence(lock, most),
            candidates=lock_candidates(lock),
            proof="Compare both ways with uncork run, with as many clients as wait now.",
        )


def _evidence(lock: TableLock, most: BlockerFacts) -> Iterator[str]:
    held = sum(blocker.sessions for blocker in lock.blockers)
    yield f"On average {held:.2f} sessions wait for it."
    if most.transaction_ns is not None:
        opened = format_duration(float(most.transaction_ns))
        holder = "The transaction that it waits for" if lock.queues else "The transaction that locks it"
        yield f"{holder} was open for up to {opened}."
    if lock.queues and most.text:
        who = f"application {most.application}"
        yield f"The long transaction of {who} last executed: {short_template(most.text)}"
    for waiter in most.waiters[:3]:
        if waiter.text and waiter.template != lock.template:
            yield f"{waiter.sessions:.2f} sessions wait on average in: {short_template(waiter.text)}"


def lock_candidates(lock: TableLock) -> Iterator[Candidate]:
    """Yield what to do about a command that locks a table."""
    text = lock.text.rstrip("; ")
    timeout = session_setting("lock_timeout", "'2s'").candidate(
        f"Set a lock_timeout before {lock.command}, and retry it later if it fails.",
        "The command fails if it cannot get its lock in time, so it must be retried.",
    )
    if lock.queues:
        yield timeout
        yield Candidate("client", "Shorten the long transaction that the command waits for.")
        return
    if lock.command == "LOCK TABLE":
        yield Candidate(
            "statement",
            "Lock only the rows that the transaction changes, with SELECT ... FOR UPDATE.",
            against=("Rows that do not exist yet are not locked: a unique constraint must guard those.",),
        )
        yield Candidate(
            "statement",
            "If the lock only keeps this job from running twice, take an advisory lock, which blocks no "
            "statement on the table.",
            sql=f"SELECT pg_advisory_xact_lock(hashtext({literal(lock.table)}));",
            against=("All programs that relied on LOCK TABLE must take the same advisory lock.",),
        )
        mode = _MODE.search(text)
        if mode is None or mode[1].lower().startswith("access"):
            yield Candidate(
                "statement",
                "If the lock must stay, use a weaker mode: EXCLUSIVE still lets others read.",
                sql=f"{_MODE.sub('', text)} IN EXCLUSIVE MODE;",
                undo=f"{text};",
                against=("Readers see the rows as they were before the transaction.",),
            )
        return
    concurrent = {
        "CREATE INDEX": r"(\bindex\s+)",
        "REINDEX": r"(\b(?:table|index|schema|database)\s+)",
        "REFRESH MATERIALIZED VIEW": r"(view\s+)",
    }.get(lock.command)
    if concurrent:
        needs = {"REFRESH MATERIALIZED VIEW": ("The view needs a unique index on plain columns.",)}
        yield Candidate(
            "ddl",
            "Add CONCURRENTLY: then other sessions can read and write meanwhile.",
            sql=re.sub(concurrent, r"\1CONCURRENTLY ", text, count=1, flags=re.I) + ";",
            against=(
                *needs.get(
                    lock.command,
                    ("It cannot run in a transaction, and leaves an invalid index if it fails.",),
                ),
                "It takes longer.",
            ),
        )
    elif lock.command in ("VACUUM FULL", "CLUSTER"):
        yield Candidate(
            "maintenance",
            "Run plain VACUUM instead, which lets others read and write. If the table must shrink, use "
            "pg_repack, or a maintenance window.",
            sql=f"VACUUM (ANALYZE) {sql_name(lock.table)};" if lock.table else "VACUUM (ANALYZE);",
        )
    elif lock.command == "TRUNCATE":
        yield Candidate(
            "statement",
            "If the table has few rows, DELETE them: then readers need not wait.",
            sql=f"DELETE FROM {sql_name(lock.table)};",  # noqa: S608 -- text for people
            against=("DELETE leaves dead rows for VACUUM.",),
        )
    elif lock.command == "ALTER TABLE":
        yield Candidate(
            "ddl",
            "Split the change: add constraints with NOT VALID and VALIDATE them later, add columns without "
            "a volatile default, and rewrite rows in batches.",
        )
    yield timeout


RULE: Final = Rule("explicit-table-lock", _find)
