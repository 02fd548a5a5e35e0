"""What each parameter of a statement is for: the column that it is compared with or stored in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from uncork.model.database.workload import SampleShape
from uncork.model.records import Record
from uncork.profile.shapes.nodes import children, function_name, kind_of, parsed
from uncork.profile.statement_parts import aliases_of, statement_parts
from uncork.profile.workload.compared import Compared, compared, shifts
from uncork.profile.workload.literals import opener_words

Role = Literal[
    "equal",
    "unequal",
    "listed",
    "array",
    "lower",
    "upper",
    "pattern",
    "stored",
    "added",
    "shift",
    "limit",
    "offset",
    "other",
]
"""Compared for equality, for inequality, in a list or as an array; a bound of a range; a pattern of LIKE; a
value that is stored; a number that is added to a column, or (shift) to another parameter; the number of rows
of LIMIT and OFFSET; none of these."""

_EQUAL: Final = frozenset({"=", "<>", "!="})
_ROLES: Final[dict[str, Role]] = {
    "": "stored",
    **dict.fromkeys((">", ">="), "lower"),
    **dict.fromkeys(("<", "<="), "upper"),
    **dict.fromkeys(("~~", "~~*", "!~~", "!~~*", "LIKE", "ILIKE"), "pattern"),
    **dict.fromkeys(("+", "-"), "added"),
}
_CONTAINS: Final = frozenset({"@>", "<@", "&&", "?", "@@", ">>=", "<<="})
_LISTS: Final = frozenset({"ANY", "ALL", "SOME"})
_STATEMENTS: Final = frozenset({"select_stmt", "insert_stmt", "update_stmt", "delete_stmt", "merge_stmt"})
_DIFFERENT: Final = frozenset({"FuncCall", "SQLValueFunction", "SetToDefault", "SubLink", "ColumnRef"})
_SAME_VALUES: Final = frozenset({"lower", "upper"})
_WRAPPERS: Final = frozenset({"CoalesceExpr", "CaseExpr", "MinMaxExpr", "A_Indirection"})
_CHANGES: Final = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})


class Parameter(Record):
    """A parameter (``$number``). `tables` is its column's table, or all if the statement leaves it open.

    `expression` is the SQL of what it is compared with, a column or more; it is empty if there is none.
    `columns` are the columns in it, each with its table, or all if the statement leaves it open. `shape` says
    what the parameter is to the expression.
    """

    number: int
    role: Role
    column: str = ""
    tables: tuple[str, ...] = ()
    expression: str = ""
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    shape: SampleShape = "value"


class TakenApart(Record):
    """A statement with $1: all its parameters, its tables, and whether it changes rows.

    `target` is the table of an INSERT, else empty. `inserted` maps the columns that it stores to parameters,
    in each row; 0 is an expression whose value may differ from execution to execution, such as a call or a
    default, and -1 another expression. `on_conflict` is true if it has that clause. It may return
    fewer rows than it reads with aggregates, GROUP BY or DISTINCT (`summed`), or with LIMIT (`limited`).
    `functions` are the names of the functions that it calls, in lower case and without a schema.
    """

    parameters: tuple[Parameter, ...]
    tables: tuple[str, ...]
    changes: bool
    target: str = ""
    inserted: tuple[Mapping[str, int], ...] = ()
    on_conflict: bool = False
    summed: bool = False
    limited: bool = False
    functions: tuple[str, ...] = ()

    @property
    def grouped(self) -> bool:
        """Whether it may return fewer rows than it reads."""
        return self.summed or self.limited


def take_apart(sql: str, columns: Mapping[str, Sequence[str]]) -> TakenApart | None:
    """Take a statement apart; None if the grammar rejects it, or if it is no query and changes no rows.

    `columns` are the names of the columns of known tables, in the order of the table.
    """
    tree = parsed(sql.strip().rstrip(";"))
    if tree is None or len(tree.stmts) != 1 or kind_of(tree.stmts[0].stmt) not in _STATEMENTS:
        return None
    parts = statement_parts(sql)
    if parts is None:
        return None
    node = tree.stmts[0].stmt
    target, inserted = "", list[Mapping[str, int]]()
    if kind_of(node) == "insert_stmt":
        target = _table(node.insert_stmt.relation)
        inserted = list(_inserted(node.insert_stmt, columns.get(target, ())))
    stored = {number: column for row in inserted for column, number in row.items() if number > 0}
    words = opener_words(sql)
    begun: set[tuple[str | None, str | None]] = set()
    arguments = set(_arguments(node, False))
    sides, aliases = compared(node), aliases_of(node)
    shifting = shifts(node)
    by_number = {part.number: part for part in parts.parts if part.number is not None}
    found = []
    for number in sorted(words):
        if number in stored:
            found.append(Parameter(number, "stored", stored[number], (target,)))
            continue
        if number in shifting and number not in sides:
            found.append(Parameter(number, "shift"))
            continue
        part = by_number.get(number)
        opener, before = words[number]
        role = _number_of_rows(before)
        if role is not None or part is None:
            found.append(Parameter(number, role or "other"))
            continue
        other = sides.get(number)
        if other is not None and (part.column is None or other.operator in _CONTAINS):
            found.append(_of_expression(number, other, opener, begun, aliases, parts.tables))
            continue
        ranged = (part.table, part.column)
        role = _role(part.operator, opener, ranged in begun)
        if role == "lower":
            begun.add(ranged)
        if part.column is None or number in arguments:
            role = "other"
        tables = parts.tables if part.table is None else (part.table,)
        one = Parameter(number, role, part.column or "", tables)
        found.append(one if other is None else _with_expression(one, other, aliases, parts.tables))
    names = {name for name, _ in _fields(node)}
    limited = "LIMIT" in sql.upper() or "FETCH" in sql.upper()
    return TakenApart(
        parameters=tuple(found),
        tables=parts.tables,
        changes=bool(names & _CHANGES),
        target=target,
        inserted=tuple(inserted),
        on_conflict=kind_of(node) == "insert_stmt" and node.insert_stmt.HasField("on_conflict_clause"),
        summed=bool(names & {"group_clause", "distinct_clause"}) or _aggregates(node),
        limited=limited,
        functions=tuple(dict.fromkeys(_functions(node))),
    )


def _of_expression(
    number: int,
    other: Compared,
    opener: str,
    begun: set[tuple[str | None, str | None]],
    aliases: Mapping[str, str],
    tables: Sequence[str],
) -> Parameter:
    """Return a parameter that is compared with an expression, or with a column in a comparison of rows."""
    ranged = ("", other.expression)
    role: Role = "equal" if other.operator in _CONTAINS else _role(other.operator, opener, ranged in begun)
    if role == "lower":
        begun.add(ranged)
    if role in ("added", "stored"):
        role = "other"
    return _with_expression(Parameter(number, role, other.column), other, aliases, tables)


def _with_expression(
    parameter: Parameter, other: Compared, aliases: Mapping[str, str], tables: Sequence[str]
) -> Parameter:
    columns = tuple(
        (name, tuple(tables) if not alias else (aliases[alias],) if alias in aliases else ())
        for alias, name in other.columns
    )
    return replace(
        parameter,
        tables=parameter.tables or columns[0][1],
        expression=other.expression,
        columns=columns,
        shape=other.shape,
    )


def _number_of_rows(before: str) -> Role | None:
    if before in ("LIMIT", "FIRST", "NEXT"):
        return "limit"
    return "offset" if before == "OFFSET" else None


def _role(operator: str, opener: str, begun: bool) -> Role:
    """Return the role of a value; `begun` is true if the range of its column has a lower bound already."""
    if operator in _EQUAL:
        alone: Role = "equal" if operator == "=" else "unequal"
        return "array" if opener in _LISTS else "listed" if opener in ("IN", "ARRAY") else alone
    if operator.startswith("BETWEEN"):
        return "upper" if begun else "lower"
    return _ROLES.get(operator, "other")


def _inserted(statement: Any, order: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """Yield the parameter of each column, for each row that an INSERT has in its text."""
    columns = [col.res_target.name for col in statement.cols] or list(order)
    select = statement.select_stmt.select_stmt
    rows = [list(row.list.items) for row in select.values_lists]
    if not rows and select.target_list:
        rows = [[target.res_target.val for target in select.target_list]]
    for row in rows:
        yield {column: _number(value) for column, value in zip(columns, row, strict=False)}


def _arguments(message: Any, inside: bool) -> Iterator[int]:
    """Yield the parameters that are no operand of a comparison, but arguments of a function, for example."""
    name = message.DESCRIPTOR.name
    if name == "ParamRef" and inside:
        yield int(message.number)
    if name == "FuncCall":
        inside = function_name(message) not in _SAME_VALUES
    elif name in _WRAPPERS:
        inside = True
    elif name in ("A_Expr", "SelectStmt"):
        inside = False
    for _, one in children(message):
        yield from _arguments(one, inside)


def _number(value: Any) -> int:
    while kind_of(value) == "type_cast":
        value = value.type_cast.arg
    if kind_of(value) == "param_ref":
        return int(value.param_ref.number)
    return 0 if {name for name, _ in _fields(value)} & _DIFFERENT else -1


def _table(relation: Any) -> str:
    return f"{relation.schemaname}.{relation.relname}" if relation.schemaname else str(relation.relname)


def _fields(message: Any) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each message, and the name of each field that has messages."""
    yield message.DESCRIPTOR.name, message
    for name, one in children(message):
        yield name, one
        yield from _fields(one)


def _functions(node: Any) -> Iterator[str]:
    for name, one in _fields(node):
        if name == "FuncCall":
            yield function_name(one).rpartition(".")[2]


def _aggregates(node: Any) -> bool:
    found = (one for name, one in _fields(node) if name == "FuncCall")
    return any(
        one.agg_star or (one.funcname and one.funcname[-1].string.sval in _AGGREGATES) for one in found
    )


_AGGREGATES: Final = frozenset(
    {
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "array_agg",
        "string_agg",
        "json_agg",
        "jsonb_agg",
        "bool_or",
        "bool_and",
    }
)
