"""The stored tables of a watched database's catalogue, restricted to what its statements use."""

from __future__ import annotations

from uncork.model.tables.table import Column, Table

_OID = Column("oid", "integer", "", "the server's number of it")
_TABLE_OID = Column("table_oid", "integer", "", "the table it belongs to")
_SCHEMA = Column("schema", "text", "", "schema")

CATALOGUE_TABLES = (
    Table(
        "database_columns",
        "Columns of the tables that the watched statements use, with what ANALYZE found.",
        ("table_oid", "number"),
        (
            _TABLE_OID,
            Column("number", "integer", "", "the server's number of the column, from 1"),
            Column("name", "text", "", "column"),
            Column("type", "text", "", "type, without its modifier"),
            Column("storage_type", "text", "", "type with its modifier, such as numeric(10,2)"),
            Column("not_null", "flag", "", "true if it cannot be null"),
            Column("default", "text", "", "default, or the expression of a generated column; else empty"),
            Column("generated", "text", "", "stored, virtual, identity, or empty"),
            Column("collation", "text", "", "collation; empty if its type has none"),
            Column("statistics_target", "integer", "", "ALTER COLUMN ... SET STATISTICS; null if not set"),
            Column("readable", "flag", "", "true if this role can read its statistics"),
            Column("null_fraction", "real", "", "fraction of rows in which it is null; null if unknown"),
            Column("width", "real", "B", "mean width of its values that are not null"),
            Column("distinct", "real", "", "distinct values; below 0: minus their fraction of the rows"),
            Column("correlation", "real", "", "correlation of its order with that of the rows, -1 to 1"),
            Column(
                "common", "text", "", "up to 10 most common values, each with its frequency, as JSON; or null"
            ),
            Column("bounds", "text", "", "up to 10 bounds of its histogram, as JSON; null if unknown"),
        ),
    ),
    Table(
        "database_constraints",
        "Constraints of these tables.",
        ("oid",),
        (
            _OID,
            _TABLE_OID,
            Column("name", "text", "", "constraint"),
            Column("kind", "text", "", "primary key, unique, foreign key, check, exclusion or not null"),
            Column("columns", "text", "", "its columns, as JSON"),
            Column("definition", "text", "", "definition, as in ALTER TABLE ... ADD CONSTRAINT"),
            Column("valid", "flag", "", "false if the rows were not checked (NOT VALID)"),
            Column("index", "text", "", "the index that enforces it, in the table's schema; else empty"),
            Column("referred_oid", "integer", "", "foreign key: the table that it refers to"),
            Column("referred_columns", "text", "", "foreign key: columns that it refers to, as JSON"),
            Column("on_delete", "text", "", "foreign key: no action, restrict, cascade, set null, ..."),
            Column("on_update", "text", "", "foreign key: the same for updates"),
        ),
    ),
    Table(
        "database_triggers",
        "Triggers of these tables, without triggers of constraints.",
        ("oid",),
        (
            _OID,
            _TABLE_OID,
            Column("name", "text", "", "trigger"),
            Column("timing", "text", "", "before, after or instead of"),
            Column("per_row", "flag", "", "true if it runs once per row, not once per statement"),
            Column("events", "text", "", "insert, update, delete, truncate: which of them, as JSON"),
            Column("function_schema", "text", "", "schema of its function"),
            Column("function", "text", "", "its function"),
            Column("definition", "text", "", "the statement that creates it"),
            Column("enabled", "flag", "", "false if it does not run in ordinary sessions"),
        ),
    ),
    Table(
        "database_policies",
        "Policies of these tables, if row security is enabled for the table.",
        ("oid",),
        (
            _OID,
            _TABLE_OID,
            Column("name", "text", "", "policy"),
            Column("command", "text", "", "all, select, insert, update or delete"),
            Column("permissive", "flag", "", "false if it is restrictive: it must hold beside the others"),
            Column(
                "condition", "text", "", "which rows it shows (USING); empty if it has none or is unknown"
            ),
            Column("volatile", "flag", "", "true if its condition calls a VOLATILE function of a user"),
            Column("roles", "text", "", "roles of the watched statements that it applies to, as JSON"),
        ),
    ),
    Table(
        "database_functions",
        "Functions of users that triggers or the watched statements call; before the watch only counters.",
        ("moment", "oid"),
        (
            Column("moment", "text", "", "before or after: which of the two snapshots"),
            _OID,
            _SCHEMA,
            Column("name", "text", "", "function or procedure"),
            Column("language", "text", "", "language"),
            Column("volatility", "text", "", "immutable, stable or volatile"),
            Column("parallel", "text", "", "safe, restricted or unsafe"),
            Column("strict", "flag", "", "true if it returns null whenever an argument is null"),
            Column("returns_set", "flag", "", "true if it returns a set of rows"),
            Column("cost", "real", "", "the planner's estimate of its cost, in cpu_operator_cost"),
            Column("source", "text", "", "body in SQL or PL/pgSQL, up to 20 000 characters; else empty"),
            Column("configured", "flag", "", "true if it is SECURITY DEFINER or has settings of its own"),
            Column("calls", "integer", "", "calls; null if the server did not count them"),
            Column("total_ms", "real", "ms", "time in it and in functions that it called"),
            Column("self_ms", "real", "ms", "time in it alone"),
        ),
    ),
    Table(
        "database_views",
        "Views that the watched statements use, also through other views.",
        ("oid",),
        (
            _OID,
            _SCHEMA,
            Column("name", "text", "", "view"),
            Column("materialized", "flag", "", "true if it stores its rows"),
            Column("definition", "text", "", "its query; null if it could not be read"),
        ),
    ),
    Table(
        "database_table_options",
        "How these tables are stored.",
        ("table_oid",),
        (
            Column("table_oid", "integer", "", "table"),
            Column("options", "text", "", "storage parameters (WITH), those of TOAST with toast., as JSON"),
            Column("persistence", "text", "", "permanent, unlogged or temporary"),
            Column(
                "partition_key", "text", "", "partition key, such as RANGE (day); empty if not partitioned"
            ),
            Column("bounds", "text", "", "which rows it takes, if it is a partition"),
            Column("toast_bytes", "integer", "B", "size of values stored out of line; null if unknown"),
        ),
    ),
    Table(
        "database_server_settings",
        "Settings that rules need, whether or not they differ from the defaults.",
        ("name",),
        (
            Column("name", "text", "", "setting; lc_collate is the locale of the default collation"),
            Column("value", "text", "", "its value, as SHOW prints it"),
            Column("source", "text", "", "where it was set"),
        ),
    ),
    Table(
        "database_role_settings",
        "Settings of roles and databases (ALTER ROLE ... SET, ALTER DATABASE ... SET).",
        ("role", "database", "name"),
        (
            Column("role", "text", "", "role; empty for all roles"),
            Column("database", "text", "", "database; empty for all databases"),
            Column("name", "text", "", "setting"),
            Column("value", "text", "", "its value; null for parameters that the server does not know"),
        ),
    ),
)
