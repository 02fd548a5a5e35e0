"""Lookups that a client sends for each row of a list, without a transaction around them (N+1). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.clients.one_by_one import loops
from uncork.advise.rules.writes.batches import batched
from uncork.model.database.finding import Candidate, Finding
from uncork.model.template_words import short_template
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.statement import StatementShape

_LIST_ROWS: Final = 10.0
"""Fewest rows per call of a list. With fewer, one statement for all of them saves little."""
_LISTS: Final = 10
"""Fewest calls of a list: below it, a coincidence of two counts is too likely."""
_LOOKUP_ROWS: Final = 5.0
"""Most rows per call of a lookup."""
_TOLERANCE: Final = 0.03
"""Largest difference between the calls of a lookup and the rows of its list, as a fraction, beyond the lists
that sessions were working through when the watch began and ended. Of unrelated lookups and lists whose rates
differ by up to a hundred times, about one pair in a hundred is as close
(``tests/calibration/test_lookup_loops.py``)."""
_MOST_OPEN: Final = 0.1
"""Largest part of the lists that may have been open at both ends of the watch. With more, any number of
lookups fits."""
_PART: Final = 0.01
"""Least part of the busy time of a lookup. With less, ten of them for each row would not be a finding."""
_EQUAL: Final = re.compile(r"([\w$]+)\"?\s*=\s*\?")
_TABLE: Final = re.compile(r"\bfrom\s+\"?([\w$.]+)")


_EXACT_CALLS: Final = 1_000
_EXACT: Final = 0.01
"""Fewest calls of a lookup whose time is no finding, and the largest difference between its calls and the
rows of its list, as a fraction. Such a lookup costs round trips instead, and nothing but these counts shows
the loop: of unrelated pairs, about two in a thousand are as close
(``tests/calibration/test_lookup_loops.py``)."""


def follows(lookup: Statement, listed: Statement, sessions: float) -> bool:
    """Return whether a lookup was called as often as a list returned rows. `sessions` send both."""
    rows, lists, calls = listed.rows or 0, listed.calls or 0, lookup.calls or 0
    if lists < _LISTS or rows < _LIST_ROWS * lists or not calls:
        return False
    # At each end of the watch, each session was on average half way through a list.
    opened = math.ceil(max(1.0, sessions)) * rows / lists
    return opened <= _MOST_OPEN * rows and abs(calls - rows) <= _TOLERANCE * rows + opened


def follows_exactly(lookup: Statement, listed: Statement) -> bool:
    """Return whether a lookup was called as often as a list returned rows, as nearly as a watch can count.

    Both are statements of one role, and each lookup returns at most one row.
    """
    rows, lists, calls = listed.rows or 0, listed.calls or 0, lookup.calls or 0
    return (
        lookup.role == listed.role
        and (lookup.rows or 0) <= calls
        and calls >= _EXACT_CALLS
        and rows >= _LIST_ROWS * lists
        and lists * _EXACT >= 1
        and abs(calls - rows) <= _EXACT * rows
    )


def _find(evidence: Evidence) -> Iterator[Finding]:
    """A lookup that takes little time of the server costs its client a round trip for each row."""
    billed: set[int] = set()
    for finding in _billed(evidence):
        billed.update(finding.templates)
        yield finding
    if evidence.database is not None:
        yield from _unbilled(evidence, billed)


def _unbilled(evidence: Evidence, billed: Collection[int]) -> Iterator[Finding]:
    reads = [statement for statement in evidence.statements.values() if _reads(statement)]
    lists = [read for read in reads if (read.a_call(read.rows) or 0) >= _LIST_ROWS]
    left = {loop.template for loop in loops(evidence)} | set(billed)
    for lookup in reads:
        if lookup.number in left or (lookup.calls or 0) < _EXACT_CALLS or not _key(lookup):
            continue
        parents = [listed for listed in lists if follows_exactly(lookup, listed)]
        nearest = _nearest(lookup, parents, evidence)
        if nearest is not None:
            yield _may_loop(nearest, lookup, evidence)


def _nearest(lookup: Statement, lists: Sequence[Statement], evidence: Evidence) -> Statement | None:
    """Return the list that can have the keys of a lookup and returned about as many rows."""
    linked = (listed for listed in lists if _linked(lookup, listed, evidence))
    return min(linked, key=lambda listed: abs((listed.rows or 0) - (lookup.calls or 0)), default=None)


def _may_loop(listed: Statement, lookup: Statement, evidence: Evidence) -> Finding:
    sure = _finding(listed, [lookup], evidence)
    who, table = _application(lookup, evidence), _table(lookup)
    each = format_count(round(listed.a_call(listed.rows) or 0))
    name = f"Application {who}" if who else f"Role {lookup.role}" if lookup.role else "A client"
    return replace(
        sure,
        headline=f"{name} may look up rows of {table} one by one, {each} after each list",
        objects=(table, *((who or lookup.role,) if who or lookup.role else ())),
        bill=None,
        cost=f"{each} round trips for each list",
        against=(
            "Only the counts agree. Independent requests that happen to be as many look the same: compare "
            "with the code, or with a log of all statements.",
        ),
    )


def _billed(evidence: Evidence) -> Iterator[Finding]:
    looping = {loop.template for loop in loops(evidence)}
    reads = [statement for statement in evidence.statements.values() if _reads(statement)]
    lists = [
        read for read in reads if (read.calls or 0) >= _LISTS and (read.a_call(read.rows) or 0) >= _LIST_ROWS
    ]
    found: dict[int, list[Statement]] = {}
    for read in reads:
        if read.number in looping or (read.a_call(read.rows) or 0.0) > _LOOKUP_ROWS or not _key(read):
            continue
        if evidence.share(evidence.busy(read.number)) < _PART:
            continue
        sessions = max(1.0, evidence.all_of(read.number))
        parents = [listed for listed in lists if listed is not read and follows(read, listed, sessions)]
        nearest = _nearest(read, parents, evidence)
        if nearest is not None:
            found.setdefault(nearest.number, []).append(read)
    for number, children in found.items():
        children.sort(key=lambda child: -evidence.busy(child.number))
        bill = evidence.bill_of([child.number for child in children])
        if worth(bill):
            yield _finding(evidence.statements[number], children, evidence)


def _finding(parent: Statement, children: list[Statement], seen: Evidence) -> Finding:
    top = children[0]
    application = _application(top, seen)
    each = format_count(round(parent.a_call(parent.rows) or 0))
    table = _table(top)
    who = f"Application {application}" if application else "A client"
    evidence = [
        f"The list is called {format_count(parent.calls or 0)} times and returns {each} rows a call: "
        f"{short_template(parent.text)}",
        f"The list returned {format_count(parent.rows or 0)} rows, and the lookup was called "
        f"{format_count(top.calls or 0)} times.",
    ]
    if len(children) > 1:
        evidence.append(f"{len(children)} templates are called once for each row of the list.")
    return Finding(
        RULE.name,
        f"{who} looks up rows of {table} one by one, {each} after each list",
        objects=(table, *((application,) if application else ())),
        bill=seen.bill_of([child.number for child in children]),
        templates=(*(child.number for child in children),),
        statement=top.text,
        evidence=tuple(evidence),
        candidates=(
            Candidate(
                "client",
                "Fetch all rows with one statement (a join with the list, or WHERE key = ANY of its keys; in "
                "an ORM, eager loading).",
                sql=batched(top, seen),
                habit="loops",
            ),
        ),
        proof="Compare both ways of the client with uncork run, as two workloads that return the same rows.",
    )


def _reads(statement: Statement) -> bool:
    """Return whether a statement of a client reads rows, and its calls and rows were counted."""
    if statement.number < 0 or statement.nested or statement.calls is None or statement.rows is None:
        return False
    if not statement.text.startswith("select"):
        return False
    return statement.shape is None or (statement.shape.kind == "select" and not statement.shape.locking)


def _key(statement: Statement) -> frozenset[str]:
    """Return the columns that a statement compares with a parameter for equality."""
    if statement.shape is None:
        return frozenset(_EQUAL.findall(statement.text.partition(" where ")[2]))
    return frozenset(
        predicate.column
        for predicate in statement.shape.predicates
        if predicate.operator == "="
        and predicate.value == "parameter"
        and predicate.column
        and not predicate.alternative
    )


def _table(statement: Statement) -> str:
    tables = (
        []
        if statement.shape is None
        else [table.name for table in statement.shape.tables if table.kind == "table"]
    )
    if tables:
        return tables[0]
    match = _TABLE.search(statement.text)
    return match[1].removeprefix("public.") if match else "a table"


def _tables(statement: Statement) -> frozenset[str]:
    if statement.shape is None:
        return frozenset({_table(statement)})
    return frozenset(table.name for table in statement.shape.tables if table.kind == "table")


def _linked(lookup: Statement, listed: Statement, evidence: Evidence) -> bool:
    """Return whether a list can have the keys of a lookup.

    Either both read the same table, or a foreign key connects their tables, or the list returns a column
    that has the name of the key.
    """
    one, other = _tables(lookup), _tables(listed)
    if not one or not other:
        return False
    if one & other:
        return True
    if any(
        {key.table, key.referred} <= (one | other) and (key.table in one) != (key.table in other)
        for key in evidence.foreign_keys
    ):
        return True
    return bool(_key(lookup) & _outputs(listed.shape))


def _outputs(shape: StatementShape | None) -> frozenset[str]:
    return frozenset() if shape is None else frozenset(output.column for output in shape.outputs)


def _application(statement: Statement, evidence: Evidence) -> str:
    spent: dict[str, float] = {}
    for piece in evidence.pieces_of(statement.number):
        spent[piece.application] = spent.get(piece.application, 0.0) + piece.sessions
    return max(spent, key=lambda name: spent[name], default="")


RULE: Final = Rule("lookup-loop", _find)
