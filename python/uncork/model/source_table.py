"""A table of a database: its definition and statistics, to create it elsewhere with made-up rows."""

from __future__ import annotations

from dataclasses import field

from uncork.model.records import Record


class SourceColumn(Record):
    """A column. `type` is as SQL writes it; `category` is PostgreSQL's type category (`N` for numbers, ...).

    `distinct` is as in pg_stats: a number of values if positive, a negative share of the rows otherwise, 0 if
    unknown. `common` holds the most common values with their shares of all rows; `bounds` the least and the
    greatest of the others. `labels` are those of an enum.
    """

    name: str
    type: str
    category: str = "X"
    not_null: bool = False
    generated: str | None = None
    labels: tuple[str, ...] = ()
    distinct: float = 0.0
    null_share: float = 0.0
    width_bytes: int = 0
    common: tuple[tuple[str, float], ...] = ()
    bounds: tuple[str, str] | None = None


class SourceTable(Record):
    """A table, or the reason why it cannot be described (`unknown`).

    `schema` is empty if an unqualified name finds the table. `keys` are definitions of primary and unique
    keys; `unique` the columns that are such a key alone; `indexes` the statements that create the others.
    """

    name: str
    schema: str = ""
    rows: int = 0
    columns: tuple[SourceColumn, ...] = ()
    keys: tuple[str, ...] = ()
    unique: frozenset[str] = field(default_factory=frozenset)
    indexes: tuple[str, ...] = ()
    unknown: str | None = None
