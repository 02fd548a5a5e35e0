"""The objects of a database, as its catalogue describes them. Names in definitions are qualified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension that is installed in the database, and the schema of its objects."""

    name: str
    schema: str


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation of users. `provider` is pg_collation's: c for libc, i for ICU, b for builtin."""

    schema: str
    name: str
    provider: str
    deterministic: bool
    locale: str | None
    collate: str | None
    ctype: str | None
    rules: str | None


@dataclass(frozen=True, slots=True)
class UserType:
    """An enum (kind e, with its labels), a composite type (c, with its attributes) or a domain (d).

    `attributes` holds the name, the type and the collation or an empty text of each attribute.
    """

    schema: str
    name: str
    kind: str
    labels: Sequence[str] = ()
    attributes: Sequence[Sequence[str]] = ()
    base: str | None = None
    collation: str | None = None
    default: str | None = None
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """A check constraint of a domain."""

    schema: str
    domain: str
    name: str
    definition: str
    valid: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A range type. `canonical` is its canonical function, if any."""

    schema: str
    name: str
    subtype: str
    operator_class: str
    collation: str | None
    canonical: str | None
    difference: str | None
    multirange: str | None


@dataclass(frozen=True, slots=True)
class Routine:
    """A function, procedure or window function: its signature, and what CREATE says."""

    name: str
    definition: str
    language: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function: its qualified name, its signature, and the options of CREATE AGGREGATE."""

    schema: str
    name: str
    arguments: str
    options: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class SequenceFacts:
    """A sequence. `last` is the last value that it returned; None if there is none, or if it is not readable.

    `table` and `column` own it. `identity` is true if it belongs to an identity column.
    """

    schema: str
    name: str
    type: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycles: bool
    last: int | None
    table: int | None
    column: str | None
    identity: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view.

    `storage`, `compression`, `target` (of statistics) and `options` are None unless they were set. `binary`
    is true if its values can cross in the binary format between servers of one major version.
    """

    table: int
    name: str
    type: str
    collation: str | None = None
    not_null: bool = False
    not_null_name: str | None = None
    no_inherit: bool = False
    identity: str = ""
    generated: str = ""
    default: str | None = None
    storage: str | None = None
    compression: str | None = None
    target: int | None = None
    options: Sequence[str] | None = None
    binary: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table; kind p if partitioned, else r. `parents` are inherited tables, or the one partitioned table.

    `bytes` is its size without indexes, `rows` an estimate, negative if unknown. `readable` is true if the
    role may read all its columns.
    """

    oid: int
    schema: str
    name: str
    kind: str
    unlogged: bool
    options: Sequence[str]
    partition_key: str | None
    bound: str | None
    parents: Sequence[int]
    method: str | None
    bytes: int
    rows: float
    readable: bool
    row_security: bool = False
    tablespace: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A view (kind v) or a materialised view (m)."""

    oid: int
    schema: str
    name: str
    kind: str
    definition: str
    options: Sequence[str]
    filled: bool


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of a table; `kind` is pg_constraint's contype.

    A foreign key has `columns`, the table it references, the columns there, and their types.
    `index_options` are those of the index of a primary key, unique or exclusion constraint.
    """

    table: int
    name: str
    kind: str
    definition: str
    valid: bool
    inherited: bool
    derived: bool
    no_inherit: bool
    columns: Sequence[str] = ()
    references: int = 0
    referenced: Sequence[str] = ()
    types: Sequence[str] = ()
    index_options: Sequence[str] = ()
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Index:
    """An index. `definition` is None if it belongs to a constraint; `parent` is its partitioned index.

    `targets` are the statistics targets of its expressions: the column's number and the target.
    """

    schema: str
    name: str
    table: int
    definition: str | None
    parent_schema: str | None
    parent: str | None
    valid: bool
    targets: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class Statistics:
    """Extended statistics, and their target if it was set."""

    schema: str
    name: str
    definition: str
    target: int | None


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of a table or view; `enabled` is pg_trigger's: O, D, R or A."""

    schema: str
    table: str
    name: str
    definition: str
    enabled: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a table or view; `enabled` is pg_rewrite's: O, D, R or A."""

    schema: str
    table: str
    name: str
    definition: str
    enabled: str


@dataclass(frozen=True, slots=True)
class Schema:
    """All definitions of a database that a copy can have, each kind in the order of creation."""

    schemas: tuple[str, ...] = ()
    extensions: tuple[Extension, ...] = ()
    collations: tuple[Collation, ...] = ()
    types: tuple[UserType, ...] = ()
    checks: tuple[DomainCheck, ...] = ()
    ranges: tuple[Range, ...] = ()
    routines: tuple[Routine, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    sequences: tuple[SequenceFacts, ...] = ()
    tables: tuple[Table, ...] = ()
    columns: tuple[Column, ...] = ()
    views: tuple[View, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[Index, ...] = ()
    statistics: tuple[Statistics, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    rules: tuple[Rule, ...] = ()
    version: int = field(default=0)
