"""Statements that an index would make much faster, and why the existing indexes do not. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import fraction_of_range, pages, scan_cost
from uncork.diagnosis.rules.indexes.keys import Served, Wanted, pattern_kind, served_by, serves
from uncork.diagnosis.rules.indexes.reads import Read, blocks_a_call, read_of, saved
from uncork.diagnosis.rules.indexes.uses import (
    Use,
    Want,
    is_aggregated,
    nodes_of,
    passing,
    uses_of,
    want_of,
    wants_of,
)
from uncork.diagnosis.rules.plans.costs import believed_ns
from uncork.diagnosis.rules.writes.written import Within, executed_within
from uncork.model.database.index import IndexKey
from uncork.model.database.statement import Predicate
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

# ---- how much of a statement's time the functions that it executes spend in scans of a table ----
#
# Nobody counts the statements of functions one by one. pg_stat_statements counts their time and blocks
# for the statement that executes the function, and the table's counters have its scans. Both must agree.


_AGREES: Final = 0.5
"""Blocks that a call reads, as a fraction of those of its scans, from which on the counters agree."""
_SCANNED: Final = 0.3
"""Scans of the table per call, from which on a call usually scans it: some may still run when the
watch ends."""


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
        if not evidence.busy(statement.number) or not _large(statement, whole):
            continue
        if not statement.calls or not statement.blocks:
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


def within_sentences(within: Within, scans: float, table: TableFacts) -> Iterator[str]:
    """Yield which function executes a statement, and how often a call of the outer one scans the table."""
    how = f"Trigger {within.trigger} executes" if within.trigger else "Calls execute"
    yield f"{how} function {within.function}, which executes: {short_template(within.statement.sql)}"
    yield (
        f"The counters of {table.name} show {format_count(round(table.whole_reads or 0))} full "
        f"scans, about {scans:.2g} for each call."
    )


def _large(statement: Statement, whole: float) -> bool:
    """Return whether a call reads about as many blocks as the table has."""
    return (statement.a_call(statement.blocks) or 0.0) >= _AGREES * whole


# ---- why a statement cannot use an index that exists on the columns it compares ----
#
# See "Indexes on Expressions", "Operator Classes", "Multicolumn Indexes" and "Combining Multiple
# Indexes" in PostgreSQL's manual.


INTEGERS: Final = frozenset({"smallint", "integer", "bigint"})
_NUMBERS: Final = ("numeric", "decimal", "double precision", "float", "real")
_WRONG: Final = re.compile(r"\(+(?:\w+\.)?\"?(\w+)\"?\)::(numeric|double precision|real|text)\)? = ")

Obstruction = Literal[
    "expression", "cast", "type", "pattern", "wildcard", "or", "not leading", "operator", "invalid"
]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a statement from using an index. `kind` "type" is a parameter of another type.

    "operator" is an operator that the index does not have, although it has one that means the same.
    """

    kind: Obstruction
    index: str
    predicate: Predicate
    type: str = ""


def obstacle_of(use: Use, want: Want, evidence: Evidence) -> Obstacle | None:
    """Return what keeps a statement from using an index on what it compares; None if there is no index."""
    table = use.table.name
    for each in want.served:
        predicate = each.predicate
        names = (predicate.column,) if predicate.column else predicate.columns
        leading = leading_index(table, names, evidence)
        if predicate.operator in ("like", "ilike", "~", "~*") and leading and predicate.column:
            infix = pattern_kind(predicate) == "infix"
            return Obstacle("wildcard" if infix else "pattern", leading, predicate)
        if leading and (predicate.cast or predicate.expression) and len(names) == 1:
            return Obstacle("cast" if predicate.cast else "expression", leading, predicate)
    if want.ordered or want.wanted.method != "btree" or (want.wanted.predicate and not want.wanted.equal):
        return None
    wanted = {key.column for key in (*want.wanted.equal, *want.wanted.rest)}
    for other in evidence.index_shapes(table):
        if other.method != "btree" or other.predicate or "" in wanted:
            continue
        if wanted < set(other.columns) and other.columns[0] not in wanted:
            return Obstacle("not leading", other.name, want.served[0].predicate)
    return None


def wrong_type(use: Use, statement: Statement, evidence: Evidence) -> Obstacle | None:
    """Return the parameter whose type keeps an index of its column from being used; None if there is none.

    PostgreSQL compares an integer with a numeric by converting the column. The parameter's type is in the
    statement (``$1::numeric``), in the plan's filter (``(id)::numeric``), or known to the client only: then a
    unique index that would fetch one row is not used, although every call compares its column.
    """
    for predicate in use.predicates:
        if predicate.operator not in ("=", "in") or not predicate.column or predicate.cast:
            continue
        index = leading_index(use.table.name, (predicate.column,), evidence)
        column = evidence.column(use.table.name, predicate.column)
        kind = "" if column is None else column.type
        if not index or predicate.value not in ("parameter", "constant", "expression"):
            continue
        given = predicate.value_cast or _filter_cast(statement, predicate.column)
        if kind in INTEGERS and given.startswith(_NUMBERS):
            return Obstacle("type", index, predicate, given)
        if kind == "character" and given in ("text", "character varying"):
            return Obstacle("type", index, predicate, given)
        scans = (use.table.whole_reads or 0.0) >= _SCANNED * (statement.calls or 0)
        if kind in INTEGERS and not given and scans and _one_row(index, use, evidence):
            return Obstacle("type", index, predicate, "")
    return None


def _one_row(index: str, use: Use, evidence: Evidence) -> bool:
    return any(
        own_index.name == index and own_index.unique and len(own_index.keys) == 1
        for own_index in evidence.index_shapes(use.table.name)
    )


def _filter_cast(statement: Statement, column: str) -> str:
    for plan in statement.plans:
        for node in plan.root.walk():
            for name, kind in _WRONG.findall(node.condition("Filter")):
                if name == column:
                    return str(kind)
    return ""


def leading_index(table: str, columns: tuple[str, ...], evidence: Evidence) -> str:
    """Return the name of a B-tree that begins with a column as it is stored; empty if there is none."""
    for index in evidence.index_shapes(table):
        first = index.keys[0]
        plain = first.column and not (first.opclass or first.collation or index.predicate)
        plain = plain and index.method == "btree"
        if plain and first.column in columns:
            return index.name
    return ""


# ---- statements that an index would make much faster, and why the existing indexes do not ----
#
# Two rules report them: `missing-index` if no index on the columns exists, and `index-not-usable`
# if one exists that the statement cannot use as it is written.


_LEAST_SAVED: Final = 0.5
"""Fraction of a statement's time that an index must save. The planner prefers the cheaper path by a
small difference; its estimates are often wrong by a factor of two."""
_LEAST_EXPECTED: Final = 0.33
"""The same for a statement with a large share of the busy time: there, a measurement on a copy decides."""
_LARGE_SHARE: Final = 0.2
_CALLS: Final = 5
"""Fewest calls that show a statement to return few rows each time, and not by chance."""
_SOME_MORE: Final = 2.0
"""Factor for the rows that some calls leave out at a LIMIT."""
_UNKNOWN: Final = 0.01
"""Assumed fraction of the rows of one value of an expression without statistics."""
_LEAST_BUSY: Final = 0.02
"""Fraction of the busy time from which on a statement counts towards the bill of an index with others."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A statement and the index that it wants. `fraction` is the fraction of its time that this would save.

    `obstacle` is why an index that exists does not serve; None if there is none to serve. `arms` are the
    indexes for the parts of an OR. `within` is set for a statement of a function: then `statement` has the
    number of the one that executes the function, and `scans` is how often each call of it scans the table.
    """

    statement: Statement
    use: Use
    read: Read
    want: Want
    fraction: float
    obstacle: Obstacle | None = None
    arms: tuple[Want, ...] = ()
    within: Within | None = None
    scans: float = 1.0

    @property
    def is_doubted(self) -> bool:
        """Whether the planner's costs promise so little that only a trial on a copy can tell."""
        return self.within is None and self.fraction < _LEAST_SAVED * self.read.part


def problems(evidence: Evidence) -> tuple[Problem, ...]:
    """Return the problems, the costliest first."""
    found = [
        problem
        for statement in evidence.costliest()
        if statement.number >= 0 and evidence.share(evidence.busy(statement.number)) >= _LEAST_BUSY
        for problem in (*_of_statement(statement, evidence), *_within_functions(statement, evidence))
    ]
    return tuple(
        sorted(found, key=lambda problem: -problem.fraction * evidence.busy(problem.statement.number))
    )


def _of_statement(statement: Statement, evidence: Evidence) -> Iterator[Problem]:
    for use in uses_of(statement, evidence):
        read = read_of(use, statement, evidence)
        if read is None or not _shows(statement, evidence):
            continue
        found = _best(use, statement, read, evidence)
        if found is None:
            found = _of_setting(use, statement, read, evidence)
        if found is None and use.alternatives:
            found = _of_or(use, statement, read, evidence)
        if found is not None and found.fraction >= _least(found, evidence) * read.part:
            yield found


def _least(found: Problem, evidence: Evidence) -> float:
    """Return the fraction of the time that an index must save to be proposed."""
    is_large = evidence.share(evidence.busy(found.statement.number)) >= _LARGE_SHARE
    return _LEAST_EXPECTED if is_large and found.obstacle is None else _LEAST_SAVED


def _best(use: Use, statement: Statement, read: Read, evidence: Evidence) -> Problem | None:
    """Return the index that saves most; if several save as much, the cheapest to search."""
    options = [_problem(use, statement, read, want, evidence) for want in wants_of(use, statement, evidence)]
    known = [option for option in options if option is not None]
    return max(known, key=lambda each: round(each.fraction, 1), default=None)


def fractions_of(found: Sequence[Problem]) -> dict[int, float]:
    """Return the fraction of each statement's time that curing all of these problems would save."""
    fractions: dict[int, float] = {}
    for problem in found:
        number = problem.statement.number
        fractions[number] = min(1.0, fractions.get(number, 0.0) + problem.fraction)
    return fractions


def scanned_within(outer: Statement, function: str, part: float, evidence: Evidence) -> bool:
    """Return whether scans that an index would save take most of a function's part of the time."""
    inside = _within_functions(outer, evidence)
    found = (each.fraction for each in inside if each.within and each.within.function == function)
    return sum(found) >= _LEAST_SAVED * part


def _within_functions(outer: Statement, evidence: Evidence) -> Iterator[Problem]:
    """Yield the problems of statements in functions, if all counters show that these scan the table.

    Such a statement cannot be changed where the application sends it, so only missing indexes
    count. If several may scan a table, each has an equal part of its scans.
    """
    found: dict[str, list[Problem]] = defaultdict(list)
    for each in executed_within(outer, evidence):
        for use in uses_of(each.statement, evidence):
            read = Read("scan", 1.0, scan_cost(use.table, evidence))
            problem = _best(use, each.statement, read, evidence)
            if problem is not None and problem.obstacle is None and problem.fraction >= _LEAST_SAVED:
                found[use.table.name].append(replace(problem, within=each))
    for name, of_table in found.items():
        table = evidence.tables[name]
        scans = scans_a_call(outer, table, partial(_names, name), evidence)
        part = part_of_scans(outer, scans, table, evidence) / len(of_table)
        if scans * (outer.calls or 0) >= _CALLS:
            yield from (
                replace(problem, fraction=problem.fraction * part, scans=scans) for problem in of_table
            )


def _names(table: str, statement: Statement) -> float:
    return float(statement.uses(table))


def _shows(statement: Statement, evidence: Evidence) -> bool:
    """Return whether a statement runs often enough for its numbers to mean something.

    A statement that aggregates or joins a whole table may be a report, which may take its time. But
    the plan with real values of a report that comes again shows how many rows it needs.
    """
    if statement.calls is None or not statement.shape.kind:
        return True
    if is_aggregated(statement.shape) or statement.shape.limit:
        planned = statement.plan is not None and statement.plan.source != "generic"
        return evidence.is_traffic(statement) or (planned and statement.calls >= _CALLS)
    return statement.calls >= _CALLS


def _problem(use: Use, statement: Statement, read: Read, want: Want, evidence: Evidence) -> Problem | None:
    if _unknown(use, statement, want, evidence):
        return None
    obstacle: Obstacle | None
    serving = [index for index in evidence.index_shapes(use.table.name) if serves(index, want.wanted)]
    if serving:
        rewritten = next((each for each in want.served if each.rewrite), None)
        if rewritten is not None:
            obstacle = Obstacle("operator", serving[0].name, rewritten.predicate)
        else:
            obstacle = wrong_type(use, statement, evidence) if read.how == "scan" else None
        if obstacle is None:
            return None
    else:
        indexes = evidence.indexes.get(use.table.name, ()) if want.served else ()
        invalid = (each.shape for each in indexes if each.facts.warning == "invalid")
        name = next((shape.name for shape in invalid if serves(shape, want.wanted)), "")
        obstacle = Obstacle("invalid", name, want.served[0].predicate) if name else None
        obstacle = obstacle or obstacle_of(use, want, evidence)
    return Problem(statement, use, read, want, saved(read, want, use, statement, evidence), obstacle)


def _of_setting(use: Use, statement: Statement, read: Read, evidence: Evidence) -> Problem | None:
    """Return the problem of an expression that depends on settings, over a column that has an index.

    A day of a timestamp with time zone depends on the session's time zone, so no index can have it.
    """
    table = use.table.name
    for predicate in use.predicates:
        names = (predicate.column,) if predicate.column else predicate.columns
        plain = bool(predicate.column) and not predicate.cast
        if predicate.operator != "=" or plain or predicate.barred or len(names) != 1:
            continue
        if served_by(predicate, table, evidence) is not None:
            continue
        index = leading_index(table, names, evidence)
        if index and "$" not in predicate.expression:
            part = passing(use, statement, evidence)
            fetched = evidence.rows(table) * (_UNKNOWN if part is None else part)
            want = Want(Wanted(table, (), (IndexKey(names[0]),)), (), fetched)
            kind: Obstruction = "cast" if predicate.cast else "expression"
            return Problem(
                statement,
                use,
                read,
                want,
                saved(read, want, use, statement, evidence),
                Obstacle(kind, index, predicate),
            )
    return None


def _unknown(use: Use, statement: Statement, want: Want, evidence: Evidence) -> bool:
    """Return whether only a range with unknown bounds is searched for: it may well be most of the table."""
    searched = [each for each in want.served if each.role != "range" or each.predicate.operator == "like"]
    ranges = [each.predicate for each in want.served]
    if not searched and ranges and fraction_of_range(ranges, use.table.name, evidence) is not None:
        return False
    return not searched and not want.ordered and passing(use, statement, evidence) is None


def _of_or(use: Use, statement: Statement, read: Read, evidence: Evidence) -> Problem | None:
    """Return the problem of an OR on one table, whose parts need an index each."""
    table = use.table.name
    for group in use.alternatives:
        served = [served_by(each, each.table, evidence) for each in group if each.table]
        known = [each for each in served if each is not None and each.role in ("equal", "special")]
        if len(known) < 2 or len(known) < len(group):
            continue
        wants = [_arm(each, use, statement, evidence) for each in known]
        if len({each.key for each in known}) < 2 or {each.predicate.table for each in known} != {table}:
            continue
        missing = tuple(
            want
            for want in wants
            if not any(serves(other, want.wanted) for other in evidence.index_shapes(table))
        )
        if not missing:
            continue
        fetched = sum(want.fetched for want in wants)
        if any(each.role == "special" for each in known):
            fetched = min(fetched, _found(use, statement) or fetched)
        whole = replace(wants[0], fetched=fetched)
        gained = saved(replace(read, times=1.0, partners=1.0), whole, use, statement, evidence)
        index = next((other.name for other in evidence.index_shapes(table)), "")
        return Problem(statement, use, read, whole, gained, Obstacle("or", index, group[0]), missing)
    return None


def _found(use: Use, statement: Statement) -> float | None:
    """Estimate from the rows that calls returned how many a search finds; None if that is impossible.

    Calls that reach a LIMIT all return the same number of rows. So if the average is no whole
    number, many calls do not reach the LIMIT.
    """
    returned = statement.a_call(statement.rows)
    if returned is None or not use.alone or is_aggregated(statement.shape):
        return None
    reached = statement.shape.limit and not (statement.rows or 0) % (statement.calls or 1)
    return None if reached else _SOME_MORE * returned


def _arm(each: Served, use: Use, statement: Statement, evidence: Evidence) -> Want:
    part = replace(
        use, predicates=(replace(each.predicate, alternative=False, group=0),), alternatives=(), order=()
    )
    found = want_of(part, replace(statement, rows=None), evidence)
    return found or Want(Wanted(each.predicate.table, (each.key,)), (each,), 1.0)


# ---- what is known of a statement that reads too much, in sentences ----


def read_sentences(problem: Problem, evidence: Evidence) -> Iterator[str]:
    """Yield the size of the table, what a call reads and returns, and the scan in the plan."""
    table, statement = problem.use.table, problem.statement
    yield f"Table {table.name} has {format_count(round(evidence.rows(table.name)))} rows."
    blocks, returned = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is not None and statement.calls and returned is not None:
        yield (
            f"Each of {count_words(statement.calls, 'call')} reads {count_words(round(blocks), 'block')} and "
            f"returns or changes {count_words(round(returned), 'row')}."
        )
    for policy in statement.policies:
        if policy.table == table.name:
            yield (
                f"For role {statement.role}, policy {policy.name} of the table adds the condition "
                f"{policy.condition}."
            )
    if statement.mean_ns:
        yield f"A call takes {format_duration(statement.mean_ns)}."
    node = problem.read.node
    if node is not None and node.condition("Filter"):
        yield f"The plan has {node.kind} on {table.name}, with the filter {node.condition('Filter')}."
    if problem.is_doubted:
        yield (
            f"By the planner's costs, an index may save {share_text(problem.fraction)} of the time. Such "
            "estimates are often wrong by a factor of two, so measure the index on a copy with uncork cure."
        )
