"""Choose the index that a use of a table wants: its columns in order, its method, its condition. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import (
    fraction,
    fraction_of_all,
    index_cost,
    keeps_apart,
    pages,
    rows_per_value,
)
from uncork.diagnosis.rules.indexes.keys import Served, Wanted, collated_key, served_by
from uncork.diagnosis.rules.indexes.uses import Use, is_aggregated, nodes_of
from uncork.diagnosis.rules.plans.costs import rows_returned
from uncork.model.database.index import IndexKey
from uncork.model.database.names import quoted
from uncork.model.database.statement import OrderKey, Predicate

_FEW_ROWS: Final = 10.0
"""Rows for each combination of keys from which on another key saves nothing: they are in a few blocks."""
_ADDS: Final = 0.5
"""A key that leaves more than this fraction of the rows adds more to the index than it saves."""
_RARE: Final = 0.2
"""Fraction of the rows up to which a condition such as IS NULL makes a partial index much smaller."""
_UNKNOWN: Final = 0.01
"""Assumed fraction of an equality without statistics: PostgreSQL assumes 200 distinct values, 0.005."""
_MOST_KEYS: Final = 4
_STOPS_AFTER: Final = 0.1
"""Part of a table's blocks that a call must read to be a scan of it, not a search by an index."""
_FIRST: Final = 10.0
"""Rows that are assumed to be read for the first ones of an order: in a subquery, or for min and max."""


@dataclass(frozen=True, slots=True)
class Want:
    """An index that a use of a table wants; `fetched` is how many rows a search by it fetches.

    `served` are the predicates that it serves. `ordered` is true if it returns rows in the order of LIMIT.
    """

    wanted: Wanted
    served: tuple[Served, ...]
    fetched: float
    ordered: bool = False


def passing(use: Use, statement: Statement, evidence: Evidence) -> float | None:
    """Return the measured or planned fraction of the rows that pass all predicates; None if unknown.

    The rows that a statement returns show it, unless it aggregates, joins or limits them. A generic plan, or
    one with drawn values, shows only that of equalities, because it does not know the bounds of ranges.
    """
    rows, shape = evidence.rows(use.table.name), statement.shape
    if not rows or shape is None:
        return None
    returned = statement.a_call(statement.rows)
    if returned is not None and use.alone and not is_aggregated(shape):
        if not shape.limit:
            return min(1.0, returned / rows)
        blocks = statement.a_call(statement.blocks)
        if not shape.order and blocks is not None and blocks >= _STOPS_AFTER * pages(use.table, evidence):
            # The scan stopped at the last row of LIMIT, after this part of the table.
            return min(1.0, returned / rows / min(1.0, blocks / pages(use.table, evidence)))
    plan = statement.plan
    if plan is None or (plan.source in ("generic", "drawn") and _is_guess(use)):
        return None
    if plan.source != "executed" and any(_is_assumed(predicate) for predicate in use.predicates):
        return None
    found = [rows_returned(node) for node in nodes_of(statement, use.table.name, evidence)]
    return min(1.0, sum(found) / rows) if found else None


def want_of(use: Use, statement: Statement, evidence: Evidence) -> Want | None:
    """Return the index that fetches rows of a use most cheaply; None if no index can."""
    return next(iter(wants_of(use, statement, evidence)), None)


def wants_of(use: Use, statement: Statement, evidence: Evidence) -> list[Want]:
    """Return the indexes that serve a use, the cheapest for one search first.

    A search by a join may be repeated for each row of the other table, so an index that serves the
    other conditions alone is one of them.
    """
    served = [
        found
        for predicate in use.predicates
        if (found := served_by(predicate, use.table.name, evidence)) is not None
    ]
    own = [each for each in served if each.predicate.value != "column"]
    trees = [
        _btree(use, some, statement, evidence) for some in ((served, own) if own != served else (served,))
    ]
    special = [_special(use, each, statement, evidence) for each in served]
    options = [want for want in (*trees, *special) if want is not None]
    return sorted(options, key=lambda each: index_cost(use.table, each.fetched, evidence))


def _is_guess(use: Use) -> bool:
    return any(
        predicate.operator not in ("=", "in", "is null", "is true", "is false", "is not null")
        for predicate in use.predicates
    )


def _is_assumed(predicate: Predicate) -> bool:
    """Return whether the planner assumes a constant fraction of rows, whatever the statistics say.

    It does for ``= ANY`` of a column of arrays, and for an expression, of which it has no statistics.
    """
    whole = not predicate.column and predicate.operator in ("=", "in") and keeps_apart(predicate.expression)
    return predicate.operator == "any" or (whole and bool(predicate.expression))


def _btree(use: Use, served: Sequence[Served], statement: Statement, evidence: Evidence) -> Want | None:
    table = use.table.name
    rows = evidence.rows(table)
    equal = [each for each in served if each.role == "equal"]
    ranked = sorted(equal, key=lambda each: _selectivity(each.predicate, table, evidence))
    condition = ""
    kept: list[Served] = []
    left = rows
    for each in ranked:
        part = _selectivity(each.predicate, table, evidence)
        if part > _ADDS or left <= _FEW_ROWS or len(kept) >= _MOST_KEYS:
            continue
        if each.predicate.operator in ("is null", "is true", "is false"):
            if part <= _RARE and not condition:
                condition = _condition(each.predicate)
                kept.append(each)
                left *= part
            continue
        kept.append(each)
        left *= part
    keys = tuple(dict.fromkeys(each.key for each in kept if not _condition(each.predicate)))
    ordered = bool(use.order) and left > _FEW_ROWS and not any(each.many for each in kept)
    ranges = [each for each in served if each.role == "range" and each.key not in keys]
    rest: tuple[IndexKey, ...] = ()
    if ordered:
        order = _order_keys(use.order, table, evidence)
        rest = tuple(key for key in order if key.column not in _columns(keys))
        bounded = [each for each in ranges if each.key.column in _columns(rest)]
        kept += bounded
    elif ranges and left > _FEW_ROWS:
        best = min(_by_key(ranges), key=lambda each: _fraction(each, table, evidence))
        if _fraction(best, table, evidence) <= _ADDS:
            rest, kept = (best[0].key,), [*kept, *best]
    if not keys and not rest:
        if not condition:
            return None
        rest = _any_key(table, evidence)
        if not rest:
            return None
    return Want(
        Wanted(table, keys, rest, predicate=condition),
        tuple(kept),
        _fetched(kept, use, statement, evidence, ordered=ordered and bool(rest)),
        ordered and bool(rest),
    )


def _special(use: Use, each: Served, statement: Statement, evidence: Evidence) -> Want | None:
    if each.role != "special":
        return None
    wanted = Wanted(use.table.name, (each.key,), method=each.method, extension=each.extension)
    return Want(wanted, (each,), _fetched([each], use, statement, evidence, ordered=False))


def _fetched(
    kept: Sequence[Served], use: Use, statement: Statement, evidence: Evidence, *, ordered: bool
) -> float:
    """Return how many rows a search by these predicates fetches, at most as many as a LIMIT shows."""
    rows = evidence.rows(use.table.name)
    found = [each.predicate for each in kept]
    estimate = fraction_of_all(found, use.table.name, evidence)
    part = _UNKNOWN if estimate is None else estimate
    measured = passing(use, statement, evidence)
    listed = any(each.predicate.operator == "in" and each.predicate.value == "subquery" for each in kept)
    if measured is not None and not use.joins and not listed:
        others = [
            predicate
            for predicate in use.predicates
            if predicate not in found and predicate.operator not in ("<>", "not in")
        ]
        part = measured if not others or measured > part else max(measured, min(part, 1.0))
    fetched = part * rows
    returned = statement.a_call(statement.rows)
    extreme = statement.shape is not None and bool(statement.shape.aggregates)
    inner = any(key.level for key in use.order)
    first = returned if use.alone and not extreme else _FIRST if use.joins or extreme or inner else None
    if ordered and first is not None:
        others = [predicate for predicate in use.predicates if predicate not in found]
        rest = fraction_of_all(others, use.table.name, evidence) or 1.0
        fetched = min(fetched, max(1.0, first) / max(rest, 1e-3))
    return fetched


def _selectivity(predicate: Predicate, table: str, evidence: Evidence) -> float:
    part = fraction(predicate, table, evidence)
    unknown = _UNKNOWN if predicate.operator in ("=", "in") else _ADDS
    return unknown if part is None else part


def _by_key(found: Sequence[Served]) -> list[list[Served]]:
    """Group ranges by the key that serves them: the bounds of an interval belong together."""
    return [[each for each in found if each.key == key] for key in dict.fromkeys(each.key for each in found)]


def _fraction(found: Sequence[Served], table: str, evidence: Evidence) -> float:
    part = fraction_of_all([each.predicate for each in found], table, evidence)
    return _ADDS if part is None else part


def _condition(predicate: Predicate) -> str:
    words = {"is null": "IS NULL", "is true": "IS TRUE", "is false": "IS FALSE"}.get(predicate.operator)
    return f"{quoted(predicate.column)} {words}" if words and predicate.column else ""


def _columns(keys: Sequence[IndexKey]) -> set[str]:
    return {key.column for key in keys if key.column}


def _order_keys(order: Sequence[OrderKey], table: str, evidence: Evidence) -> tuple[IndexKey, ...]:
    """Return the keys of an order; an index is read backwards just as well, so one that falls only rises."""
    keys = tuple(
        replace(
            IndexKey(key.column) if key.column else collated_key(key.expression, table, evidence),
            descending=key.descending,
            nulls_first=key.nulls_first,
        )
        for key in order
    )
    if all(key.descending for key in keys):
        keys = tuple(
            replace(
                key, descending=False, nulls_first=None if key.nulls_first is None else not key.nulls_first
            )
            for key in keys
        )
    return tuple(replace(key, nulls_first=None) if key.nulls_first == key.descending else key for key in keys)


def _any_key(table: str, evidence: Evidence) -> tuple[IndexKey, ...]:
    """Return a short key for a partial index whose condition is all that a statement searches for."""
    for constraint in evidence.catalogue.constraints:
        if constraint.table == table and constraint.kind == "primary key" and len(constraint.columns) == 1:
            return (IndexKey(constraint.columns[0]),)
    columns = evidence.catalogue.columns.get(table, ())
    unique = [column.name for column in columns if rows_per_value(table, column.name, evidence) == 1.0]
    return tuple(IndexKey(name) for name in [*unique, *(column.name for column in columns)][:1])
