"""Descriptions of tables: columns, their types, units and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Type = Literal["text", "integer", "real", "flag", "bytes", "time"]


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
