"""Descriptions of tables: columns, their types, units and meaning."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, dataclass_transform

from uncork.model.records import Record

Type = Literal["text", "integer", "real", "flag", "bytes", "time"]
_TYPES: Final[dict[str, Type]] = {
    "str": "text",
    "int": "integer",
    "float": "real",
    "bool": "flag",
    "bytes": "bytes",
    "datetime": "time",
}


class Column(Record):
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


class Table(Record):
    """A table; `key` names the columns that identify a row."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


def column(meaning: str, unit: str = "", *, default: Any = MISSING, default_factory: Any = MISSING) -> Any:
    """Declare a column of a row: see `Column`. Its type is the field's; other types are stored as text."""
    return field(
        default=default, default_factory=default_factory, metadata={"meaning": meaning, "unit": unit}
    )


_LOCK: Final = RLock()
"""Two threads may need the first row of a table at the same moment."""


class _Fields:
    """Makes a class of rows a dataclass when its fields are first needed."""

    def __get__(self, row: StoredRow | None, kind: type[StoredRow]) -> Any:
        if kind is StoredRow:
            return None
        with _LOCK:
            return vars(dataclass(kind) if "__init__" not in vars(kind) else kind)["__dataclass_fields__"]


@dataclass_transform(frozen_default=True, field_specifiers=(column,))
class StoredRow:
    """A row of a stored table. A subclass declares the table: each field is a column.

    A subclass becomes a dataclass with its first row: that takes half a millisecond, and a command needs rows
    of few tables. Only mypy prevents that rows are changed, which halves the time to make them.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Fields()

        def __init__(self, *values: Any, **named: Any) -> None:
            with _LOCK:
                fields(type(self))
            type(self).__init__(self, *values, **named)


def table_of(name: str, row: type[StoredRow], *key: str) -> Table:
    """Return the table of these rows, whose meaning is the docstring of their class."""
    return Table(name, " ".join((row.__doc__ or "").split()), key, columns_of(row))


def columns_of(row: type[StoredRow]) -> tuple[Column, ...]:
    """Return the columns of rows, in the order of their fields."""
    return tuple(
        Column(name, _TYPES.get(annotation.removesuffix(" | None"), "text"), **vars(row)[name].metadata)
        for name, annotation in row.__annotations__.items()
    )
