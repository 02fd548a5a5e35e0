"""Waits for lists that all sessions share, and for locks that stand for no table and no row. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import Setting, client_change, ddl_change, session_setting, statement_change
from uncork.diagnosis.evidence import Evidence, Piece, Statement, waits_for
from uncork.diagnosis.rule import finding, rule
from uncork.diagnosis.rules.indexes.uses import table_of
from uncork.diagnosis.rules.locks.hot_row import (
    Cause,
    blockers_by_cause,
    doing,
    holds_ns,
    hot_rows,
    notifiers,
)
from uncork.diagnosis.rules.plans.partitions import partitioned
from uncork.diagnosis.rules.space.vacuum import oldest_holder
from uncork.diagnosis.rules.writes.written import functions_of
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, series_words, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_waits_for_locks = waits_for("LWLock", "LockManager")
_PLACES: Final = 16
_JOINED: Final = {"Append", "Merge Append"}


@rule("lock-manager", depth=2)
def find_lock_manager(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that lock so many tables and indexes that sessions wait for the list of locks.

    A session notes its locks of tables in an array of its own while there is room ("fast path"): 16
    places up to PostgreSQL 17, and as many as max_locks_per_transaction since 18. All further ones
    go to a list that all sessions share. Planning a statement locks each partition that is not
    pruned, with all of its indexes.
    """
    queueing = {number for hot_row in hot_rows(evidence) for number in hot_row.statements}
    waiting = evidence.sessions_where(_waits_for_locks)
    many = {
        number: locks
        for number in waiting
        if number in evidence.statements
        and number not in queueing
        and (locks := _locks(evidence.statements[number], evidence)) > _places(evidence)
    }
    if not many:
        return
    top = evidence.statements[next(iter(many))]
    reads = Counter(table_of(node, evidence) for node in top.nodes if node.relation)
    table = max(reads, key=lambda name: reads[name])
    yield finding(
        f"Calls queue to lock {format_count(many[top.number])} tables and indexes of {table} each",
        *_fewer_locks(top, table, evidence),
        objects=(table,),
        bill=evidence.bill(lambda piece: _waits_for_locks(piece) and piece.template in many),
        statements=evidence.chosen(many),
        evidence=(
            f"On average {sum(waiting[number] for number in many):.2f} sessions wait for the list "
            "of locks, which all sessions share (LWLock LockManager).",
            f"A session can lock {_places(evidence)} tables and indexes without it.",
        ),
        proof="Compare both with uncork run, with as many clients as there are now.",
    )


def _places(evidence: Evidence) -> int:
    if evidence.major < 18:
        return _PLACES
    value = evidence.catalogue.setting("max_locks_per_transaction")
    return max(_PLACES, int(value)) if value.isdigit() else 4 * _PLACES


def _locks(statement: Statement, evidence: Evidence) -> int:
    found = 0
    for node in statement.nodes:
        if node.kind in _JOINED:
            found += node.removed_parts
        if node.relation and node.kind != "Bitmap Index Scan":
            table = table_of(node, evidence)
            found += 1 + len(evidence.indexes.get(table, evidence.indexes.get(node.relation, ())))
    return found


def _fewer_locks(statement: Statement, table: str, evidence: Evidence) -> Iterator[Candidate]:
    parts = next((each for each in partitioned(evidence) if each.table == table), None)
    removed = any(node.removed_parts for node in statement.nodes)
    if removed:
        yield session_setting("plan_cache_mode", "force_custom_plan").candidate(
            "Plan each call with its values: a generic plan locks all partitions before it skips any.",
            "Each call is planned anew.",
        )
    elif parts is not None and parts.columns:
        yield statement_change(
            f"Compare the partition key of {table} ({', '.join(parts.columns)}) with a value, so "
            "that calls lock only the partitions that they need."
        )
    if parts is not None:
        yield ddl_change(
            f"Keep fewer and larger partitions of {table}.",
            "Rows must be copied; deleting old rows by DROP TABLE becomes coarser.",
        )
    number = len(evidence.indexes.get(table, ()))
    if number > 1 and not removed:
        yield client_change(
            "Prepare the statement and let sessions keep one plan for all values: planning locks "
            "all indexes of a table, executing the plan locks only the indexes in it.",
            "A plan for all values can suit some of them badly.",
        )
    if number > 1:
        yield ddl_change(
            f"Drop indexes of {table} that nothing needs: planning locks all {format_count(number)} of them."
        )
    if evidence.major >= 18:
        yield Setting("max_locks_per_transaction", "1024", restart=True).candidate(
            "Let sessions note more locks on their own.",
            "The server must be restarted, and needs more shared memory for its list of locks.",
        )
    yield client_change("Execute fewer statements at once: share fewer connections through a pool.")


_BUFFERS: Final = ("multixact_offset_buffers", "multixact_member_buffers")
"""Sizes of the caches of these lists, settings since PostgreSQL 17."""
_WRITES: Final = frozenset({"insert", "update", "merge", "copy"})


@rule("multixacts", depth=2)
def find_multixacts(evidence: Evidence) -> Iterator[Finding]:
    """Find rows that many sessions lock together, so that they wait for the server's record of such groups.

    If several transactions lock a row in a shared mode, PostgreSQL writes a list of them (a
    multixact), and a new list for each further one. A foreign key locks the row that it refers to
    in this way. See "Multixacts and Wraparound" in its manual.
    """
    if not any(map(_waits_for_multixacts, evidence.pieces)):
        return
    statements = evidence.chosen(evidence.sessions_where(_waits_for_multixacts))
    parents = list(dict.fromkeys(table for statement in statements for table in _shared(statement, evidence)))
    where = f" of {series_words(parents[:2])}" if parents else ""
    yield finding(
        f"Many transactions at once lock the same rows{where} in shared mode",
        *_fewer_multixacts(parents, statements, evidence),
        objects=(*parents[:2],) or ("multixacts",),
        bill=evidence.bill(_waits_for_multixacts),
        statements=statements,
        evidence=(
            f"On average {evidence.sessions_in(_waits_for_multixacts):.2f} sessions wait for the "
            "server's lists of transactions that lock a row together (multixacts).",
            *(f"The foreign keys of the written tables lock rows of {name}." for name in parents[:3]),
        ),
        proof="Compare both ways with uncork run, with as many clients as there are now.",
    )


def _waits_for_multixacts(piece: Piece) -> bool:
    return piece.wait_class in ("LWLock", "IO") and piece.wait_event.lower().startswith("multixact")


def _shared(statement: Statement, evidence: Evidence) -> Iterator[str]:
    """Yield the tables whose rows a statement locks in shared mode: those of foreign keys, or its own."""
    if "share" in statement.shape.locking:
        yield from statement.tables
    if statement.shape.kind in _WRITES:
        for use in statement.shape.tables:
            if use.changed:
                yield from (key.referred for key in evidence.keys_of.get(use.name, ()))


def _fewer_multixacts(
    parents: list[str], statements: list[Statement], evidence: Evidence
) -> Iterator[Candidate]:
    rows = f"rows of {parents[0]}" if parents else "the same rows"
    yield client_change(
        f"Commit soon after a statement that refers to {rows}: fewer transactions then lock a row at once."
    )
    yield client_change(
        "Let one session write all rows that refer to the same row, many with one statement: each "
        "transaction locks it once.",
        "Writers must hand their rows over, for example through a queue.",
    )
    if any("share" in statement.shape.locking for statement in statements):
        yield statement_change(
            "Read without FOR SHARE where the row need not stay as it is until COMMIT.",
            "Another transaction can change the row meanwhile.",
            same_answers=False,
        )
    larger = [Setting(name, "'8MB'", restart=True) for name in _BUFFERS if evidence.catalogue.setting(name)]
    if larger:
        yield Candidate(
            "setting",
            "Enlarge the caches of these lists, which eases the waits.",
            sql=" ".join(setting.sql for setting in larger),
            undo=" ".join(setting.undo for setting in larger),
            against=("The server must be restarted.",),
        )


_LISTED: Final = 64
_waits_for_subtransactions = waits_for(
    "LWLock", "SubtransSLRU", "SubtransBuffer", "SubtransControlLock", "subtrans"
)
"""Waits for the cache of subtransactions and its pages, since PostgreSQL 13."""
_SAVEPOINT: Final = re.compile(r"(?:savepoint|release)\b")
_HANDLES: Final = re.compile(r"\bexception\s+when\b", re.IGNORECASE)


@rule("subtransactions", depth=2)
def find_subtransactions(evidence: Evidence) -> Iterator[Finding]:
    """Find snapshots that overflow with subtransactions, so that sessions search a common cache for them.

    A session lists at most 64 unfinished subtransactions (PGPROC_MAX_CACHED_SUBXIDS). Beyond it, all
    others look up the parent of each transaction number that they meet, in a small cache with few locks,
    as long as a snapshot is older than the subtransactions. See "Subtransactions" in PostgreSQL's manual.
    """
    if not any(map(_waits_for_subtransactions, evidence.pieces)):
        return
    who, functions = _application(evidence), _functions(evidence)
    source = f"application {who}" if who else f"function {functions[0]}" if functions else "transactions"
    yield finding(
        f"Sessions wait to look up subtransactions: {source} has more than {_LISTED} in a transaction",
        *_fewer_subtransactions(who, functions, evidence),
        objects=(who or (functions[0] if functions else "savepoints"),),
        bill=evidence.bill(_waits_for_subtransactions),
        statements=evidence.chosen(evidence.sessions_where(_waits_for_subtransactions)),
        evidence=_evidence(evidence),
        against=(
            "The time in which sessions look up subtransactions without waiting is not part of the cost.",
        ),
        proof="Compare the transactions with and without savepoints with uncork run, beside a "
        "transaction that stays open.",
    )


def _application(evidence: Evidence) -> str:
    """Return the application that spends most time in transactions with savepoints; empty if none does."""
    users: dict[str, float] = defaultdict(float)
    for piece in evidence.pieces:
        statement = evidence.statement(piece.template)
        if statement is not None and _SAVEPOINT.match(statement.text):
            users[piece.application or piece.user] += piece.sessions
    return max(users, key=lambda name: users[name], default="")


def _functions(evidence: Evidence) -> list[str]:
    """Return the functions that handle exceptions, which begin a subtransaction each time."""
    found = [
        function.name
        for statement in evidence.costliest()
        for function in functions_of(statement, evidence)
        if _HANDLES.search(function.source)
    ]
    return list(dict.fromkeys(found))


def _evidence(evidence: Evidence) -> Iterator[str]:
    waiting = evidence.sessions_in(_waits_for_subtransactions)
    yield f"On average {waiting:.2f} sessions wait for the server's cache of subtransactions."
    made = sum(
        statement.calls or 0
        for statement in evidence.statements.values()
        if statement.text.startswith("savepoint")
    )
    if made:
        yield f"Sessions set {format_count(round(made / evidence.seconds))} savepoints a second."
    holder = oldest_holder(evidence)
    if holder is not None and holder.open_ns:
        opened = format_duration(float(holder.open_ns))
        yield (
            f"The oldest open transaction ({holder.name or holder.user or holder.kind}) is "
            f"{opened} old: the longer it stays open, the more subtransactions others look up."
        )


def _fewer_subtransactions(who: str, functions: list[str], evidence: Evidence) -> Iterator[Candidate]:
    if who or not functions:
        name = f"application {who}" if who else "applications"
        yield client_change(
            f"Let {name} set no savepoint for each row: have one for many statements, or none, and "
            "avoid expected errors with INSERT ... ON CONFLICT.",
            "Without a savepoint, an error ends the whole transaction, which must then be repeated.",
        )
    for name in functions[:1]:
        yield ddl_change(
            f"Rewrite function {name} without EXCEPTION: each execution of such a block begins a "
            "subtransaction. Use INSERT ... ON CONFLICT, or test before."
        )
    yield Setting("idle_in_transaction_session_timeout", "'30s'").candidate(
        "End transactions that stay open: sessions look up only subtransactions that are younger "
        "than the oldest open transaction.",
        "Sessions that are idle in a transaction for longer are disconnected.",
    )
    if evidence.catalogue.setting("subtransaction_buffers"):
        yield Setting("subtransaction_buffers", "'32MB'", restart=True).candidate(
            "Enlarge the cache of subtransactions, which eases the waits if it is too small.",
            "The server must be restarted.",
        )


# ---- locks that stand for no table and no row: advisory locks, and that of commits with NOTIFY ----


_SHARE: Final = 0.4
"""Fraction of the busy time: as for rows that are locked, since advisory locks exist to let
sessions take turns."""
_TURNS: Final = 20
"""Fewest calls that show that the lock changes hands."""
_HOLDERS: Final = 3
"""Sessions that held it while others waited: the same, if nobody counted the calls."""
_waits_for_advisory_lock = waits_for("Lock", "advisory")


@rule("advisory-lock", depth=2, least_share=_SHARE)
def find_advisory(evidence: Evidence) -> Iterator[Finding]:
    """Find advisory locks for which sessions queue: the application lets them take turns.

    A session that waits for its turn to lead, such as the spare one of two schedulers, waits as
    long as the other one works. That is no fault, so the lock must change hands.
    """
    behind = sorted(
        blockers_by_cause(evidence).get(Cause.ADVISORY, ()), key=lambda blocker: -blocker.sessions
    )
    bill, statements = evidence.bill(_waits_for_advisory_lock), _waiting(_waits_for_advisory_lock, evidence)
    calls = sum(statement.calls or 0 for statement in statements)
    if not behind or not statements:
        return
    if calls < _TURNS and max(blocker.processes for blocker in behind) < _HOLDERS:
        return
    most = max(blocker.most for blocker in behind)
    who = behind[0].application or behind[0].user
    yield finding(
        f"{f'Up to {most} sessions at once queue' if most > 1 else 'Sessions queue'} for an "
        f"advisory lock of {f'application {who}' if who else 'another session'}",
        *_shorter_turns(behind[0], " ".join(statement.text for statement in statements)),
        objects=(who or "advisory lock",),
        bill=bill,
        statements=statements,
        evidence=_advisory_evidence(behind[0], calls, bill.share, evidence),
        proof="Compare both ways with uncork run, with as many clients as queue now.",
    )


def _waiting(matches: Callable[[Piece], bool], evidence: Evidence) -> list[Statement]:
    found = evidence.chosen({piece.template for piece in filter(matches, evidence.pieces)})
    return sorted(found, key=lambda statement: -evidence.busy(statement.number, {"Lock"}))


def _advisory_evidence(holder: BlockerFacts, calls: int, share: float, evidence: Evidence) -> Iterator[str]:
    yield f"Sessions spend {share_text(share)} of their time waiting for advisory locks."
    if calls:
        yield f"They take such a lock {format_count(round(calls / evidence.seconds))} times a second."
    held = holds_ns(holder, evidence)
    if held is not None:
        yield f"A session holds it for about {format_duration(float(f'{held:.1g}'))}."
    now = doing(holder, "waits for its client, after", "executes", "waits itself")
    yield f"Meanwhile it mostly {now}"


def _shorter_turns(holder: BlockerFacts, text: str) -> Iterator[Candidate]:
    yield client_change(
        "Give each object a lock of its own: make the key from the object's key, for example "
        "hashtextextended(name, 0), so that only sessions with the same object take turns.",
        "Work that must exclude all other work still needs one common key.",
    )
    slow = "does its slow work" if holder.state == IDLE else "executes its slow statements"
    until = "COMMIT" if "_xact_" in text else "pg_advisory_unlock"
    yield client_change(
        f"Take the lock later and release it sooner: see that the application {slow} before the "
        f"lock or after {until}."
    )
    lock = "advisory_xact_lock" if "_xact_" in text else "advisory_lock"
    yield client_change(
        f"Call pg_try_{lock} instead of pg_{lock} where another session does the same work anyway, "
        "and go on with other work if it returns false.",
        "The application must handle the work that it did not get to do.",
        same_answers=False,
    )
    yield client_change(
        "If the lock only keeps two sessions from inserting the same row, let a unique constraint "
        "do it: INSERT ... ON CONFLICT DO NOTHING."
    )


_waits_to_commit = waits_for("Lock", "object")
_OWN_FLUSH: Final = 0.5
"""Flushes that a commit waits for besides its own, if commits share them: on average half of the
one that is in progress when it begins."""


@rule("notify-commits", depth=2)
def find_notify(evidence: Evidence) -> Iterator[Finding]:
    """Find commits with NOTIFY, which take turns: the whole server has one lock for them.

    PostgreSQL locks an object that stands for all databases before it commits a transaction with NOTIFY,
    and keeps it until the commit is on disk, so that notifications are in the order of commits
    (``PreCommit_Notify`` in its ``async.c``). Such commits cannot share a flush of the write-ahead log.
    """
    behind = blockers_by_cause(evidence).get(Cause.COMMIT, ())
    sources = notifiers(evidence)
    waiting = evidence.sessions_in(_waits_to_commit)
    if not behind or not sources or not waiting:
        return
    statements = _waiting(_waits_to_commit, evidence)
    templates = {statement.number for statement in statements}
    flushing = evidence.sessions_in(lambda piece: piece.template in templates and piece.waits_for_wal)
    part = max(0.0, 1 - _OWN_FLUSH * flushing / waiting)
    source = sources[0]
    named = source.startswith("function ")
    most = max(blocker.most for blocker in behind)
    who = source if named else f"application {behind[0].application}" if behind[0].application else "a client"
    count = f"Up to {most} sessions at once" if most > 1 else "Sessions"
    yield finding(
        f"{count} queue to commit, because {who} sends NOTIFY",
        *_fewer_notifications(named=named),
        objects=(source.removeprefix("function "),) if named else (behind[0].application or "NOTIFY",),
        bill=evidence.bill(lambda piece: part if _waits_to_commit(piece) else 0.0),
        statements=statements,
        evidence=(
            f"On average {waiting:.2f} sessions wait for the lock of commits with NOTIFY. The "
            "whole server has one, which each of them holds until its commit is on disk.",
            *(
                f"This sends notifications: {other if other is source else short_template(other)}"
                for other in sources[:3]
            ),
        ),
        proof="Compare the transactions with and without NOTIFY with uncork run, with as many clients.",
    )


def _fewer_notifications(*, named: bool) -> Iterator[Candidate]:
    yield client_change(
        "Write what happened to a table within the transaction, and let one process read new rows "
        "and send NOTIFY for all of them, a few times a second.",
        "Listeners hear of a change a moment later.",
    )
    yield client_change(
        "Let clients that wait for changes read the table of changes every second instead of "
        "LISTEN, or follow it with logical replication.",
        "Logical replication needs wal_level = logical and a slot that is always read.",
    )
    if named:
        yield ddl_change(
            "Notify only about the changes that a listener needs: give the trigger a WHEN condition.",
            "Every transaction that still sends a notification still takes its turn.",
            same_answers=False,
        )
    yield session_setting("synchronous_commit", "off").candidate(
        "Where the last commits may be lost, let these transactions not wait for the disk: they "
        "then hold the lock for a moment only.",
        "A crash of the server loses the commits of the last moments: a trade of durability for time.",
    )
