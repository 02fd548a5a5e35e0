"""Columns that have an index, in a condition that keeps statements from using it. Pure."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.diagnosis.changes import client_change, index_change, statement_change
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rule import finding, rule
from uncork.diagnosis.rules.indexes.estimates import fraction, index_cost, pages, rows_per_value, scan_cost
from uncork.diagnosis.rules.indexes.keys import Served, Wanted, key_name, merge, served_by, serves
from uncork.diagnosis.rules.indexes.missing_index import (
    bare,
    columns_text,
    contained,
    index_candidate,
    index_candidates,
)
from uncork.diagnosis.rules.indexes.problems import (
    INTEGERS,
    Obstacle,
    Obstruction,
    Problem,
    fractions_of,
    problems,
    read_sentences,
)
from uncork.diagnosis.rules.indexes.reads import blocks_a_call
from uncork.diagnosis.rules.indexes.uses import is_aggregated, large_tables
from uncork.diagnosis.rules.plans.rewrite import (
    also_as_stored,
    also_in_day,
    as_range,
    union_of_parts,
    with_type,
)
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate, StatementShape
from uncork.model.units import count_words, format_count, series_words

# ---- an OR over columns of several tables, which PostgreSQL tests after it has joined whole tables ----
#
# Each part of the OR could begin with an index of its own table, but one plan begins with one table. See
# "Combining Multiple Indexes" in PostgreSQL's manual, which combines indexes of one table only.


_READS_WHOLE: Final = 0.5
"""Blocks per call, as a fraction of the largest table's blocks, from which on a call scanned that table."""
_LEAST_SAVED: Final = 0.5
"""Fraction of a statement's time that searches by indexes must save, as for a missing index."""
_SELECTIVE: Final = 0.05
"""Fraction of the largest table's rows up to which a call needs few rows, as for a missing index."""
_CALLS: Final = 5
_UNKNOWN: Final = 0.01
"""Assumed fraction of an equality without statistics, as for a missing index."""
_OR_PROOF: Final = "Compare the statement with each candidate and without in uncork run."


@dataclass(frozen=True, slots=True)
class _Split:
    """A statement in parts, one for each condition of its OR: what they want, and the time that they save."""

    statement: Statement
    parts: tuple[Served, ...]
    missing: tuple[Wanted, ...]
    saved: float
    node: PlanNode | None


def _across_tables(evidence: Evidence) -> Iterator[Finding]:
    for statement in evidence.costliest():
        found = None if statement.number < 0 else _split(statement, evidence)
        if found is None:
            continue
        predicates = [part.predicate for part in found.parts]
        tables = tuple(dict.fromkeys(predicate.table for predicate in predicates))
        names = [f"{part.predicate.table}.{bare(key_name(part.key))}" for part in found.parts]
        yield finding(
            f"No index serves the OR over {series_words(names)}, so calls join whole tables",
            *_or_candidates(found, evidence),
            objects=(
                *tables,
                *dict.fromkeys(predicate.column for predicate in predicates if predicate.column),
            ),
            bill=evidence.bill_of({statement.number: found.saved}),
            statements=[statement],
            evidence=_or_evidence(found, tables, evidence),
            proof=_OR_PROOF,
        )


def _split(statement: Statement, evidence: Evidence) -> _Split | None:
    """Return a statement in parts if its OR makes calls read whole tables for few rows, else None."""
    blocks = blocks_a_call(statement)
    if blocks is None or (statement.calls or 0) < _CALLS:
        return None
    shape = statement.shape
    if shape.kind != "select":
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
        found = (large[name] for name in tables if name in large)
        largest = max(found, key=lambda table: table.bytes or 0, default=None)
        if largest is None or not _is_joined(shape, group):
            continue
        returned, most = _returned(statement, shape) or 0.0, _SELECTIVE * evidence.rows(largest.name)
        if blocks < _READS_WHOLE * pages(largest, evidence) or returned > most:
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
            other = predicate.other
            plain = predicate.operator == "=" and not predicate.alternative and not predicate.cast
            if not plain or other is None or not predicate.column:
                continue
            sides = [(predicate.table, predicate.column), (other.table, other.column)]
            for (start, _), (end, column) in (sides, sides[::-1]):
                if start == current and end and end not in reached:
                    reached.add(end)
                    waiting.append(end)
                    yield end, column


def _tested(statement: Statement, group: Sequence[Predicate]) -> PlanNode | None:
    """Return the join of a statement's plan that tests the OR; None if there is none."""
    for node in statement.nodes:
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
        each for each in wanted if not any(serves(index, each) for index in evidence.index_shapes(each.table))
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


def _or_evidence(found: _Split, tables: Sequence[str], evidence: Evidence) -> Iterator[str]:
    statement = found.statement
    sizes = [f"{name} {format_count(round(evidence.rows(name)))}" for name in tables]
    yield f"Rows of the tables: {', '.join(sizes)}."
    blocks, returned = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is not None and returned is not None and statement.calls:
        yield (
            f"Each of {count_words(statement.calls, 'call')} reads {count_words(round(blocks), 'block')} "
            f"and returns {count_words(round(returned), 'row')}."
        )
    if found.node is not None:
        text = found.node.condition("Join Filter") or found.node.condition("Filter")
        inputs = [format_count(round(child.rows)) for child in found.node.children]
        yield (
            f"The plan has a {found.node.kind} of {' and '.join(inputs)} rows, which tests {text} "
            "for the joined rows."
        )
    yield "PostgreSQL combines indexes of one table for an OR, but not those of several tables."


def _or_candidates(found: _Split, evidence: Evidence) -> Iterator[Candidate]:
    statement, shape = found.statement, found.statement.shape
    plain = not (shape.order or shape.limit or shape.distinct or shape.locking or is_aggregated(shape))
    sql = union_of_parts(statement.sql, len(found.parts)) if plain else ""
    around = "" if plain else " Put the rest of the statement (ORDER BY, LIMIT, aggregates) around it."
    needed = ("Without the missing indexes, it scans the tables several times.",) if found.missing else ()
    yield statement_change(
        "Write the statement as a UNION ALL with one part of the OR in each SELECT. A later SELECT "
        f"excludes the rows of the earlier ones, so that the rows stay the same.{around}",
        "The statement has to be changed wherever it is sent.",
        *needed,
        sql=sql,
        undo=statement.sql if sql else "",
    )
    for merged in merge(found.missing):
        yield from index_candidates(merged.index, evidence, merged.extension)


_SHORTENED: Final = frozenset({"character", "bit"})
"""Types that a cast without a length shortens to one."""
_DAY_TEXT: Final = re.compile(r'[("]*[\w$]+[)"]*::date\)?::(?:text|varchar|charactervarying)')
"""The day of a column as text, without spaces: ``created_at::date::text``."""
_PROOF: Final = "Compare the statements with each candidate and without in uncork run."


@rule("index-not-usable", depth=2)
def find_unusable_indexes(evidence: Evidence) -> Iterator[Finding]:
    """Find a column that has an index, in a condition that keeps statements from using it."""
    groups: dict[tuple[str, str, str, str], list[Problem]] = {}
    for problem in problems(evidence):
        if problem.obstacle is not None and problem.obstacle.kind != "invalid":
            side = problem.obstacle.predicate.column or problem.obstacle.predicate.expression
            key = (problem.use.table.name, problem.obstacle.kind, problem.obstacle.index, side)
            groups.setdefault(key, []).append(problem)
    for mine in groups.values():
        fractions = fractions_of(mine)
        first, why = mine[0], mine[0].obstacle
        if why is None:
            continue
        yield finding(
            _headline(first, why),
            *_candidates(mine, why, evidence),
            objects=(first.use.table.name, *((why.index,) if why.index else ()), *_columns(why.predicate)),
            bill=evidence.bill_of(fractions),
            templates=fractions,
            text=first.statement.text,
            evidence=_evidence(first, why, evidence),
            proof=_PROOF,
        )
    yield from _across_tables(evidence)


def _headline(problem: Problem, why: Obstacle) -> str:
    table, column, index = problem.use.table.name, why.predicate.column, f"index {why.index}"
    keys = columns_text(problem.want.wanted.shape.keys)
    texts: dict[Obstruction, str] = {
        "cast": f"The cast of {column} to {why.predicate.cast} keeps {index} of {table} from use",
        "expression": f"Index {why.index} of {table} does not serve {bare(why.predicate.expression)}",
        "type": f"Comparing {column} with {why.type or 'another type'} keeps {index} of {table} from use",
        "pattern": f"Index {why.index} of {table} serves no LIKE on {column}",
        "wildcard": f"Patterns that begin with a wildcard cannot use {index} of {table}",
        "not leading": f"Index {why.index} of {table} does not begin with {keys}",
        "operator": f"= ANY ({column}) cannot use {index} of {table}, which has the operator @>",
        "or": f"Patterns in an OR cannot use the indexes of {table}"
        if why.predicate.operator in ("like", "ilike", "~", "~*")
        else f"The OR in a condition keeps statements from using an index of {table}",
    }
    return texts[why.kind]


def _columns(predicate: Predicate) -> tuple[str, ...]:
    return (predicate.column,) if predicate.column else predicate.columns


def _evidence(problem: Problem, why: Obstacle, evidence: Evidence) -> Iterator[str]:
    yield from read_sentences(problem, evidence)
    column = evidence.column(problem.use.table.name, why.predicate.column) if why.predicate.column else None
    if why.kind == "type" and column is not None:
        yield (
            f"Column {column.name} has the type {column.type}. PostgreSQL converts each of its values to "
            f"{why.type or 'the type of the parameter'} before it compares them, so the index does not apply."
        )
    if why.kind == "pattern":
        yield (
            "A B-tree in a collation other than C is not in the order of characters, which LIKE "
            "needs to search for a prefix."
        )
    if why.kind == "not leading":
        yield "A B-tree on several columns is in the order of its first column."


def _candidates(mine: Sequence[Problem], why: Obstacle, evidence: Evidence) -> Iterator[Candidate]:
    first = mine[0]
    if why.kind == "type":
        yield from _types(why, first, evidence)
        return
    if why.kind == "or":
        yield from _for_or(first, evidence)
        return
    if why.kind == "operator":
        yield contained(first, evidence)
        return
    rewritten, sql = _rewritten(why.predicate, first, evidence)
    if rewritten:
        yield statement_change(
            rewritten,
            "The statement has to be changed wherever it is sent.",
            *_strict(why.predicate),
            sql=sql,
            undo=first.statement.sql if sql else "",
        )
    if not first.want.served:  # no index on the expression is possible
        if not rewritten:
            yield statement_change(
                f"Compare {' and '.join(_columns(why.predicate))} itself: an index on the "
                "expression is impossible, because its value depends on settings of the session."
            )
        return
    if why.kind == "pattern" and first.want.wanted.extension:
        key = IndexKey(why.predicate.column, opclass="text_pattern_ops")
        plain = replace(first.want.wanted.shape, keys=(key,), method="btree")
        text = f"If no pattern begins with a wildcard, index {key.column} in the order of characters."
        yield index_candidate(plain, text, evidence)
    for merged in merge([problem.want.wanted for problem in mine]):
        yield from index_candidates(merged.index, evidence, merged.extension)


def _types(why: Obstacle, problem: Problem, evidence: Evidence) -> Iterator[Candidate]:
    column = evidence.column(problem.use.table.name, why.predicate.column)
    kind = "bigint" if column is None else column.type
    text = f"Cast the parameter, not the column: {why.predicate.column} {_sign(why.predicate)} $1::{kind}."
    before, sql = _typed(why, problem, kind)
    if sql:
        known = "" if why.type else " The type that the client gives to the parameter is assumed."
        yield statement_change(
            f"{text} The old condition stays, because a rounded value could match another row.{known}",
            f"A value outside of the range of {kind} becomes an error.",
            sql=sql,
            undo=before,
        )
    else:
        yield statement_change(
            text,
            "A value that is no whole number is rounded, and can then match a row.",
            same_answers=not kind.startswith(("small", "int", "big")) or why.predicate.value == "constant",
        )
    yield client_change(
        f"Send the parameter as {kind} from the client: declare its type in the code or the mapping."
    )


def _typed(why: Obstacle, problem: Problem, kind: str) -> tuple[str, str]:
    """Return the statement with the type of its parameter, and its rewritten form; empty if there is none.

    Only the client knows the type of a parameter without a cast. All types that a client may give and that
    keep the index from use make PostgreSQL convert the column, so one of them stands for the others.
    """
    column, given = why.predicate.column, why.predicate.value_cast
    if why.predicate.operator != "=" or kind not in INTEGERS:
        return "", ""
    before = problem.statement.sql
    if not given:
        given = why.type or "numeric"
        before = with_type(before, column, given)
    return before, also_as_stored(before, column, kind, value_cast=given)


def _sign(predicate: Predicate) -> str:
    return "= ANY" if predicate.operator == "in" else predicate.operator


def _for_or(problem: Problem, evidence: Evidence) -> Iterator[Candidate]:
    if not problem.use.alone:
        yield statement_change(
            "Write the statement as a UNION with a part of the OR in each arm, so that each can "
            "use its own index.",
            "UNION removes duplicate rows: select a key of each table, or exclude the other part.",
            same_answers=False,
        )
    found = [
        list(index_candidates(merged.index, evidence, merged.extension))
        for merged in merge([want.wanted for want in problem.arms])
    ]
    if len(found) > 1:
        yield _all_of([each[0] for each in found])
    yield from itertools.chain.from_iterable(found)


def _all_of(indexes: Sequence[Candidate]) -> Candidate:
    """Return the candidate of several indexes: an OR uses none as long as one of its parts has none."""
    lines = dict.fromkeys(line for index in indexes for line in index.sql.splitlines())
    return index_change(
        f"Create an index for each of the {len(indexes)} parts of the OR.",
        *dict.fromkeys(text for index in indexes for text in index.against),
        sql="\n".join(lines),
        undo="\n".join(index.undo for index in reversed(indexes)),
    )


def _rewritten(predicate: Predicate, problem: Problem, evidence: Evidence) -> tuple[str, str]:
    """Return the condition that means the same and compares the column itself, and the statement with it.

    Both are empty if there is none; the statement is empty if its text is not recognised.
    """
    column = predicate.column or (predicate.columns[0] if len(predicate.columns) == 1 else "")
    facts = evidence.column(problem.use.table.name, column)
    if facts is None:
        return "", ""
    text, sql = predicate.expression.lower().replace(" ", ""), problem.statement.sql
    equal, dated = predicate.operator == "=", facts.type.startswith("timestamp")
    if equal and dated and (predicate.cast == "date" or text == f"date({column})"):
        words = f"Compare the column with a range: {column} >= $1::date AND {column} < $1::date + 1."
        return words, as_range(sql, column)
    if equal and dated and _DAY_TEXT.fullmatch(text):
        day = "$1::text::date"
        words = (
            f"Compare the column with the bounds of the day, too: {column} >= {day} AND {column} < {day} + 1."
            " The old condition stays, because a text in another format of dates could match another row."
        )
        return words, also_in_day(sql, column)
    if equal and dated and text.startswith("date_trunc('"):
        zone = re.search(r" AT TIME ZONE '[^']+'", predicate.expression, re.IGNORECASE)
        unit = text.split("'")[1]
        first, end = "$1", f"$1 + interval '1 {unit}'"
        if zone is not None:
            first, end = f"($1{zone[0]})", f"(({end}){zone[0]})"
        return f"Compare the column with a range: {column} >= {first} AND {column} < {end}.", ""
    texts = () if facts.type in ("text", "json") else ("text", "character varying")
    if predicate.cast not in (*texts, "numeric", "double precision", "bigint"):
        return "", ""
    stored = ""
    if equal and not dated and facts.type not in _SHORTENED:
        stored = also_as_stored(sql, column, facts.type, cast=predicate.cast)
    return f"Cast the value instead of the column: {column} {_sign(predicate)} $1::{facts.type}.", stored


def _strict(predicate: Predicate) -> Iterator[str]:
    day_text = _DAY_TEXT.fullmatch(predicate.expression.lower().replace(" ", ""))
    if day_text or (predicate.cast and predicate.cast != "date"):
        yield "A value that the column's type cannot have becomes an error instead of finding no row."
