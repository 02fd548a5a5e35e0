"""A statement taken apart: which tables it reads, what it compares, sorts and changes.

Names of tables and columns are as the catalogue has them: without quotes, and with the schema unless the
table is in `public`. A column whose table the statement does not tell is resolved with the catalogue; it has
an empty table if that is impossible, for example for a column of a subquery.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record

ValueKind = Literal["parameter", "constant", "column", "subquery", "expression", "none"]


class ColumnName(Record):
    """A column of a table."""

    table: str
    column: str


class TableUse(Record):
    """A table, view, function or common table that a statement uses.

    A subquery and a VALUES list in FROM have an empty name. `level` is 0 in the statement itself and one more
    in each subquery around it; all arms of a UNION have the level of the whole. `joined` says how it is
    joined to what precedes it: empty for the first of a FROM list and for lists separated by commas.
    `changed` is true for the target of an INSERT, UPDATE, DELETE or MERGE, and for tables that COPY FROM,
    TRUNCATE or CREATE TABLE writes.
    """

    name: str
    alias: str
    kind: Literal["table", "common", "subquery", "function", "values"]
    level: int
    joined: Literal["", "inner", "left", "right", "full"] = ""
    changed: bool = False


class Predicate(Record):
    """A comparison in WHERE, ON or HAVING, with one side that belongs to a table.

    `column` is the plain column of that side, possibly below a cast (`cast` is the type's name); it is empty
    if the side is another expression: then `expression` is its SQL with plain column names, such as
    ``lower(email)`` or ``payload ->> 'kind'``, and `columns` are the columns in it. `table` is empty if these
    belong to several tables. A column of a subquery or common table that only passes a table's column
    through has that table; `alias` is then the subquery's.

    The side with a column is the left one: ``$1 < total`` becomes ``total > $1``. If both sides are columns,
    a column of the query itself comes before one of an outer query; else they stay as they are written.
    A condition that has no such side, such as ``$1 LIKE name`` or a boolean function, is an expression as a
    whole with the operator "is true". Two conditions have no table: one on a parameter that is part of an
    OR (``$1 IS NULL OR status = $1``), and one in HAVING, such as ``count(*) > $1``.

    `operator` is in lower case: =, <>, <, <=, >, >=, like, ilike, similar to, ~, @>, <@, &&, @@, ?, in,
    between, is null, is true, is distinct from, and so on, and their opposites (not in, is not null). ``=
    ANY`` is `in` and ``<> ALL`` is `not in`; others keep it (``< any``). ``$1 = ANY (tags)`` has the column
    `tags` and the operator `any`. ``a BETWEEN $1 AND $2`` is one predicate; ``$1 BETWEEN a AND b`` becomes
    ``a <= $1`` and ``b >= $1``. ``(a, b) = ($1, $2)`` becomes two predicates; other comparisons of rows have
    the expression ``(a, b)``. NOT becomes part of the operator: ``NOT a = 1`` is ``a <> 1``, and ``NOT
    active`` is `is false`. `negated` is true only for operators without an opposite, such as @>.

    `value` says what it is compared with, `value_cast` the type to which that is cast, and `literal` its text
    if it is a constant, None for NULL. A list of constants has its SQL, ``'a', NULL``, up to ten values;
    bounds of BETWEEN have ``1 and 5``. An expression that begins with a constant, ``'%' || $1``, has this
    beginning. A list of parameters and constants is a "parameter". `other` is the column on the other side
    (value "column"). Types are named as format_type() does, without a modifier: "integer", "text[]".

    `alternative` is true for parts of an OR, with the same number in `group` for parts of the same OR; other
    predicates have group 0. `barred` is true if row security keeps every index from serving it.
    """

    table: str
    column: str
    operator: str
    value: ValueKind
    clause: Literal["where", "on", "having"] = "where"
    alias: str = ""
    expression: str = ""
    columns: tuple[str, ...] = ()
    cast: str = ""
    value_cast: str = ""
    literal: str | None = None
    other: ColumnName | None = None
    negated: bool = False
    alternative: bool = False
    group: int = 0
    level: int = 0
    barred: bool = False


class OrderKey(Record):
    """A key of ORDER BY, GROUP BY or DISTINCT ON. `column` is empty for an expression.

    ``ORDER BY 2`` and names of outputs become what they refer to. A key of a UNION has no table.
    """

    table: str
    column: str
    expression: str = ""
    descending: bool = False
    nulls_first: bool | None = None
    level: int = 0


class Subquery(Record):
    """A subquery. `correlated` is true if it refers to columns outside of itself.

    `tables` are the tables that it names, without common tables; `level` is theirs. `clause` is the clause
    that contains it: "select", "from", "where", "on", "having", "group by", "order by", "limit", "set",
    "values", "returning", "with" and so on. NOT EXISTS has the kind "exists".

    `kind` says where it is: in EXISTS, in IN or = ANY, in NOT IN or <> ALL, as a value, in FROM, or as a
    common table. `compared` is the column that IN or NOT IN compares; `returns` is the subquery's first
    column, if it is a plain one.
    """

    kind: Literal["exists", "in", "not in", "value", "from", "common"]
    correlated: bool
    tables: tuple[str, ...]
    level: int
    clause: str = ""
    compared: ColumnName | None = None
    returns: ColumnName | None = None


class CommonTable(Record):
    """A common table expression: WITH name AS [NOT] MATERIALIZED (...). `references` counts its uses.

    Uses within its own query do not count. `tables` are the tables that its query names.
    """

    name: str
    materialized: bool | None
    references: int
    recursive: bool
    changes: bool
    tables: tuple[str, ...]


class StatementShape(Record):
    """A statement taken apart.

    Lists have the common tables first, then FROM, the outputs, WHERE and what follows; a query comes before
    its subqueries. Names of functions, aggregates and columns appear once each.

    `kind` is "select", "insert", "update", "delete", "merge", "copy", or the command ("begin", "lock",
    "create table", "create table as", ...). Of EXPLAIN, COPY and DECLARE CURSOR, the query is taken apart
    too.

    These describe only the outermost query, or the query that an INSERT inserts: `distinct`, `limit` and
    `offset`. `outputs` are the plain columns of the outermost target list (the first one of a UNION), or of
    RETURNING; `star` is true if it has ``*``. Everything else is from all levels. `locking` is the first
    clause such as "for update", "for no key update nowait" or "for share skip locked".

    `functions` are the names of all functions called, in lower case, and `windows` those with OVER.
    `aggregates` are the known ones, and all that have FILTER, DISTINCT, ORDER BY or ``*``. `set_columns` are
    the columns that UPDATE, MERGE or ON CONFLICT DO UPDATE assigns. `rows` is the number of rows of VALUES of
    an INSERT, None if it inserts a query's rows; a template has one row for any number. `unions` counts UNION
    without ALL. `temporary` is true for CREATE TEMPORARY TABLE.
    """

    kind: str
    tables: tuple[TableUse, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    order: tuple[OrderKey, ...] = ()
    grouping: tuple[OrderKey, ...] = ()
    distinct: Literal["", "all", "on"] = ""
    distinct_on: tuple[OrderKey, ...] = ()
    limit: bool = False
    offset: bool = False
    locking: str = ""
    outputs: tuple[ColumnName, ...] = ()
    star: bool = False
    aggregates: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    subqueries: tuple[Subquery, ...] = ()
    common_tables: tuple[CommonTable, ...] = ()
    set_columns: tuple[str, ...] = ()
    insert_columns: tuple[str, ...] = ()
    rows: int | None = None
    conflict: Literal["", "nothing", "update"] = ""
    returning: bool = False
    unions: int = 0
    temporary: bool = False
