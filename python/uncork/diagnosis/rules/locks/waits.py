"""Sessions that wait for locks of another transaction: of tables, of rows, or for one another. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import client_change, ddl_change, maintenance, session_setting, statement_change
from uncork.diagnosis.evidence import Evidence, grouped
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.locks.hot_row import (
    GIVE_UP,
    LONG_NS,
    PREPARED,
    Cause,
    blockers_by_cause,
    doing,
    holds_ns,
    hot_rows,
)
from uncork.diagnosis.rules.server import on_servers, servers_of
from uncork.diagnosis.rules.writes.written import written
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal, quoted, sql_name
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.log import Blocking, ErrorFacts
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

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
"""Commands that lock a table against writers, or against readers too (PostgreSQL's manual,
"Table-Level Locks")."""
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

    It is what the blocker executes; else what waits at the head of the queue behind it; else an
    explicit LOCK that was counted, because the blocker goes on with its transaction after it.
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


@rule("explicit-table-lock")
def find_table_locks(evidence: Evidence) -> Iterator[Finding]:
    """Find locks of whole tables: LOCK TABLE, DDL and maintenance that let other sessions wait."""
    for lock in table_locks(evidence):
        most = max(lock.blockers, key=lambda blocker: blocker.sessions)
        table = lock.table or "a table"
        sessions = "1 session" if most.most == 1 else f"up to {format_count(most.most)} sessions"
        waits = " waits for a long transaction and" if lock.queues else ""
        headline = f"{lock.command} on {table}{waits} blocks {sessions}"
        yield finding(
            headline,
            *lock_candidates(lock),
            objects=(table,),
            bill=lock.bill,
            statements=evidence.chosen([lock.template]),
            evidence=_table_lock_evidence(lock, most),
            proof="Compare both ways with uncork run, with as many clients as wait now.",
        )


def _table_lock_evidence(lock: TableLock, most: BlockerFacts) -> Iterator[str]:
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
        yield client_change("Shorten the long transaction that the command waits for.")
        return
    if lock.command == "LOCK TABLE":
        yield statement_change(
            "Lock only the rows that the transaction changes, with SELECT ... FOR UPDATE.",
            "Rows that do not exist yet are not locked: a unique constraint must guard those.",
        )
        yield statement_change(
            "If the lock only keeps this job from running twice, take an advisory lock, which "
            "blocks no statement on the table.",
            "All programs that relied on LOCK TABLE must take the same advisory lock.",
            sql=f"SELECT pg_advisory_xact_lock(hashtext({literal(lock.table)}));",
        )
        mode = _MODE.search(text)
        if mode is None or mode[1].lower().startswith("access"):
            yield statement_change(
                "If the lock must stay, use a weaker mode: EXCLUSIVE still lets others read.",
                "Readers see the rows as they were before the transaction.",
                sql=f"{_MODE.sub('', text)} IN EXCLUSIVE MODE;",
                undo=f"{text};",
            )
        return
    concurrent = {
        "CREATE INDEX": r"(\bindex\s+)",
        "REINDEX": r"(\b(?:table|index|schema|database)\s+)",
        "REFRESH MATERIALIZED VIEW": r"(view\s+)",
    }.get(lock.command)
    if concurrent:
        needs = {"REFRESH MATERIALIZED VIEW": ("The view needs a unique index on plain columns.",)}
        yield ddl_change(
            "Add CONCURRENTLY: then other sessions can read and write meanwhile.",
            *needs.get(
                lock.command,
                ("It cannot run in a transaction, and leaves an invalid index if it fails.",),
            ),
            "It takes longer.",
            sql=re.sub(concurrent, r"\1CONCURRENTLY ", text, count=1, flags=re.I) + ";",
        )
    elif lock.command in ("VACUUM FULL", "CLUSTER"):
        yield maintenance(
            "Run plain VACUUM instead, which lets others read and write. If the table must shrink, "
            "use pg_repack, or a maintenance window.",
            sql=f"VACUUM (ANALYZE) {sql_name(lock.table)};" if lock.table else "VACUUM (ANALYZE);",
        )
    elif lock.command == "TRUNCATE":
        yield statement_change(
            "If the table has few rows, DELETE them: then readers need not wait.",
            "DELETE leaves dead rows for VACUUM.",
            sql=f"DELETE FROM {sql_name(lock.table)};",  # noqa: S608 -- text for people
        )
    elif lock.command == "ALTER TABLE":
        yield ddl_change(
            "Split the change: add constraints with NOT VALID and VALIDATE them later, add columns "
            "without a volatile default, and rewrite rows in batches."
        )
    yield timeout


_SHORT_SHARE: Final = 0.5
"""Fraction of the busy time spent waiting behind short transactions. Row locks exist so that sessions take
turns; from half on, the queue costs more than the work, and removing it could double the throughput."""


@rule("lock-wait")
def find_lock_waits(evidence: Evidence) -> Iterator[Finding]:
    """Find sessions that queue for the locks of another one's transaction.

    Transactions of another finding (forgotten ones, loops, locks of tables, hot rows) are left to it.
    """
    causes = blockers_by_cause(evidence)
    long = list(causes.get(Cause.LONG, ()))
    short = [] if hot_rows(evidence) else list(causes.get(Cause.SHORT, ()))
    tables = [] if table_locks(evidence) else list(causes.get(Cause.TABLE, ()))
    others = [*long, *short, *tables]
    if not others:
        return
    every = [blocker for blockers in causes.values() for blocker in blockers]
    reported = sum(blocker.sessions for blocker in every) - sum(blocker.sessions for blocker in others)
    bill = evidence.bill_of_waiting("Lock", max(0.0, evidence.of_class("Lock") - reported))
    most = max(others, key=lambda blocker: blocker.sessions)
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
    yield finding(
        headline,
        *_candidates(most, slow=slow),
        objects=(most.application or most.user,),
        bill=bill,
        templates=[most.template],
        text=most.text,
        evidence=_evidence(most),
        proof="Compare both orders or lengths of the transaction with uncork run, under as many clients.",
    )


def _evidence(most: BlockerFacts) -> Iterator[str]:
    if most.transaction_ns is not None:
        opened = format_duration(float(most.transaction_ns))
        yield f"The transaction that holds the locks was open for up to {opened}."
    if most.state != PREPARED:
        then = doing(most, "waited for its client, after", "executed", "waited itself")
        yield f"While others waited, it mostly {then}"
    for waiter in most.waiters[:3]:
        what = f": {short_template(waiter.text)}" if waiter.text else "."
        yield f"{waiter.sessions:.2f} sessions wait on average for a lock of kind {waiter.event}{what}"


def _candidates(most: BlockerFacts, *, slow: bool) -> Iterator[Candidate]:
    if most.state == PREPARED:
        yield maintenance(
            "Commit or roll back the prepared transaction: pg_prepared_xacts lists its name (gid).",
            sql="SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared;",
        )
        return
    if slow and most.state == IDLE:
        yield client_change(
            f"Make application {most.application} do its slow work before BEGIN or after COMMIT: "
            "it pauses within the transaction while it holds the locks.",
            habit="pauses",
        )
    elif slow:
        yield client_change(
            "Shorten the transaction that holds the locks: move the slow statement out of it, or "
            "before the statements that lock rows."
        )
    else:
        yield client_change(
            "Spread the updates over more rows, or update the contended row last in the transaction."
        )
    yield GIVE_UP


@rule("lock-wait")
def find_waits_in_log(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that wait for a lock of another statement, as logs show them (log_lock_waits).

    A watched server has the waits that are too short for deadlock_timeout too, so it is asked instead.
    """
    log = evidence.log
    if log is None or evidence.database is not None or log.first_us is None or log.last_us is None:
        return
    for blocking in log.blocking:
        bill = evidence.bill_of_seconds(blocking.sum_ns / 1e9)
        waiting = blocking.waiting_number
        number = None if waiting is None else evidence.log_numbers.get(waiting)
        lock = locking_command(blocking.holding_text)
        on = f" on server {blocking.server}" if log.servers else ""
        yield (
            _of_rows(blocking, number, bill, on)
            if lock is None
            else _of_table(blocking, lock, number, bill, on)
        )


def _of_rows(blocking: Blocking, number: int | None, bill: Bill, on: str) -> Finding:
    who = f"application {blocking.holding_application}" if blocking.holding_application else "another session"
    return finding(
        f"{count_words(blocking.waits, 'statement')}{on} waited for locks that {who} held",
        client_change("Shorten the transaction that holds the locks, or lock later in it."),
        GIVE_UP,
        objects=(blocking.holding_application,) if blocking.holding_application else (),
        bill=bill,
        templates=[number],
        text=blocking.waiting_text,
        evidence=_evidence_in_log(blocking),
        proof="Compare both orders or lengths of the transaction with uncork run, under as many clients.",
    )


def _of_table(
    blocking: Blocking, command: tuple[str, str], number: int | None, bill: Bill, on: str
) -> Finding:
    words, table = command
    lock = TableLock(words, table, -1, blocking.holding_text, queues=False, blockers=(), bill=bill)
    return finding(
        f"{words} on {table or 'a table'} blocks other sessions{on}",
        *lock_candidates(lock),
        objects=(table,),
        bill=bill,
        templates=[number],
        text=blocking.holding_text,
        evidence=_evidence_in_log(blocking),
        proof="Compare both ways with uncork run, with as many clients as wait now.",
        rule="explicit-table-lock",
    )


def _evidence_in_log(blocking: Blocking) -> Iterator[str]:
    yield (
        f"{count_words(blocking.waits, 'wait')} longer than deadlock_timeout took "
        f"{format_duration(float(blocking.sum_ns))} in total, at most "
        f"{format_duration(float(blocking.max_ns))}."
    )
    if blocking.waiting_text:
        yield f"Those who waited executed: {short_template(blocking.waiting_text, 90)}"
    if blocking.holding_text:
        yield f"The holder's last statement was {short_template(blocking.holding_text, 90)}"


_LEAST: Final = 3
_PER_S: Final = 0.02
"""Deadlocks in all, and per second, from which on they are no accident: more than one a minute."""
_RELATION: Final = re.compile(r"relation \"([^\"]+)\"")


def deadlocks(evidence: Evidence) -> float:
    """Return how many deadlocks the server broke up while it was watched."""
    if evidence.rates is not None:
        return evidence.rates.deadlocks * evidence.seconds
    return evidence.grown("deadlocks")


@rule("deadlock")
def find_deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Find transactions that wait for one another until the server cancels one of them.

    The server looks for a deadlock only after deadlock_timeout (1 s), so each costs that time at least.
    """
    number = round(deadlocks(evidence))
    if number < _LEAST or number / evidence.seconds < _PER_S:
        return
    causes = blockers_by_cause(evidence)
    found = causes.get(Cause.DEADLOCK, [])
    # A log has a wait that ended in a deadlock, unlike most others, which are too short for it.
    held = sum(blocker.sessions for blocker in found) if evidence.database else evidence.of_class("Lock")
    bill = evidence.bill_of_waiting("Lock", held)
    behind = found or [blocker for blockers in causes.values() for blocker in blockers]
    waiters = sorted(
        (waiter for blocker in behind for waiter in blocker.waiters), key=lambda waiter: -waiter.sessions
    )
    numbers = tuple(dict.fromkeys(waiter.template for waiter in waiters if waiter.template is not None))
    known = evidence.chosen(numbers)
    texts = [statement.text for statement in known]
    writes = [write for statement in known if (write := written(statement)) is not None]
    tables = tuple(dict.fromkeys(write.table for write in writes))
    failed = [] if evidence.log is None else [error for error in evidence.log.errors if _is_deadlock(error)]
    servers = servers_of(failed)
    if not known and failed:
        named = (_RELATION.search(error.context) for error in failed)
        tables = tuple(dict.fromkeys(match[1] for match in named if match is not None))
        texts = [error.statement for error in failed if error.statement]
    name = tables[0] if tables else "the database"
    in_all = f" in {count_words(round(evidence.seconds), 'second')}"
    keys, in_order = next((write.keys for write in writes if write.keys), ()), ""
    if tables and keys:
        key = quoted(keys[0])
        in_order = f"SELECT 1 FROM {sql_name(tables[0])} WHERE {key} = ANY ($1) ORDER BY {key} FOR UPDATE;"  # noqa: S608
    yield finding(
        f"{count_words(number, 'deadlock')}{in_all}: transactions lock rows of {name} in different orders",
        client_change(
            "Let all transactions lock rows in the same order, for example sorted by their "
            "key, before they change them.",
            sql=in_order,
        ),
        client_change("Retry transactions that fail with SQLSTATE 40P01 (deadlock_detected)."),
        objects=tables,
        bill=bill if worth(bill) else None,
        templates=numbers if worth(bill) else (),
        text=texts[0] if texts else "",
        cost="" if worth(bill) else f"{count_words(number, 'failed transaction')}",
        evidence=(
            *(f"Sessions that waited for one another were in: {short_template(text)}" for text in texts[:3]),
            *([f"The transactions failed{on_servers(servers)}."] if servers else []),
        ),
        proof="After the change, pg_stat_database.deadlocks must not grow.",
    )


def _is_deadlock(error: ErrorFacts) -> bool:
    return error.sqlstate == "40P01" or (not error.sqlstate and error.message == "deadlock detected")
