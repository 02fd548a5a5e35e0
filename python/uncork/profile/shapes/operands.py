"""Classify the operands of a comparison: a column, an expression of columns, or a value. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from uncork.model.database.statement import ColumnName, ValueKind
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    chained,
    children,
    column_fields,
    function_name,
    kind_of,
    sql_of,
    type_name,
)
from uncork.profile.shapes.scopes import Resolved, Scope

_LONGEST_LIST: Final = 10
"""The values of longer lists are not kept."""
_SIMPLE: Final[Mapping[str, ValueKind]] = {
    "param_ref": "parameter",
    "a_const": "constant",
    "sub_link": "subquery",
}
_ESCAPES: Final = frozenset({"like_escape", "similar_to_escape"})


class Operand(Record):
    """An operand. Lower ranks are better sides of a predicate; `rank` 9 is a value without columns.

    The other fields are as in `Predicate`; `expression` is filled by `expressed`.
    """

    node: Any
    value: ValueKind
    rank: int = 9
    column: ColumnName | None = None
    alias: str = ""
    found: tuple[Resolved, ...] = ()
    cast: str = ""
    literal: str | None = None

    @property
    def table(self) -> str:
        """Return the table of the operand's columns; empty if they belong to several."""
        return self.column.table if self.column is not None else table_of(self.found)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the operand's columns, each once."""
        return tuple(dict.fromkeys(reference.column.column for reference in self.found))

    @property
    def expression(self) -> str:
        """Return the operand's SQL; empty for a plain column."""
        return "" if self.column is not None else sql_of(self.node)


def operand(node: Any, scope: Scope) -> Operand:
    """Classify one operand."""
    inner, cast, casts = node, "", 0
    while kind_of(inner) == "type_cast":
        cast = cast or type_name(inner.type_cast.type_name)
        inner, casts = inner.type_cast.arg, casts + 1
    kind = kind_of(inner)
    if kind == "column_ref" and casts <= 1:
        return _column(node, inner.column_ref, cast, scope)
    if kind in _SIMPLE:
        literal = _text(inner.a_const) if kind == "a_const" else None
        return Operand(node, _SIMPLE[kind], cast=cast, literal=literal)
    if kind in ("list", "a_array_expr", "row_expr"):
        return _several(node, _elements(inner), cast, scope)
    if kind == "func_call" and function_name(inner.func_call) in _ESCAPES and inner.func_call.args:
        return operand(inner.func_call.args[0], scope)
    return _negative(node, inner, cast, scope) or _computed(node, inner, cast, scope)


def operands(nodes: Sequence[Any], scope: Scope) -> Operand:
    """Classify the values of a list as one."""
    every = [operand(node, scope) for node in nodes]
    kinds: set[ValueKind] = {one.value for one in every}
    found = tuple(column for one in every for column in one.found)
    casts = {one.cast for one in every}
    value: ValueKind = "expression"
    if len(kinds) == 1 and kinds != {"column"}:
        value = next(iter(kinds))
    elif kinds and kinds <= {"parameter", "constant"}:
        value = "parameter"
    elif "subquery" in kinds:
        value = "subquery"
    literal = None
    if value == "constant" and len(every) <= _LONGEST_LIST:
        literal = ", ".join(sql_of(node) for node in nodes)
    cast = next(iter(casts)) if len(casts) == 1 else ""
    node = every[0].node if every else None
    return Operand(node, value, _rank(found, 1), found=found, cast=cast, literal=literal)


def columns_in(message: Any, scope: Scope) -> Iterator[Resolved]:
    """Yield the columns in an expression; those of its subqueries are left out."""
    name = message.DESCRIPTOR.name
    if name == "ColumnRef":
        found = resolved(message, scope)
        if found is not None:
            yield found
    elif name == "SubLink":
        if message.HasField("testexpr"):
            yield from columns_in(message.testexpr, scope)
    else:
        for _, one in children(message):
            yield from columns_in(one, scope)


def resolved(reference: Any, scope: Scope) -> Resolved | None:
    """Resolve a ColumnRef; None for a star or the name of a whole row."""
    fields = column_fields(reference)
    if not fields or fields[-1] == "*":
        return None
    found = scope.resolve(fields)
    if found is None and (len(fields) > 1 or scope.source(list(fields)) is None):
        return Resolved(ColumnName("", fields[-1]), fields[-2] if len(fields) > 1 else "", local=True)
    return found


def table_of(found: Sequence[Resolved]) -> str:
    """Return the table of columns; empty if they belong to several."""
    tables = {one.column.table for one in found}
    return tables.pop() if len(tables) == 1 else ""


def _negative(node: Any, inner: Any, cast: str, scope: Scope) -> Operand | None:
    """Return the value of ``- $1``."""
    expression = inner.a_expr
    if kind_of(inner) != "a_expr" or expression.HasField("lexpr") or chained(expression.name) != ("-",):
        return None
    found = operand(expression.rexpr, scope)
    if found.value not in ("parameter", "constant"):
        return None
    text = None if found.literal is None else f"-{found.literal}"
    return replace(found, node=node, cast=cast or found.cast, literal=text)


def _computed(node: Any, inner: Any, cast: str, scope: Scope) -> Operand:
    found = tuple(columns_in(node, scope))
    start, whole = _beginning(inner)
    if whole:
        return Operand(node, "constant", cast=cast, literal=start)
    return Operand(node, "expression", _rank(found, 1), found=found, cast=cast, literal=start)


def _column(node: Any, reference: Any, cast: str, scope: Scope) -> Operand:
    found = resolved(reference, scope)
    if found is None:
        return Operand(node, "expression")
    return Operand(node, "column", _rank((found,), 0), found.column, found.alias, found=(found,), cast=cast)


def _rank(found: tuple[Resolved, ...], expression: int) -> int:
    """Rank columns of this query above those of outer queries, and columns of tables above others."""
    if not found:
        return 9
    if not any(one.local for one in found):
        return 4 + expression
    return (0 if any(one.column.table for one in found if one.local) else 2) + expression


def _several(node: Any, elements: Sequence[Any], cast: str, scope: Scope) -> Operand:
    found = operands(elements, scope)
    return replace(found, node=node, cast=cast or (f"{found.cast}[]" if found.cast else ""))


def _elements(node: Any) -> Sequence[Any]:
    kind = kind_of(node)
    if kind == "list":
        return list(node.list.items)
    return list(node.a_array_expr.elements if kind == "a_array_expr" else node.row_expr.args)


def _text(constant: Any) -> str | None:
    """Return a constant's text; None for NULL."""
    kind = constant.WhichOneof("val")
    if kind is None or kind == "isnull":
        return None
    inner = getattr(constant, kind)
    if kind == "boolval":
        return "true" if inner.boolval else "false"
    return str(getattr(inner, kind))


def _beginning(node: Any) -> tuple[str | None, bool]:
    """Return the constant that a concatenation begins with, and whether all of it is constant."""
    kind = kind_of(node)
    if kind == "type_cast":
        return _beginning(node.type_cast.arg)
    if kind == "a_const":
        text = _text(node.a_const)
        return text, text is not None
    parts: Sequence[Any] = ()
    if kind == "a_expr" and chained(node.a_expr.name) == ("||",):
        parts = (node.a_expr.lexpr, node.a_expr.rexpr)
    elif kind == "func_call" and function_name(node.func_call) == "concat":
        parts = node.func_call.args
    pieces: list[str] = []
    for part in parts:
        text, whole = _beginning(part)
        pieces += [text] if text is not None else []
        if not whole:
            return "".join(pieces) if pieces else None, False
    return ("".join(pieces), True) if pieces else (None, False)
