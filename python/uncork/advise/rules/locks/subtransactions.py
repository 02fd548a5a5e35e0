"""Snapshots that overflow with subtransactions, so that sessions search a common cache for them. Pure.

A session lists at most 64 unfinished subtransactions (PGPROC_MAX_CACHED_SUBXIDS). Beyond it, all others look
up the parent of each transaction number that they meet, in a small cache with few locks, as long as a
snapshot is older than the subtransactions. See "Subtransactions" in PostgreSQL's manual.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.space.dead_reads import oldest_holder
from uncork.advise.rules.writes.within_functions import functions_of
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count, format_duration

_LISTED: Final = 64
_EVENTS: Final = frozenset({"SubtransSLRU", "SubtransBuffer", "SubtransControlLock", "subtrans"})
"""Wait events for the cache of subtransactions and its pages, since PostgreSQL 13."""
_SAVEPOINT: Final = re.compile(r"(?:savepoint|release)\b")
_HANDLES: Final = re.compile(r"\bexception\s+when\b", re.IGNORECASE)


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not any(map(_waits, evidence.pieces)):
        return
    templates = list(evidence.sessions_where(_waits))
    who, functions = _application(evidence), _functions(evidence)
    source = f"application {who}" if who else f"function {functions[0]}" if functions else "transactions"
    yield Finding(
        RULE.name,
        f"Sessions wait to look up subtransactions: {source} has more than {_LISTED} in a transaction",
        objects=(who or (functions[0] if functions else "savepoints"),),
        bill=evidence.bill(lambda piece: float(_waits(piece))),
        templates=tuple(templates),
        statement=evidence.statements[templates[0]].text
        if templates and templates[0] in evidence.statements
        else "",
        evidence=tuple(_evidence(evidence)),
        candidates=tuple(_candidates(who, functions, evidence)),
        against=(
            "The time in which sessions look up subtransactions without waiting is not part of the cost.",
        ),
        proof="Compare the transactions with and without savepoints with uncork run, beside a transaction "
        "that stays open.",
    )


def _waits(piece: Piece) -> bool:
    return piece.wait_class == "LWLock" and piece.wait_event in _EVENTS


def _application(evidence: Evidence) -> str:
    """Return the application that spends most time in transactions with savepoints; empty if none does."""
    users: dict[str, float] = defaultdict(float)
    for piece in evidence.pieces:
        statement = evidence.statements.get(-1 if piece.template is None else piece.template)
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
    waiting = sum(piece.sessions for piece in evidence.pieces if _waits(piece))
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
            f"The oldest open transaction ({holder.name or holder.user or holder.kind}) is {opened} old: the "
            "longer it stays open, the more subtransactions others look up."
        )


def _candidates(who: str, functions: list[str], evidence: Evidence) -> Iterator[Candidate]:
    if who or not functions:
        name = f"application {who}" if who else "applications"
        yield Candidate(
            "client",
            f"Let {name} set no savepoint for each row: have one for many statements, or none, and avoid "
            "expected errors with INSERT ... ON CONFLICT.",
            against=(
                "Without a savepoint, an error ends the whole transaction, which must then be repeated.",
            ),
        )
    for name in functions[:1]:
        yield Candidate(
            "ddl",
            f"Rewrite function {name} without EXCEPTION: each execution of such a block begins a "
            "subtransaction. Use INSERT ... ON CONFLICT, or test before.",
        )
    yield Candidate(
        "setting",
        "End transactions that stay open: sessions look up only subtransactions that are younger than the "
        "oldest open transaction.",
        sql="ALTER SYSTEM SET idle_in_transaction_session_timeout = '30s'; SELECT pg_reload_conf();",
        undo="ALTER SYSTEM RESET idle_in_transaction_session_timeout; SELECT pg_reload_conf();",
        against=("Sessions that are idle in a transaction for longer are disconnected.",),
    )
    if evidence.catalogue.setting("subtransaction_buffers"):
        yield Candidate(
            "setting",
            "Enlarge the cache of subtransactions, which eases the waits if it is too small.",
            sql="ALTER SYSTEM SET subtransaction_buffers = '32MB';",
            undo="ALTER SYSTEM RESET subtransaction_buffers;",
            against=("The server must be restarted.",),
        )


RULE: Final = Rule("subtransactions", _find, depth=2)
