"""Find the expressions with which a statement compares its parameters, and how to sample them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from uncork.model.database.workload import CalledOperation, SampledExpression, SampleShape
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    chained,
    children,
    column_fields,
    enum_of,
    function_name,
    kind_of,
    parsed,
    sql_of,
)

_SWAPPED: Final = {
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
    **{"@>": "<@", "<@": "@>", ">>=": "<<=", "<<=": ">>="},
}
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
_SHAPES: Final[Mapping[str, SampleShape]] = {"?": "key", "@@": "word"}
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
    for expression in _expressions(node):
        for number, one in _comparison(expression):
            found.setdefault(number, one)
    return found


def _expressions(message: Any) -> Iterator[Any]:
    if message.DESCRIPTOR.name == "A_Expr":
        yield message
    for _, one in children(message):
        yield from _expressions(one)


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
        operator = _SWAPPED.get(operator, operator)
        yield from _pairs(right, left, operator, _shape(operator, left), place)


def _shape(operator: str, value: Any) -> SampleShape:
    if operator in _CONTAINERS:
        kind = kind_of(value)
        scalar = kind == "type_cast" and chained(value.type_cast.type_name.names)[-1] in _SCALARS
        scalar = scalar and not value.type_cast.type_name.array_bounds
        return "element" if kind == "a_array_expr" or scalar else "part"
    return _SHAPES.get(operator, "value")


def _pairs(
    expression: Any, value: Any, operator: str, shape: SampleShape, place: int = 0
) -> Iterator[tuple[int, Compared]]:
    """Yield a parameter, or each in a list, with what it is compared with."""
    columns = tuple(_columns(expression))
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
    return {number for expression in _expressions(node) for number in _shifted(expression)[1:]}


def _columns(message: Any) -> Iterator[tuple[str, str]]:
    if message.DESCRIPTOR.name == "ColumnRef":
        fields = column_fields(message)
        yield (fields[-2] if len(fields) > 1 else "", fields[-1])
    for _, one in children(message):
        yield from _columns(one)


# ---- what to ask the server ----


def sampled(table: str, expression: str, shape: SampleShape) -> SampledExpression | None:
    """Return how to sample an expression of one table; None if it has parts that must not be executed.

    It may have columns, constants, casts, operators and functions, whose volatility the server knows; it may
    have no subqueries, no aggregates and nothing else.
    """
    tree = parsed(f"SELECT {expression}")
    if tree is None or len(tree.stmts) != 1 or len(tree.stmts[0].stmt.select_stmt.target_list) != 1:
        return None
    calls: list[CalledOperation] = []
    if not _calls(tree.stmts[0].stmt.select_stmt.target_list[0].res_target.val, calls):
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
