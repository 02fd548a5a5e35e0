"""How a statement uses each large table: which conditions must hold, and in which order rows come. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import RANGES
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import ColumnName, OrderKey, Predicate, StatementShape, TableUse
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
    shape = statement.shape if large else None
    if shape is None or shape.kind not in ("select", "update", "delete", "insert", "merge"):
        return
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
        if (
            predicate.value == "column"
            and predicate.other is not None
            and predicate.column
            and predicate.operator == "="
            and not predicate.cast
            and predicate.other.table
            and predicate.other.table != predicate.table
            and levels.get(predicate.other.table) == predicate.level
        ):
            yield replace(
                predicate,
                table=predicate.other.table,
                column=predicate.other.column,
                other=ColumnName(predicate.table, predicate.column),
                alias=aliases[predicate.other.table],
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
