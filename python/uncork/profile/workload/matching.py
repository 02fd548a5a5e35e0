"""Write the query for values with which an UPDATE or DELETE finds rows of its table. Pure."""

from __future__ import annotations

from typing import Any, Final

from uncork.model.database.names import quoted, sql_name
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    chained,
    column_fields,
    conjuncts,
    enum_of,
    kind_of,
    messages,
    name_of,
    only_statement,
    plain_sql_of,
    uncast,
)

_CHANGING: Final = ("update_stmt", "delete_stmt")


class MatchingRows(Record):
    """A query of rows that a statement can find: each column gives the values of one parameter.

    `numbers` are the parameters, in the order of the columns; those in `arrays` take several values at once.
    """

    table: str
    sql: str
    numbers: tuple[int, ...]
    arrays: frozenset[int]


def matching_rows(sql: str) -> MatchingRows | None:
    """Return the query for a statement that compares columns of its one table with parameters for equality.

    Conditions without parameters hold for the rows too. None if the statement has other conditions with
    parameters, other tables, or no such comparison.
    """
    node = only_statement(sql)
    kind = "" if node is None else kind_of(node)
    if kind not in _CHANGING:
        return None
    statement = getattr(node, kind)
    if statement.HasField("with_clause") or (
        statement.from_clause if kind == "update_stmt" else statement.using_clause
    ):
        return None
    relation = statement.relation
    table = name_of((relation.schemaname, relation.relname))
    alias = relation.alias.aliasname if relation.HasField("alias") else relation.relname
    compared: dict[int, str] = {}
    arrays: set[int] = set()
    conditions = []
    for condition in conjuncts(statement.where_clause):
        numbers = [int(parameter.number) for parameter in messages(condition, "ParamRef")]
        if not numbers:
            conditions.append(plain_sql_of(condition))
            continue
        column, number = _equality(condition)
        if column is None or numbers != [number]:
            return None
        compared[number] = f"{quoted(alias)}.{quoted(column)}"
        if enum_of(condition.a_expr, "kind") == "AEXPR_OP_ANY":
            arrays.add(number)
    if not compared:
        return None
    conditions += [f"{column} IS NOT NULL" for column in compared.values()]
    columns = ", ".join(f"{column}::text" for column in compared.values())
    query = (
        f"SELECT {columns} FROM {sql_name(table)} AS {quoted(alias)} "  # noqa: S608 -- see sql_name, quoted
        f"WHERE {' AND '.join(conditions)}"
    )
    return MatchingRows(table, query, tuple(compared), frozenset(arrays))


def _equality(condition: Any) -> tuple[str | None, int]:
    """Return the column and the parameter of ``column = $1`` or ``column = ANY ($1)``; None for others."""
    if kind_of(condition) != "a_expr" or chained(condition.a_expr.name) != ("=",):
        return None, 0
    expression = condition.a_expr
    left, right = uncast(expression.lexpr), uncast(expression.rexpr)
    kind = enum_of(expression, "kind")
    if kind == "AEXPR_OP" and kind_of(left) == "param_ref":
        left, right = right, left
    sides = (kind_of(left), kind_of(right))
    if kind not in ("AEXPR_OP", "AEXPR_OP_ANY") or sides != ("column_ref", "param_ref"):
        return None, 0
    fields = column_fields(left.column_ref)
    return (fields[-1] if fields and fields[-1] != "*" else None), int(right.param_ref.number)
