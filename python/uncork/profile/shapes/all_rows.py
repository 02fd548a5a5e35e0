"""Turn the body of a trigger FOR EACH ROW into one that handles all rows of a statement at once. Pure.

Only bodies are turned whose result surely stays the same: statements without conditions that insert what the
row holds, or that add whole numbers of it to counters. What the row's statements do one after another, the
new ones do with the transition table: INSERT ... SELECT, and one UPDATE with the sums of each group of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncork.model.database.catalogue import ColumnFacts, TriggerBody
from uncork.model.database.names import content_query, quoted, sql_name
from uncork.model.records import Record
from uncork.profile.shapes.bodies import returned_after
from uncork.profile.shapes.nodes import (
    chained,
    column_fields,
    conjuncts,
    descendants,
    enum_of,
    function_name,
    kind_of,
    messages,
    name_of,
    only_statement,
    plain_sql_of,
)

Columns = Mapping[str, Sequence[ColumnFacts]]

_ROW: Final = "one_row"
"""The alias of the transition table: NEW and OLD are variables of the function, so it needs another name."""
_SUMS: Final = "sums"
_WHOLE: Final = frozenset({"smallint", "integer", "bigint"})
_SAME_TIME: Final = frozenset({"now", "transaction_timestamp", "statement_timestamp"})
"""Functions that return the same for all rows of a statement."""
_SAME_TIME_WORDS: Final = frozenset({"SVFOP_CURRENT_DATE", "SVFOP_CURRENT_TIMESTAMP", "SVFOP_LOCALTIMESTAMP"})
_LITERAL: Final = frozenset({"a_const", "type_cast"})


class _Refused(Exception):
    """A statement cannot be turned."""


class _Turned(Record):
    """A statement for all rows, the table that it writes, and a query of what must be the same after it."""

    sql: str
    table: str
    check: str
    joins: bool = False


def body_for_all_rows(source: str, record: str, table: str, columns: Columns) -> TriggerBody | None:
    """Return the body of a statement-level trigger that does what a body for each row does.

    The new body reads the transition table ``new_rows`` or ``old_rows``. `source` is the PL/pgSQL for each
    row. `record` is ``new`` for an AFTER INSERT trigger, ``old`` for AFTER DELETE. `table` is the table of
    the trigger, as in `columns`. None if the body does more, or if the results could differ.
    """
    statements = returned_after(source)
    if not statements:
        return None
    known = {column.name: column for column in columns.get(table, ())}
    try:
        turned = [_Row(record, known, columns).turned(statement) for statement in statements]
    except _Refused:
        return None
    tables = tuple(rewrite.table for rewrite in turned)
    if len(set(tables)) < len(tables) or table in tables:
        return None
    lines = "".join(f"\n  {rewrite.sql};" for rewrite in turned)
    check = "\nUNION ALL ".join(rewrite.check for rewrite in turned)
    joins = any(rewrite.joins for rewrite in turned)
    return TriggerBody(f"BEGIN{lines}\n  RETURN NULL;\nEND", tables, check, joins)


class _Row:
    """Turns statements that read a row of the trigger: `record` is NEW or OLD, `known` are its columns."""

    def __init__(self, record: str, known: Mapping[str, ColumnFacts], columns: Columns) -> None:
        self.record, self.known, self.columns = record, known, columns
        self.rows = f"{record}_rows"

    def turned(self, sql: str) -> _Turned:
        statement = only_statement(sql)
        if statement is not None and kind_of(statement) == "insert_stmt":
            return self._insert(statement.insert_stmt)
        if statement is not None and kind_of(statement) == "update_stmt":
            return self._update(statement.update_stmt)
        raise _Refused

    # ---- INSERT ----

    def _insert(self, one: Any) -> _Turned:
        select = one.select_stmt.select_stmt
        more = one.HasField("with_clause") or one.HasField("returning_clause")
        plain = enum_of(one, "override") == "OVERRIDING_NOT_SET" and len(select.values_lists) == 1
        if more or not one.cols or not plain:
            raise _Refused
        names = [col.res_target.name for col in one.cols]
        values = list(select.values_lists[0].list.items)
        if len(names) != len(values) or any(col.res_target.indirection for col in one.cols):
            raise _Refused
        table = self._table(one.relation)
        alias = _alias(one.relation, table)
        known = "" if alias == _short(table) else f" AS {quoted(alias)}"
        head = f"INSERT INTO {sql_name(table)}{known} ({', '.join(map(quoted, names))})"
        end, clause = "", one.on_conflict_clause
        if enum_of(clause, "action") == "ONCONFLICT_UPDATE":
            return self._upsert(head, table, alias, dict(zip(names, values, strict=True)), clause)
        if one.HasField("on_conflict_clause"):
            keys = ", ".join(map(quoted, self._conflict_columns(clause)))
            end = f" ON CONFLICT{f' ({keys})' if keys else ''} DO NOTHING"
        listed = ", ".join(self._expression(value) for value in values)
        sql = f"{head}\n  SELECT {listed} FROM {self.rows} AS {_ROW}{end}"  # noqa: S608 -- see sql_name, quoted
        return _Turned(sql, table, _count(table))

    def _conflict_columns(self, clause: Any) -> list[str]:
        if clause.HasField("where_clause") or clause.infer.HasField("where_clause") or clause.infer.conname:
            raise _Refused
        names = [index_elem.index_elem.name for index_elem in clause.infer.index_elems]
        if not all(names):
            raise _Refused  # an expression
        return names

    def _upsert(self, head: str, table: str, alias: str, values: Mapping[str, Any], clause: Any) -> _Turned:
        """Turn an INSERT that adds to the row if it is there; each group of keys becomes one row."""
        keys = self._conflict_columns(clause)
        if not keys or not set(keys) <= values.keys():
            raise _Refused
        groups, sets, summed = [], [], {}
        for key in keys:
            column = self._own_column(values[key])
            if column is None or not column.not_null:  # a unique index takes each NULL
                raise _Refused
            groups.append(f"{_ROW}.{quoted(column.name)}")
        constant = False
        for each in clause.target_list:
            name, value = each.res_target.name, each.res_target.val
            if name in keys or name in summed or name not in values or each.res_target.indirection:
                raise _Refused
            inserted = values[name]
            if self._same_for_all(value) and self._same_for_all(inserted):
                constant = True
                summed[name] = plain_sql_of(inserted)
                sets.append(f"{quoted(name)} = {plain_sql_of(value)}")
                continue
            added = self._added(value, name, {alias})
            again = column_fields(added.column_ref) if kind_of(added) == "column_ref" else ()
            if again != ("excluded", name) and plain_sql_of(added) != plain_sql_of(inserted):
                raise _Refused
            summed[name] = self._sum(inserted, table, name)
            sets.append(f"{quoted(name)} = {quoted(alias)}.{quoted(name)} + EXCLUDED.{quoted(name)}")
        if not sets or set(values) != {*keys, *summed}:
            raise _Refused
        by_key = dict(zip(keys, groups, strict=True))
        listed = ", ".join(by_key.get(name) or summed[name] for name in values)
        sql = (
            f"{head}\n  SELECT {listed} FROM {self.rows} AS {_ROW} "  # noqa: S608 -- see sql_name, quoted
            f"GROUP BY {', '.join(dict.fromkeys(groups))}\n  "
            f"ON CONFLICT ({', '.join(map(quoted, keys))}) DO UPDATE SET {', '.join(sets)}"
        )
        return _Turned(sql, table, _count(table) if constant else content_query(table))

    # ---- UPDATE ----

    def _update(self, one: Any) -> _Turned:
        if one.HasField("with_clause") or one.from_clause or one.HasField("returning_clause"):
            raise _Refused
        table = self._table(one.relation)
        alias = _alias(one.relation, table)
        sets, sums, constant = [], [], False
        changed = {each.res_target.name for each in one.target_list}
        if len(changed) < len(one.target_list):
            raise _Refused
        for each in one.target_list:
            name, value = each.res_target.name, each.res_target.val
            if each.res_target.indirection:
                raise _Refused
            if self._same_for_all(value):
                constant |= kind_of(value) not in _LITERAL
                sets.append(f"{quoted(name)} = {plain_sql_of(value)}")
                continue
            added = self._added(value, name, {alias, _short(table)}, also_less=True)
            sums.append(self._sum(added, table, name, left=value.a_expr.lexpr))
            sign, left = chained(value.a_expr.name)[-1], f"{quoted(alias)}.{quoted(name)}"
            if kind_of(value.a_expr.lexpr) == "coalesce_expr":
                left = f"coalesce({left}, {plain_sql_of(value.a_expr.lexpr.coalesce_expr.args[1])})"
            sets.append(f"{quoted(name)} = {left} {sign} {_SUMS}.sum_{len(sums)}")
        if not sums:
            raise _Refused
        keys, conditions = self._keys(one.where_clause, alias, table, changed)
        listed = [f"{column} AS key_{place}" for place, column in enumerate(keys, 1)]
        listed += [f"{text} AS sum_{place}" for place, text in enumerate(sums, 1)]
        grouped = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(*) > 0"
        known = "" if alias == _short(table) else f" AS {quoted(alias)}"
        where = f"\n  WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = (
            f"UPDATE {sql_name(table)}{known} SET {', '.join(sets)}\n"  # noqa: S608 -- see sql_name, quoted
            f"  FROM (SELECT {', '.join(listed)}\n"
            f"        FROM {self.rows} AS {_ROW} {grouped}) AS {_SUMS}{where}"
        )
        check = _count(table) if constant else content_query(table)
        return _Turned(sql, table, check, joins=bool(keys))

    def _keys(self, where: Any, alias: str, table: str, changed: set[str]) -> tuple[list[str], list[str]]:
        """Return the row's columns that choose the rows to update, and the conditions with them."""
        keys: list[str] = []
        conditions = []
        for conjunct in conjuncts(where):
            if _operator(conjunct) != "=":
                raise _Refused
            left, right = conjunct.a_expr.lexpr, conjunct.a_expr.rexpr
            if self._target_column(left, {alias, _short(table)}) is None:
                left, right = right, left
            name = self._target_column(left, {alias, _short(table)})
            if name is None or name in changed:
                raise _Refused
            column = self._own_column(right)
            if column is not None:
                text = f"{_ROW}.{quoted(column.name)}"
                if text not in keys:
                    keys.append(text)
                value = f"{_SUMS}.key_{keys.index(text) + 1}"
            elif kind_of(right) in _LITERAL and self._same_for_all(right):
                value = plain_sql_of(right)
            else:
                raise _Refused
            conditions.append(f"{quoted(alias)}.{quoted(name)} = {value}")
        return keys, conditions

    # ---- sums ----

    def _added(self, value: Any, name: str, tables: set[str], *, also_less: bool = False) -> Any:
        """Return what ``name = name + x`` adds."""
        if _operator(value) not in ("+", "-" if also_less else "+"):
            raise _Refused
        counter = value.a_expr.lexpr  # ``n``, ``t.n`` or ``coalesce(n, 0)``
        if kind_of(counter) == "coalesce_expr" and len(counter.coalesce_expr.args) == 2:
            counter, second = counter.coalesce_expr.args
            if kind_of(second) != "a_const":
                raise _Refused
        if self._target_column(counter, tables) != name:
            raise _Refused
        return value.a_expr.rexpr

    def _sum(self, added: Any, table: str, name: str, left: Any = None) -> str:
        """Return the sum of what all rows of a group add; NULL if one adds NULL."""
        if kind_of(added) == "a_const" and added.a_const.WhichOneof("val") == "ival":
            number = added.a_const.ival.ival
            return "count(*)" if number == 1 else f"{number} * count(*)"
        column = self._own_column(added)
        if column is None or not self._exact(column, table, name):
            raise _Refused
        text = f"{_ROW}.{quoted(column.name)}"
        if column.not_null:
            return f"sum({text})"
        if left is not None and kind_of(left) == "coalesce_expr":
            raise _Refused  # after a NULL it would begin anew
        return f"CASE WHEN count(*) = count({text}) THEN sum({text}) END"

    def _exact(self, column: ColumnFacts, table: str, name: str) -> bool:
        """Return whether adding one by one and adding the sum are the same: no step rounds."""
        into = next((column for column in self.columns.get(table, ()) if column.name == name), None)
        if column.type in _WHOLE:
            return into is None or into.type in _WHOLE or into.type == "numeric"
        same = into is not None and into.storage_type == column.storage_type
        return column.type == "numeric" and same and column.storage_type != "numeric"

    # ---- expressions ----

    def _expression(self, node: Any) -> str:
        """Return an expression that reads nothing but the row, for the transition table."""
        for descendant in descendants(node):
            if descendant.DESCRIPTOR.name in ("SubLink", "ParamRef", "SetToDefault", "WindowDef"):
                raise _Refused
        for fields in map(column_fields, messages(node, "ColumnRef")):
            if len(fields) != 2 or fields[0] != self.record or fields[1] == "*":
                raise _Refused
        return plain_sql_of(node, {self.record: _ROW})

    def _same_for_all(self, node: Any) -> bool:
        kind = kind_of(node)
        if kind == "a_const":
            return True
        if kind == "type_cast":
            return self._same_for_all(node.type_cast.arg)
        if kind == "func_call":
            return function_name(node.func_call) in _SAME_TIME and not node.func_call.args
        return kind == "sqlvalue_function" and enum_of(node.sqlvalue_function, "op") in _SAME_TIME_WORDS

    def _own_column(self, node: Any) -> ColumnFacts | None:
        if kind_of(node) != "column_ref":
            return None
        fields = column_fields(node.column_ref)
        return self.known.get(fields[1]) if len(fields) == 2 and fields[0] == self.record else None

    def _target_column(self, node: Any, tables: set[str]) -> str | None:
        if kind_of(node) != "column_ref":
            return None
        fields = column_fields(node.column_ref)
        qualified = len(fields) == 2 and fields[0] in tables
        return fields[-1] if (len(fields) == 1 or qualified) and fields[-1] != "*" else None

    def _table(self, relation: Any) -> str:
        if relation.catalogname or not relation.inh:
            raise _Refused
        return name_of((relation.schemaname, relation.relname))


def _operator(node: Any) -> str:
    """Return the operator of ``a = b`` or ``a + b``; empty for any other expression."""
    plain = kind_of(node) == "a_expr" and enum_of(node.a_expr, "kind") == "AEXPR_OP"
    return ".".join(chained(node.a_expr.name)) if plain else ""


def _alias(relation: Any, table: str) -> str:
    return str(relation.alias.aliasname) if relation.HasField("alias") else _short(table)


def _short(table: str) -> str:
    return table.rpartition(".")[2]


def _count(table: str) -> str:
    """Return a query of the number of a table's rows: times and generated keys differ each time."""
    return content_query(table, "NULL::numeric")
