"""The rows that a statement returns, in one form for all engines, and how two answers differ. Pure.

Engines and drivers return the same value as different types: a number as int, Decimal or float, a timestamp
as a timestamp or as text, a boolean as a flag or as 0 and 1. uncork therefore writes each value as a text
that begins with its kind:

- NULL: None
- ``=5``, ``=-0.25``: an exact number without superfluous zeros; booleans are 0 and 1
- ``~0.1``: a float, in its shortest form. A float equals another number if the two differ by at most
  `TOLERANCE` of the larger
- ``'text``: text. A timestamp is text too: ``2024-03-31 01:00:00``, with its fraction if it has one, in UTC
  and ending in ``+00`` if it has a time zone; midnight without a zone equals its date
- ``xff``: bytes
- ``[...``: a list or a mapping, as JSON of such texts
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from types import UnionType
from typing import Any

from uncork.model.records import Record
from uncork.model.units import count_words

TOLERANCE = 1e-9
"""Floats whose relative difference is smaller count as equal: engines add in different orders."""

_DIGITS = 9
"""Significant digits of a float that go into a digest."""

Value = str | None
Row = tuple[Value, ...]


class Answer(Record):
    """The rows that one execution of a statement returned; `operation` counts from 1."""

    operation: int
    statement: str
    rows: tuple[Row, ...]


def canonical(value: object) -> Value:
    """Return a driver's value as text in the shared form."""
    if value is None:
        return None
    for types, write in _WRITERS:
        if isinstance(value, types):
            return write(value)
    return f"'{value}"


def plain(value: Value) -> str | None:
    """Return a value as a person, or a parameter, writes it."""
    return None if value is None else value[1:]


def digest(rows: Iterable[Row], *, ordered: bool) -> str:
    """Return a digest of rows, independent of their order unless `ordered`. Floats enter with nine digits."""
    lines = [json.dumps(list(map(_rounded, row))) for row in rows]
    return hashlib.sha256("\n".join(lines if ordered else sorted(lines)).encode()).hexdigest()


def difference(
    expected: Sequence[Answer],
    found: Sequence[Answer],
    *,
    ordered: bool,
    gave: str = "the baseline gives",
) -> str | None:
    """Return the first difference between two answers, to follow ``wrong answer: ``; None if they are equal.

    Rows in any order are sorted before they are compared; with `ordered`, they are compared as they came.
    `gave` introduces what is expected.
    """
    for theirs, ours in itertools.zip_longest(expected, found):
        if theirs is None or ours is None:
            return f"{count_words(len(found), 'answer')} where {gave} {len(expected)}"
        if digest(theirs.rows, ordered=ordered) == digest(ours.rows, ordered=ordered):
            continue
        place = f"{ours.statement}, operation {ours.operation}"
        told = _first_row(theirs.rows, ours.rows, gave, ordered=ordered)
        if told is not None:
            return f"{told} ({place})"
    return None


def _first_row(expected: Sequence[Row], found: Sequence[Row], gave: str, *, ordered: bool) -> str | None:
    if not ordered:
        expected, found = sorted(expected, key=_sort_key), sorted(found, key=_sort_key)
    counts = ""
    if len(expected) != len(found):
        counts = f"{count_words(len(found), 'row')} where {gave} {len(expected)}; "
    how = "" if ordered else " in sorted order"
    for number, (theirs, ours) in enumerate(itertools.zip_longest(expected, found), start=1):
        if theirs is None or ours is None:
            extra, whose = (ours, "only it has") if theirs is None else (theirs, "it lacks")
            return f"{counts}the first row that differs{how} is row {number}: {whose} {_shown(extra or ())}"
        if len(theirs) != len(ours) or not all(map(_same, theirs, ours)):
            place = f"{counts}the first row that differs{how} is row {number}"
            return f"{place}: {_shown(ours)} where {gave} {_shown(theirs)}"
    return None


def _same(value: Value, other: Value) -> bool:
    if value == other:
        return True
    if value is None or other is None or "~" not in (value[0], other[0]) or {value[0], other[0]} - set("~="):
        return False
    return math.isclose(float(value[1:]), float(other[1:]), rel_tol=TOLERANCE)


def _sort_key(row: Row) -> tuple[tuple[tuple[int, float, str], ...], ...]:
    """Sort by exact values first: two equal fractions may be rounded to either side."""
    keys = [_value_key(value) for value in row]
    return tuple(key for key in keys if key[0] < 3), tuple(key for key in keys if key[0] == 3)


def _value_key(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if value[0] not in "=~":
        return (2, 0.0, value)
    number = float(value[1:])
    return (1, number, "") if number.is_integer() else (3, float(f"{number:.{_DIGITS}g}"), "")


def _rounded(value: Value) -> Value:
    if value is None or value[0] != "~":
        return value
    number = float(value[1:])
    return _exact(Decimal(f"{number:.{_DIGITS}g}")) if math.isfinite(number) else f"={number}"


def _exact(number: Decimal) -> str:
    if not number.is_finite():
        return f"~{float(number)!r}"
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "=0" if text in ("-0", "", "-") else f"={text}"


def _moment(value: datetime.date | datetime.time | datetime.timedelta) -> str:
    if not isinstance(value, datetime.datetime):
        return str(value)
    if value.tzinfo is None:
        return _date_or_text(value.isoformat(sep=" "))
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(sep=" ") + "+00"


def _date_or_text(text: str) -> str:
    """Drop a time of midnight: SQLite and others have no date type, and write dates in several ways."""
    return text.removesuffix(" 00:00:00") if len(text) == 19 and text[4] == text[7] == "-" else text


def _shown(row: Row) -> str:
    cells = ["NULL" if value is None else value[1:] for value in row]
    return "(" + ", ".join(cell if len(cell) <= 60 else f"{cell[:57]}..." for cell in cells) + ")"


_WRITERS: tuple[tuple[type | UnionType, Callable[[Any], str]], ...] = (
    (int, lambda value: f"={int(value)}"),  # a flag too
    (Decimal, _exact),
    (float, lambda value: f"~{value!r}"),
    (str, lambda value: f"'{_date_or_text(value)}"),
    (datetime.date | datetime.time | datetime.timedelta, lambda value: f"'{_moment(value)}"),
    (bytes | bytearray | memoryview, lambda value: f"x{bytes(value).hex()}"),
    (Mapping, lambda value: "[" + json.dumps({str(key): canonical(value[key]) for key in sorted(value)})),
    (Sequence, lambda value: "[" + json.dumps(list(map(canonical, value)))),
)
"""How to write values of each type; the first type that fits wins."""
