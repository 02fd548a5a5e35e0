"""Count the updates in a log that give a row the values which an earlier update gave it already. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from uncork.model.records import Record
from uncork.profile.shapes.nodes import chained, conjuncts, enum_of, kind_of, name_of, only_statement

_LITERAL: Final = re.compile(
    r"'(?:[^']|'')*'|(?<![\w$.'\"])-?\d+(?:\.\d+)?(?![\w.\"])|\b(?:null|true|false)\b", re.IGNORECASE
)
_PARAMETER: Final = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')", re.DOTALL)
_FIRST_LITERAL: Final = 1_001
"""Literals are numbered from here on, behind the parameters of a statement."""
_DISTINCT: Final = 1_000
"""Texts without their literals whose parts are kept."""

Value = str | int
"""A constant's text, or the number of a parameter."""


class Sent(Record):
    """A statement of a log with its parameters as the log writes them, in the order of the log."""

    template: int
    text: str
    parameters: str = ""


@dataclass(slots=True)
class RepeatedUpdates:
    """Updates of one template. `followed` of them are of a row that the log has an earlier update of.

    Of these, `unchanged` assigned the values that the row had been given before.
    """

    updates: int = 0
    followed: int = 0
    unchanged: int = 0


class _Parts(Record):
    """What an UPDATE does: the parameter of each column that it sets, None for anything but a constant.

    `keys` are the parameters of the columns that choose the row; None if it may change any row.
    """

    table: str
    sets: tuple[tuple[str, int | None], ...]
    keys: tuple[tuple[str, int], ...] | None


@dataclass(slots=True)
class _Table:
    """The last value that each row was given, by the columns and values of its key, then by column.

    All keys have the same `columns`: the same row may have been chosen by other ones before.
    """

    columns: frozenset[str] = frozenset()
    rows: dict[tuple[Any, ...], dict[str, str | None]] = field(default_factory=dict)


def count_repeated_updates(statements: Iterable[Sent]) -> Mapping[int, RepeatedUpdates]:
    """Count updates by template.

    Whatever may change rows in a way that the text does not show makes the rows of its table unknown: an
    UPDATE without a key or with expressions, DELETE, MERGE, an upsert. After ROLLBACK, all are unknown.
    Functions and triggers that change the columns cannot be seen.
    """
    tables: dict[str, _Table] = defaultdict(_Table)
    found: dict[int, RepeatedUpdates] = defaultdict(RepeatedUpdates)
    for statement in statements:
        text, values = _without_literals(statement)
        parts = _parts(text)
        if parts is None:
            tables.clear()
            continue
        table = tables[parts.table]
        columns = frozenset(name for name, _ in parts.keys or ())
        if parts.keys is None or columns != table.columns:
            table.rows.clear()
            table.columns = columns
        if parts.keys is None:
            continue
        key = tuple((name, values.get(number)) for name, number in parts.keys)
        row = table.rows.setdefault(key, {})
        _count(found[statement.template], row, parts, values)
        for name, number in parts.sets:
            if number is None:
                row.pop(name, None)
            else:
                row[name] = values.get(number)
    return dict(found)


def _count(
    counted: RepeatedUpdates, row: Mapping[str, str | None], parts: _Parts, values: Mapping[int, str | None]
) -> None:
    counted.updates += 1
    if any(number is None or name not in row or number not in values for name, number in parts.sets):
        return
    counted.followed += 1
    counted.unchanged += all(row[name] == values.get(number or 0) for name, number in parts.sets)


def _without_literals(sent: Sent) -> tuple[str, Mapping[int, str | None]]:
    """Return a statement with parameters in place of its literals, and the values of all parameters."""
    values = {int(number): _value(text) for number, text in _PARAMETER.findall(sent.parameters)}

    def replaced(match: re.Match[str]) -> str:
        number = _FIRST_LITERAL + len(values)
        values[number] = _value(match[0])
        return f"${number}"

    text = _LITERAL.sub(replaced, sent.text)
    first = min((number for number in values if number >= _FIRST_LITERAL), default=0)
    if first:  # the same numbers for each text of a template
        shift = first - _FIRST_LITERAL
        text = re.sub(r"\$(\d{4,})", lambda match: f"${int(match[1]) - shift}", text)
        values = {number - shift if number >= first else number: value for number, value in values.items()}
    return text, values


def _value(text: str) -> str | None:
    if text.lower() == "null":
        return None
    return text[1:-1].replace("''", "'") if text.startswith("'") else text.lower()


@lru_cache(_DISTINCT)
def _parts(text: str) -> _Parts | None:
    """Return what a statement does to rows of a table; None if that is unknown."""
    statement = only_statement(text)
    if statement is None:
        return None
    kind = kind_of(statement)
    if kind in ("insert_stmt", "delete_stmt", "merge_stmt"):
        relation = getattr(statement, kind).relation
        return _Parts(_name(relation), (), None)
    if kind != "update_stmt":
        return None
    update = statement.update_stmt
    targets = [target.res_target for target in update.target_list]
    sets = tuple((each.name, None if each.indirection else _parameter(each.val)) for each in targets)
    keys = None if update.from_clause or update.with_clause.ctes else _keys(update.where_clause)
    if keys is not None and {name for name, _ in keys} & {name for name, _ in sets}:
        keys = None  # whether it finds the row depends on the values that it changes
    return _Parts(_name(update.relation), sets, keys)


def _name(relation: Any) -> str:
    return name_of((relation.schemaname, relation.relname))


def _parameter(node: Any) -> int | None:
    if kind_of(node) == "type_cast":
        node = node.type_cast.arg
    return int(node.param_ref.number) if kind_of(node) == "param_ref" else None


def _keys(where: Any) -> tuple[tuple[str, int], ...] | None:
    """Return the columns that a condition compares with parameters for equality, if it does nothing else."""
    keys = []
    for condition in conjuncts(where):
        compared = condition.a_expr
        column, number = compared.lexpr, _parameter(compared.rexpr)
        if enum_of(compared, "kind") != "AEXPR_OP" or chained(compared.name) != ("=",):
            return None
        if number is None or kind_of(column) != "column_ref":
            return None
        keys.append((str(column.column_ref.fields[-1].string.sval), number))
    return tuple(sorted(keys)) or None
