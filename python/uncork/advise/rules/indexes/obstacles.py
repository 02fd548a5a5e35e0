"""Why a statement cannot use an index that exists on the columns it compares. Pure.

See "Indexes on Expressions", "Operator Classes", "Multicolumn Indexes" and "Combining Multiple Indexes" in
PostgreSQL's manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.indexes.keys import pattern_kind
from uncork.advise.rules.indexes.uses import Use
from uncork.advise.rules.indexes.wants import Want

if TYPE_CHECKING:
    from uncork.model.database.index import IndexShape
    from uncork.model.database.statement import Predicate

INTEGERS: Final = frozenset({"smallint", "integer", "bigint"})
_NUMBERS: Final = ("numeric", "decimal", "double precision", "float", "real")
_WRONG: Final = re.compile(r"\(+(?:\w+\.)?\"?(\w+)\"?\)::(numeric|double precision|real|text)\)? = ")

_SCANNED: Final = 0.3
"""Full scans per call that show that calls scan the table: some may still run when the watch ends."""

Obstruction = Literal[
    "expression", "cast", "type", "pattern", "wildcard", "or", "not leading", "operator", "invalid"
]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a statement from using an index. `kind` "type" is a parameter of another type.

    "operator" is an operator that the index does not have, although it has one that means the same.
    """

    kind: Obstruction
    index: str
    predicate: Predicate
    type: str = ""


def own_indexes(table: str, evidence: Evidence) -> Iterator[IndexShape]:
    """Yield the valid indexes of a table whose definitions are known."""
    for existing in evidence.indexes.get(table, ()):
        if existing.shape is not None and existing.facts.warning != "invalid":
            yield existing.shape


def obstacle_of(use: Use, want: Want, evidence: Evidence) -> Obstacle | None:
    """Return what keeps a statement from using an index on what it compares; None if there is no index."""
    table = use.table.name
    for each in want.served:
        predicate = each.predicate
        names = (predicate.column,) if predicate.column else predicate.columns
        leading = leading_index(table, names, evidence)
        if predicate.operator in ("like", "ilike", "~", "~*") and leading and predicate.column:
            infix = pattern_kind(predicate) == "infix"
            return Obstacle("wildcard" if infix else "pattern", leading, predicate)
        if leading and (predicate.cast or predicate.expression) and len(names) == 1:
            return Obstacle("cast" if predicate.cast else "expression", leading, predicate)
    if want.ordered or want.wanted.method != "btree" or (want.wanted.predicate and not want.wanted.equal):
        return None
    wanted = {key.column for key in (*want.wanted.equal, *want.wanted.rest)}
    for other in own_indexes(table, evidence):
        if other.method != "btree" or other.predicate or "" in wanted:
            continue
        if wanted < set(other.columns) and other.columns[0] not in wanted:
            return Obstacle("not leading", other.name, want.served[0].predicate)
    return None


def wrong_type(use: Use, statement: Statement, evidence: Evidence) -> Obstacle | None:
    """Return the parameter whose type keeps an index of its column from being used; None if there is none.

    PostgreSQL compares an integer with a numeric by converting the column. The parameter's type is in the
    statement (``$1::numeric``), in the plan's filter (``(id)::numeric``), or known to the client only: then a
    unique index that would fetch one row is not used, although every call compares its column.
    """
    for predicate in use.predicates:
        if predicate.operator not in ("=", "in") or not predicate.column or predicate.cast:
            continue
        index = leading_index(use.table.name, (predicate.column,), evidence)
        column = evidence.column(use.table.name, predicate.column)
        kind = "" if column is None else column.type
        if not index or predicate.value not in ("parameter", "constant", "expression"):
            continue
        given = predicate.value_cast or _filter_cast(statement, predicate.column)
        if kind in INTEGERS and given.startswith(_NUMBERS):
            return Obstacle("type", index, predicate, given)
        if kind == "character" and given in ("text", "character varying"):
            return Obstacle("type", index, predicate, given)
        scans = (use.table.whole_reads or 0.0) >= _SCANNED * (statement.calls or 0)
        if kind in INTEGERS and not given and scans and _one_row(index, use, evidence):
            return Obstacle("type", index, predicate, "")
    return None


def _one_row(index: str, use: Use, evidence: Evidence) -> bool:
    return any(
        own_index.name == index and own_index.unique and len(own_index.keys) == 1
        for own_index in own_indexes(use.table.name, evidence)
    )


def _filter_cast(statement: Statement, column: str) -> str:
    for plan in statement.plans:
        for node in plan.root.walk():
            for name, kind in _WRONG.findall(node.condition("Filter")):
                if name == column:
                    return str(kind)
    return ""


def leading_index(table: str, columns: tuple[str, ...], evidence: Evidence) -> str:
    """Return the name of a B-tree that begins with a column as it is stored; empty if there is none."""
    for index in own_indexes(table, evidence):
        first = index.keys[0]
        plain = first.column and not (first.opclass or first.collation or index.predicate)
        plain = plain and index.method == "btree"
        if plain and first.column in columns:
            return index.name
    return ""
