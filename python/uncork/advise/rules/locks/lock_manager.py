"""Statements that lock so many tables and indexes that sessions wait for the server's list of locks. Pure.

A session notes its locks of tables in an array of its own while there is room ("fast path"): 16 places up to
PostgreSQL 17, and as many as max_locks_per_transaction since 18. All further ones go to a list that all
sessions share. Planning a statement locks each partition that is not pruned, with all of its indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.uses import table_of
from uncork.advise.rules.locks.hot_row import hot_rows
from uncork.advise.rules.plans.partitions import partitioned
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count

_EVENT: Final = "LockManager"
_PLACES: Final = 16
_JOINED: Final = {"Append", "Merge Append"}


def _find(evidence: Evidence) -> Iterator[Finding]:
    queueing = {number for hot_row in hot_rows(evidence) for number in hot_row.statements}
    waiting = evidence.sessions_where(_waits)
    many = {
        number: locks
        for number in waiting
        if number in evidence.statements
        and number not in queueing
        and (locks := _locks(evidence.statements[number], evidence)) > _places(evidence)
    }
    bill = evidence.bill(lambda piece: float(_waits(piece) and piece.template in many))
    if not many:
        return
    top = evidence.statements[next(iter(many))]
    table = _table(top, evidence)
    yield Finding(
        RULE.name,
        f"Calls queue to lock {format_count(many[top.number])} tables and indexes of {table} each",
        objects=(table,),
        bill=bill,
        templates=tuple(many),
        statement=top.text,
        evidence=(
            f"On average {sum(waiting[number] for number in many):.2f} sessions wait for the list of locks, "
            "which all sessions share (LWLock LockManager).",
            f"A session can lock {_places(evidence)} tables and indexes without it.",
        ),
        candidates=tuple(_candidates(top, table, evidence)),
        proof="Compare both with uncork run, with as many clients as there are now.",
    )


def _waits(piece: Piece) -> bool:
    return piece.wait_class == "LWLock" and piece.wait_event == _EVENT


def _places(evidence: Evidence) -> int:
    if evidence.major < 18:
        return _PLACES
    value = evidence.catalogue.setting("max_locks_per_transaction")
    return max(_PLACES, int(value)) if value.isdigit() else 4 * _PLACES


def _locks(statement: Statement, evidence: Evidence) -> int:
    """Estimate how many tables and indexes a call locks, by its plan and the indexes of its tables."""
    if statement.plan is None:
        return 0
    found = 0
    for node in statement.plan.root.walk():
        if node.kind in _JOINED:
            found += node.removed_parts
        if node.relation and node.kind != "Bitmap Index Scan":
            table = table_of(node, evidence)
            found += 1 + len(evidence.indexes.get(table, evidence.indexes.get(node.relation, ())))
    return found


def _table(statement: Statement, evidence: Evidence) -> str:
    """Return the table of a statement of which a plan reads most parts."""
    found: dict[str, int] = {}
    if statement.plan is not None:
        for node in statement.plan.root.walk():
            if node.relation:
                name = table_of(node, evidence)
                found[name] = found.get(name, 0) + 1
    return max(found, key=lambda name: found[name])


def _candidates(statement: Statement, table: str, evidence: Evidence) -> Iterator[Candidate]:
    parts = next((each for each in partitioned(evidence) if each.table == table), None)
    removed = statement.plan is not None and any(node.removed_parts for node in statement.plan.root.walk())
    if removed:
        yield Candidate(
            "setting",
            "Plan each call with its values: a generic plan locks all partitions before it skips any.",
            sql="SET plan_cache_mode = force_custom_plan;",
            undo="RESET plan_cache_mode;",
            against=("Each call is planned anew.",),
        )
    elif parts is not None and parts.columns:
        yield Candidate(
            "statement",
            f"Compare the partition key of {table} ({', '.join(parts.columns)}) with a value, so that calls "
            "lock only the partitions that they need.",
        )
    if parts is not None:
        yield Candidate(
            "ddl",
            f"Keep fewer and larger partitions of {table}.",
            against=("Rows must be copied; deleting old rows by DROP TABLE becomes coarser.",),
        )
    number = len(evidence.indexes.get(table, ()))
    if number > 1 and not removed:
        yield Candidate(
            "client",
            "Prepare the statement and let sessions keep one plan for all values: planning locks all indexes "
            "of a table, executing the plan locks only the indexes in it.",
            against=("A plan for all values can suit some of them badly.",),
        )
    if number > 1:
        yield Candidate(
            "ddl",
            f"Drop indexes of {table} that nothing needs: planning locks all {format_count(number)} of them.",
        )
    if evidence.major >= 18:
        yield Candidate(
            "setting",
            "Let sessions note more locks on their own.",
            sql="ALTER SYSTEM SET max_locks_per_transaction = 1024;",
            undo="ALTER SYSTEM RESET max_locks_per_transaction;",
            against=("The server must be restarted, and needs more shared memory for its list of locks.",),
        )
    yield Candidate(
        "client",
        "Execute fewer statements at once: share fewer connections through a pool.",
    )


RULE: Final = Rule("lock-manager", _find, depth=2)
