"""How a statement uses each large table, and which index that use wants. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import (
    RANGES,
    fraction,
    fraction_of_all,
    index_cost,
    keeps_apart,
    pages,
    rows_per_value,
)
from uncork.diagnosis.rules.indexes.keys import Served, Wanted, collated_key, served_by
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS, rows_returned
from uncork.model.database.index import IndexKey
from uncork.model.database.names import quoted
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import ColumnName, OrderKey, Predicate, StatementShape, TableUse

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_HOLE: Final = re.compile(r"\\\$\d+|(?<!\w)\\\?(?!\w)")
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")
_VALUE: Final = r"'(?:[^']|'')*'|-?\d+(?:\.\d+)?"
_EXTREME: Final = re.compile(r'\b(min|max)\((?:"?[\w$]+"?\.)?"?([\w$]+)"?\)')
_NUMBERED: Final = re.compile(r"_\d+$")
_TEXTS: Final = ("character varying", "text")
_CONDITIONS: Final = ("Filter", "Index Cond", "Recheck Cond")
_PASSING: Final = frozenset({"Limit", "LockRows", "Sort", "Incremental Sort", "Gather", "Gather Merge"})
"""Nodes that pass the rows of one table on: those of a LIMIT, sorted, locked (FOR UPDATE), from workers."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a table in a statement.

    `predicates` must all hold; `joins` of them compare with a column of another table. Of each group in
    `alternatives` one must hold. `order` are the keys of ORDER BY if LIMIT needs only the first rows.
    """

    table: TableFacts
    alias: str
    predicates: tuple[Predicate, ...]
    alternatives: tuple[tuple[Predicate, ...], ...] = ()
    order: tuple[OrderKey, ...] = ()
    alone: bool = True

    @property
    def joins(self) -> tuple[Predicate, ...]:
        """Return the predicates that join the table to another."""
        return tuple(predicate for predicate in self.predicates if predicate.value == "column")


def large_tables(evidence: Evidence) -> dict[str, TableFacts]:
    """Return the tables that are large enough for an index, by name."""
    return {
        name: table
        for name, table in evidence.tables.items()
        if evidence.rows(name) >= LARGE_ROWS and table.bytes
    }


def uses_of(statement: Statement, evidence: Evidence) -> Iterator[Use]:
    """Yield the uses of large tables in a statement, in the order of the text."""
    large = large_tables(evidence)
    if not large or statement.shape.kind not in ("select", "update", "delete", "insert", "merge"):
        return
    shape = statement.shape
    predicates = [*shape.predicates, *_turned(shape)]
    names, aliases = Counter(use.name for use in shape.tables), {use.alias for use in shape.tables}
    same = Counter((use.name, use.alias) for use in shape.tables)
    alone = sum(use.kind in ("table", "subquery", "function") for use in shape.tables) == 1
    for use in shape.tables:
        if use.kind != "table" or use.name not in large or (shape.kind == "insert" and use.changed):
            continue
        unaliased = () if use.name in aliases else (use.name,)
        mine = [
            _with_constants(predicate, statement)
            for predicate in predicates
            if (predicate.table == use.name or (alone and not predicate.table))
            and predicate.clause != "having"
            and (predicate.alias in ("", use.alias, *unaliased) or names[use.name] == 1)
            and (same[use.name, use.alias] == 1 or predicate.level == use.level)
            and not _for_each_row(predicate, statement)
        ]
        groups: dict[int, list[Predicate]] = defaultdict(list)
        for predicate in predicates:
            if predicate.alternative:
                groups[predicate.group].append(_with_constants(predicate, statement))
        touched = {predicate.group for predicate in mine if predicate.alternative}
        yield Use(
            large[use.name],
            use.alias,
            tuple(predicate for predicate in mine if not predicate.alternative),
            tuple(tuple(groups[number]) for number in sorted(touched)),
            _order(shape, use, statement),
            alone,
        )
    yield from _behind_views(statement, shape, evidence)


def _behind_views(statement: Statement, shape: StatementShape, evidence: Evidence) -> Iterator[Use]:
    """Yield the uses of tables that a statement reads through views: its plan has them."""
    large, named = large_tables(evidence), {use.name for use in shape.tables}
    scans = [node for node in statement.nodes if node.relation]
    for node in scans if named & {view.name for view in evidence.catalogue.views} else ():
        name = table_of(node, evidence)
        if node.kind == "Seq Scan" and name in large and name not in named:
            found = [_as_stored(predicate, name, evidence) for predicate in evidence.take_filter(node)]
            must = tuple(predicate for predicate in found if not predicate.alternative)
            yield Use(large[name], node.alias, must, alone=len(scans) == 1)


def _as_stored(predicate: Predicate, table: str, evidence: Evidence) -> Predicate:
    """Return a predicate of a plan without the cast of a column to text that changes no value.

    PostgreSQL prints one for each column of the type varchar. The table of a partition is the whole.
    """
    column = evidence.column(table, predicate.column)
    same = predicate.cast == "text" and column is not None and column.type in _TEXTS
    return replace(predicate, table=table, cast="" if same else predicate.cast)


def is_aggregated(shape: StatementShape) -> bool:
    """Return whether the number of rows returned does not show how many were needed."""
    return bool(shape.aggregates or shape.grouping or shape.distinct or shape.windows or shape.unions)


def table_of(node: PlanNode, evidence: Evidence) -> str:
    """Return the table of a node; for a partition, the partitioned table."""
    name = node.relation
    for _ in range(8):  # partitions of partitions
        options = evidence.catalogue.options.get(name)
        if options is None or not options.parent:
            break
        name = options.parent
    return name


def is_named(node: PlanNode, alias: str) -> bool:
    """Return whether a node reads a table under an alias; EXPLAIN numbers repeated ones: ``sale_1``."""
    return node.alias == alias or _NUMBERED.sub("", node.alias) == alias


def nodes_of(statement: Statement, table: str, evidence: Evidence) -> Iterator[PlanNode]:
    """Yield the nodes of a statement's best plan that read a table."""
    for node in statement.nodes:
        if node.relation and node.kind != "ModifyTable" and table_of(node, evidence) == table:
            yield node


def _order(shape: StatementShape, use: TableUse, statement: Statement) -> tuple[OrderKey, ...]:
    """Return the keys by which a LIMIT takes the first rows of a table; nothing if it needs other rows too.

    The plan shows the LIMIT of a subquery.
    """
    if shape.aggregates:
        return _extreme(shape, use, statement)
    limited = shape.limit and not is_aggregated(shape) if use.level == 0 else _limited(use, statement)
    found = tuple(key for key in shape.order if key.level == use.level) if limited else ()
    return found if all(key.table == use.name and (key.column or key.expression) for key in found) else ()


def _extreme(shape: StatementShape, use: TableUse, statement: Statement) -> tuple[OrderKey, ...]:
    """Return the column whose smallest or largest value is all that a statement computes of a table.

    An index on it has that value at its end. The plan shows the column: ``max(no)``.
    """
    if shape.grouping or not set(shape.aggregates) <= {"min", "max"}:
        return ()
    for node in statement.nodes:
        scan = node.children[0] if node.kind == "Aggregate" and len(node.children) == 1 else node
        if scan is node or not scan.relation or not is_named(scan, use.alias):
            continue
        found = {(match[1], match[2]) for text in node.output for match in _EXTREME.finditer(text)}
        if len({column for _, column in found}) == 1:
            name, column = min(found)
            return (OrderKey(use.name, column, descending=name == "max", level=use.level),)
    return ()


def _limited(use: TableUse, statement: Statement) -> bool:
    """Return whether a plan reads the first rows of a table in a subquery, sorted or by an index."""
    for node in statement.nodes:
        below = node
        while below.kind in _PASSING and below.children:
            below = below.children[0]
        if node.kind == "Limit" and below.relation and is_named(below, use.alias):
            return True
    return False


def _turned(shape: StatementShape) -> Iterator[Predicate]:
    """Yield each join again from the other table's side, if that table is in the same query."""
    levels = {use.name: use.level for use in shape.tables}
    aliases = {use.name: use.alias for use in shape.tables}
    for predicate in shape.predicates:
        other = predicate.other
        plain = predicate.value == "column" and predicate.operator == "=" and not predicate.cast
        if not plain or other is None or not predicate.column:
            continue
        if other.table and other.table != predicate.table and levels.get(other.table) == predicate.level:
            yield replace(
                predicate,
                table=other.table,
                column=other.column,
                other=ColumnName(predicate.table, predicate.column),
                alias=aliases[other.table],
            )


def _with_constants(predicate: Predicate, statement: Statement) -> Predicate:
    """Return a predicate with the constants that a session sent, which the statement's text lacks.

    An index on ``payload ->> 'kind'`` needs the key; pg_stat_statements has ``payload ->> $1``. The
    plan of an executed statement has it.
    """
    texts = [text for node in statement.real_nodes for name in _CONDITIONS if (text := node.condition(name))]
    if predicate.operator in ("like", "ilike") and predicate.literal is None and predicate.column:
        for text in texts:
            found = re.search(rf"\b{re.escape(predicate.column)}\)?(?:::\w+)? ~~\*? '((?:[^']|'')*)'", text)
            if found is not None:
                return replace(predicate, literal=found[1])
    if predicate.operator in RANGES and predicate.literal is None and predicate.column and not predicate.cast:
        return replace(predicate, literal=_bounds_in_plans(predicate, statement))
    if not predicate.expression or not _HOLE.search(re.escape(predicate.expression)):
        return predicate
    pattern = _HOLE.sub(lambda _hole: r"('(?:[^']|'')*'|-?[\\d.]+)", re.escape(_bare(predicate.expression)))
    for text in texts:
        found = re.search(pattern, _bare(text))
        if found is not None:
            return replace(predicate, expression=_filled(predicate.expression, found.groups()))
    return predicate


def _for_each_row(predicate: Predicate, statement: Statement) -> bool:
    """Return whether a value comes from a subquery that depends on the row, so no index can search for it.

    Plans show such a subquery as a SubPlan; one that is executed once is an InitPlan, whose value is known.
    """
    if predicate.value != "subquery" or not predicate.column or predicate.operator == "in":
        return False
    column = rf"\(*\b{re.escape(predicate.column)}\"?\)?(?:::\w+)?"
    pattern = re.compile(rf"{column} \S+ \(SubPlan \d+\)|\(SubPlan \d+\) \S+ \(*(?:\w+\.)?{column}")
    return any(
        pattern.search(text)
        for plan in statement.plans
        for node in plan.root.walk()
        for _, text in node.conditions
    )


def _bounds_in_plans(predicate: Predicate, statement: Statement) -> str | None:
    """Return a range's bounds in a plan with real values, as `Predicate.literal`; None if it has none."""
    operators = (">=", "<=") if predicate.operator == "between" else (predicate.operator,)
    patterns = [
        re.compile(rf"\b{re.escape(predicate.column)}\"?\)?(?:::\w+)? {operator} ({_VALUE})")
        for operator in operators
    ]
    for node in statement.real_nodes:
        if node.relation and node.relation != predicate.table:
            continue
        for name in _CONDITIONS:
            found = [pattern.search(node.condition(name)) for pattern in patterns]
            values = [match[1] for match in found if match is not None]
            if len(values) == len(operators):
                return " and ".join(values)
    return None


def _filled(expression: str, values: Iterable[str]) -> str:
    parts = re.split(r"\$\d+|(?<!\w)\?(?!\w)", expression)
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=False))


def _bare(expression: str) -> str:
    """Return an expression without spaces, parentheses and casts outside of its constants."""
    parts = _QUOTED.split(expression)
    constants = [*_QUOTED.findall(expression), ""]
    bare = [
        re.sub(r"[\s()]", "", re.sub(r"::[a-z_]+(?: [a-z]+)*(?:\[\])?", "", part)).lower() for part in parts
    ]
    return "".join(part + constant for part, constant in zip(bare, constants, strict=True))


# ---- the index that a use of a table wants: its columns in order, its method, its condition ----


_FEW_ROWS: Final = 10.0
"""Rows for each combination of keys from which on another key saves nothing: they are in a few blocks."""
_ADDS: Final = 0.5
"""A key that leaves more than this fraction of the rows adds more to the index than it saves."""
_RARE: Final = 0.2
"""Fraction of the rows up to which a condition such as IS NULL makes a partial index much smaller."""
_UNKNOWN: Final = 0.01
"""Assumed fraction of an equality without statistics: PostgreSQL assumes 200 distinct values, 0.005."""
_MOST_KEYS: Final = 4
_STOPS_AFTER: Final = 0.1
"""Part of a table's blocks that a call must read to be a scan of it, not a search by an index."""
_ESTIMATED: Final = ("=", "in", "is null", "is true", "is false", "is not null")
_FIRST: Final = 10.0
"""Rows that are assumed to be read for the first ones of an order: in a subquery, or for min and max."""


@dataclass(frozen=True, slots=True)
class Want:
    """An index that a use of a table wants; `fetched` is how many rows a search by it fetches.

    `served` are the predicates that it serves. `ordered` is true if it returns rows in the order of LIMIT.
    """

    wanted: Wanted
    served: tuple[Served, ...]
    fetched: float
    ordered: bool = False


def passing(use: Use, statement: Statement, evidence: Evidence) -> float | None:
    """Return the measured or planned fraction of the rows that pass all predicates; None if unknown.

    The rows that a statement returns show it, unless it aggregates, joins or limits them. A generic plan, or
    one with drawn values, shows only that of equalities, because it does not know the bounds of ranges.
    """
    rows, shape = evidence.rows(use.table.name), statement.shape
    if not rows or not shape.kind:
        return None
    returned = statement.a_call(statement.rows)
    if returned is not None and use.alone and not is_aggregated(shape):
        if not shape.limit:
            return min(1.0, returned / rows)
        blocks = statement.a_call(statement.blocks)
        if not shape.order and blocks is not None and blocks >= _STOPS_AFTER * pages(use.table, evidence):
            # The scan stopped at the last row of LIMIT, after this part of the table.
            return min(1.0, returned / rows / min(1.0, blocks / pages(use.table, evidence)))
    plan = statement.plan
    is_guess = any(predicate.operator not in _ESTIMATED for predicate in use.predicates)
    if plan is None or (plan.source in ("generic", "drawn") and is_guess):
        return None
    if plan.source != "executed" and any(_is_assumed(predicate) for predicate in use.predicates):
        return None
    found = [rows_returned(node) for node in nodes_of(statement, use.table.name, evidence)]
    return min(1.0, sum(found) / rows) if found else None


def want_of(use: Use, statement: Statement, evidence: Evidence) -> Want | None:
    """Return the index that fetches rows of a use most cheaply; None if no index can."""
    return next(iter(wants_of(use, statement, evidence)), None)


def wants_of(use: Use, statement: Statement, evidence: Evidence) -> list[Want]:
    """Return the indexes that serve a use, the cheapest for one search first.

    A search by a join may be repeated for each row of the other table, so an index that serves the
    other conditions alone is one of them.
    """
    served = [
        found
        for predicate in use.predicates
        if (found := served_by(predicate, use.table.name, evidence)) is not None
    ]
    own = [each for each in served if each.predicate.value != "column"]
    trees = [
        _btree(use, some, statement, evidence) for some in ((served, own) if own != served else (served,))
    ]
    special = [_special(use, each, statement, evidence) for each in served]
    options = [want for want in (*trees, *special) if want is not None]
    return sorted(options, key=lambda each: index_cost(use.table, each.fetched, evidence))


def _is_assumed(predicate: Predicate) -> bool:
    """Return whether the planner assumes a constant fraction of rows, whatever the statistics say.

    It does for ``= ANY`` of a column of arrays, and for an expression, of which it has no statistics.
    """
    whole = not predicate.column and predicate.operator in ("=", "in") and keeps_apart(predicate.expression)
    return predicate.operator == "any" or (whole and bool(predicate.expression))


def _btree(use: Use, served: Sequence[Served], statement: Statement, evidence: Evidence) -> Want | None:
    table = use.table.name
    rows = evidence.rows(table)
    equal = [each for each in served if each.role == "equal"]
    ranked = sorted(equal, key=lambda each: _selectivity(each.predicate, table, evidence))
    condition = ""
    kept: list[Served] = []
    left = rows
    for each in ranked:
        part = _selectivity(each.predicate, table, evidence)
        if part > _ADDS or left <= _FEW_ROWS or len(kept) >= _MOST_KEYS:
            continue
        if each.predicate.operator in ("is null", "is true", "is false"):
            if part <= _RARE and not condition:
                condition = _condition(each.predicate)
                kept.append(each)
                left *= part
            continue
        kept.append(each)
        left *= part
    keys = tuple(dict.fromkeys(each.key for each in kept if not _condition(each.predicate)))
    ordered = bool(use.order) and left > _FEW_ROWS and not any(each.many for each in kept)
    ranges = [each for each in served if each.role == "range" and each.key not in keys]
    rest: tuple[IndexKey, ...] = ()
    if ordered:
        order = _order_keys(use.order, table, evidence)
        rest = tuple(key for key in order if key.column not in _columns(keys))
        bounded = [each for each in ranges if each.key.column in _columns(rest)]
        kept += bounded
    elif ranges and left > _FEW_ROWS:
        best = min(_by_key(ranges), key=lambda each: _fraction(each, table, evidence))
        if _fraction(best, table, evidence) <= _ADDS:
            rest, kept = (best[0].key,), [*kept, *best]
    if not keys and not rest:
        if not condition:
            return None
        rest = _any_key(table, evidence)
        if not rest:
            return None
    return Want(
        Wanted(table, keys, rest, predicate=condition),
        tuple(kept),
        _fetched(kept, use, statement, evidence, ordered=ordered and bool(rest)),
        ordered and bool(rest),
    )


def _special(use: Use, each: Served, statement: Statement, evidence: Evidence) -> Want | None:
    if each.role != "special":
        return None
    wanted = Wanted(use.table.name, (each.key,), method=each.method, extension=each.extension)
    return Want(wanted, (each,), _fetched([each], use, statement, evidence, ordered=False))


def _fetched(
    kept: Sequence[Served], use: Use, statement: Statement, evidence: Evidence, *, ordered: bool
) -> float:
    """Return how many rows a search by these predicates fetches, at most as many as a LIMIT shows."""
    rows = evidence.rows(use.table.name)
    found = [each.predicate for each in kept]
    estimate = fraction_of_all(found, use.table.name, evidence)
    part = _UNKNOWN if estimate is None else estimate
    measured = passing(use, statement, evidence)
    listed = any(each.predicate.operator == "in" and each.predicate.value == "subquery" for each in kept)
    if measured is not None and not use.joins and not listed:
        others = [
            predicate
            for predicate in use.predicates
            if predicate not in found and predicate.operator not in ("<>", "not in")
        ]
        part = measured if not others or measured > part else max(measured, min(part, 1.0))
    fetched = part * rows
    returned = statement.a_call(statement.rows)
    extreme = bool(statement.shape.aggregates)
    inner = any(key.level for key in use.order)
    first = returned if use.alone and not extreme else _FIRST if use.joins or extreme or inner else None
    if ordered and first is not None:
        others = [predicate for predicate in use.predicates if predicate not in found]
        rest = fraction_of_all(others, use.table.name, evidence) or 1.0
        fetched = min(fetched, max(1.0, first) / max(rest, 1e-3))
    return fetched


def _selectivity(predicate: Predicate, table: str, evidence: Evidence) -> float:
    part = fraction(predicate, table, evidence)
    unknown = _UNKNOWN if predicate.operator in ("=", "in") else _ADDS
    return unknown if part is None else part


def _by_key(found: Sequence[Served]) -> list[list[Served]]:
    """Group ranges by the key that serves them: the bounds of an interval belong together."""
    return [[each for each in found if each.key == key] for key in dict.fromkeys(each.key for each in found)]


def _fraction(found: Sequence[Served], table: str, evidence: Evidence) -> float:
    part = fraction_of_all([each.predicate for each in found], table, evidence)
    return _ADDS if part is None else part


def _condition(predicate: Predicate) -> str:
    words = {"is null": "IS NULL", "is true": "IS TRUE", "is false": "IS FALSE"}.get(predicate.operator)
    return f"{quoted(predicate.column)} {words}" if words and predicate.column else ""


def _columns(keys: Sequence[IndexKey]) -> set[str]:
    return {key.column for key in keys if key.column}


def _order_keys(order: Sequence[OrderKey], table: str, evidence: Evidence) -> tuple[IndexKey, ...]:
    """Return the keys of an order; an index is read backwards just as well, so one that falls only rises."""
    keys = tuple(
        replace(
            IndexKey(key.column) if key.column else collated_key(key.expression, table, evidence),
            descending=key.descending,
            nulls_first=key.nulls_first,
        )
        for key in order
    )
    if all(key.descending for key in keys):
        keys = tuple(
            replace(
                key, descending=False, nulls_first=None if key.nulls_first is None else not key.nulls_first
            )
            for key in keys
        )
    return tuple(replace(key, nulls_first=None) if key.nulls_first == key.descending else key for key in keys)


def _any_key(table: str, evidence: Evidence) -> tuple[IndexKey, ...]:
    """Return a short key for a partial index whose condition is all that a statement searches for."""
    for constraint in evidence.catalogue.constraints:
        if constraint.table == table and constraint.kind == "primary key" and len(constraint.columns) == 1:
            return (IndexKey(constraint.columns[0]),)
    columns = evidence.catalogue.columns.get(table, ())
    unique = [column.name for column in columns if rows_per_value(table, column.name, evidence) == 1.0]
    return tuple(IndexKey(name) for name in [*unique, *(column.name for column in columns)][:1])
