"""Rows that many sessions lock together, so that they wait for the server's record of such groups. Pure.

If several transactions lock a row in a shared mode, PostgreSQL writes a list of them (a multixact), and a new
list for each further one. A foreign key locks the row that it refers to in this way. See "Multixacts and
Wraparound" in its manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import series_words

_BUFFERS: Final = ("multixact_offset_buffers", "multixact_member_buffers")
"""Sizes of the caches of these lists, settings since PostgreSQL 17."""
_WRITES: Final = frozenset({"insert", "update", "merge", "copy"})


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not any(map(_waits, evidence.pieces)):
        return
    templates = [number for number in evidence.sessions_where(_waits) if number in evidence.statements]
    statements = [evidence.statements[number] for number in templates]
    parents = list(dict.fromkeys(table for statement in statements for table in _shared(statement, evidence)))
    where = f" of {series_words(parents[:2])}" if parents else ""
    yield Finding(
        RULE.name,
        f"Many transactions at once lock the same rows{where} in shared mode",
        objects=(*parents[:2],) or ("multixacts",),
        bill=evidence.bill(lambda piece: float(_waits(piece))),
        templates=tuple(templates),
        statement=statements[0].text if statements else "",
        evidence=(
            f"On average {sum(one.sessions for one in evidence.pieces if _waits(one)):.2f} sessions "
            "wait for the "
            "server's lists of transactions that lock a row together (multixacts).",
            *(f"The foreign keys of the written tables lock rows of {name}." for name in parents[:3]),
        ),
        candidates=tuple(_candidates(parents, statements, evidence)),
        proof="Compare both ways with uncork run, with as many clients as there are now.",
    )


def _waits(piece: Piece) -> bool:
    return piece.wait_class in ("LWLock", "IO") and piece.wait_event.lower().startswith("multixact")


def _shared(statement: Statement, evidence: Evidence) -> Iterator[str]:
    """Yield the tables whose rows a statement locks in shared mode: those of foreign keys, or its own."""
    if statement.shape is None:
        return
    if "share" in statement.shape.locking:
        yield from (use.name for use in statement.shape.tables if use.kind == "table")
    if statement.shape.kind in _WRITES:
        for use in statement.shape.tables:
            if use.changed:
                yield from (key.referred for key in evidence.keys_of.get(use.name, ()))


def _candidates(parents: list[str], statements: list[Statement], evidence: Evidence) -> Iterator[Candidate]:
    rows = f"rows of {parents[0]}" if parents else "the same rows"
    yield Candidate(
        "client",
        f"Commit soon after a statement that refers to {rows}: fewer transactions then lock a row at once.",
    )
    yield Candidate(
        "client",
        "Let one session write all rows that refer to the same row, many with one statement: each "
        "transaction locks it once.",
        against=("Writers must hand their rows over, for example through a queue.",),
    )
    if any(statement.shape is not None and "share" in statement.shape.locking for statement in statements):
        yield Candidate(
            "statement",
            "Read without FOR SHARE where the row need not stay as it is until COMMIT.",
            same_answers=False,
            against=("Another transaction can change the row meanwhile.",),
        )
    known = [name for name in _BUFFERS if evidence.catalogue.setting(name)]
    if known:
        yield Candidate(
            "setting",
            "Enlarge the caches of these lists, which eases the waits.",
            sql=" ".join(f"ALTER SYSTEM SET {name} = '8MB';" for name in known),
            undo=" ".join(f"ALTER SYSTEM RESET {name};" for name in known),
            against=("The server must be restarted.",),
        )


RULE: Final = Rule("multixacts", _find, depth=2)
