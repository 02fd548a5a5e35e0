"""What a copy knows about a database: tables, columns and foreign keys, and the statements for all of it.

Names in statements are qualified and quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def identifier(*parts: str) -> str:
    """Return a name in quotes, qualified by those before it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement for the copy: the kind and the name of what it creates.

    `refused` says why the copy must not have it; the statement is then not executed.
    """

    kind: str
    name: str
    text: str
    refused: str = ""

    @property
    def what(self) -> str:
        """What a message calls the object."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `binary` is true if its values can cross in the binary format between servers of one major version.
    """

    table: int
    name: str
    not_null: bool
    generated: bool
    binary: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table; kind p if partitioned, else r. `parents` are inherited tables, or the one partitioned table.

    `partition` is true if it is a partition. `bytes` is its size without indexes; `rows` is an
    estimate, negative if unknown. `readable` is true if the role may read all its columns.
    """

    oid: int
    schema: str
    name: str
    kind: str
    partition: bool = False
    parents: Sequence[int] = ()
    method: str | None = "heap"
    bytes: int = 0
    rows: float = -1.0
    readable: bool = True
    row_security: bool = False
    tablespace: str | None = None

    @property
    def quoted(self) -> str:
        """The table's name in SQL."""
        return identifier(self.schema, self.name)

    @property
    def shown(self) -> str:
        """The table's name in messages."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: its columns, the table it references, the columns there, and their types.

    `derived` is true if it is a part of a partitioned table's, `plain` unless it is about periods.
    """

    table: int
    references: int
    definition: str = ""
    valid: bool = True
    derived: bool = False
    columns: Sequence[str] = ()
    referenced: Sequence[str] = ()
    types: Sequence[str] = ()
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """What a copy can have of a database, each kind in the order of creation.

    `before_rows` create what rows need, and views; `after_rows` constraints, indexes and
    statistics, with the foreign keys last, and set sequences; `filling` fills materialised views,
    and creates their indexes, and then rules and triggers. A function may use a view, and a view a
    primary key, so the executor repeats what failed (`applying`).
    """

    tables: tuple[Table, ...] = ()
    columns: tuple[Column, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    before_rows: tuple[Step, ...] = ()
    after_rows: tuple[Step, ...] = ()
    filling: tuple[Step, ...] = ()
    version: int = 0
