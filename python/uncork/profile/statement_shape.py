"""Take statements, filters of plans and indexes apart with the grammar. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate, StatementShape, TableUse
from uncork.profile.shapes.nodes import (
    QUERIES,
    Token,
    chained,
    constant_text,
    enum_of,
    kind_of,
    only_statement,
    parsed,
    plain_sql_of,
    rewritten,
    tokens_of,
    uncast,
)
from uncork.profile.shapes.queries import Walk
from uncork.profile.shapes.scopes import Scope, table_name


def statement_shape(
    sql: str, tables: Mapping[str, Collection[str]], *, template: bool = False
) -> StatementShape | None:
    """Take one statement apart; None if the grammar rejects it, or if the text has several statements.

    `sql` has ``$1`` or literals for its values; with `template`, it has ``?`` for each value. `tables` are
    the column names of the catalogue's tables, by name; those in `public` have no schema. They tell which
    table a column belongs to if the statement does not.
    """
    tree = accepted(sql, template=template)
    if tree is None or len(tree.stmts) != 1:
        return None
    node = tree.stmts[0].stmt
    if not kind_of(node):
        return None
    walk = Walk(tables)
    if kind_of(node) in QUERIES:
        walk.query(node, Scope(None, 0), outermost=True)
    walk_command(node, walk)
    return walk.parts.shape(command(node))


# ---- a text that the grammar accepts, of a template or of a command with parameters ----

_PRECISE: Final = frozenset(
    {
        *("BIT", "CHAR_P", "CHARACTER", "NCHAR", "VARCHAR", "VARYING", "FLOAT_P", "INTERVAL", "SECOND_P"),
        *("TIME", "TIMESTAMP", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
    }
)
"""Keywords after which brackets have a number, not an expression."""
_ENDS: Final = frozenset({"IDENT", "PARAM", "SCONST", "ICONST", "FCONST", "ASCII_41", "ASCII_93"})
"""Tokens that end an operand."""
_QUESTIONS: Final = frozenset({"?", "?|", "?&", "@?"})
_ROWS: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE_P", "WITH", "MERGE", "VALUES"})
_STANDINS: Final = ("a1", "'1'", "1")
"""An identifier, a string and a number, for parameters of commands in which the grammar has no parameters."""


def accepted(text: str, *, template: bool) -> Any | None:
    """Return the tree of a statement, None if the grammar rejects every form of it.

    With `template`, the text has ``?`` for each value, which becomes ``$1``, ``$2`` and so on.
    """
    found = (parsed(form) for form in _forms(text, template=template))
    return next((tree for tree in found if tree is not None), None)


def numbered(template: str) -> str:
    """Return a template with ``$1``, ``$2`` and so on for its values.

    A ``?`` between two operands is jsonb's operator: ``payload ? ?``.
    """
    changes: list[tuple[int, int, str]] = []
    numbers, value_before, last = itertools.count(1), False, ""
    for token, following in pairwise([*tokens_of(template), Token(0, 0, "", "")]):
        before = value_before or last in _ENDS
        last, value_before = token.kind, False
        operator = token.text in _QUESTIONS and before and (following.text[:1] == "?" or token.text != "?")
        if token.kind == "Op" and "?" in token.text and not operator:
            text = re.sub(r"\?", lambda _: f" ${next(numbers)} ", token.text)
            changes.append((token.start, token.end, text))
            value_before = token.text.endswith("?")
    return rewritten(template, changes)


def _forms(text: str, *, template: bool) -> Iterator[str]:
    """Yield the texts to try: the statement, without parameters in types, and a command with constants."""
    if template:
        text = numbered(text)
    yield text
    if "$" not in text:
        return
    tokens = tokens_of(text)
    precise = [
        token
        for kind, bracket, token in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if token.kind == "PARAM" and bracket.text == "(" and kind.kind in _PRECISE
    ]
    if precise:
        yield rewritten(text, [(token.start, token.end, "1") for token in precise])
    if tokens and tokens[0].kind not in _ROWS:
        parameters = [token for token in tokens if token.kind == "PARAM"]
        for value in _STANDINS:
            yield rewritten(text, [(token.start, token.end, value) for token in parameters])


# ---- commands: their names and tables ----

_WORDS: Final = {
    **{"seq": "sequence", "trig": "trigger", "plang": "language", "stats": "statistics", "op": "operator"},
    **{"fdw": "foreign data wrapper", "am": "access method"},
}
"""Words that libpg_query shortens in the names of commands."""
_COMMANDS: Final = {
    "create_stmt": "create table",
    "index_stmt": "create index",
    "view_stmt": "create view",
    "createdb_stmt": "create database",
    "dropdb_stmt": "drop database",
    "refresh_mat_view_stmt": "refresh materialized view",
    "variable_show_stmt": "show",
    "close_portal_stmt": "close",
    "check_point_stmt": "checkpoint",
    "constraints_set_stmt": "set constraints",
    "composite_type_stmt": "create type",
    "create_enum_stmt": "create type",
    "create_range_stmt": "create type",
    "alter_enum_stmt": "alter type",
    "rule_stmt": "create rule",
    "create_table_space_stmt": "create tablespace",
    "drop_table_space_stmt": "drop tablespace",
    "create_foreign_server_stmt": "create server",
    "alter_foreign_server_stmt": "alter server",
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
    parts, created = walk.parts, None
    copied = kind == "copy_stmt" and statement.is_from
    if kind == "create_stmt":
        created = statement.relation
    elif kind == "create_table_as_stmt":
        created = statement.into.rel
    elif kind == "select_stmt" and statement.HasField("into_clause"):
        created = statement.into_clause.rel
        name = table_name(created.schemaname, created.relname, walk.catalogue)
        parts.uses.append(TableUse(name, created.relname, "table", 0, changed=True))
    if created is not None:
        parts.remember(temporary=created.relpersistence == "t")
    if copied:
        parts.insert_columns.update(dict.fromkeys(chained(statement.attlist)))
    if kind == "drop_stmt" and enum_of(statement, "remove_type") == "OBJECT_TABLE":
        for dropped in statement.objects:
            *schema, name = chained(dropped.list.items) or ("",)
            found = table_name("".join(schema[-1:]), name, walk.catalogue)
            parts.uses.append(TableUse(found, name, "table", 0))
    if kind in QUERIES:
        return
    walk.visit(statement, Scope(None, 0), "")
    target = None if created is None else created.relname
    for place, use in enumerate(parts.uses):
        whole = kind == "truncate_stmt" or copied or use.name.rpartition(".")[2] == target
        if use.kind == "table" and whole:
            parts.uses[place] = replace(use, changed=True)


def _object(statement: Any, attribute: str) -> str:
    name = _words(enum_of(statement, attribute), "OBJECT_")
    return _OBJECTS.get(name, name)


def _words(name: str, prefix: str) -> str:
    words = name.removeprefix(prefix).lower().split("_")
    return " ".join(_WORDS.get(word, word) for word in words)


def _transaction(statement: Any) -> str:
    name = enum_of(statement, "kind")
    return _TRANSACTIONS.get(name, _words(name, "TRANS_STMT_"))


def _created_as(statement: Any) -> str:
    name = _object(statement, "objtype")
    return "create table as" if name == "table" else f"create {name}"


def _granted(statement: Any) -> str:
    return "grant" if statement.is_grant else "revoke"


_WORDED: Final[Mapping[str, Callable[[Any], str]]] = {
    "transaction_stmt": _transaction,
    "variable_set_stmt": lambda one: "reset" if enum_of(one, "kind").startswith("VAR_RESET") else "set",
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


# ---- filters of scans in plans ----


_SUBPLAN: Final = re.compile(r"\((?:hashed )?SubPlan \d+\)")
_INIT_PLAN: Final = re.compile(r"\(InitPlan \d+\)\.col\d+")
"""EXPLAIN prints these in place of subqueries: one for each row, and one that is executed once."""


def filter_predicates(node: PlanNode, tables: Mapping[str, Collection[str]]) -> tuple[Predicate, ...]:
    """Return the comparisons of a scan's filter, as those of a statement; empty if they are not SQL.

    `tables` are the column names of the catalogue's tables, as for `statement_shape`.
    """
    condition = _INIT_PLAN.sub("$1", _SUBPLAN.sub("TRUE", node.condition("Filter")))
    if not condition or not node.relation:
        return ()
    alias = quoted(node.alias or node.relation.rpartition(".")[2])
    shape = statement_shape(f"SELECT FROM {sql_name(node.relation)} AS {alias} WHERE {condition}", tables)
    found = () if shape is None else shape.predicates
    return tuple(predicate for predicate in found if predicate.table == node.relation)


# ---- definitions of indexes ----


def index_shape(definition: str, name: str, table: str) -> IndexShape | None:
    """Return the parts of a CREATE INDEX statement as pg_get_indexdef writes it; None if it is none.

    `name` and `table` are the names that the shape gets.
    """
    node = only_statement(definition)
    if node is None or kind_of(node) != "index_stmt":
        return None
    index = node.index_stmt
    return IndexShape(
        table=table,
        keys=tuple(_key(param.index_elem) for param in index.index_params),
        method=index.access_method or "btree",
        included=tuple(param.index_elem.name for param in index.index_including_params),
        predicate=plain_sql_of(index.where_clause) if index.HasField("where_clause") else "",
        unique=index.unique,
        name=name,
    )


def _key(element: Any) -> IndexKey:
    nulls = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}
    return IndexKey(
        column=element.name,
        expression="" if element.name else plain_sql_of(element.expr),
        descending=enum_of(element, "ordering") == "SORTBY_DESC",
        nulls_first=nulls.get(enum_of(element, "nulls_ordering")),
        opclass=".".join(chained(element.opclass)),
        collation=".".join(chained(element.collation)),
    )


# ---- the constants that texts of a statement assign to columns, or compare them with ----


_READ: Final = 12
_AGREE: Final = 3
"""Texts to read, and how many different ones without a parameter must agree: their values may all be
parameters that the client writes into the text."""


def assigned_values(text: str) -> Mapping[str, str | None]:
    """Return the value of each column that an UPDATE sets, None for NULL, booleans as ``t`` and ``f``.

    The result is empty if the text is no UPDATE, or if it sets a column to anything but a constant.
    """
    node = only_statement(text)
    if node is None or kind_of(node) != "update_stmt":
        return {}
    found: dict[str, str | None] = {}
    for target in node.update_stmt.target_list:
        value = uncast(target.res_target.val)
        if kind_of(value) != "a_const" or target.res_target.indirection:
            return {}
        written = constant_text(value.a_const)
        boolean = value.a_const.WhichOneof("val") == "boolval"
        found[target.res_target.name] = written[:1] if written and boolean else written
    return found


def compared_values(texts: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Return the constant with which all texts of a statement compare each column for equality.

    A constant beside a parameter (``state = 'new' AND id > $1``) is part of the client's code.
    """
    read = list(dict.fromkeys(texts))[:_READ]
    if not any("$1" in text for text in read) and len(read) < _AGREE:
        return {}
    found: dict[str, str] | None = None
    for text in read:
        shape = statement_shape(text, columns)
        if shape is None:
            continue
        known = {
            predicate.column: predicate.literal
            for predicate in shape.predicates
            if predicate.operator == "="
            and predicate.value == "constant"
            and predicate.column
            and predicate.literal
            if not (predicate.alternative or predicate.cast or predicate.level)
        }
        found = known if found is None else {key: found[key] for key in found if known.get(key) == found[key]}
    return found or {}
