"""What each parameter of a statement is for: the column that it is compared with or stored in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from uncork.model.database.workload import CalledOperation, SampledExpression, SampleShape
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    FLIPPED,
    chained,
    children,
    column_fields,
    descendants,
    enum_of,
    function_name,
    kind_of,
    messages,
    only_statement,
    sql_of,
    uncast,
)
from uncork.profile.statement_parts import aliases_of, statement_parts
from uncork.profile.workload.literals import opener_words

Role = (
    Literal["equal", "unequal", "listed", "array", "lower", "upper", "pattern", "stored", "added", "shift"]
    | Literal["limit", "offset", "other"]
)
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
_ROW_COUNT: Final[dict[str, Role]] = {
    "LIMIT": "limit",
    "FIRST": "limit",
    "NEXT": "limit",
    "OFFSET": "offset",
}
_CONTAINS: Final = frozenset({"@>", "<@", "&&", "?", "@@", ">>=", "<<="})
_LISTS: Final = frozenset({"ANY", "ALL", "SOME"})
_DIFFERENT: Final = frozenset({"FuncCall", "SQLValueFunction", "SetToDefault", "SubLink", "ColumnRef"})
_SAME_VALUES: Final = frozenset({"lower", "upper"})
_AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "array_agg", "string_agg", "json_agg", "jsonb_agg"}
    | {"bool_or", "bool_and"}
)
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
    node, parts = only_statement(sql), statement_parts(sql)
    if node is None or parts is None:
        return None
    target, inserted = "", list[Mapping[str, int]]()
    if kind_of(node) == "insert_stmt":
        relation = node.insert_stmt.relation
        target = f"{relation.schemaname}.{relation.relname}".removeprefix(".")
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
        role = _ROW_COUNT.get(before)
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
    every = list(descendants(node))
    names = {message.DESCRIPTOR.name for message in every}
    calls = [message for message in every if message.DESCRIPTOR.name == "FuncCall"]
    called = [function_name(call).rpartition(".")[2] for call in calls]
    selects = [message for message in every if message.DESCRIPTOR.name == "SelectStmt"]
    limited = "LIMIT" in sql.upper() or "FETCH" in sql.upper()
    return TakenApart(
        parameters=tuple(found),
        tables=parts.tables,
        changes=bool(names & _CHANGES),
        target=target,
        inserted=tuple(inserted),
        on_conflict=kind_of(node) == "insert_stmt" and node.insert_stmt.HasField("on_conflict_clause"),
        summed=any(select.group_clause or select.distinct_clause for select in selects)
        or any(call.agg_star for call in calls)
        or not _AGGREGATES.isdisjoint(called),
        limited=limited,
        functions=tuple(dict.fromkeys(called)),
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
    value = uncast(value)
    if kind_of(value) == "param_ref":
        return int(value.param_ref.number)
    return 0 if any(message.DESCRIPTOR.name in _DIFFERENT for message in descendants(value)) else -1


# ---- the expressions that are compared with parameters, and how to sample them ----

_CONTAINERS: Final = frozenset({"@>", "&&"})
_SAME_WORDS: Final = frozenset({"lower", "upper"})
_SEARCHES: Final = frozenset({"plainto_tsquery", "phraseto_tsquery", "to_tsquery", "websearch_to_tsquery"})
_SCALARS: Final = frozenset(
    {"date", "int4", "int8", "numeric", "timestamp", "timestamptz"}  # as the grammar names them
)
_BETWEEN: Final = frozenset({"AEXPR_BETWEEN", "AEXPR_NOT_BETWEEN"})
_PLAIN: Final = frozenset(
    {"AEXPR_OP", "AEXPR_IN", "AEXPR_LIKE", "AEXPR_ILIKE", "AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT", *_BETWEEN}
)
_SAMPLE_SHAPES: Final[Mapping[str, SampleShape]] = {"?": "key", "@@": "word"}
_Part = tuple[list[CalledOperation], list[Any]]
"""What a part of an expression calls, and the parts below it."""
_ANY: Final = frozenset({"AEXPR_OP_ANY", "AEXPR_OP_ALL"})


class Compared(Record):
    """What a statement compares with a parameter.

    `expression` is its SQL with plain column names; it may have parameters. `columns` are the columns in it,
    each with the alias before it, or an empty string. `column` is its name if it is a column and no more.
    `operator` is written as if the expression were the left operand. `place` is the place of the expression
    in a comparison of rows, from 0 on, else 0. `shape` says what the parameter is to the expression.
    """

    expression: str
    columns: tuple[tuple[str, str], ...]
    column: str
    operator: str
    place: int = 0
    shape: SampleShape = "value"


def compared(node: Any) -> Mapping[int, Compared]:
    """Return what each parameter of a statement is compared with; other parameters are left out."""
    found: dict[int, Compared] = {}
    for expression in messages(node, "A_Expr"):
        for number, side in _comparison(expression):
            found.setdefault(number, side)
    return found


def _comparison(expression: Any) -> Iterator[tuple[int, Compared]]:
    kind = enum_of(expression, "kind")
    operator = "".join(chained(expression.name)[-1:])
    left, right = expression.lexpr, expression.rexpr
    if kind in _ANY:
        if _parameters(left):
            yield from _pairs(right, left, operator, "element")
        else:
            yield from _pairs(left, right, operator, "value")
        return
    if kind not in _PLAIN:
        return
    if kind_of(left) == "row_expr" and kind_of(right) == "row_expr":
        sides = zip(left.row_expr.args, right.row_expr.args, strict=False)
        for place, (one, other) in enumerate(sides):
            own = operator if operator in ("=", "<>") or place == 0 else "="
            yield from _either(one, other, own, place)
        return
    yield from _either(left, right, operator, 0)


def _either(left: Any, right: Any, operator: str, place: int) -> Iterator[tuple[int, Compared]]:
    if _parameters(right):
        yield from _pairs(left, right, operator, _shape(operator, right), place)
    elif _parameters(left):
        operator = FLIPPED.get(operator, operator)
        yield from _pairs(right, left, operator, _shape(operator, left), place)


def _shape(operator: str, value: Any) -> SampleShape:
    if operator in _CONTAINERS:
        kind = kind_of(value)
        scalar = kind == "type_cast" and chained(value.type_cast.type_name.names)[-1] in _SCALARS
        scalar = scalar and not value.type_cast.type_name.array_bounds
        return "element" if kind == "a_array_expr" or scalar else "part"
    return _SAMPLE_SHAPES.get(operator, "value")


def _pairs(
    expression: Any, value: Any, operator: str, shape: SampleShape, place: int = 0
) -> Iterator[tuple[int, Compared]]:
    """Yield a parameter, or each in a list, with what it is compared with."""
    references = map(column_fields, messages(expression, "ColumnRef"))
    columns = tuple((fields[-2] if len(fields) > 1 else "", fields[-1]) for fields in references)
    if not columns:
        return
    sql = sql_of(expression)
    plain = columns[0][1] if kind_of(expression) == "column_ref" else ""
    for number in _parameters(value):
        yield number, Compared(sql, columns, plain, operator, place, shape)


def _parameters(node: Any) -> list[int]:
    """Return the parameters that are a value, possibly below a cast or in a list; none for an expression.

    ``$1 + $2`` is the value ``$1``, which ``$2`` shifts.
    """
    kind = kind_of(node)
    if kind == "a_expr":
        return _shifted(node.a_expr)[:1]
    if kind == "type_cast":
        return _parameters(node.type_cast.arg)
    if kind == "param_ref":
        return [int(node.param_ref.number)]
    items: Sequence[Any] = ()
    if kind == "list":
        items = node.list.items
    elif kind == "a_array_expr":
        items = node.a_array_expr.elements
    elif kind == "func_call" and function_name(node.func_call) in _SAME_WORDS:
        items = node.func_call.args
    elif kind == "func_call" and function_name(node.func_call) in _SEARCHES:
        items = node.func_call.args[-1:]  # the text; the configuration may stand before it
    return [number for item in items for number in _parameters(item)]


def _shifted(expression: Any) -> list[int]:
    """Return the parameter of a value and the one that is added to it, or subtracted; else none."""
    if enum_of(expression, "kind") != "AEXPR_OP" or chained(expression.name)[-1:] not in (("+",), ("-",)):
        return []
    value, shift = _parameters(expression.lexpr), _parameters(expression.rexpr)
    return [*value, *shift] if len(value) == len(shift) == 1 else []


def shifts(node: Any) -> set[int]:
    """Return the parameters of a statement that are added to a parameter, or subtracted from it."""
    return {number for expression in messages(node, "A_Expr") for number in _shifted(expression)[1:]}


# ---- what to ask the server ----


def sampled(table: str, expression: str, shape: SampleShape) -> SampledExpression | None:
    """Return how to sample an expression of one table; None if it has parts that must not be executed.

    It may have columns, constants, casts, operators and functions, whose volatility the server knows; it may
    have no subqueries, no aggregates and nothing else.
    """
    node = only_statement(f"SELECT {expression}")
    if node is None or len(node.select_stmt.target_list) != 1:
        return None
    calls: list[CalledOperation] = []
    if not _calls(node.select_stmt.target_list[0].res_target.val, calls):
        return None
    return SampledExpression(table, expression, shape, tuple(calls))


def _calls(node: Any, calls: list[CalledOperation]) -> bool:
    """Collect what an expression calls; return whether it has known parts only."""
    take = _PARTS.get(kind_of(node))
    found = None if take is None else take(getattr(node, kind_of(node)), node)
    if found is None:
        return False
    own, inner = found
    calls += own
    return all(_calls(one, calls) for one in inner)


def _cast(cast: Any, node: Any) -> _Part | None:
    if kind_of(cast.arg) == "a_const":  # the server's parser computes it
        return [], []
    return [CalledOperation("cast", "", "", (sql_of(cast.arg), sql_of(node)))], [cast.arg]


def _operator(expression: Any, _: Any) -> _Part | None:
    if enum_of(expression, "kind") != "AEXPR_OP":
        return None
    operands = [one for one in (expression.lexpr, expression.rexpr) if kind_of(one)]
    return [_operation("operator", chained(expression.name), operands)], operands


def _function(call: Any, _: Any) -> _Part | None:
    if call.agg_order or call.agg_star or call.agg_distinct or call.func_variadic:
        return None
    if call.HasField("over") or call.HasField("agg_filter"):
        return None
    return [_operation("function", chained(call.funcname), list(call.args))], list(call.args)


def _operation(kind: Any, name: tuple[str, ...], operands: Sequence[Any]) -> CalledOperation:
    schema = name[-2] if len(name) > 1 else ""
    return CalledOperation(
        kind, schema, name[-1] if name else "", tuple(sql_of(operand) for operand in operands)
    )


_PARTS: Final[Mapping[str, Callable[[Any, Any], _Part | None]]] = {
    "column_ref": lambda column, _: None if column_fields(column)[-1] == "*" else ([], []),
    "a_const": lambda *_: ([], []),
    "type_cast": _cast,
    "coalesce_expr": lambda one, _: ([], list(one.args)),
    "a_expr": _operator,
    "func_call": _function,
}
