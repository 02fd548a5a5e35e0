"""Read the keys of ORDER BY, GROUP BY, DISTINCT ON and USING, and the names of outputs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from uncork.model.database.statement import ColumnName, OrderKey
from uncork.profile.shapes.nodes import chained, column_fields, enum_of, kind_of, name_of, sql_of
from uncork.profile.shapes.operands import columns_in, resolved, table_of
from uncork.profile.shapes.scopes import Scope, Source


def grouped(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the expressions of GROUP BY, also those in GROUPING SETS, ROLLUP and CUBE."""
    for node in nodes:
        if kind_of(node) == "grouping_set":
            yield from grouped(node.grouping_set.content)
        elif kind_of(node) == "row_expr":
            yield from grouped(node.row_expr.args)
        elif kind_of(node):
            yield node


def ordinal(node: Any) -> int:
    """Return the n of ``ORDER BY n``, else 0."""
    constant = kind_of(node) == "a_const" and node.a_const.WhichOneof("val") == "ival"
    return int(node.a_const.ival.ival) if constant else 0


def target_of(node: Any, targets: Sequence[Any], scope: Scope, *, input_first: bool = False) -> Any:
    """Return the expression that ``ORDER BY 2`` or ``ORDER BY name_of_output`` refers to, else the node."""
    place = ordinal(node)
    if 0 < place <= len(targets):
        return targets[place - 1].val
    fields = column_fields(node.column_ref) if kind_of(node) == "column_ref" else ()
    if len(fields) != 1 or (input_first and scope.resolve(fields) is not None):
        return node
    return next((target.val for target in targets if target.name == fields[0]), node)


def key_of(node: Any, scope: Scope) -> OrderKey:
    """Return the key of an expression."""
    if kind_of(node) == "column_ref":
        found = resolved(node.column_ref, scope)
        if found is not None:
            return OrderKey(found.column.table, found.column.column, level=scope.level)
    return OrderKey(table_of(tuple(columns_in(node, scope))), "", sql_of(node), level=scope.level)


def directed(key: OrderKey, sort: Any) -> OrderKey:
    """Return a key with the direction of its ORDER BY."""
    nulls = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}
    return replace(
        key,
        descending=enum_of(sort, "sortby_dir") == "SORTBY_DESC",
        nulls_first=nulls.get(enum_of(sort, "sortby_nulls")),
    )


def of_sources(sources: Sequence[Source], column: str) -> tuple[str, ColumnName]:
    """Return a column of one side of USING, and the name of its source."""
    for source in sources:
        found = source.certain(column)
        if found is not None:
            return source.name, found
    unknown = [source for source in sources if not source.known]
    if len(unknown) == 1:
        return unknown[0].name, unknown[0].guessed(column)
    return "", ColumnName("", column)


def output_name(target: Any) -> str:
    """Return the name of an output column."""
    if target.name:
        return str(target.name)
    value = target.val
    while kind_of(value) == "type_cast":
        value = value.type_cast.arg
    if kind_of(value) == "column_ref":
        return column_fields(value.column_ref)[-1]
    return name_of(chained(value.func_call.funcname)[-1:]) if kind_of(value) == "func_call" else "?column?"
