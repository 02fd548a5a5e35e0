"""Estimate how many rows a condition leaves, and what a scan costs, as PostgreSQL's planner does. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.rules.indexes.keys import called_functions
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.statement import Predicate

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

# ---- the fraction of a table's rows in a range, from a column's statistics ----
#
# See "Row Estimation Examples" in PostgreSQL's manual, and ``scalarineqsel`` and
# ``ineq_histogram_selectivity`` in its ``selfuncs.c``.


RANGES: Final = frozenset({"<", "<=", ">", ">=", "between"})
UNKNOWN_BOUND: Final = 1 / 3
"""PostgreSQL's DEFAULT_INEQ_SEL: the fraction of rows that pass a comparison with an unknown value."""
UNKNOWN_INTERVAL: Final = 0.005
"""PostgreSQL's DEFAULT_RANGE_INEQ_SEL: the fraction of rows between two bounds of which one is unknown."""
_LEAST: Final = 1e-4
"""A histogram of 100 buckets, PostgreSQL's default, cannot show that fewer or more rows pass."""
_NUMBERS: Final = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_LITERAL: Final = re.compile(r"\(*'?([^'()]*)'?\)*(?:::.*)?")
_AND: Final = re.compile(r" and ", re.IGNORECASE)


def fraction_in_range(found: Sequence[Predicate], facts: ColumnFacts | None) -> float | None:
    """Return the fraction of rows that satisfy all these ranges of one column; None if a bound is unknown."""
    lower, upper = 0.0, math.inf
    kept = 1.0 if facts is None else 1.0 - (facts.null_fraction or 0.0)
    for operator, text in (bound for predicate in found for bound in _bounds(predicate)):
        part = None if facts is None else _below(text, operator in ("<=", ">"), facts)
        if part is None:
            return None
        if operator in ("<", "<="):
            upper = min(upper, part)
        else:
            lower = max(lower, part)
    return max(_LEAST**2, min(upper, kept) - lower)


def _bounds(predicate: Predicate) -> list[tuple[str, str]]:
    """Return the operators and values of a range; an empty value is unknown."""
    text = predicate.literal or ""
    if predicate.operator != "between":
        return [(predicate.operator, text)]
    lower, upper = _AND.split(text, maxsplit=1) if _AND.search(text) else ("", "")
    return [(">=", lower), ("<=", upper)]


def _below(text: str, inclusive: bool, facts: ColumnFacts) -> float | None:
    """Return the fraction of all rows with a value below another (or equal to it); None if it is unknown.

    The most common values count by their frequency. The others are spread as the histogram shows.
    """
    value = _position(text, facts.type)
    common = [(_position(each, facts.type), frequency) for each, frequency in facts.common]
    bounds = sorted(each for bound in facts.bounds if (each := _position(bound, facts.type)) is not None)
    if value is None or not (common or len(bounds) > 1):
        return None
    known = sum(frequency for _, frequency in common)
    passing = sum(
        frequency
        for each, frequency in common
        if each is not None and (each < value or (inclusive and each == value))
    )
    others = max(0.0, 1 - (facts.null_fraction or 0.0) - known)
    part = _in_histogram(value, bounds) if len(bounds) > 1 else passing / known
    return passing + others * part


def _in_histogram(value: float, bounds: Sequence[float]) -> float:
    """Return the fraction of a histogram's rows below a value: its buckets have equal numbers of rows."""
    place = bisect_left(bounds, value)
    if place == 0:
        return _LEAST if value == bounds[0] else 0.0
    if place == len(bounds):
        return 1.0
    first, last = list(pairwise(bounds))[place - 1]
    inside = (value - first) / (last - first) if last > first else 0.5
    return min(1 - _LEAST, max(_LEAST, (place - 1 + inside) / (len(bounds) - 1)))


def _position(text: str, kind: str) -> float | None:
    """Return where a value lies on a line; None for types other than numbers and dates."""
    found = _LITERAL.fullmatch(text.strip())
    plain = "" if found is None else found[1]
    try:
        if kind in _NUMBERS:
            return float(plain)
        if kind == "date" or kind.startswith("timestamp"):
            moment = datetime.fromisoformat(plain)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return None


# ---- how many rows a condition leaves, and what a scan costs ----
#
# Costs have the planner's unit: reading one page in sequence. See "Planner Cost Constants" and "Row
# Estimation Examples" in PostgreSQL's manual, and `costsize.c` for the formulas.


_PATTERN: Final = 0.005
"""PostgreSQL's DEFAULT_MATCH_SEL: the fraction of rows that match an unknown pattern."""
_CONTAINS: Final = 0.001
"""PostgreSQL's DEFAULT_CONTAIN_SEL, for containment in documents and arrays; text search has 0.005."""
_DEFAULTS: Final = {
    **dict.fromkeys(("like", "ilike", "~", "~*", "similar to", "@@", "<<", "<<=", ">>", ">>="), _PATTERN),
    **dict.fromkeys(("@>", "<@", "&&", "?", "?|", "?&", "any"), _CONTAINS),
}
_KEEPS_APART: Final = frozenset(
    [
        *("coalesce", "lower", "upper", "initcap", "trim", "btrim", "ltrim", "rtrim", "concat", "reverse"),
        *("md5", "sha256", "encode", "lpad", "rpad", "abs", "unaccent"),
    ]
)
"""Functions whose results differ for nearly all different values of a column."""
_MERGED: Final = 2.0
"""How many values of a column such a function makes equal at most, such as two spellings of a name."""
_PARTS: Final = re.compile(r"->|[/%\[&#]|::\s*(?:date|bool)", re.IGNORECASE)
"""Operators and casts that make many values of a column equal."""
_LIST: Final = 5
"""Values in a list of unknown length."""
_TUPLE: Final = 0.01
_INDEX_TUPLE: Final = 0.005
_OPERATOR: Final = 0.0025
"""Defaults of cpu_tuple_cost, cpu_index_tuple_cost and cpu_operator_cost, which hardly anybody changes."""
_ENTRIES: Final = 300
"""Entries in a page of a B-tree."""
_DESCENT: Final = 50 * _OPERATOR
"""The planner's charge for one level of a B-tree."""


def pages(table: TableFacts, evidence: Evidence) -> float:
    """Return the number of blocks of a table."""
    return max(1.0, (table.bytes or 0) / evidence.block_bytes)


def keeps_apart(expression: str) -> bool:
    """Return whether an expression of a column is different for nearly all different values of the column.

    ``lower(email)`` and ``COALESCE(customer, 0)`` are; the day of a time or a part of a document is not.
    """
    return _KEEPS_APART.issuperset(called_functions(expression)) and not _PARTS.search(expression)


def unique_on(table: str, columns: Iterable[str], evidence: Evidence) -> bool:
    """Return whether a table has a unique index on some of these columns, without a condition."""
    known = set(columns)
    return any(
        existing.shape.unique and not existing.shape.predicate and set(existing.shape.columns) <= known
        for existing in evidence.indexes.get(table, ())
    )


def rows_per_value(table: str, column: str, evidence: Evidence) -> float | None:
    """Return the average number of rows with the same value of a column; None if it is unknown."""
    if unique_on(table, (column,), evidence):
        return 1.0
    facts, distinct = evidence.column(table, column), evidence.distinct(table, column)
    if facts is None or not distinct:
        return None
    return evidence.rows(table) * (1 - (facts.null_fraction or 0.0)) / max(1.0, distinct)


def fraction(predicate: Predicate, table: str, evidence: Evidence) -> float | None:
    """Return the fraction of a table's rows that a predicate leaves; None if nothing is known of it."""
    facts = evidence.column(table, predicate.column) if predicate.column and not predicate.cast else None
    if predicate.operator in RANGES:
        return fraction_of_all((predicate,), table, evidence)
    if predicate.operator in ("=", "in"):
        each = _of_value(predicate, table, facts, evidence)
        number = 1 if predicate.operator == "=" or predicate.value == "subquery" else _LIST
        if predicate.operator == "in" and predicate.literal:
            number = predicate.literal.count(",") + 1
        return None if each is None else min(1.0, each * number)
    if predicate.operator in ("is null", "is not null"):
        nulls = None if facts is None else facts.null_fraction
        return nulls if nulls is None or predicate.operator == "is null" else 1 - nulls
    if predicate.operator in ("is true", "is false") and predicate.column:
        return (
            _of_literal("t" if predicate.operator == "is true" else "f", facts, evidence.rows(table)) or 0.5
        )
    return _DEFAULTS.get(predicate.operator, 1.0)


def fraction_of_all(found: Iterable[Predicate], table: str, evidence: Evidence) -> float | None:
    """Return the fraction of rows that several predicates leave together; None if one is unknown.

    The ranges of one column, such as an upper and a lower bound, count together.
    """
    product, ranges = 1.0, defaultdict[tuple[str, str, str], list[Predicate]](list)
    for predicate in found:
        if predicate.operator in RANGES:
            ranges[predicate.column, predicate.cast, predicate.expression].append(predicate)
            continue
        each = fraction(predicate, table, evidence)
        if each is None:
            return None
        product *= each
    for same in ranges.values():
        known = fraction_of_range(same, table, evidence)
        product *= _of_unknown_range(same) if known is None else known
    return product


def fraction_of_range(found: Sequence[Predicate], table: str, evidence: Evidence) -> float | None:
    """Return the fraction of rows in the ranges of one column, by its statistics; None if it is unknown."""
    column = found[0].column
    facts = evidence.column(table, column) if column and not found[0].cast else None
    return fraction_in_range(found, facts)


def _of_unknown_range(found: Sequence[Predicate]) -> float:
    """Return the fraction of rows that PostgreSQL assumes for ranges with an unknown bound."""
    sides = {predicate.operator[0] for predicate in found}
    return UNKNOWN_INTERVAL if "b" in sides or len(sides) > 1 else UNKNOWN_BOUND


def _of_value(
    predicate: Predicate, table: str, facts: ColumnFacts | None, evidence: Evidence
) -> float | None:
    rows = evidence.rows(table)
    value = predicate.literal
    if predicate.value == "constant" and value is not None and predicate.operator == "=":
        known = _of_literal({"true": "t", "false": "f"}.get(value, value), facts, rows)
        if known is not None:
            return known
    each = rows_per_value(table, predicate.column, evidence) if predicate.column else None
    if each is not None and rows:  # a cast seldom makes different values equal
        return min(1.0, each / rows)
    if predicate.column and predicate.cast:
        return None
    if predicate.columns and rows:  # an expression of a column has at most as many values as the column
        each = rows_per_value(table, predicate.columns[0], evidence)
        if each is None or len(predicate.columns) > 1:
            return None
        least = each / rows * _MERGED if keeps_apart(predicate.expression) else _PATTERN
        return min(1.0, max(each / rows, least))
    return None


def _of_literal(value: str, facts: ColumnFacts | None, rows: float) -> float | None:
    """Return the fraction of rows with a value: its frequency, or an equal part of the uncommon ones."""
    if facts is None or facts.distinct is None:
        return None
    for common, frequency in facts.common:
        if common == value:
            return frequency
    distinct = -facts.distinct * rows if facts.distinct < 0 else facts.distinct
    others = 1 - (facts.null_fraction or 0.0) - sum(frequency for _, frequency in facts.common)
    left = distinct - len(facts.common)
    return max(0.0, others) / left if left >= 1 else 1e-4


def scan_cost(table: TableFacts, evidence: Evidence) -> float:
    """Return the planner's cost of a sequential scan with one condition."""
    return pages(table, evidence) + evidence.rows(table.name) * (_TUPLE + _OPERATOR)


def index_cost(
    table: TableFacts, rows: float, evidence: Evidence, correlation: float = 0.0, searches: float = 1.0
) -> float:
    """Return the planner's cost of fetching so many rows by an index: a plain or a bitmap scan.

    `correlation` says how far the order of the index is that of the table, -1 to 1. If a join repeats the
    search, `searches` times with a value each, the cost is the average: the blocks that one search has read
    are in memory for the next (see `loop_count` in `cost_index` and `genericcostestimate`).
    """
    random = _setting(evidence, "random_page_cost", 4.0)
    whole, held = pages(table, evidence), max(1.0, evidence.rows(table.name))
    spread = _pages_read(whole, rows * searches) / searches
    near = math.ceil(whole * rows / held)
    worst = spread * random
    if searches > 1:
        best = random * _pages_read(whole, near * searches) / searches
    else:
        best = random + max(0, near - 1)
    plain = worst + correlation**2 * (min(worst, best) - worst)
    bitmap = spread * (random - (random - 1) * math.sqrt(spread / whole)) + rows * _OPERATOR
    leaves = _pages_read(max(1.0, held / _ENTRIES), searches) / searches
    depth = math.ceil(math.log(max(2.0, held), _ENTRIES))
    return (
        min(plain, bitmap)
        + (leaves if searches > 1 else 1.0) * random
        + rows * (_TUPLE + _INDEX_TUPLE + _OPERATOR)
        + (depth + 1) * _DESCENT
    )


def _pages_read(whole: float, rows: float) -> float:
    """Return how many of a table's pages hold so many rows, if the cache keeps each (Mackert and Lohman)."""
    return min(whole, 2 * whole * rows / (2 * whole + rows)) if rows else 0.0


def _setting(evidence: Evidence, name: str, default: float) -> float:
    try:
        return float(evidence.catalogue.setting(name) or default)
    except ValueError:
        return default
