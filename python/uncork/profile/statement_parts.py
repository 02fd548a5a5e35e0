"""Take a statement apart with the grammar: its tables, and the values that become parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    QUERIES,
    chained,
    children,
    constant_text,
    kind_of,
    messages,
    only_statement,
    rewritten,
    tokens_of,
)

_VALUES_IN: Final = frozenset(
    {"where_clause", "having_clause", "quals", "values_lists", "on_conflict_clause"}
)
"""Parts of a statement whose literals differ from execution to execution. A LIMIT, for example, stays."""
_CONSTANTS: Final = frozenset({"SCONST", "ICONST", "FCONST", "PARAM"})
_LOGGED: Final = re.compile(r"\$(\d+) = (?:(NULL)|'((?:[^']|'')*)')")
_LONGEST_LIST: Final = 10
"""The literals of longer lists stay in the statement."""


class StatementPart(Record):
    """A value of a statement: the parameter's name, and its text if it is a literal (`value`).

    `column` and `table` name what it is compared with, if the statement tells; `equals` is true for = and IN.
    `operator` is the comparison, such as ``>=`` or ``BETWEEN``; it is empty for a value that is stored.
    `number` is the n of ``$n``.
    """

    name: str
    value: str | None
    number: int | None
    column: str | None
    table: str | None
    equals: bool
    operator: str = ""


class StatementParts(Record):
    """A statement with ``:name`` for each part.

    `tables` are their names without quotes (``shop.orders``); `changes` is true if it changes rows.
    """

    text: str
    parts: tuple[StatementPart, ...]
    tables: tuple[str, ...]
    changes: bool


class _Found(Record):
    """A constant or ``$n`` at a byte of the statement."""

    start: int
    value: str | None
    number: int | None
    column: tuple[str, ...] = ()
    operator: str = ""


class _Context(Record):
    varies: bool = False
    column: tuple[str, ...] = ()
    operator: str = ""


def statement_parts(text: str, *, template: bool = False) -> StatementParts | None:
    """Take one statement apart; None if the grammar rejects it, or it is not a query or a change of rows.

    With `template`, the text has ``?`` for each value.
    """
    if template:
        numbers = iter(range(1, text.count("?") + 1))
        text = re.sub(r"\?", lambda _: f"${next(numbers)}", text)
    text = text.strip().rstrip(";").rstrip()
    node = only_statement(text)
    if node is None or kind_of(node) not in QUERIES:
        return None
    ends = {token.start: token.end for token in tokens_of(text) if token.kind in _CONSTANTS}
    aliases = aliases_of(node)
    constants = {entry.start: entry for entry in _walk(node, _Context()) if entry.start in ends}
    found = [constants[start] for start in sorted(constants)]
    parts, names = _named(found, aliases)
    changes = ((each.start, ends[each.start], f":{name}") for each, name in zip(found, names, strict=True))
    return StatementParts(
        text=rewritten(text, changes),
        parts=parts,
        tables=tuple(dict.fromkeys(aliases.values())),
        changes=kind_of(node) != "select_stmt",
    )


def logged_values(text: str) -> dict[int, str | None]:
    """Return the values of a log's ``$1 = '...', $2 = NULL``, by number; truncated values are left out."""
    found = {}
    for number, null, value in _LOGGED.findall(text):
        if null or not value.endswith("..."):
            found[int(number)] = None if null else value.replace("''", "'")
    return found


def aliases_of(node: Any) -> dict[str, str]:
    """Return the tables of a statement by the name that its columns use."""
    found: dict[str, str] = {}
    for table in messages(node, "RangeVar"):
        name = f"{table.schemaname}.{table.relname}" if table.schemaname else table.relname
        found[table.alias.aliasname or table.relname] = name
    inner = {common.ctename for common in messages(node, "CommonTableExpr")}
    return {alias: table for alias, table in found.items() if table not in inner}


def _walk(message: Any, context: _Context) -> Iterator[_Found]:
    """Yield the constants that vary, and every ``$n``."""
    name = message.DESCRIPTOR.name
    if name == "ParamRef":
        yield _Found(message.location, None, message.number, context.column, context.operator)
    elif name == "A_Const":
        if context.varies and message.WhichOneof("val") in ("ival", "fval", "sval"):
            value = constant_text(message)
            yield _Found(message.location, value, None, context.column, context.operator)
    elif name == "InsertStmt" and message.select_stmt.select_stmt.values_lists:
        yield from _inserted(message, context)
    elif not _is_typed_literal(name, message):
        own = _inside(name, message, context)
        for field, inner in children(message):
            yield from _walk(inner, _of_field(name, field, message, own))


def _is_typed_literal(name: str, message: Any) -> bool:
    """Return whether this is ``interval '1 day'`` or similar: a literal that must stay a literal."""
    cast = name == "TypeCast" and kind_of(message.arg) == "a_const"
    return bool(cast and 0 <= message.type_name.location < message.arg.a_const.location)


def _inside(name: str, message: Any, context: _Context) -> _Context:
    if name == "A_Expr":
        return _compared(message, context)
    items = {"A_ArrayExpr": "elements", "List": "items"}.get(name)
    if items is not None and len(getattr(message, items)) > _LONGEST_LIST:
        return replace(context, varies=False)
    return context


def _of_field(name: str, field: str, message: Any, context: _Context) -> _Context:
    if field in _VALUES_IN or (name == "UpdateStmt" and field == "target_list"):
        return replace(context, varies=True)
    if name == "SelectStmt":
        return _Context()
    if name == "ResTarget" and context.varies and message.name:
        return replace(context, column=(message.name,))
    return context


def _inserted(message: Any, context: _Context) -> Iterator[_Found]:
    columns = [target.res_target.name for target in message.cols]
    for part in ("on_conflict_clause", "returning_clause", "with_clause"):
        if message.HasField(part):
            yield from _walk(getattr(message, part), replace(context, varies=part == "on_conflict_clause"))
    for row in message.select_stmt.select_stmt.values_lists:
        for place, value in enumerate(row.list.items):
            column = (columns[place],) if place < len(columns) else ()
            yield from _walk(value, replace(context, varies=True, column=column))


def _compared(expression: Any, context: _Context) -> _Context:
    """Return the context of an expression's operands: the column that they are compared with."""
    operator = expression.name[-1].string.sval if expression.name else ""
    for side in (expression.lexpr, expression.rexpr):
        if kind_of(side) == "column_ref":
            return replace(context, column=chained(side.column_ref.fields), operator=operator)
    return replace(context, column=(), operator="")


def _named(found: list[_Found], aliases: dict[str, str]) -> tuple[tuple[StatementPart, ...], list[str]]:
    """Return the parameters without duplicates, and the name of the parameter of each constant."""
    parts: dict[str, StatementPart] = {}
    numbers: dict[int, str] = {}
    names: list[str] = []
    for entry in found:
        if entry.number is not None and entry.number in numbers:
            names.append(numbers[entry.number])
            continue
        column = entry.column[-1] if entry.column else None
        table = None
        if len(entry.column) > 1:
            table = aliases.get(entry.column[-2])
        elif column is not None and len(set(aliases.values())) == 1:
            table = next(iter(aliases.values()))
        base = re.sub(r"\W", "_", column or "p", flags=re.ASCII)[:34]
        base = base if base[:1].isascii() and base[:1].isalpha() and base.lower() != "change" else f"p_{base}"
        name, copies = base, 1
        while name in parts:
            copies += 1
            name = f"{base}{copies}"
        equals = entry.operator == "="
        parts[name] = StatementPart(name, entry.value, entry.number, column, table, equals, entry.operator)
        if entry.number is not None:
            numbers[entry.number] = name
        names.append(name)
    return tuple(parts.values()), names
