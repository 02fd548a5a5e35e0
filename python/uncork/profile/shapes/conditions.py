"""Take a condition (WHERE, ON, HAVING) apart into predicates. Pure.

NOT is moved inwards to the comparisons, and each comparison has a column on its left side if it has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from uncork.model.database.statement import ColumnName, Predicate, ValueKind
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    FLIPPED,
    chained,
    children,
    column_fields,
    constant_text,
    enum_of,
    function_name,
    kind_of,
    sql_of,
    type_name,
)
from uncork.profile.shapes.scopes import Resolved, Scope

Clause = Literal["where", "on", "having"]

_WORDS: Final = {"~~": "like", "!~~": "not like", "~~*": "ilike", "!~~*": "not ilike", "!=": "<>"}
_SIMILAR: Final = {"~": "similar to", "!~": "not similar to"}
_PAIRS: Final = (
    ("=", "<>"),
    ("<", ">="),
    (">", "<="),
    ("~", "!~"),
    ("~*", "!~*"),
    *((word, f"not {word}") for word in ("like", "ilike", "similar to", "in", "between")),
    ("between symmetric", "not between symmetric"),
    ("is distinct from", "is not distinct from"),
    *((f"is {word}", f"is not {word}") for word in ("null", "true", "false", "unknown")),
)
_OPPOSITES: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_ANY: Final = {("=", True): "in", ("<>", False): "not in"}


class Condition(Record):
    """A part of a condition between AND, OR and NOT, and its predicates."""

    node: Any
    negated: bool
    predicates: tuple[Predicate, ...]


@dataclass(slots=True)
class Conditions:
    """Number the ORs of a statement from 1, over all of its conditions."""

    groups: int = field(default=0)

    def split(self, node: Any, scope: Scope, clause: Clause) -> Iterator[Condition]:
        """Yield the parts of a condition."""
        yield from self._split(node, scope, Predicate("", "", "", "none", clause, level=scope.level), False)

    def _split(self, node: Any, scope: Scope, base: Predicate, negated: bool) -> Iterator[Condition]:
        kind = kind_of(node)
        if kind == "bool_expr":
            boolean = node.bool_expr
            operator = enum_of(boolean, "boolop")
            if operator == "NOT_EXPR":
                yield from self._split(boolean.args[0], scope, base, not negated)
                return
            if (operator == "OR_EXPR") != negated:
                self.groups += 1
                base = replace(base, alternative=True, group=self.groups)
            for arg in boolean.args:
                yield from self._split(arg, scope, base, negated)
        elif kind == "a_expr" and _is_turned_between(node.a_expr, scope):
            yield Condition(node, negated, self._turned_between(node.a_expr, scope, base, negated))
        elif kind:
            found = _Leaf(scope, base, negated).predicates(node)
            yield Condition(node, negated, tuple(found))

    def _turned_between(
        self, between: Any, scope: Scope, base: Predicate, negated: bool
    ) -> tuple[Predicate, ...]:
        """Take ``$1 BETWEEN a AND b`` apart: ``a <= $1`` and ``b >= $1``."""
        if negated != enum_of(between, "kind").startswith("AEXPR_NOT"):
            self.groups += 1
            base, operators = replace(base, alternative=True, group=self.groups), (">", "<")
        else:
            operators = ("<=", ">=")
        leaf = _Leaf(scope, base, negated=False)
        value = operand(between.lexpr, scope)
        bounds = between.rexpr.list.items
        return tuple(
            predicate
            for bound, operator in zip(bounds, operators, strict=False)
            for predicate in leaf.compared(operand(bound, scope), operator, value, None)
        )


def _is_turned_between(expression: Any, scope: Scope) -> bool:
    """Return whether this is a BETWEEN whose bounds have columns, but whose operand has none."""
    return (
        enum_of(expression, "kind") in ("AEXPR_BETWEEN", "AEXPR_NOT_BETWEEN")
        and operand(expression.lexpr, scope).rank == 9
        and any(operand(item, scope).rank < 9 for item in expression.rexpr.list.items)
    )


class _Leaf(Record):
    """Make the predicates of one comparison."""

    scope: Scope
    base: Predicate
    negated: bool

    def predicates(self, node: Any) -> Iterator[Predicate]:
        kind = kind_of(node)
        if kind == "a_expr":
            yield from self._expression(node)
        elif kind == "sub_link":
            yield from self._subquery(node)
        elif kind == "null_test":
            test = enum_of(node.null_test, "nulltesttype")
            yield from self._alone(node.null_test.arg, "is null" if test == "IS_NULL" else "is not null")
        elif kind == "boolean_test":
            test = enum_of(node.boolean_test, "booltesttype").lower().replace("_", " ")
            yield from self._alone(node.boolean_test.arg, test)
        elif kind == "column_ref":
            yield from self._alone(node, "is true", opposite="is false")
        elif kind != "current_of_expr":
            yield from self._whole(node)

    def _expression(self, node: Any) -> Iterator[Predicate]:
        expression = node.a_expr
        kind = enum_of(expression, "kind")
        name = "".join(chained(expression.name)[-1:])
        operator = _SIMILAR.get(name, name) if kind == "AEXPR_SIMILAR" else _WORDS.get(name, name)
        if kind in ("AEXPR_OP_ANY", "AEXPR_OP_ALL"):
            yield from self._any(node, operator, every=kind == "AEXPR_OP_ALL")
            return
        if kind == "AEXPR_IN":
            left = operand(expression.lexpr, self.scope)
            right = operands(list(expression.rexpr.list.items), self.scope)
            found = "in" if operator == "=" else "not in"
            yield from self._listed(node, left, found, right)
            return
        if "BETWEEN" in kind:
            left = operand(expression.lexpr, self.scope)
            bounds = list(expression.rexpr.list.items)
            right = operands(bounds, self.scope)
            if right.literal is not None:
                right = replace(right, literal=" and ".join(sql_of(bound) for bound in bounds))
            yield from self._listed(node, left, name.lower(), right)
            return
        if kind in ("AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT"):
            operator = "is distinct from" if kind == "AEXPR_DISTINCT" else "is not distinct from"
        elif kind == "AEXPR_NULLIF" or not expression.HasField("lexpr"):
            yield from self._whole(node)
            return
        rows = _rows(expression)
        if rows and operator == "=" and not self.negated:
            for one, other in rows:
                yield from self.compared(operand(one, self.scope), operator, operand(other, self.scope), None)
            return
        left, right = operand(expression.lexpr, self.scope), operand(expression.rexpr, self.scope)
        yield from self.compared(left, operator, right, node)

    def compared(self, left: Operand, operator: str, right: Operand, node: Any) -> Iterator[Predicate]:
        """Yield the predicate of a comparison, the better side first; `node` is the comparison."""
        if right.rank < left.rank:
            if operator not in FLIPPED:
                yield from self._whole(node)
                return
            left, right, operator = right, left, FLIPPED[operator]
        yield from self._listed(node, left, operator, right)

    def _any(self, node: Any, operator: str, *, every: bool) -> Iterator[Predicate]:
        expression = node.a_expr
        left, right = operand(expression.lexpr, self.scope), operand(expression.rexpr, self.scope)
        if left.rank == 9 and right.rank < 9 and operator == "=" and not every:
            yield from self._listed(node, right, "any", left)
            return
        name = _ANY.get((operator, not every), f"{operator} {'all' if every else 'any'}")
        yield from self._listed(node, left, name, right)

    def _subquery(self, node: Any) -> Iterator[Predicate]:
        link = node.sub_link
        kind = enum_of(link, "sub_link_type")
        if kind not in ("ANY_SUBLINK", "ALL_SUBLINK"):
            return
        every = kind == "ALL_SUBLINK"
        name = "".join(chained(link.oper_name)[-1:]) or "="
        operator = _ANY.get((name, not every), f"{_WORDS.get(name, name)} {'all' if every else 'any'}")
        yield from self._listed(node, operand(link.testexpr, self.scope), operator, Operand(node, "subquery"))

    def _listed(self, node: Any, left: Operand, operator: str, right: Operand) -> Iterator[Predicate]:
        if left.rank == 9 and not self._matters(left, right):
            return
        yield self._made(left, operator, right.value, right)

    def _matters(self, left: Operand, right: Operand) -> bool:
        """Return whether to keep a condition without columns: an alternative of a parameter, or HAVING."""
        parameters = "parameter" in (left.value, right.value)
        return (self.base.alternative and parameters) or self.base.clause == "having"

    def _alone(self, node: Any, operator: str, opposite: str = "") -> Iterator[Predicate]:
        found, nothing = operand(node, self.scope), Operand(node, "none")
        leaf = self
        if self.negated and opposite:
            operator, leaf = opposite, replace(self, negated=False)
        if found.rank < 9 or self._matters(found, nothing):
            yield leaf._made(found, operator, "none", nothing)

    def _whole(self, node: Any) -> Iterator[Predicate]:
        """Yield a condition that is a boolean expression as a whole."""
        found = tuple(columns_in(node, self.scope))
        if found:
            whole = Operand(node, "expression", 1, found=found)
            yield self._made(whole, "is true", "none", Operand(node, "none"))

    def _made(self, left: Operand, operator: str, value: ValueKind, right: Operand) -> Predicate:
        negated = self.negated
        if negated and operator in _OPPOSITES:
            operator, negated = _OPPOSITES[operator], False
        column, aliases = left.column, {resolved.alias for resolved in left.found}
        alias = aliases.pop() if len(aliases) == 1 and table_of(left.found) else ""
        return replace(
            self.base,
            table=left.table,
            column="" if column is None else column.column,
            operator=operator,
            value=value,
            alias=left.alias or alias,
            expression=left.expression,
            columns=() if column is not None else left.columns,
            cast=left.cast if column is not None else "",
            value_cast=right.cast,
            literal=right.literal,
            other=right.column if value == "column" else None,
            negated=negated,
        )


def _rows(expression: Any) -> list[tuple[Any, Any]]:
    """Return the pairs of ``(a, b) = ($1, $2)``; empty for other comparisons."""
    left, right = expression.lexpr, expression.rexpr
    pairs = list(zip(left.row_expr.args, right.row_expr.args, strict=False))
    whole = len(left.row_expr.args) == len(right.row_expr.args)
    return pairs if whole and kind_of(left) == kind_of(right) == "row_expr" else []


# ---- operands: a column, an expression of columns, or a value ----

_LONGEST_LIST: Final = 10
"""The values of longer lists are not kept."""
_SIMPLE: Final[Mapping[str, ValueKind]] = {
    "param_ref": "parameter",
    "a_const": "constant",
    "sub_link": "subquery",
}
_ESCAPES: Final = frozenset({"like_escape", "similar_to_escape"})


class Operand(Record):
    """An operand. Lower ranks are better sides of a predicate; `rank` 9 is a value without columns.

    The other fields are as in `Predicate`; `expression` is filled by `expressed`.
    """

    node: Any
    value: ValueKind
    rank: int = 9
    column: ColumnName | None = None
    alias: str = ""
    found: tuple[Resolved, ...] = ()
    cast: str = ""
    literal: str | None = None

    @property
    def table(self) -> str:
        """Return the table of the operand's columns; empty if they belong to several."""
        return self.column.table if self.column is not None else table_of(self.found)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the operand's columns, each once."""
        return tuple(dict.fromkeys(reference.column.column for reference in self.found))

    @property
    def expression(self) -> str:
        """Return the operand's SQL; empty for a plain column."""
        return "" if self.column is not None else sql_of(self.node)


def operand(node: Any, scope: Scope) -> Operand:
    """Classify one operand."""
    inner, cast, casts = node, "", 0
    while kind_of(inner) == "type_cast":
        cast = cast or type_name(inner.type_cast.type_name)
        inner, casts = inner.type_cast.arg, casts + 1
    kind = kind_of(inner)
    if kind == "column_ref" and casts <= 1:
        column = resolved(inner.column_ref, scope)
        if column is None:
            return Operand(node, "expression")
        rank = _rank((column,), 0)
        return Operand(node, "column", rank, column.column, column.alias, found=(column,), cast=cast)
    if kind in _SIMPLE:
        literal = constant_text(inner.a_const) if kind == "a_const" else None
        return Operand(node, _SIMPLE[kind], cast=cast, literal=literal)
    lists = {"list": inner.list.items, "a_array_expr": inner.a_array_expr.elements}
    if kind in lists or kind == "row_expr":
        found = operands(list(lists.get(kind, inner.row_expr.args)), scope)
        return replace(found, node=node, cast=cast or (f"{found.cast}[]" if found.cast else ""))
    if kind == "func_call" and function_name(inner.func_call) in _ESCAPES and inner.func_call.args:
        return operand(inner.func_call.args[0], scope)
    return _negative(node, inner, cast, scope) or _computed(node, inner, cast, scope)


def operands(nodes: Sequence[Any], scope: Scope) -> Operand:
    """Classify the values of a list as one."""
    every = [operand(node, scope) for node in nodes]
    kinds: set[ValueKind] = {one.value for one in every}
    found = tuple(column for one in every for column in one.found)
    casts = {one.cast for one in every}
    value: ValueKind = "expression"
    if len(kinds) == 1 and kinds != {"column"}:
        value = next(iter(kinds))
    elif kinds and kinds <= {"parameter", "constant"}:
        value = "parameter"
    elif "subquery" in kinds:
        value = "subquery"
    literal = None
    if value == "constant" and len(every) <= _LONGEST_LIST:
        literal = ", ".join(sql_of(node) for node in nodes)
    cast = next(iter(casts)) if len(casts) == 1 else ""
    node = every[0].node if every else None
    return Operand(node, value, _rank(found, 1), found=found, cast=cast, literal=literal)


def columns_in(message: Any, scope: Scope) -> Iterator[Resolved]:
    """Yield the columns in an expression; those of its subqueries are left out."""
    name = message.DESCRIPTOR.name
    if name == "ColumnRef":
        found = resolved(message, scope)
        if found is not None:
            yield found
    elif name == "SubLink":
        if message.HasField("testexpr"):
            yield from columns_in(message.testexpr, scope)
    else:
        for _, one in children(message):
            yield from columns_in(one, scope)


def resolved(reference: Any, scope: Scope) -> Resolved | None:
    """Resolve a ColumnRef; None for a star or the name of a whole row."""
    fields = column_fields(reference)
    if not fields or fields[-1] == "*":
        return None
    found = scope.resolve(fields)
    if found is None and (len(fields) > 1 or scope.source(list(fields)) is None):
        return Resolved(ColumnName("", fields[-1]), fields[-2] if len(fields) > 1 else "", local=True)
    return found


def table_of(found: Sequence[Resolved]) -> str:
    """Return the table of columns; empty if they belong to several."""
    tables = {one.column.table for one in found}
    return tables.pop() if len(tables) == 1 else ""


def _negative(node: Any, inner: Any, cast: str, scope: Scope) -> Operand | None:
    """Return the value of ``- $1``."""
    expression = inner.a_expr
    if kind_of(inner) != "a_expr" or expression.HasField("lexpr") or chained(expression.name) != ("-",):
        return None
    found = operand(expression.rexpr, scope)
    if found.value not in ("parameter", "constant"):
        return None
    text = None if found.literal is None else f"-{found.literal}"
    return replace(found, node=node, cast=cast or found.cast, literal=text)


def _computed(node: Any, inner: Any, cast: str, scope: Scope) -> Operand:
    start, whole = _beginning(inner)
    if whole:
        return Operand(node, "constant", cast=cast, literal=start)
    found = tuple(columns_in(node, scope))
    return Operand(node, "expression", _rank(found, 1), found=found, cast=cast, literal=start)


def _rank(found: tuple[Resolved, ...], expression: int) -> int:
    """Rank columns of this query above those of outer queries, and columns of tables above others."""
    if not found:
        return 9
    if not any(one.local for one in found):
        return 4 + expression
    return (0 if any(one.column.table for one in found if one.local) else 2) + expression


def _beginning(node: Any) -> tuple[str | None, bool]:
    """Return the constant that a concatenation begins with, and whether all of it is constant."""
    kind = kind_of(node)
    if kind == "type_cast":
        return _beginning(node.type_cast.arg)
    if kind == "a_const":
        text = constant_text(node.a_const)
        return text, text is not None
    parts: Sequence[Any] = ()
    if kind == "a_expr" and chained(node.a_expr.name) == ("||",):
        parts = (node.a_expr.lexpr, node.a_expr.rexpr)
    elif kind == "func_call" and function_name(node.func_call) == "concat":
        parts = node.func_call.args
    pieces: list[str] = []
    for part in parts:
        text, whole = _beginning(part)
        pieces += [text] if text is not None else []
        if not whole:
            return "".join(pieces) if pieces else None, False
    return ("".join(pieces), True) if pieces else (None, False)
