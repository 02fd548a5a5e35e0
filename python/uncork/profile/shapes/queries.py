"""Walk through a statement, and collect the parts of its shape. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from uncork.model.database.statement import (
    ColumnName,
    CommonTable,
    OrderKey,
    Predicate,
    StatementShape,
    Subquery,
    TableUse,
)
from uncork.profile.shapes.conditions import Clause, Conditions, columns_in, operand, resolved, table_of
from uncork.profile.shapes.nodes import (
    QUERIES,
    chained,
    children,
    column_fields,
    enum_of,
    function_name,
    kind_of,
    name_of,
    sql_of,
    uncast,
)
from uncork.profile.shapes.scopes import CommonName, Outputs, Scope, Source, table_name


@dataclass(slots=True)
class Parts:
    """The parts of one statement so far. The keys of the dictionaries are sets in order."""

    uses: list[TableUse] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    order: list[OrderKey] = field(default_factory=list)
    grouping: list[OrderKey] = field(default_factory=list)
    distinct_on: list[OrderKey] = field(default_factory=list)
    outputs: list[ColumnName] = field(default_factory=list)
    aggregates: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    windows: dict[str, None] = field(default_factory=dict)
    set_columns: dict[str, None] = field(default_factory=dict)
    insert_columns: dict[str, None] = field(default_factory=dict)
    subqueries: list[Subquery | None] = field(default_factory=list)
    commons: list[tuple[CommonName, CommonTable]] = field(default_factory=list)
    facts: StatementShape = field(default_factory=lambda: StatementShape(""))
    """Everything but lists: LIMIT, locking, the rows of an INSERT, and so on."""

    def shape(self, kind: str) -> StatementShape:
        """Return what was collected."""
        return replace(
            self.facts,
            kind=kind,
            tables=tuple(self.uses),
            predicates=tuple(self.predicates),
            order=tuple(self.order),
            grouping=tuple(self.grouping),
            distinct_on=tuple(self.distinct_on),
            outputs=tuple(self.outputs),
            aggregates=tuple(self.aggregates),
            functions=tuple(self.functions),
            windows=tuple(self.windows),
            subqueries=tuple(subquery for subquery in self.subqueries if subquery is not None),
            common_tables=tuple(replace(table, references=name.references) for name, table in self.commons),
            set_columns=tuple(self.set_columns),
            insert_columns=tuple(self.insert_columns),
        )

    def remember(self, **facts: Any) -> None:
        """Set fields of the shape that are not lists."""
        self.facts = replace(self.facts, **facts)

    def tables_since(self, place: int) -> tuple[str, ...]:
        """Return the names of the tables used from a place in `uses` on, each once."""
        return tuple(dict.fromkeys(use.name for use in self.uses[place:] if use.kind == "table"))


_Joined = Literal["", "inner", "left", "right", "full"]
_AGGREGATES: Final = frozenset(
    {
        *("any_value", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or"),
        *("corr", "count", "covar_pop", "covar_samp", "every", "json_agg", "json_agg_strict"),
        *("json_arrayagg", "json_object_agg", "json_objectagg", "jsonb_agg", "jsonb_agg_strict"),
        *("jsonb_object_agg", "max", "min", "mode", "percentile_cont", "percentile_disc", "range_agg"),
        *("range_intersect_agg", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2"),
        *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "stddev", "stddev_pop", "stddev_samp"),
        *("string_agg", "sum", "var_pop", "var_samp", "variance", "xmlagg"),
    }
)
_JOINS: Final[Mapping[str, _Joined]] = {
    "JOIN_INNER": "inner",
    "JOIN_LEFT": "left",
    "JOIN_RIGHT": "right",
    "JOIN_FULL": "full",
}
_LOCKS: Final = {
    "LCS_FORUPDATE": "for update",
    "LCS_FORNOKEYUPDATE": "for no key update",
    "LCS_FORSHARE": "for share",
    "LCS_FORKEYSHARE": "for key share",
}
_WAITS: Final = {"LockWaitSkip": " skip locked", "LockWaitError": " nowait"}
_LINKS: Final = {"EXISTS_SUBLINK": "exists", "ANY_SUBLINK": "in", "ALL_SUBLINK": "value"}


@dataclass(slots=True)
class Walk:
    """Walk through one statement. `catalogue` has the columns by table."""

    catalogue: Mapping[str, Collection[str]]
    parts: Parts = field(default_factory=Parts)
    conditions: Conditions = field(default_factory=Conditions)

    def query(self, node: Any, scope: Scope, *, outermost: bool, common: CommonName | None = None) -> Outputs:
        """Walk through a query or a change of rows in a new scope, and return the columns that it returns.

        `common` is the recursive common table whose query this is.
        """
        kind = kind_of(node)
        if kind == "select_stmt":
            return self._select(node.select_stmt, scope, outermost, common)
        handlers = {
            "insert_stmt": self._insert,
            "update_stmt": lambda update, scope: self._search(update, update.from_clause, scope),
            "delete_stmt": lambda delete, scope: self._search(delete, delete.using_clause, scope),
            "merge_stmt": self._merge,
        }
        if kind not in handlers:
            self.visit(node, scope, "")
            return Outputs()
        statement = getattr(node, kind)
        if statement.HasField("with_clause"):
            self._with(statement.with_clause, scope)
        handlers[kind](statement, scope)
        if not statement.HasField("returning_clause"):
            return Outputs()
        if outermost:
            self.parts.remember(returning=True)
        return self._targets(statement.returning_clause.exprs, scope, "returning", outermost)

    def visit(self, message: Any, scope: Scope, clause: str, *, negated: bool = False) -> None:
        """Collect functions, subqueries and tables of any part of a statement.

        `negated` is true if NOT applies to the message.
        """
        name = message.DESCRIPTOR.name
        if name == "Node" and negated and kind_of(message) == "sub_link":
            self._link(message.sub_link, scope, clause, negated=True)
            return
        if name == "ColumnRef":
            resolved(message, scope)
        elif name == "SubLink":
            self._link(message, scope, clause, negated=False)
        elif name == "RangeVar":
            self._table(message, scope, "")
        elif name == "Node" and kind_of(message) in QUERIES:
            self.query(message, Scope(scope, scope.level), outermost=True)
        else:
            if name == "FuncCall":
                self._call(message)
            elif name == "SQLValueFunction":
                called = enum_of(message, "op").removeprefix("SVFOP_").removesuffix("_N")
                self.parts.functions[called.lower()] = None
            for _, one in children(message):
                self.visit(one, scope, clause)

    def _select(
        self, select: Any, scope: Scope, outermost: bool, common: CommonName | None = None
    ) -> Outputs:
        if select.HasField("with_clause"):
            self._with(select.with_clause, scope)
        if outermost:
            self._remember(select)
        if enum_of(select, "op") in ("SETOP_UNION", "SETOP_INTERSECT", "SETOP_EXCEPT"):
            return self._arms(select, scope, outermost, common)
        for row in select.values_lists:
            self.visit(row, scope, "values")
        if select.values_lists:
            width = len(select.values_lists[0].list.items)
            return Outputs(tuple((f"column{place}", None) for place in range(1, width + 1)))
        for item in select.from_clause:
            scope.sources += self._from(item, scope, "")
        outputs = self._targets(select.target_list, scope, "select", outermost)
        if select.HasField("where_clause"):
            self._condition(select.where_clause, scope, "where")
        targets = [one.res_target for one in select.target_list]
        for one in grouped(select.group_clause):
            self.parts.grouping.append(key_of(target_of(one, targets, scope, input_first=True), scope))
            self.visit(one, scope, "group by")
        if select.HasField("having_clause"):
            self._condition(select.having_clause, scope, "having")
        for window in select.window_clause:
            self.visit(window, scope, "window")
        self._sorted(select, targets, scope)
        self._end(select, scope)
        return outputs

    def _sorted(self, select: Any, targets: Sequence[Any], scope: Scope) -> None:
        for one in select.distinct_clause:
            if kind_of(one):
                self.parts.distinct_on.append(key_of(target_of(one, targets, scope), scope))
                self.visit(one, scope, "distinct on")
        for order in select.sort_clause:
            key = key_of(target_of(order.sort_by.node, targets, scope), scope)
            self.parts.order.append(directed(key, order.sort_by))
            self.visit(order, scope, "order by")

    def _arms(self, select: Any, scope: Scope, outermost: bool, common: CommonName | None) -> Outputs:
        """Walk through both sides of UNION, INTERSECT or EXCEPT, which have the level of the whole."""
        first = Scope(scope, scope.level)
        left = self._arm(select.larg, first, outermost, common)
        if common is not None:
            common.outputs = left.renamed(common.names)
        right = self._arm(select.rarg, Scope(scope, scope.level), False, None)
        if enum_of(select, "op") == "SETOP_UNION" and not select.all:
            self.parts.remember(unions=self.parts.facts.unions + 1)
        names = [name for name, _ in left.columns]
        for order in select.sort_clause:
            place = ordinal(order.sort_by.node)
            fields = chained(order.sort_by.node.column_ref.fields)
            column = names[place - 1] if place and place <= len(names) else "".join(fields[-1:])
            self.parts.order.append(directed(OrderKey("", column, level=scope.level), order.sort_by))
        self._end(select, scope)
        return left.merged(right)

    def _arm(self, select: Any, scope: Scope, outermost: bool, common: CommonName | None) -> Outputs:
        before = self.parts.facts
        found = self._select(select, scope, outermost, common)
        kept = {name: getattr(before, name) for name in ("limit", "offset", "distinct")}
        self.parts.remember(**kept)
        return found

    def _remember(self, select: Any) -> None:
        """Remember what is only reported for the outermost query."""
        distinct = select.distinct_clause
        count = select.limit_count
        self.parts.remember(
            limit=kind_of(count) != "" and not count.a_const.isnull,
            offset=select.HasField("limit_offset"),
            distinct="" if not distinct else "on" if kind_of(distinct[0]) else "all",
        )

    def _end(self, select: Any, scope: Scope) -> None:
        for name in ("limit_count", "limit_offset"):
            if select.HasField(name):
                self.visit(getattr(select, name), scope, "limit")
        if select.locking_clause and not self.parts.facts.locking:
            locking = select.locking_clause[0].locking_clause
            strength = _LOCKS.get(enum_of(locking, "strength"), "")
            wait = _WAITS.get(enum_of(locking, "wait_policy"), "")
            self.parts.remember(locking=strength + wait)

    def _targets(self, targets: Sequence[Any], scope: Scope, clause: str, outermost: bool) -> Outputs:
        columns: list[tuple[str, ColumnName | None]] = []
        rest: str | None = None
        for one in targets:
            target = one.res_target
            self.visit(target.val, scope, clause)
            reference = kind_of(target.val) == "column_ref"
            fields = column_fields(target.val.column_ref) if reference else ()
            if fields[-1:] == ("*",):
                if outermost:
                    self.parts.remember(star=True)
                source = scope.source(list(fields[:-1])) if fields[:-1] else None
                sources = [source] if source else [] if fields[:-1] else scope.sources
                every = Source("", members=tuple(sources)).all()
                columns += every.columns
                rest = rest or every.rest
                continue
            found = resolved(target.val.column_ref, scope) if reference else None
            columns.append((output_name(target), found.column if found else None))
            if outermost and found is not None:
                self.parts.outputs.append(found.column)
        return Outputs(tuple(columns), rest)

    def _condition(self, node: Any, scope: Scope, clause: Clause) -> None:
        parts = list(self.conditions.split(node, scope, clause))
        self.parts.predicates += [predicate for part in parts for predicate in part.predicates]
        for part in parts:
            self.visit(part.node, scope, clause, negated=part.negated)

    def _call(self, call: Any) -> None:
        name = function_name(call)
        if name in ("like_escape", "similar_to_escape"):
            return
        self.parts.functions[name] = None
        if call.HasField("over"):
            self.parts.windows[name] = None
        else:
            marks = (call.agg_star, call.agg_distinct, call.agg_within_group, call.agg_order)
            if name in _AGGREGATES or any(marks) or call.HasField("agg_filter"):
                self.parts.aggregates[name] = None

    def _from(self, item: Any, scope: Scope, joined: _Joined) -> list[Source]:
        kind = kind_of(item)
        if kind == "range_var":
            return [self._table(item.range_var, scope, joined)]
        if kind == "join_expr":
            return self._join(item.join_expr, scope, joined)
        if kind == "range_table_sample":
            for arg in item.range_table_sample.args:
                self.visit(arg, scope, "from")
            return self._from(item.range_table_sample.relation, scope, joined)
        if kind == "range_subselect":
            return [self._subselect(item.range_subselect, scope, joined)]
        inner = getattr(item, kind, None) if kind else None
        if inner is None:
            return []
        calls = {"range_function": "", "range_table_func": "xmltable", "json_table": "json_table"}
        name = calls.get(kind, "")
        if kind == "range_function":
            names = [function.list.items[0] for function in inner.functions if function.list.items]
            name = next((function_name(name.func_call) for name in names if kind_of(name) == "func_call"), "")
        elif name:
            self.parts.functions[name] = None
        self._use(TableUse(name, inner.alias.aliasname or name, "function", scope.level), joined)
        self.visit(inner, scope, "from")
        renamed = [(text, None) for text in chained(inner.alias.colnames)]
        return [Source(inner.alias.aliasname or name, outputs=Outputs(tuple(renamed), rest=""))]

    def _join(self, join: Any, scope: Scope, joined: _Joined) -> list[Source]:
        before = len(scope.sources)
        left = self._from(join.larg, scope, joined)
        scope.sources += left
        right = self._from(join.rarg, scope, _JOINS.get(enum_of(join, "jointype"), "inner"))
        scope.sources += right
        for column in chained(join.using_clause):
            one, other = of_sources(left, column), of_sources(right, column)
            using = Predicate(one[1].table, column, "=", "column", "on", one[0])
            self.parts.predicates.append(replace(using, other=other[1], level=scope.level))
        if join.HasField("quals"):
            self._condition(join.quals, scope, "on")
        del scope.sources[before:]
        if join.alias.aliasname:
            return [Source(join.alias.aliasname, members=(*left, *right))]
        return [*left, *right]

    def _subselect(self, item: Any, scope: Scope, joined: _Joined) -> Source:
        query = item.subquery
        values = kind_of(query) == "select_stmt" and len(query.select_stmt.values_lists) > 0
        alias = item.alias.aliasname
        self._use(TableUse("", alias, "values" if values else "subquery", scope.level), joined)
        outer = scope if item.lateral else scope.without_sources()
        if values:
            outputs = self.query(query, Scope(outer, scope.level + 1), outermost=False)
        else:
            with self._subquery(Subquery("from", False, (), scope.level + 1, "from"), outer) as inner:
                outputs = self.query(query, inner, outermost=False)
        return Source(alias, outputs=outputs.renamed(chained(item.alias.colnames)))

    def _table(self, table: Any, scope: Scope, joined: _Joined, *, changed: bool = False) -> Source:
        alias = table.alias.aliasname or table.relname
        common = None if table.schemaname or changed else scope.common_table(table.relname)
        renamed = chained(table.alias.colnames)
        if common is not None:
            common.references += not common.reading
            self._use(TableUse(table.relname, alias, "common", scope.level), joined)
            return Source(alias, outputs=common.outputs.renamed(renamed))
        name = table_name(table.schemaname, table.relname, self.catalogue)
        self._use(TableUse(name, alias, "table", scope.level, changed=changed), joined)
        source = Source(alias, name, self.catalogue.get(name))
        return Source(alias, outputs=source.all().renamed(renamed)) if renamed else source

    def _use(self, use: TableUse, joined: _Joined) -> None:
        self.parts.uses.append(replace(use, joined=joined))

    def _with(self, clause: Any, scope: Scope) -> None:
        expressions = [cte.common_table_expr for cte in clause.ctes]
        if clause.recursive:
            scope.common.update({expression.ctename: CommonName() for expression in expressions})
        for expression in expressions:
            name = scope.common[expression.ctename] if clause.recursive else CommonName()
            name.names = chained(expression.aliascolnames)
            kind = kind_of(expression.ctequery)
            wanted = {"CTEMaterializeAlways": True, "CTEMaterializeNever": False}
            place, used = len(self.parts.commons), len(self.parts.uses)
            self.parts.commons.append((name, CommonTable(expression.ctename, None, 0, False, False, ())))
            name.reading = True
            with self._subquery(Subquery("common", False, (), scope.level + 1, "with"), scope) as inner:
                outputs = self.query(expression.ctequery, inner, outermost=False, common=name)
            name.reading = False
            name.outputs = outputs.renamed(name.names)
            tables = self.parts.tables_since(used)
            own = {use.name for use in self.parts.uses[used:] if use.kind == "common"}
            materialized = wanted.get(enum_of(expression, "ctematerialized"))
            recursive, changes = clause.recursive and expression.ctename in own, kind != "select_stmt"
            table = CommonTable(expression.ctename, materialized, 0, recursive, changes, tables)
            self.parts.commons[place] = (name, table)
            scope.common[expression.ctename] = name

    @contextmanager
    def _subquery(self, found: Subquery, outer: Scope) -> Iterator[Scope]:
        """Collect a subquery around the walk through it, before the subqueries that it has itself."""
        place, used = len(self.parts.subqueries), len(self.parts.uses)
        self.parts.subqueries.append(None)
        inner = Scope(outer, found.level)
        yield inner
        self.parts.subqueries[place] = replace(
            found, correlated=inner.correlated, tables=self.parts.tables_since(used)
        )

    def _link(self, link: Any, scope: Scope, clause: str, *, negated: bool) -> None:
        kind = _LINKS.get(enum_of(link, "sub_link_type"), "value")
        operator = "".join(chained(link.oper_name)[-1:]) or "="
        if kind == "in":
            kind = "value" if operator != "=" else "not in" if negated else "in"
        elif enum_of(link, "sub_link_type") == "ALL_SUBLINK" and operator == "<>":
            kind = "in" if negated else "not in"
        compared = None
        if link.HasField("testexpr"):
            compared = operand(link.testexpr, scope).column if kind in ("in", "not in") else None
            self.visit(link.testexpr, scope, clause)
        found = Subquery(kind, False, (), scope.level + 1, clause, compared)  # type: ignore[arg-type]
        place = len(self.parts.subqueries)
        with self._subquery(found, scope) as inner:
            outputs = self.query(link.subselect, inner, outermost=False)
        made = self.parts.subqueries[place]
        if made is not None and outputs.columns:
            self.parts.subqueries[place] = replace(made, returns=outputs.columns[0][1])

    def _insert(self, insert: Any, scope: Scope) -> None:
        target = self._table(insert.relation, scope, "", changed=True)
        self.parts.insert_columns.update(dict.fromkeys(col.res_target.name for col in insert.cols))
        select = insert.select_stmt.select_stmt
        if scope.level == 0:
            rows = len(select.values_lists) or None if insert.HasField("select_stmt") else 1
            self.parts.remember(rows=rows)
        if insert.HasField("select_stmt"):
            self._select(select, Scope(scope, scope.level), False)
            if scope.level == 0:
                self._remember(select)
        scope.sources.append(target)
        if not insert.HasField("on_conflict_clause"):
            return
        conflict = insert.on_conflict_clause
        updates = enum_of(conflict, "action") == "ONCONFLICT_UPDATE"
        self.parts.remember(conflict="update" if updates else "nothing")
        scope.sources.append(Source("excluded", outputs=Outputs(rest=""), qualified=True))
        self._assign(conflict.target_list, scope)
        if conflict.HasField("where_clause"):
            self._condition(conflict.where_clause, scope, "where")

    def _search(self, statement: Any, items: Iterable[Any], scope: Scope) -> None:
        """Walk through an UPDATE or DELETE with the items of its FROM or USING."""
        scope.sources.append(self._table(statement.relation, scope, "", changed=True))
        for item in items:
            scope.sources += self._from(item, scope, "")
        if statement.DESCRIPTOR.name == "UpdateStmt":
            self._assign(statement.target_list, scope)
        if statement.HasField("where_clause"):
            self._condition(statement.where_clause, scope, "where")

    def _merge(self, merge: Any, scope: Scope) -> None:
        scope.sources.append(self._table(merge.relation, scope, "", changed=True))
        scope.sources += self._from(merge.source_relation, scope, "")
        if merge.HasField("join_condition"):
            self._condition(merge.join_condition, scope, "on")
        for clause in merge.merge_when_clauses:
            when = clause.merge_when_clause
            if when.HasField("condition"):
                self.visit(when.condition, scope, "on")
            if enum_of(when, "command_type") == "CMD_INSERT":
                names = (each.res_target.name for each in when.target_list)
                self.parts.insert_columns.update(dict.fromkeys(names))
                for value in when.values:
                    self.visit(value, scope, "values")
            else:
                self._assign(when.target_list, scope)

    def _assign(self, targets: Iterable[Any], scope: Scope) -> None:
        for target in targets:
            self.parts.set_columns[target.res_target.name] = None
            value = target.res_target.val
            # Each column of `SET (a, b) = (SELECT ...)` has the same subquery.
            if kind_of(value) != "multi_assign_ref" or value.multi_assign_ref.colno == 1:
                self.visit(value, scope, "set")


# ---- read the keys of ORDER BY, GROUP BY, DISTINCT ON and USING, and the names of outputs ----


def grouped(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the expressions of GROUP BY, also those in GROUPING SETS, ROLLUP and CUBE."""
    for node in nodes:
        if kind_of(node) == "grouping_set":
            yield from grouped(node.grouping_set.content)
        elif kind_of(node) == "row_expr":
            yield from grouped(node.row_expr.args)
        elif kind_of(node):
            yield node


def ordinal(node: Any) -> int:
    """Return the n of ``ORDER BY n``, else 0."""
    constant = kind_of(node) == "a_const" and node.a_const.WhichOneof("val") == "ival"
    return int(node.a_const.ival.ival) if constant else 0


def target_of(node: Any, targets: Sequence[Any], scope: Scope, *, input_first: bool = False) -> Any:
    """Return the expression that ``ORDER BY 2`` or ``ORDER BY name_of_output`` refers to, else the node."""
    place = ordinal(node)
    if 0 < place <= len(targets):
        return targets[place - 1].val
    fields = column_fields(node.column_ref) if kind_of(node) == "column_ref" else ()
    if len(fields) != 1 or (input_first and scope.resolve(fields) is not None):
        return node
    return next((target.val for target in targets if target.name == fields[0]), node)


def key_of(node: Any, scope: Scope) -> OrderKey:
    """Return the key of an expression."""
    if kind_of(node) == "column_ref":
        found = resolved(node.column_ref, scope)
        if found is not None:
            return OrderKey(found.column.table, found.column.column, level=scope.level)
    return OrderKey(table_of(tuple(columns_in(node, scope))), "", sql_of(node), level=scope.level)


def directed(key: OrderKey, sort: Any) -> OrderKey:
    """Return a key with the direction of its ORDER BY."""
    nulls = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}
    return replace(
        key,
        descending=enum_of(sort, "sortby_dir") == "SORTBY_DESC",
        nulls_first=nulls.get(enum_of(sort, "sortby_nulls")),
    )


def of_sources(sources: Sequence[Source], column: str) -> tuple[str, ColumnName]:
    """Return a column of one side of USING, and the name of its source."""
    for source in sources:
        found = source.certain(column)
        if found is not None:
            return source.name, found
    unknown = [source for source in sources if not source.known]
    if len(unknown) == 1:
        return unknown[0].name, unknown[0].guessed(column)
    return "", ColumnName("", column)


def output_name(target: Any) -> str:
    """Return the name of an output column."""
    if target.name:
        return str(target.name)
    value = uncast(target.val)
    if kind_of(value) == "column_ref":
        return column_fields(value.column_ref)[-1]
    return name_of(chained(value.func_call.funcname)[-1:]) if kind_of(value) == "func_call" else "?column?"
