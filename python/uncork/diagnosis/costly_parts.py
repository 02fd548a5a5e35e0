"""Find what takes the most time, and whether a finding explains each part, or nothing is wrong with it. Pure.

A statement is fine if the server's own counters show little work for each row: few blocks, little time, no
temporary files, and no time spent waiting for others. A plan or the shape of its text is no such evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.model.database.finding import Finding
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.costly_parts import LARGE_SHARE, CostlyPart
from uncork.model.units import count_words, format_duration, share_text

_MOST: Final = 3
_LEAST_SHARE: Final = 0.05
"""The most statements to account for, and the smallest share of one."""
_BLOCKS: Final = 32
"""Most blocks for each row: a lookup reads 3 to 6, and a write of a row with five indexes about 30."""
_ROW_NS: Final = 5e6
"""Most time for each row: a lookup takes about 0.05 ms, and a commit on a slow disk about 5 ms."""
_FEW_CALLS: Final = 20
"""Fewest calls from which the mean of a statement is judged."""
_OTHERS: Final = frozenset({"Lock", "LWLock", "IPC", "BufferPin", "Timeout", "Extension"})
"""Classes of waits for other sessions, or for nothing: time in them is no work of the statement."""
_MOSTLY: Final = 0.5
_SHORT_PAUSE_NS: Final = 5e6
"""The longest typical pause between statements of a transaction that is the client's round trip."""


def costly_parts(evidence: Evidence, findings: Sequence[Finding]) -> tuple[CostlyPart, ...]:
    """Return the three statements with the most busy time, then the waits with a fifth of it or more."""
    return (*_statements(evidence, findings), *_waits(evidence, findings))


def _statements(seen: Evidence, findings: Sequence[Finding]) -> Iterator[CostlyPart]:
    times = {number: seen.share(seen.executing(number)) for number in seen.statements}
    largest = sorted(times, key=lambda number: (-times[number], number))[:_MOST]
    for number in largest:
        if times[number] < _LEAST_SHARE:
            return
        statement = seen.statements[number]
        finding = _finding_of(number, findings)
        if finding is not None:
            yield CostlyPart("statement", statement.text, times[number], "found", finding)
            continue
        fine, evidence = _judged(statement, seen)
        yield CostlyPart(
            "statement", statement.text, times[number], "fine" if fine else "not explained", None, evidence
        )


def _finding_of(number: int, findings: Sequence[Finding]) -> int | None:
    """Return the number of the first finding with a cost that is about a statement."""
    about = (
        place for place, finding in enumerate(findings, 1) if finding.bill and number in finding.templates
    )
    return next(about, None)


def _judged(statement: Statement, evidence: Evidence) -> tuple[bool, str]:
    """Return whether a statement without a finding is fine, and the evidence."""
    unjudged = _unjudged(statement, evidence)
    if unjudged or not statement.calls:
        return False, unjudged
    units = max(statement.rows or 0, statement.calls)
    blocks = (statement.blocks or 0) / units
    row_ns = (statement.mean_ns or 0.0) * statement.calls / units
    unit = "row" if units > statement.calls else "call"
    work = f"{count_words(round(blocks), 'block')} and {format_duration(row_ns)} for each {unit}"
    if statement.temp_bytes:
        return False, f"it writes temporary files; {work}"
    if blocks > _BLOCKS or row_ns > _ROW_NS:
        return False, f"{work}, and no rule explains that{_without_plan(statement)}"
    return True, work


def _unjudged(statement: Statement, evidence: Evidence) -> str:
    """Return why the counters of a statement do not show whether it is fine; empty if they do."""
    waits = _waiting(statement.number, evidence)
    if waits:
        return f"it waits for {waits}"
    if evidence.database is None:
        return f"the log does not show what it reads{_without_plan(statement)}"
    if statement.calls is None or statement.blocks is None or statement.rows is None:
        return "nothing counts its calls, rows and blocks (pg_stat_statements does)"
    if statement.calls < _FEW_CALLS:
        return f"only {count_words(statement.calls, 'execution')} of it ended: watch for longer"
    return ""


def _without_plan(statement: Statement) -> str:
    return "" if statement.plans else "; its plan is unknown"


def _waiting(number: int, evidence: Evidence) -> str:
    """Return for what other sessions a statement waits, if that is most of its time."""
    whole = evidence.executing(number)
    waits: dict[str, float] = {}
    for piece in evidence.pieces_of(number):
        if piece.wait_class in _OTHERS:
            waits[piece.wait_event] = waits.get(piece.wait_event, 0.0) + piece.sessions
    if not whole or sum(waits.values()) < _MOSTLY * whole:
        return ""
    event = max(waits, key=waits.__getitem__)
    return f"{event} for {share_text(min(1.0, sum(waits.values()) / whole))} of its time"


def _waits(seen: Evidence, findings: Sequence[Finding]) -> Iterator[CostlyPart]:
    """Yield the classes of waits for others that take a fifth of the time, and idle transactions."""
    found = sum(finding.bill.share for finding in findings if finding.bill is not None)
    for name in sorted({piece.wait_class for piece in seen.pieces}):
        share = seen.share(seen.of_class(name))
        if name not in (*_OTHERS, IDLE) or share < LARGE_SHARE or found >= share:
            continue
        if name == IDLE:
            yield _idle(share, seen)
        else:
            event = max(
                (piece for piece in seen.pieces if piece.wait_class == name), key=lambda piece: piece.sessions
            )
            evidence = f"mostly {event.wait_event}"
            yield CostlyPart("wait", f"waits of class {name}", share, "not explained", None, evidence)


def _idle(share: float, evidence: Evidence) -> CostlyPart:
    longest = max(evidence.transactions, key=lambda each: each.sessions, default=None)
    if longest is None:
        return CostlyPart("wait", IDLE, share, "not explained", None, "who pauses is unknown")
    pause = f"pauses after a statement typically take {format_duration(longest.gap_ns)}"
    short = longest.gap_ns <= _SHORT_PAUSE_NS
    return CostlyPart("wait", IDLE, share, "fine" if short else "not explained", None, pause)
