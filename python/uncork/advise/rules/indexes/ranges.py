"""Estimate the fraction of a table's rows in a range from a column's statistics, as PostgreSQL does. Pure.

See "Row Estimation Examples" in PostgreSQL's manual, and ``scalarineqsel`` and ``ineq_histogram_selectivity``
in its ``selfuncs.c``.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts
    from uncork.model.database.statement import Predicate

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
