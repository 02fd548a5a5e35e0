"""Draw values of a column with the frequencies that the planner's statistics give them. Pure."""

from __future__ import annotations

import math
import re
import uuid
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from random import Random
from typing import Final

from uncork.model.database.catalogue import ColumnFacts

_INTEGERS: Final = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}
_NUMBERS: Final = frozenset({"numeric", "real", "double precision"})
_TIMES: Final = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_TEXTS: Final = frozenset({"text", "character varying", "character"})
_CUT: Final = 60
"""A watch stores that many characters of a value; a value of this length may be cut."""
_DENSE: Final = 0.5
"""The fraction of the integers between two bounds that must exist for others to be drawn between them."""
_LIKE: Final = re.compile(r"([\\%_])")
_ESCAPED: Final = r"\\\1"
_TRIGRAM: Final = 3
_CHARACTERS: Final = 16
_COMMON: Final = 0.5
_RARE: Final = 0.005
_RIGHT: Final = 3.0
"""Factor up to which the average number of rows of drawn values may differ from that of the calls."""
_STEEPEST: Final = 5.0
"""Exponent beyond which practically only the rarest, or the most common value is left."""
_STEPS: Final = 30
_WIDTH: Final = 20
_SIZE: Final = re.compile(r"\((\d+)")


def is_integer(column: ColumnFacts) -> bool:
    """Return whether a column has integers."""
    return column.type in _INTEGERS


def strata(many: int, chance: Random) -> list[float]:
    """Return one number of each of `many` equal parts of 0 to 1, in random order.

    Values that are drawn with them have their frequencies up to 1 / `many`, which independent draws miss.
    """
    found = [(place + chance.random()) / many for place in range(many)]
    chance.shuffle(found)
    return found


@dataclass(frozen=True)
class ColumnDraw:
    """The values of a column. `rows` is the number of rows of its table, 0 if it is unknown.

    `sampled` is true if the values come from rows, so that none is cut, and arrays are values too.
    """

    column: ColumnFacts
    rows: float = 0.0
    sampled: bool = False

    @cached_property
    def common(self) -> tuple[tuple[str, float], ...]:
        """The most common values that are known whole, with their frequencies."""
        return tuple(pair for pair in self.column.common if self.sampled or len(pair[0]) != _CUT)

    @cached_property
    def bounds(self) -> tuple[str, ...]:
        """The bounds of the histogram that are known whole."""
        return tuple(value for value in self.column.bounds if len(value) != _CUT)

    @property
    def known(self) -> bool:
        """Whether there are values to draw."""
        return bool(self.common or self.bounds) and not self.column.type.endswith("[]")

    def value(self, point: float, *, existing: bool = False) -> str:
        """Return the value at a point from 0 to 1: the common values first, then the histogram.

        Each value takes a part of the points as large as its frequency among values that are not null. With
        `existing`, values between two bounds are not made up, because a row may have to have them.
        """
        shared = sum(often for _, often in self.common)
        rest = max(0.0, 1.0 - (self.column.null_fraction or 0.0) - shared) if len(self.bounds) > 1 else 0.0
        at = point * (shared + rest)
        for value, often in self.common:
            if at < often:
                return value
            at -= often
        if not rest:
            return (self.bounds or (self.common[-1][0],))[0]
        return self._in_histogram(at / rest, between=not existing and self._dense)

    def for_rows(self, point: float, rows: float) -> float:
        """Return a point like `point` for `value`, so that the values have `rows` rows each on average.

        An application often asks for values that few rows have, such as the state of what is still to do.
        Then values with few rows are drawn more often than their frequency: each value is weighted with a
        power of its frequency, with the exponent that makes the average right. If the frequencies alone are
        right up to a factor of three, or no value has so few or so many rows, the point stays as it is.
        """
        parts = self._parts
        usual = self.rows * _average(parts, 1.0)
        fewest, most = (self.rows * pick((share for _, share in parts), default=0.0) for pick in (min, max))
        right = usual / _RIGHT <= rows <= usual * _RIGHT
        if right or not fewest / _RIGHT <= rows <= most * _RIGHT:
            return point
        low, high = -_STEEPEST, _STEEPEST
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.rows * _average(parts, middle) < rows else (low, middle)
        return self.weighted(point, low)

    def weighted(self, point: float, power: float) -> float:
        """Return a point for `value` at which each value is weighted with a power of its frequency.

        With 1, each has its frequency; with 0, all values are equally likely.
        """
        weights = [many * math.pow(share, power) for many, share in self._parts]
        at, begin = point * math.fsum(weights), 0.0
        whole = math.fsum(many * share for many, share in self._parts)
        for (many, share), weight in zip(self._parts, weights, strict=True):
            if at < weight:
                return (begin + at / weight * many * share) / whole
            at -= weight
            begin += many * share
        return point

    @property
    def is_lopsided(self) -> bool:
        """Whether half of the rows have one value, and so few have another that 200 rows may lack it."""
        shares = [share for _, share in self._parts]
        return bool(shares) and max(shares) >= _COMMON and min(shares) < _RARE

    @cached_property
    def _parts(self) -> list[tuple[float, float]]:
        """How many values have which frequency: each common value, and the average of the others."""
        found = [(1.0, often) for _, often in self.common if often > 0]
        shared = math.fsum(often for _, often in found)
        rest = 1.0 - (self.column.null_fraction or 0.0) - shared
        distinct = self.column.distinct or 0.0
        many = (distinct if distinct > 0 else -distinct * self.rows) - len(found)
        if len(self.bounds) > 1 and rest > 0:
            many = max(many, 1.0)
            found.append((many, rest / many))
        return found

    def quantile(self, point: float) -> str:
        """Return the value below which this part of the rows is, to bound a range."""
        if len(self.bounds) >= 2:
            return self._in_histogram(point, between=True)
        ranked = sorted(self.common, key=lambda one: _order(one[0]))
        at = point * sum(often for _, often in ranked)
        for value, often in ranked:
            if at < often:
                return value
            at -= often
        return ranked[-1][0] if ranked else self.bounds[0]

    def position(self, value: str) -> float | None:
        """Return the part of the rows with smaller values; None if the histogram does not say."""
        keys = [_order(bound) for bound in self.bounds]
        wanted = _order(value)
        if len(keys) < 2 or wanted[0] != keys[0][0]:
            return None
        place = bisect_left(keys, wanted)
        if place in (0, len(keys)):
            return float(place > 0)
        low, high = keys[place - 1][1], keys[place][1]
        inner = float((wanted[1] - low) / (high - low)) if high > low else 0.0
        return (place - 1 + inner) / (len(keys) - 1)

    @cached_property
    def _dense(self) -> bool:
        """Whether most integers between the bounds exist; other types have values that nobody can make up."""
        if self.column.type not in _INTEGERS or len(self.bounds) < 2:
            return False
        span = int(self.bounds[-1]) - int(self.bounds[0]) + 1
        distinct = self.column.distinct
        if distinct is None or (distinct < 0 and not self.rows):
            return True
        return (distinct if distinct > 0 else -distinct * self.rows) >= _DENSE * span

    def _in_histogram(self, point: float, *, between: bool) -> str:
        """Return a value of the histogram, whose bounds have equally many rows between them."""
        if len(self.bounds) == 1:
            return self.bounds[0]
        at = min(max(point, 0.0), 1.0) * (len(self.bounds) - 1)
        place = min(int(at), len(self.bounds) - 2)
        if between:
            found = _between(self.column.type, self.bounds[place], self.bounds[place + 1], at - place)
            if found is not None:
                return found
        return self.bounds[round(at)]

    @property
    def largest(self) -> int:
        """The largest integer that is known of an integer column."""
        return max((int(bound) for bound in (*self.bounds, *(value for value, _ in self.common))), default=0)

    @property
    def limit(self) -> int:
        """The largest integer that fits into the column."""
        return _INTEGERS[self.column.type]


def _average(parts: Sequence[tuple[float, float]], power: float) -> float:
    """Return the average frequency of values that are weighted with a power of their frequency."""
    weights = [many * math.pow(share, power) for many, share in parts]
    whole = math.fsum(weights)
    shares = math.fsum(weight * share for weight, (_, share) in zip(weights, parts, strict=True))
    return shares / whole if whole else 0.0


def filler(column: ColumnFacts, chance: Random) -> str | None:
    """Return a value to store in a column without statistics; None if its type needs a known value.

    Its content decides no plan; its length decides how much is written.
    """
    kind = column.type
    if kind in _TEXTS:
        size = _SIZE.search(column.storage_type)
        width = round(column.width or _WIDTH)
        width = max(1, min(width, int(size[1]) if size else width))
        return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=width))
    if kind in _INTEGERS or kind in _NUMBERS:
        return str(chance.randrange(10))
    if kind in _TIMES:
        return "now"
    if kind == "uuid":
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))
    return {"boolean": "true", "jsonb": "{}", "json": "{}", "bytea": "\\x"}.get(kind)


def pattern_of(value: str, column: ColumnDraw, part: float, *, infix: bool = False) -> str:
    """Return a pattern for LIKE that finds the values with the same beginning, at most a part of all.

    The statistics hold few values, so a part of less than one of them cannot be found out. With `infix`, the
    pattern finds values with the same text in their middle, of three characters at least. There, each
    character more is assumed to leave a sixteenth of the rows.
    """
    every = [*column.bounds, *(text for text, _ in column.common)]
    least = max(part * len(every), 1.0)
    if infix:
        beyond = math.log(1 / (part * len(every)), _CHARACTERS) if 0 < part * len(every) < 1 else 0.0
        lengths = range(_TRIGRAM, len(value))
        rare = (each for each in lengths if sum(_middle(value, each) in text for text in every) <= least)
        short = next(rare, len(value))
        inner = _middle(value, short + math.ceil(beyond))
        return f"%{_LIKE.sub(_ESCAPED, inner)}%"
    prefixes = (value[:length] for length in range(1, len(value)))
    few = (prefix for prefix in prefixes if sum(text.startswith(prefix) for text in every) <= least)
    return _LIKE.sub(_ESCAPED, next(few, value)) + "%"


def _middle(value: str, length: int) -> str:
    return value[max(0, len(value) - length) // 2 :][:length]


def _between(kind: str, low: str, high: str, part: float) -> str | None:
    try:
        if kind in _INTEGERS:
            return str(int(low) + math.floor((int(high) - int(low)) * part))
        if kind in _NUMBERS:
            first, last = Decimal(low), Decimal(high)
            digits = max(0, -int(first.as_tuple().exponent), -int(last.as_tuple().exponent))
            return f"{first + (last - first) * Decimal(part):.{min(digits, 15)}f}"
        if kind == "date":
            begin, end = date.fromisoformat(low), date.fromisoformat(high)
            return (begin + (end - begin) * part).isoformat()
        if kind in _TIMES:
            start, stop = datetime.fromisoformat(low), datetime.fromisoformat(high)
            return (start + (stop - start) * part).isoformat(sep=" ")
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        pass  # infinity, years before Christ, or another DateStyle
    return None


def _order(value: str) -> tuple[int, Decimal, str]:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return (1, Decimal(0), value)
    return (0, number, "") if number.is_finite() else (1, Decimal(0), value)
