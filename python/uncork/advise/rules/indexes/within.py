"""How much of a statement's time the functions that it executes spend in scans of a table. Pure.

Nobody counts the statements of functions one by one. pg_stat_statements counts their time and blocks for the
statement that executes the function, and the table's counters have its scans. Both must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import WORK, Evidence, Piece, Statement
from uncork.advise.rules.indexes.estimates import pages, scan_cost
from uncork.advise.rules.indexes.uses import nodes_of
from uncork.advise.rules.plans.costs import believed_ns
from uncork.advise.rules.writes.within_functions import Within, executed_within
from uncork.model.template_words import short_template
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.finding import Bill
    from uncork.model.results.database import TableFacts

_AGREES: Final = 0.5
"""Blocks that a call reads, as a fraction of those of its scans, from which on the counters agree."""
_SCANNED: Final = 0.3
"""Scans of the table per call, from which on a call usually scans it."""


def scans_a_call(
    outer: Statement, table: TableFacts, scans: Callable[[Statement], float], evidence: Evidence
) -> float:
    """Return how often a call scans a table within functions; 0 unless all counters agree.

    `scans` tells how often a call of a statement may scan the table. Scans that statements execute outside of
    functions are subtracted; the rest is divided by the blocks of the statements that may execute them.
    """
    whole, reads = pages(table, evidence), table.whole_reads
    if not reads or not outer.calls or not outer.blocks or not _large(outer, whole):
        return 0.0
    blocks, left = 0.0, reads
    for statement in evidence.statements.values():
        if (
            not evidence.busy(statement.number)
            or not statement.calls
            or not statement.blocks
            or not _large(statement, whole)
        ):
            continue
        within = any(scans(each.statement) for each in executed_within(statement, evidence))
        blocks += statement.blocks if within else 0
        planned = [node.kind == "Seq Scan" for node in nodes_of(statement, table.name, evidence)]
        if any(planned) or not (planned or within):
            left -= statement.calls * scans(statement)
    each = max(0.0, left) * outer.blocks / blocks / outer.calls if blocks else 0.0
    return each if each >= _SCANNED and outer.blocks >= _AGREES * each * whole * outer.calls else 0.0


def part_of_scans(outer: Statement, scans: float, table: TableFacts, evidence: Evidence) -> float:
    """Return the fraction of a statement's time that so many scans a call take, by blocks and by rows."""
    if not scans or not outer.calls or not outer.blocks or not outer.mean_ns:
        return 0.0
    blocks = scans * pages(table, evidence) * outer.calls / outer.blocks
    return min(1.0, blocks, scans * believed_ns(scan_cost(table, evidence)) / outer.mean_ns)


def bill_of_scans(parts: Mapping[int, float], within: Collection[int], evidence: Evidence) -> Bill:
    """Return the bill of scans. `parts` has each statement's fraction of its working time.

    Statements in `within` scan inside functions, so the wait for their commit does not count.
    """

    def part(piece: Piece) -> float:
        commits = piece.template in within and piece.waits_for_wal
        if piece.template is None or piece.wait_class not in WORK or commits:
            return 0.0
        return parts.get(piece.template, 0.0)

    return evidence.bill(part)


def within_sentences(within: Within, scans: float, table: TableFacts) -> Iterator[str]:
    """Yield which function executes a statement, and how often a call of the outer one scans the table."""
    how = (
        f"Trigger {within.trigger} executes function {within.function}"
        if within.trigger
        else f"Calls execute function {within.function}"
    )
    yield f"{how}, which executes: {short_template(within.statement.sql)}"
    yield (
        f"The counters of {table.name} show {format_count(round(table.whole_reads or 0))} full scans, "
        f"about {scans:.2g} for each call."
    )


def _large(statement: Statement, whole: float) -> bool:
    """Return whether a call reads about as many blocks as the table has."""
    return (statement.a_call(statement.blocks) or 0.0) >= _AGREES * whole
