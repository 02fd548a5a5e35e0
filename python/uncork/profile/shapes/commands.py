"""Name a statement's command, and find its tables if it is neither a query nor a change of rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from uncork.model.database.statement import TableUse
from uncork.profile.shapes.nodes import chained, enum_of, kind_of
from uncork.profile.shapes.parts import Parts
from uncork.profile.shapes.queries import QUERIES, Walk
from uncork.profile.shapes.scopes import Scope, table_name

_COMMANDS: Final = {
    "create_stmt": "create table",
    "index_stmt": "create index",
    "view_stmt": "create view",
    "create_seq_stmt": "create sequence",
    "create_trig_stmt": "create trigger",
    "createdb_stmt": "create database",
    "dropdb_stmt": "drop database",
    "create_plang_stmt": "create language",
    "refresh_mat_view_stmt": "refresh materialized view",
    "variable_show_stmt": "show",
    "declare_cursor_stmt": "declare cursor",
    "close_portal_stmt": "close",
    "check_point_stmt": "checkpoint",
    "alter_seq_stmt": "alter sequence",
    "constraints_set_stmt": "set constraints",
    "composite_type_stmt": "create type",
    "create_enum_stmt": "create type",
    "create_range_stmt": "create type",
    "alter_enum_stmt": "alter type",
    "rule_stmt": "create rule",
    "create_stats_stmt": "create statistics",
    "alter_stats_stmt": "alter statistics",
    "create_table_space_stmt": "create tablespace",
    "drop_table_space_stmt": "drop tablespace",
    "create_event_trig_stmt": "create event trigger",
    "alter_event_trig_stmt": "alter event trigger",
    "create_foreign_server_stmt": "create server",
    "alter_foreign_server_stmt": "alter server",
    "create_fdw_stmt": "create foreign data wrapper",
    "alter_fdw_stmt": "alter foreign data wrapper",
    "create_op_class_stmt": "create operator class",
    "create_op_family_stmt": "create operator family",
    "alter_op_family_stmt": "alter operator family",
    "create_am_stmt": "create access method",
    "alter_role_set_stmt": "alter role",
    "alter_database_set_stmt": "alter database",
    "sec_label_stmt": "security label",
}
_OBJECTS: Final = {
    "matview": "materialized view",
    "column": "table",
    "tabconstraint": "table",
    "domconstraint": "domain",
    "attribute": "type",
    "statistic ext": "statistics",
    "fdw": "foreign data wrapper",
    "foreign server": "server",
    "opclass": "operator class",
    "opfamily": "operator family",
    "tsconfiguration": "text search configuration",
    "tsdictionary": "text search dictionary",
    "tsparser": "text search parser",
    "tstemplate": "text search template",
}
"""Kinds of objects, and parts of objects, by libpg_query's names."""
_TRANSACTIONS: Final = {
    "TRANS_STMT_BEGIN": "begin",
    "TRANS_STMT_START": "begin",
    "TRANS_STMT_ROLLBACK_TO": "rollback to savepoint",
    "TRANS_STMT_PREPARE": "prepare transaction",
}
"""Other kinds of transaction statements have their names (``commit prepared``)."""


def command(node: Any) -> str:
    """Return the command of a statement in lower case, such as ``select`` or ``create table``."""
    kind = kind_of(node)
    statement = getattr(node, kind)
    if kind in QUERIES:
        into = kind == "select_stmt" and statement.HasField("into_clause")
        return "create table as" if into else kind.removesuffix("_stmt")
    if kind in _WORDED:
        return _WORDED[kind](statement)
    return _COMMANDS.get(kind, _words(kind.removesuffix("_stmt"), ""))


def walk_command(node: Any, walk: Walk) -> None:
    """Collect the tables, queries and functions of a command."""
    kind = kind_of(node)
    statement = getattr(node, kind)
    parts, created = walk.parts, _created(kind, statement)
    if created is not None:
        parts.remember(temporary=created.relpersistence == "t")
        if kind == "select_stmt":
            _named(created.schemaname, created.relname, walk, changed=True)
    if kind == "copy_stmt" and statement.is_from:
        parts.insert_columns.update(dict.fromkeys(chained(statement.attlist)))
    if kind == "drop_stmt" and enum_of(statement, "remove_type") == "OBJECT_TABLE":
        _dropped(statement, walk)
    if kind not in QUERIES:
        walk.visit(statement, Scope(None, 0), "")
        _mark(kind, statement, created, parts)


def _created(kind: str, statement: Any) -> Any | None:
    """Return the table that a command creates."""
    if kind == "create_stmt":
        return statement.relation
    if kind == "create_table_as_stmt":
        return statement.into.rel
    return statement.into_clause.rel if kind == "select_stmt" and statement.HasField("into_clause") else None


def _mark(kind: str, statement: Any, created: Any | None, parts: Parts) -> None:
    """Mark the tables that a command changes or creates."""
    whole = kind == "truncate_stmt" or (kind == "copy_stmt" and statement.is_from)
    target = None if created is None else created.relname
    for place, use in enumerate(parts.uses):
        if use.kind == "table" and (whole or use.name.rpartition(".")[2] == target):
            parts.uses[place] = TableUse(use.name, use.alias, use.kind, use.level, use.joined, changed=True)


def _dropped(statement: Any, walk: Walk) -> None:
    for one in statement.objects:
        *schema, name = chained(one.list.items) or ("",)
        _named("".join(schema[-1:]), name, walk, changed=False)


def _named(schema: str, name: str, walk: Walk, *, changed: bool) -> None:
    found = table_name(schema, name, walk.catalogue)
    walk.parts.uses.append(TableUse(found, name, "table", 0, changed=changed))


def _object(statement: Any, attribute: str) -> str:
    name = _words(enum_of(statement, attribute), "OBJECT_")
    return _OBJECTS.get(name, name)


def _words(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower().replace("_", " ")


def _transaction(statement: Any) -> str:
    name = enum_of(statement, "kind")
    return _TRANSACTIONS.get(name, _words(name, "TRANS_STMT_"))


def _set(statement: Any) -> str:
    return "reset" if enum_of(statement, "kind").startswith("VAR_RESET") else "set"


def _created_as(statement: Any) -> str:
    name = _object(statement, "objtype")
    return "create table as" if name == "table" else f"create {name}"


def _granted(statement: Any) -> str:
    return "grant" if statement.is_grant else "revoke"


_WORDED: Final[Mapping[str, Callable[[Any], str]]] = {
    "transaction_stmt": _transaction,
    "variable_set_stmt": _set,
    "vacuum_stmt": lambda one: "vacuum" if one.is_vacuumcmd else "analyze",
    "fetch_stmt": lambda one: "move" if one.ismove else "fetch",
    "create_table_as_stmt": _created_as,
    "grant_stmt": _granted,
    "grant_role_stmt": _granted,
    "create_function_stmt": lambda one: "create procedure" if one.is_procedure else "create function",
    "drop_stmt": lambda one: f"drop {_object(one, 'remove_type')}",
    "alter_table_stmt": lambda one: f"alter {_object(one, 'objtype')}",
    "rename_stmt": lambda one: f"alter {_object(one, 'rename_type')}",
    "alter_object_schema_stmt": lambda one: f"alter {_object(one, 'object_type')}",
    "alter_owner_stmt": lambda one: f"alter {_object(one, 'object_type')}",
    "define_stmt": lambda one: f"create {_object(one, 'kind')}",
}
"""How commands are named whose nodes stand for several."""
