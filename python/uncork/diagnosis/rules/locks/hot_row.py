"""Why sessions wait behind a transaction, and rows that many change, so that they queue. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import client_change, ddl_change, session_setting, statement_change
from uncork.diagnosis.evidence import Evidence, Piece, Statement
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.clients.loops import loops
from uncork.diagnosis.rules.clients.sessions import forgotten
from uncork.diagnosis.rules.writes.written import Written, functions_of, updated_within, written
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count

if TYPE_CHECKING:
    from uncork.model.results.database import BlockerFacts

_SHARE: Final = 0.4
"""Fraction of the busy time that sessions queue for rows of one table. Row locks exist so that
sessions take turns: in a healthy transaction mix, a few queue now and then. At two fifths, the
queue costs nearly as much as all work."""
_INTERNAL: Final = frozenset({"BufferContent", "LockManager"})
"""Internal locks for which sessions that queue for a row also wait: that of its page, and that of
the list of locks."""


@dataclass(frozen=True)
class HotRows:
    """The statements that queue for rows of one table, with the fraction of their waits that it explains."""

    table: str
    statements: Mapping[int, tuple[Statement, Written]]
    parts: Mapping[int, float]
    blockers: tuple[BlockerFacts, ...]
    bill: Bill


def hot_rows(evidence: Evidence) -> list[HotRows]:
    """Return the tables whose rows are contended, the costliest first.

    Sessions that wait for a forgotten, long or looping transaction are left out: its rows are not the fault.
    """
    causes = blockers_by_cause(evidence)
    short = causes.get(Cause.SHORT, [])
    parts = _parts(causes)
    by_table: dict[str, dict[int, tuple[Statement, Written]]] = defaultdict(dict)
    for statement in evidence.statements.values():
        if not parts.get(statement.number) or not evidence.busy(statement.number, {"Lock"}):
            continue
        found = written(statement)
        if found is None or (found.kind == "insert" and not found.upsert):
            within = updated_within(statement, evidence)
            found = None if within is None else within[1]
        if found is not None:
            by_table[found.table][statement.number] = (statement, found)
    hot = []
    for table, statements in by_table.items():
        of_table = {number: parts[number] for number in statements}
        bill = evidence.bill(partial(_queued, parts=of_table))
        if worth(bill, _SHARE):
            behind = (
                blocker
                for blocker in short
                if any(waiter.template in statements for waiter in blocker.waiters)
            )
            hot.append(HotRows(table, statements, of_table, tuple(behind), bill))
    return sorted(hot, key=lambda rows: -rows.bill.share)


def _parts(causes: Mapping[Cause, list[BlockerFacts]]) -> dict[int, float]:
    """Return for each template the fraction of its waits that are behind short transactions."""
    short: dict[int, float] = defaultdict(float)
    whole: dict[int, float] = defaultdict(float)
    for cause, blockers in causes.items():
        for waiter in (waiter for blocker in blockers for waiter in blocker.waiters):
            if waiter.template is not None:
                whole[waiter.template] += waiter.sessions
                short[waiter.template] += waiter.sessions if cause is Cause.SHORT else 0.0
    return {number: short[number] / value for number, value in whole.items() if value}


def _queued(piece: Piece, *, parts: Mapping[int, float]) -> float:
    part = 0.0 if piece.template is None else parts.get(piece.template, 0.0)
    queues = piece.wait_class == "Lock" and (not piece.wait_event or piece.wait_event in ROW_EVENTS)
    internal = piece.wait_class == "LWLock" and piece.wait_event in _INTERNAL
    return part if queues or internal else 0.0


@rule("hot-row", depth=2)
def find_hot_rows(evidence: Evidence) -> Iterator[Finding]:
    """Find rows that many sessions change, so that they queue."""
    for hot in hot_rows(evidence):
        ranked = sorted(hot.statements, key=lambda number: -evidence.busy(number, {"Lock"}))
        top, write = hot.statements[ranked[0]]
        single = 0 < evidence.rows(hot.table) <= 1
        most = max((blocker.most for blocker in hot.blockers), default=0)
        who = f"Up to {format_count(most)} sessions at once" if most > 1 else "Sessions"
        verb = "lock" if write.kind == "lock" else "delete" if write.kind == "delete" else "update"
        rows = "only row" if single else "same rows"
        yield finding(
            f"{who} queue to {verb} the {rows} of {hot.table}",
            *changes(hot.table, [hot.statements[number] for number in ranked]),
            objects=(hot.table, *((write.counter,) if write.counter else write.sets[:1])),
            bill=hot.bill,
            statements=evidence.chosen(ranked),
            evidence=_evidence(hot, top, evidence),
            against=("Sessions that must change one row take turns: only fewer or shorter turns help.",),
            proof="Compare both ways with uncork run, with as many clients as queue now.",
        )


def _evidence(hot: HotRows, top: Statement, evidence: Evidence) -> Iterator[str]:
    waiting = sum(evidence.busy(number, {"Lock"}) * part for number, part in hot.parts.items())
    yield f"On average {waiting:.2f} sessions wait for a row of {hot.table} that another session has locked."
    rows = evidence.rows(hot.table)
    if rows:
        yield f"Table {hot.table} has {count_words(round(rows), 'row')}."
    if top.calls:
        calls = format_count(round(top.calls / evidence.seconds))
        yield f"The statement is executed {calls} times a second by all sessions together."
    within = updated_within(top, evidence)
    if within is not None and within[1].table == hot.table:
        yield f"The statement updates it in function {within[0]}."
    holder = max(hot.blockers, key=lambda blocker: blocker.sessions, default=None)
    if holder is None:
        return
    now = doing(holder, "is idle in its transaction after", "executes", "itself waits")
    yield f"Most of them wait for a session that {now}"


# ---- what to do about rows for which sessions queue ----


_PARTS: Final = 16
"""Rows into which a counter is split. With as many as busy sessions, two of them seldom meet;
reading sums up a few rows of one page."""
_OF_UPDATE: Final = re.compile(r"\bfor\s+(?:no\s+key\s+)?update(?:\s+of\s+[\w$\", .]+?)?(?=\s*(?:;|$))", re.I)


def changes(table: str, statements: Sequence[tuple[Statement, Written]]) -> Iterator[Candidate]:
    """Yield what could shorten the queue for a table's rows, the best first."""
    locking = next((pair for pair in statements if pair[1].kind == "lock"), None)
    if locking is not None and locking[1].limited and not locking[1].skips:
        yield _skip_locked(locking[0])
        return
    counting = next((pair for pair in statements if pair[1].counter), None)
    if counting is not None and _draws(*counting):
        yield _sequence(table, counting[1])
    elif counting is not None:
        yield _split(table, counting[1])
        yield _append(table, counting[1])
    elif locking is not None:
        yield statement_change(
            f"Replace SELECT ... FOR UPDATE and the change of {table} by one UPDATE ... RETURNING: "
            "the row stays locked for one statement instead of several. For numbers that may have "
            "gaps, use a sequence."
        )
    yield client_change(
        f"Change {table} last in the transaction, right before COMMIT, so that the row is locked "
        "only for the commit.",
        "Transactions that change several rows must keep one order, or they deadlock.",
        habit="locks early",
    )
    yield client_change(
        "Add up several changes in the application, and write their sum with one UPDATE.",
        "A crash of the application loses the sums that it has not written.",
    )


def _skip_locked(statement: Statement) -> Candidate:
    sql = _OF_UPDATE.sub(lambda match: f"{match[0]} SKIP LOCKED", statement.sql or statement.text, count=1)
    return statement_change(
        "Add SKIP LOCKED, so that each worker takes the next job that no other worker has locked.",
        "Jobs are no longer taken in strict order.",
        sql=sql if "SKIP LOCKED" in sql else "",
        undo=statement.sql or statement.text,
        same_answers=False,
    )


def _draws(statement: Statement, write: Written) -> bool:
    """Return whether a statement returns the counter that it raises: its value is a number for the client."""
    returned = (statement.sql or statement.text).lower().rpartition(" returning ")
    name = re.escape(write.counter.lower())
    return bool(returned[1]) and re.search(rf"\*|\b{name}\b", returned[2]) is not None


def _sequence(table: str, write: Written) -> Candidate:
    name = sql_name(f"{table}_{write.counter}_seq")
    return ddl_change(
        f"If the numbers may have gaps, draw them from a sequence, which locks no row of {table}.",
        "A transaction that rolls back leaves a gap. Each key of the table needs its own sequence.",
        sql=f"CREATE SEQUENCE {name};\nSELECT setval('{name}', max({quoted(write.counter)}) + 1, false) "
        f"FROM {sql_name(table)};\nSELECT nextval('{name}');",
        undo=f"DROP SEQUENCE {name};",
        same_answers=False,
    )


def _split(table: str, write: Written) -> Candidate:
    name = sql_name(f"{table}_part")
    keys = [*map(quoted, (key for key in write.keys if key != write.counter)), "part"]
    counter, key = quoted(write.counter), ", ".join(keys)
    values = [*(f"${number}" for number in range(1, len(keys))), f"(random() * {_PARTS - 1})::int", "1"]
    copied = ", ".join([*keys[:-1], "0::smallint AS part", counter])
    return ddl_change(
        f"Split {write.counter} of {table} over {_PARTS} rows for each key: add to a random one of "
        "them (INSERT ... ON CONFLICT DO UPDATE), and read their sum.",
        f"Statements that read {write.counter} must add up the parts, so one row cannot check a "
        "limit on its value, such as a balance that must not become negative.",
        sql=f"CREATE TABLE {name} WITH (fillfactor = 50) AS SELECT {copied} FROM {sql_name(table)};\n"  # noqa: S608
        f"ALTER TABLE {name} ADD PRIMARY KEY ({key});\n"
        f"INSERT INTO {name} ({key}, {counter}) VALUES ({', '.join(values)})\n"
        f"  ON CONFLICT ({key}) DO UPDATE SET {counter} = {name}.{counter} + excluded.{counter};",
        undo=f"DROP TABLE {name};",
        habit="counts in one row",
    )


def _append(table: str, write: Written) -> Candidate:
    name = sql_name(f"{table}_change")
    columns = ", ".join(map(quoted, dict.fromkeys([*write.keys, write.counter])))
    return ddl_change(
        f"Insert each change into a table of its own, and let a job add them to {table} every few seconds.",
        f"{write.counter} is a few seconds old, unless readers add the changes that are left.",
        sql=f"CREATE TABLE {name} AS SELECT {columns} FROM {sql_name(table)} WITH NO DATA;",  # noqa: S608
        undo=f"DROP TABLE {name};",
    )


# ---- why sessions wait behind a transaction: each blocked session counts for one cause only ----


ROW_EVENTS: Final = frozenset({"transactionid", "tuple", "spectoken"})
"""Wait events of a session that waits for a row: for its last writer's end, for its turn, or for
the end of an insertion of the same key."""
LONG_NS: Final = 500_000_000
"""Length of a long transaction that others wait behind. Users notice half a second; a commit to a
slow disk takes a tenth of a second."""
_MOST: Final = 0.5
PREPARED: Final = "prepared transaction"


class Cause(Enum):
    """Why sessions wait behind a transaction."""

    FORGOTTEN = "its client left it idle"
    LOOP = "its client sends many statements one by one"
    DEADLOCK = "they wait for one another"
    TABLE = "it locks a whole table"
    ADVISORY = "it holds an advisory lock"
    COMMIT = "it commits notifications"
    LONG = "it takes long"
    SHORT = "many want the same rows"


_CAUSES: Final = {"relation": Cause.TABLE, "advisory": Cause.ADVISORY, "object": Cause.COMMIT}
"""Wait events of locks other than rows. A commit with NOTIFY locks an object that stands for all
databases of the server; some commands on schemas and databases wait for objects too."""
_NOTIFY: Final = re.compile(r"notify\s|.*\bpg_notify\s*\(", re.DOTALL)
_NOTIFY_IN_BODY: Final = re.compile(
    r"\bpg_notify\s*\(|(?:^|;|\bbegin|\bthen|\belse|\bloop)\s*notify\s+\w", re.IGNORECASE
)
GIVE_UP: Final = session_setting("lock_timeout", "'2s'").candidate(
    "Let sessions that wait give up after a short time, and retry.",
    "Statements that wait longer fail, so the application must retry them.",
)


def blockers_by_cause(evidence: Evidence) -> Mapping[Cause, list[BlockerFacts]]:
    """Return the root blockers by cause, in each the one that blocks most first."""
    found: dict[Cause, list[BlockerFacts]] = defaultdict(list)
    in_loops = {(loop.application, loop.user) for loop in loops(evidence)} if evidence.blockers else set()
    for blocker in evidence.blockers:
        found[_cause(blocker, evidence, in_loop=(blocker.application, blocker.user) in in_loops)].append(
            blocker
        )
    return found


def _cause(blocker: BlockerFacts, evidence: Evidence, *, in_loop: bool) -> Cause:
    if forgotten(blocker):
        return Cause.FORGOTTEN
    if in_loop:
        return Cause.LOOP
    if blocker.state == "Lock":
        return Cause.DEADLOCK
    if (locked := _locked(blocker, evidence)) is not None:
        return locked
    held = holds_ns(blocker, evidence)
    return Cause.LONG if blocker.state == PREPARED or (held or 0.0) >= LONG_NS else Cause.SHORT


def _locked(blocker: BlockerFacts, evidence: Evidence) -> Cause | None:
    """Return the cause if most of those who wait do so for something else than a row; None otherwise."""
    whole = sum(waiter.sessions for waiter in blocker.waiters)
    for event, cause in _CAUSES.items():
        mine = sum(waiter.sessions for waiter in blocker.waiters if waiter.event == event)
        if whole and mine >= _MOST * whole and (cause is not Cause.COMMIT or notifiers(evidence)):
            return cause
    return None


def holds_ns(blocker: BlockerFacts, evidence: Evidence) -> float | None:
    """Estimate how long a transaction holds the locks that others wait for; None if it is unknown.

    Samples fall on average in the middle of a transaction, so it is twice its mean age. If those who wait
    are of the same application, the age includes the time that it waited for its own turn. But only one
    session at a time holds a row, so it holds the row no longer than the time between two calls.
    """
    if blocker.transaction_mean_ns is None:
        return None
    length = 2 * blocker.transaction_mean_ns
    own = sum(waiter.sessions for waiter in blocker.waiters if waiter.application == blocker.application)
    if own < _MOST * sum(waiter.sessions for waiter in blocker.waiters):
        return length
    top = max(blocker.waiters, key=lambda waiter: waiter.sessions, default=None)
    statement = None if top is None or top.template is None else evidence.statements.get(top.template)
    if statement is None or not statement.calls:
        return length
    return min(length, evidence.seconds * 1e9 / statement.calls)


def doing(holder: BlockerFacts, idle: str, working: str, waiting: str) -> str:
    """Return what a transaction mostly does while others wait: one of three phrases, and its statement."""
    phrase = {IDLE: idle, CPU: working}.get(holder.state, f"{waiting} ({holder.state}) in")
    return f"{phrase} the statement" + (f": {short_template(holder.text)}" if holder.text else ".")


def notifiers(evidence: Evidence) -> tuple[str, ...]:
    """Return what sends notifications: functions, then the texts of statements, the most called first."""
    ranked = sorted(evidence.statements.values(), key=lambda statement: -(statement.calls or 0))
    functions = [
        f"function {function.name}"
        for statement in ranked
        for function in functions_of(statement, evidence)
        if _NOTIFY_IN_BODY.search(function.source)
    ]
    texts = [statement.text for statement in ranked if _NOTIFY.match(statement.text) and not statement.nested]
    return tuple(dict.fromkeys((*functions, *texts)))
