"""Indexes taken apart: existing ones, and the ones that rules propose."""

from __future__ import annotations

import re
from typing import Final

from uncork.model.database.names import quoted, sql_name
from uncork.model.records import Record

_CONCURRENTLY: Final = re.compile(r"\b(INDEX) CONCURRENTLY\b")


class IndexKey(Record):
    """A key of an index: a column, or an expression in SQL. `opclass` is empty for the default one."""

    column: str
    expression: str = ""
    descending: bool = False
    nulls_first: bool | None = None
    opclass: str = ""
    collation: str = ""


class IndexShape(Record):
    """An index of a table. `name` is empty if it does not exist yet.

    `included` are columns that it stores besides its keys, `predicate` is the condition of a partial index.
    """

    table: str
    keys: tuple[IndexKey, ...]
    method: str = "btree"
    included: tuple[str, ...] = ()
    predicate: str = ""
    unique: bool = False
    name: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its key columns; an expression is an empty name."""
        return tuple(key.column for key in self.keys)


def create_index(index: IndexShape, *, concurrently: bool = True) -> str:
    """Return the statement that creates an index; `concurrently`, without blocking writes."""
    unique, way = "UNIQUE " if index.unique else "", " CONCURRENTLY" if concurrently else ""
    using = "" if index.method == "btree" else f" USING {index.method}"
    keys = ", ".join(_key(key) for key in index.keys)
    included = f" INCLUDE ({', '.join(map(quoted, index.included))})" if index.included else ""
    where = f" WHERE {index.predicate}" if index.predicate else ""
    name = f" {quoted(index.name.rpartition('.')[2] or new_name(index))}"
    head = f"CREATE {unique}INDEX{way}{name} ON {sql_name(index.table)}{using}"
    return f"{head} ({keys}){included}{where};"


def drop_index(index: IndexShape, *, concurrently: bool = True) -> str:
    """Return the statement that drops an index, which `create_index` or somebody else created."""
    schema = f"{index.table.split('.', 1)[0]}." if "." in index.table else ""
    way = " CONCURRENTLY" if concurrently else ""
    return f"DROP INDEX{way} {sql_name(index.name or schema + new_name(index))};"


def within_transaction(sql: str) -> str:
    """Return SQL without CONCURRENTLY, which PostgreSQL refuses within a transaction."""
    return _CONCURRENTLY.sub(r"\1", sql)


def new_name(index: IndexShape) -> str:
    """Return a name for an index that does not exist yet: the table, its columns, and ``idx``."""
    table = index.table.rpartition(".")[2]
    parts = [key.column or "expr" for key in index.keys]
    kind = "" if index.method == "btree" else f"_{index.method}"
    kind += "_pattern" if any(key.opclass.endswith("pattern_ops") for key in index.keys) else ""
    partial = "_part" if index.predicate else ""
    return f"{'_'.join([table, *parts])[: 54 - len(kind) - len(partial)]}{kind}{partial}_idx"


def _key(key: IndexKey) -> str:
    text = quoted(key.column) if key.column else f"({key.expression})"
    if key.collation:
        text += f" COLLATE {quoted(key.collation)}"
    if key.opclass:
        text += f" {key.opclass}"
    if key.descending:
        text += " DESC"
    if key.nulls_first is not None and key.nulls_first != key.descending:
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text
