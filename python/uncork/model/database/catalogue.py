"""The catalogue of a database: columns with their statistics, constraints, triggers, functions, settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from uncork.model.records import Record


class ColumnFacts(Record):
    """A column; what ANALYZE found out about it is None if it never did, or if this role may not see it.

    `distinct` is the estimated number of distinct values: below 0, it is the negative fraction of the rows,
    as in pg_stats. `common` are the most common values with their frequencies, `bounds` those of the
    histogram, at most ten, as text; both are empty if the run was anonymised. `correlation` is -1 to 1.
    `generated` is "", "stored", "virtual" or "identity". `storage_type` is the type's name with its modifier,
    such as ``numeric(10,2)``; `type` is without it, such as ``numeric``.
    """

    table: str
    table_oid: int
    number: int
    name: str
    type: str
    storage_type: str
    not_null: bool
    default: str
    generated: str
    collation: str
    null_fraction: float | None = None
    width: float | None = None
    distinct: float | None = None
    correlation: float | None = None
    common: tuple[tuple[str, float], ...] = ()
    bounds: tuple[str, ...] = ()
    statistics_target: int | None = None


class ConstraintFacts(Record):
    """A constraint. `kind` is "primary key", "unique", "foreign key", "check", "exclusion" or "not null".

    For a foreign key, `referred` is the other table and `referred_columns` its columns, and `on_delete` and
    `on_update` are the actions ("no action", "restrict", "cascade", "set null", "set default").
    """

    name: str
    table: str
    table_oid: int
    kind: str
    columns: tuple[str, ...]
    definition: str
    valid: bool = True
    index: str = ""
    referred: str = ""
    referred_columns: tuple[str, ...] = ()
    on_delete: str = ""
    on_update: str = ""


class TriggerFacts(Record):
    """A trigger that is not internal to a constraint. `timing` is "before", "after" or "instead of"."""

    name: str
    table: str
    table_oid: int
    timing: str
    per_row: bool
    events: tuple[str, ...]
    function: str
    definition: str
    enabled: bool = True

    def fires_for(self, table: str, events: Collection[str]) -> bool:
        """Return whether it is enabled, and runs for one of these events (in lower case) of a table."""
        own = map(str.lower, self.events)
        return self.table == table and self.enabled and not set(events).isdisjoint(own)


class PolicyFacts(Record):
    """A policy of a table whose row security is enabled.

    `command` is "all", "select", "insert", "update" or "delete". `condition` is the condition of USING, empty
    if there is none. `volatile` is true if it calls a VOLATILE function of a user, so that no index can serve
    it. `roles` are the roles of the watched statements that it applies to: superusers, roles with BYPASSRLS
    and owners of the table (unless row security is forced) are not among them.
    """

    name: str
    table: str
    table_oid: int
    command: str
    permissive: bool
    condition: str
    volatile: bool
    roles: tuple[str, ...]


class FunctionFacts(Record):
    """A function or procedure of a user. `calls`, `total_ms` and `self_ms` grew between the snapshots.

    They are None unless track_functions counts them. `source` is its body in SQL or PL/pgSQL, else empty.
    `configured` is true if it is SECURITY DEFINER or has settings of its own, None if that is unknown.
    """

    name: str
    language: str
    volatility: str
    parallel: str
    strict: bool
    returns_set: bool
    cost: float
    source: str
    calls: int | None = None
    total_ms: float | None = None
    self_ms: float | None = None
    configured: bool | None = None


class TriggerBody(Record):
    """The body of a trigger's function for all rows of a statement, in the place of one for each row.

    `tables` are the tables that it writes, `check` is a query of what both bodies leave the same. With
    `joins`, it looks up the written rows by keys.
    """

    source: str
    tables: tuple[str, ...]
    check: str
    joins: bool = False


class ViewFacts(Record):
    """A view with its query. `materialized` ones store their rows."""

    name: str
    materialized: bool
    definition: str


class TableOptions(Record):
    """How a table is stored: `options` are its reloptions; `partition_key` is set if it is partitioned.

    `parent` is the table that it is a partition of, and `bounds` which rows it takes. `toast_bytes` is the
    size of values stored out of line. `persistence` is "permanent", "unlogged" or "temporary".
    """

    table: str
    table_oid: int
    options: Mapping[str, str]
    persistence: str
    partition_key: str = ""
    parent: str = ""
    bounds: str = ""
    toast_bytes: int | None = None


class ServerSetting(Record):
    """A setting that rules need, whether or not it differs from the default. `value` is as SHOW prints it."""

    name: str
    value: str
    source: str


class RoleSetting(Record):
    """A setting of a role, a database, or a role in a database (ALTER ROLE ... SET)."""

    role: str
    database: str
    name: str
    value: str


class Catalogue(Record):
    """Everything known of the catalogue, restricted to tables that the watched statements use.

    `columns` are by table name, then in the order of the table. `memory_bytes` and `processors` are those of
    the server's machine if it is this one, else None.
    """

    columns: Mapping[str, tuple[ColumnFacts, ...]] = field(default_factory=dict)
    constraints: tuple[ConstraintFacts, ...] = ()
    triggers: tuple[TriggerFacts, ...] = ()
    policies: tuple[PolicyFacts, ...] = ()
    functions: tuple[FunctionFacts, ...] = ()
    views: tuple[ViewFacts, ...] = ()
    options: Mapping[str, TableOptions] = field(default_factory=dict)
    settings: Mapping[str, ServerSetting] = field(default_factory=dict)
    role_settings: tuple[RoleSetting, ...] = ()
    memory_bytes: int | None = None
    processors: int | None = None

    def column(self, table: str, name: str) -> ColumnFacts | None:
        """Return a column of a table, None if it is unknown."""
        return next((column for column in self.columns.get(table, ()) if column.name == name), None)

    def setting(self, name: str) -> str:
        """Return a setting's value; an empty string if it is unknown."""
        found = self.settings.get(name)
        return "" if found is None else found.value
