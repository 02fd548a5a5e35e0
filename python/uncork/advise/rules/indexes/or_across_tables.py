"""An OR over columns of several tables, which PostgreSQL tests after it has joined whole tables. Pure.

Each part of the OR could begin with an index of its own table, but one plan begins with one table. See
"Combining Multiple Indexes" in PostgreSQL's manual, which combines indexes of one table only.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.indexes.estimates import (
    fraction,
    index_cost,
    pages,
    rows_per_value,
    scan_cost,
)
from uncork.advise.rules.indexes.keys import Served, served_by
from uncork.advise.rules.indexes.merging import Wanted, key_name, merge, serves
from uncork.advise.rules.indexes.obstacles import own_indexes
from uncork.advise.rules.indexes.proposals import bare, index_candidates
from uncork.advise.rules.indexes.reads import blocks_a_call
from uncork.advise.rules.indexes.uses import is_aggregated, large_tables
from uncork.advise.rules.plans.rewrite import union_of_parts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey
from uncork.model.units import count_words, format_count, series_words

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode
    from uncork.model.database.statement import Predicate, StatementShape
    from uncork.model.results.database import TableFacts

_READS_WHOLE: Final = 0.5
"""Blocks per call, as a fraction of the largest table's blocks, from which on a call scanned that table."""
_LEAST_SAVED: Final = 0.5
"""Fraction of a statement's time that searches by indexes must save, as for a missing index."""
_SELECTIVE: Final = 0.05
"""Fraction of the largest table's rows up to which a call needs few rows, as for a missing index."""
_CALLS: Final = 5
_UNKNOWN: Final = 0.01
"""Assumed fraction of an equality without statistics, as for a missing index."""
_PROOF: Final = "Compare the statement with each candidate and without in uncork run."


@dataclass(frozen=True, slots=True)
class _Split:
    """A statement in parts, one for each condition of its OR: what they want, and the time that they save."""

    statement: Statement
    parts: tuple[Served, ...]
    missing: tuple[Wanted, ...]
    saved: float
    node: PlanNode | None


def across_tables(evidence: Evidence, rule: str) -> Iterator[Finding]:
    """Yield the findings about ORs over columns of several tables, as findings of a rule."""
    for statement in evidence.costliest():
        found = None if statement.number < 0 else _split(statement, evidence)
        if found is None:
            continue
        predicates = [part.predicate for part in found.parts]
        tables = tuple(dict.fromkeys(predicate.table for predicate in predicates))
        yield Finding(
            rule,
            f"No index serves the OR over {series_words(_names(found.parts))}, so calls join whole tables",
            objects=(
                *tables,
                *dict.fromkeys(predicate.column for predicate in predicates if predicate.column),
            ),
            bill=evidence.bill_of({statement.number: found.saved}),
            templates=(statement.number,),
            statement=statement.text,
            evidence=tuple(_evidence(found, tables, evidence)),
            candidates=tuple(_candidates(found, evidence)),
            proof=_PROOF,
        )


def _names(parts: Sequence[Served]) -> list[str]:
    return [f"{part.predicate.table}.{bare(key_name(part.key))}" for part in parts]


def _split(statement: Statement, evidence: Evidence) -> _Split | None:
    """Return a statement in parts if its OR makes calls read whole tables for few rows, else None."""
    blocks = blocks_a_call(statement)
    if blocks is None or (statement.calls or 0) < _CALLS:
        return None
    shape = statement.shape
    if shape is None or shape.kind != "select":
        return None
    if shape.limit and not shape.order:
        return None  # it stops early
    groups: dict[int, list[Predicate]] = defaultdict(list)
    for predicate in shape.predicates:
        if predicate.alternative:
            groups[predicate.group].append(predicate)
    large = large_tables(evidence)
    for group in groups.values():
        tables = {each.table for each in group}
        known = [served_by(each, each.table, evidence) if each.table else None for each in group]
        parts = tuple(each for each in known if each is not None and each.role == "equal")
        if len(tables) < 2 or len(parts) < len(group) or any(each.clause != "where" for each in group):
            continue
        largest = max((large[name] for name in tables if name in large), key=_size, default=None)
        if (
            largest is None
            or blocks < _READS_WHOLE * pages(largest, evidence)
            or not _is_joined(shape, group)
        ):
            continue
        if (_returned(statement, shape) or 0.0) > _SELECTIVE * evidence.rows(largest.name):
            continue
        node = _tested(statement, group)
        if statement.plan is not None and node is None:
            continue  # the plan does not test it after a join
        new, wanted = 0.0, list[Wanted]()
        for part in parts:
            cost, needed = _searched(part, shape, statement, evidence)
            new, wanted = new + cost, [*wanted, *needed]
        saved = 1 - new / max(1e-9, _cost(statement, tables, evidence))
        if saved >= _LEAST_SAVED:
            return _Split(statement, parts, tuple(dict.fromkeys(wanted)), saved, node)
    return None


def _size(table: TableFacts) -> int:
    return table.bytes or 0


def _returned(statement: Statement, shape: StatementShape) -> float | None:
    """Return how many rows a call needs; None if it returns fewer rows than it needs."""
    return None if shape.limit or is_aggregated(shape) else statement.a_call(statement.rows)


def _is_joined(shape: StatementShape, group: Sequence[Predicate]) -> bool:
    """Return whether the tables of an OR are joined by columns, in the query that has the OR, once each."""
    (level, *others) = {each.level for each in group}
    names = Counter(use.name for use in shape.tables)
    here = {use.name for use in shape.tables if use.level == level and use.kind == "table"}
    tables = {each.table for each in group}
    if others or not tables <= here or any(names[name] > 1 for name in tables):
        return False
    reached = {step for step, _ in _steps(next(iter(tables)), shape)}
    return tables <= {*reached, next(iter(tables))}


def _steps(table: str, shape: StatementShape) -> Iterator[tuple[str, str]]:
    """Yield the tables that joins reach from one table, each with the column that is compared."""
    reached, waiting = {table}, deque([table])
    while waiting:
        current = waiting.popleft()
        for predicate in shape.predicates:
            if (
                predicate.operator != "="
                or predicate.other is None
                or predicate.alternative
                or predicate.cast
                or not predicate.column
            ):
                continue
            sides = [(predicate.table, predicate.column), (predicate.other.table, predicate.other.column)]
            for (start, _), (end, column) in (sides, sides[::-1]):
                if start == current and end and end not in reached:
                    reached.add(end)
                    waiting.append(end)
                    yield end, column


def _tested(statement: Statement, group: Sequence[Predicate]) -> PlanNode | None:
    """Return the join of a statement's plan that tests the OR; None if there is none."""
    if statement.plan is None:
        return None
    for node in statement.plan.root.walk():
        text = f"{node.condition('Join Filter')} {node.condition('Filter')}"
        columns = [name for each in group for name in (each.column, *each.columns) if name]
        if not node.relation and " OR " in text and all(name in text for name in columns):
            return node
    return None


def _searched(
    part: Served, shape: StatementShape, statement: Statement, evidence: Evidence
) -> tuple[float, list[Wanted]]:
    """Return the cost of a part that begins with its own table, and the indexes that it needs and lacks."""
    table = part.predicate.table
    found = fraction(part.predicate, table, evidence)
    returned = _returned(statement, shape)
    rows = evidence.rows(table) * (_UNKNOWN if found is None else found)
    if found is None and returned is not None:
        rows = min(rows, max(1.0, returned))
    cost = _search(table, rows, evidence)
    wanted = [Wanted(table, (part.key,))] if table in large_tables(evidence) else []
    for other, column in _steps(table, shape):
        each = rows_per_value(other, column, evidence) or 1.0
        cost += rows * _search(other, each, evidence)
        rows *= each
        if other in large_tables(evidence):
            wanted.append(Wanted(other, (IndexKey(column),)))
    missing = [
        each for each in wanted if not any(serves(index, each) for index in own_indexes(each.table, evidence))
    ]
    return cost, missing


def _search(table: str, rows: float, evidence: Evidence) -> float:
    facts = evidence.tables.get(table)
    return 0.0 if facts is None else min(index_cost(facts, rows, evidence), scan_cost(facts, evidence))


def _cost(statement: Statement, tables: set[str], evidence: Evidence) -> float:
    """Return the planner's cost of a call now."""
    if statement.plan is not None and statement.plan.root.cost:
        return statement.plan.root.cost
    return sum(scan_cost(evidence.tables[name], evidence) for name in tables if name in evidence.tables)


def _evidence(found: _Split, tables: Sequence[str], evidence: Evidence) -> Iterator[str]:
    one = found.statement
    sizes = [f"{name} {format_count(round(evidence.rows(name)))}" for name in tables]
    yield f"Rows of the tables: {', '.join(sizes)}."
    blocks, returned = blocks_a_call(one), one.a_call(one.rows)
    if blocks is not None and returned is not None and one.calls:
        yield (
            f"Each of {count_words(one.calls, 'call')} reads {count_words(round(blocks), 'block')} and "
            f"returns {count_words(round(returned), 'row')}."
        )
    if found.node is not None:
        text = found.node.condition("Join Filter") or found.node.condition("Filter")
        inputs = [format_count(round(child.rows)) for child in found.node.children]
        yield (
            f"The plan has a {found.node.kind} of {' and '.join(inputs)} rows, which tests {text} for the "
            "joined rows."
        )
    yield "PostgreSQL combines indexes of one table for an OR, but not those of several tables."


def _candidates(found: _Split, evidence: Evidence) -> Iterator[Candidate]:
    one, shape = found.statement, found.statement.shape
    plain = shape is not None and not (
        shape.order or shape.limit or shape.distinct or shape.locking or is_aggregated(shape)
    )
    sql = union_of_parts(one.sql, len(found.parts)) if plain else ""
    around = "" if plain else " Put the rest of the statement (ORDER BY, LIMIT, aggregates) around it."
    needed = ("Without the missing indexes, it scans the tables several times.",) if found.missing else ()
    yield Candidate(
        "statement",
        "Write the statement as a UNION ALL with one part of the OR in each SELECT. A later SELECT excludes "
        f"the rows of the earlier ones, so that the rows stay the same.{around}",
        sql=sql,
        undo=one.sql if sql else "",
        against=("The statement has to be changed wherever it is sent.", *needed),
    )
    for merged in merge(found.missing):
        yield from index_candidates(merged.index, evidence, merged.extension)
