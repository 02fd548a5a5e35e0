"""The stored tables of a watched database's catalogue, restricted to what its statements use."""

from __future__ import annotations

from uncork.model.tables.table import StoredRow, column, table_of

_OID = "the server's number of it"
_TABLE_OID = "the table it belongs to"


class ColumnRow(StoredRow):
    """Columns of the tables that the watched statements use, with what ANALYZE found."""

    table_oid: int = column(_TABLE_OID)
    number: int = column("the server's number of the column, from 1")
    name: str = column("column")
    type: str = column("type, without its modifier")
    storage_type: str = column("type with its modifier, such as numeric(10,2)")
    not_null: bool = column("true if it cannot be null")
    default: str = column("default, or the expression of a generated column; else empty")
    generated: str = column("stored, virtual, identity, or empty")
    collation: str = column("collation; empty if its type has none")
    statistics_target: int | None = column("ALTER COLUMN ... SET STATISTICS; null if not set")
    readable: bool = column("true if this role can read its statistics")
    null_fraction: float | None = column("fraction of rows in which it is null; null if unknown")
    width: float | None = column("mean width of its values that are not null", "B")
    distinct: float | None = column("distinct values; below 0: minus their fraction of the rows")
    correlation: float | None = column("correlation of its order with that of the rows, -1 to 1")
    common: str | None = column("up to 10 most common values, each with its frequency, as JSON; or null")
    bounds: str | None = column("up to 10 bounds of its histogram, as JSON; null if unknown")


class ConstraintRow(StoredRow):
    """Constraints of these tables."""

    oid: int = column(_OID)
    table_oid: int = column(_TABLE_OID)
    name: str = column("constraint")
    kind: str = column("primary key, unique, foreign key, check, exclusion or not null")
    columns: str | None = column("its columns, as JSON")
    definition: str = column("definition, as in ALTER TABLE ... ADD CONSTRAINT")
    valid: bool = column("false if the rows were not checked (NOT VALID)")
    index: str | None = column("the index that enforces it, in the table's schema; else empty")
    referred_oid: int | None = column("foreign key: the table that it refers to")
    referred_columns: str | None = column("foreign key: columns that it refers to, as JSON")
    on_delete: str | None = column("foreign key: no action, restrict, cascade, set null, ...")
    on_update: str | None = column("foreign key: the same for updates")


class TriggerRow(StoredRow):
    """Triggers of these tables, without triggers of constraints."""

    oid: int = column(_OID)
    table_oid: int = column(_TABLE_OID)
    name: str = column("trigger")
    timing: str = column("before, after or instead of")
    per_row: bool = column("true if it runs once per row, not once per statement")
    events: str | None = column("insert, update, delete, truncate: which of them, as JSON")
    function_schema: str = column("schema of its function")
    function: str = column("its function")
    definition: str = column("the statement that creates it")
    enabled: bool = column("false if it does not run in ordinary sessions")


class PolicyRow(StoredRow):
    """Policies of these tables, if row security is enabled for the table."""

    oid: int = column(_OID)
    table_oid: int = column(_TABLE_OID)
    name: str = column("policy")
    command: str = column("all, select, insert, update or delete")
    permissive: bool = column("false if it is restrictive: it must hold beside the others")
    condition: str = column("which rows it shows (USING); empty if it has none or is unknown")
    volatile: bool = column("true if its condition calls a VOLATILE function of a user")
    roles: str | None = column("roles of the watched statements that it applies to, as JSON")


class FunctionRow(StoredRow):
    """Functions of users that triggers or the watched statements call; before the watch only counters."""

    moment: str = column("before or after: which of the two snapshots")
    oid: int = column(_OID)
    schema: str = column("schema")
    name: str = column("function or procedure")
    language: str = column("language")
    volatility: str = column("immutable, stable or volatile")
    parallel: str = column("safe, restricted or unsafe")
    strict: bool = column("true if it returns null whenever an argument is null")
    returns_set: bool = column("true if it returns a set of rows")
    cost: float = column("the planner's estimate of its cost, in cpu_operator_cost")
    source: str = column("body in SQL or PL/pgSQL, up to 20 000 characters; else empty")
    configured: bool | None = column("true if it is SECURITY DEFINER or has settings of its own")
    calls: int | None = column("calls; null if the server did not count them")
    total_ms: float | None = column("time in it and in functions that it called", "ms")
    self_ms: float | None = column("time in it alone", "ms")


class ViewRow(StoredRow):
    """Views that the watched statements use, also through other views."""

    oid: int = column(_OID)
    schema: str = column("schema")
    name: str = column("view")
    materialized: bool = column("true if it stores its rows")
    definition: str | None = column("its query; null if it could not be read")


class TableOptionsRow(StoredRow):
    """How these tables are stored."""

    table_oid: int = column("table")
    options: str | None = column("storage parameters (WITH), those of TOAST with toast., as JSON")
    persistence: str = column("permanent, unlogged or temporary")
    partition_key: str = column("partition key, such as RANGE (day); empty if not partitioned")
    bounds: str = column("which rows it takes, if it is a partition")
    toast_bytes: int | None = column("size of values stored out of line; null if unknown", "B")


class ServerSettingRow(StoredRow):
    """Settings that rules need, whether or not they differ from the defaults."""

    name: str = column("setting; lc_collate is the locale of the default collation")
    value: str = column("its value, as SHOW prints it")
    source: str = column("where it was set")


class RoleSettingRow(StoredRow):
    """Settings of roles and databases (ALTER ROLE ... SET, ALTER DATABASE ... SET)."""

    role: str = column("role; empty for all roles")
    database: str = column("database; empty for all databases")
    name: str = column("setting")
    value: str | None = column("its value; null for parameters that the server does not know")


CATALOGUE_TABLES = (
    table_of("database_columns", ColumnRow, "table_oid", "number"),
    table_of("database_constraints", ConstraintRow, "oid"),
    table_of("database_triggers", TriggerRow, "oid"),
    table_of("database_policies", PolicyRow, "oid"),
    table_of("database_functions", FunctionRow, "moment", "oid"),
    table_of("database_views", ViewRow, "oid"),
    table_of("database_table_options", TableOptionsRow, "table_oid"),
    table_of("database_server_settings", ServerSettingRow, "name"),
    table_of("database_role_settings", RoleSettingRow, "role", "database", "name"),
)
