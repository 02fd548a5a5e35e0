"""Descriptions of tables: columns, their types, units and meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, dataclass_transform

Type = Literal["text", "integer", "real", "flag", "bytes", "time"]
_TYPES: Final[dict[str, Type]] = {
    "str": "text",
    "int": "integer",
    "float": "real",
    "bool": "flag",
    "bytes": "bytes",
    "datetime": "time",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `unit` is empty for names and plain counts. Times are in UTC, to the microsecond."""

    name: str
    type: Type
    unit: str
    meaning: str


PLAN_HASH: Final = Column(
    "plan_hash",
    "text",
    "",
    "hash of the plan's nodes, tables and indexes: equal for plans that differ only in numbers or values",
)
"""The column of tables of plans by which plans can be matched, also across tables and runs."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `key` names the columns that identify a row."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


def column(meaning: str, unit: str = "") -> Any:
    """Declare a column of a row: see `Column`. Its type is the field's."""
    return field(metadata={"meaning": meaning, "unit": unit})


@dataclass_transform(frozen_default=True, field_specifiers=(column,))
class StoredRow:
    """A row of a stored table. A subclass declares the table: each field is a column.

    A subclass becomes a dataclass with its first row: that takes half a millisecond, and a command needs rows
    of few tables. Only mypy prevents that rows are changed, which halves the time to make them.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        dataclass(eq=False)(type(self))
        type(self).__init__(self, *values, **named)


def table_of(name: str, row: type[StoredRow], *key: str) -> Table:
    """Return the table of these rows, whose meaning is the docstring of their class."""
    columns = (
        Column(column_name, _type_of(annotation), **vars(row)[column_name].metadata)
        for column_name, annotation in row.__annotations__.items()
    )
    return Table(name, " ".join((row.__doc__ or "").split()), key, tuple(columns))


def _type_of(annotation: str) -> Type:
    return "text" if annotation.startswith("Literal[") else _TYPES[annotation.removesuffix(" | None")]
